"""What an exhibit shows: all of it as lines, and whether Python draws the same state alike."""

import json
import re

# All that a reader sees or hears: a line for each node. What an exhibit says and its link are no
# state; the reasons and verdicts of a question are.
SEEN = r"""(root, { html, awake, scaled }) => {
  const STATE = "value|selected|disabled|checked";
  const DATA = "given|lm.*|hop|hand|busy|lit|reached|before";  // given, and lit
  const page = new DOMParser().parseFromString(html ?? "", "text/html");
  root = html ? page.querySelector(root.localName) : root;
  return JSON.stringify([...root.querySelectorAll("*")]
    .filter((e) => !e.closest(`script, style, template, .tl-said, .tl-how, .tl-news,
      :is(.tl-row, .tl-onward) > a, :is(.tl-board, .tl-sentence) > svg`))
    .filter((e) => !scaled || !e.matches(scaled))
    .filter((e) => awake || !e.closest(`[hidden], [role=grid]:has(> [role=row])`))
    .map((e) => {
      const own = [...e.childNodes].filter((n) => n.nodeType == 3).map((n) => n.data).join(" ")
        .replace(/\s+/g, " ").trim();
      const added = awake ? /^(tabindex|id|data-(given|met))$|describedby/
        : RegExp(`^(tabindex|id|${STATE}|role|hidden|visibility|aria-.*|data-(${DATA}))$`);
      const marked = awake || !e.closest(".tl-grids");
      const given = [...e.attributes].filter(({ name }) => marked && !added.test(name))
        .map(({ name, value }) => `${name}=${value}`).sort();
      const presses = !awake && e.localName == "button" && e.ariaPressed == "true";
      const pressed = presses || e.checked ? ["pressed"] : [];
      return [e.localName, own, e.value ?? "", e.ariaLabel ?? "", ...pressed, ...given];
    }));
}"""
# What says nothing: what is not so, the end of a style, a tint of nothing, and on the map what the
# change before this one moved.
NOTHING = re.compile(
    r"(?<=[:;]) | ?; ?$|^(style=(--n: ?0%)?;?|aria-selected=false|class=|data-moved="
    r"|data-fate=)$"
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?(?=[%\s|,;)A-Za-z]|$)")


def seen(exhibit, *, html=None, awake=True, scaled=""):
    """List of each node its name, text, value, label and, as one text, its attributes."""
    found = json.loads(exhibit.evaluate(SEEN, {"html": html, "awake": awake, "scaled": scaled}))
    attributes = ([NOTHING.sub("", one) for one in line[4:]] for line in found)
    more = ["|".join(filter(None, texts)) for texts in attributes]
    return [(*line[:4], rest) for line, rest in zip(found, more, strict=True)]


def differences(found, drawn):
    """List nodes that differ, numbers of attributes by the digits drawn, two decimals or more."""
    if len(found) != len(drawn):
        return [(len(found), len(drawn))]
    return [pair for pair in zip(found, drawn, strict=True) if not _alike(*pair)]


def _alike(found, drawn):
    # Python may leave a value and a label to the script.
    if any(one not in ("", other) for one, other in zip(drawn[2:4], found[2:4], strict=True)):
        return False
    (*texts, _, _, more), (*others, _, _, rest) = found, drawn
    if texts != others or NUMBER.sub("", more) != NUMBER.sub("", rest):
        return False
    pairs = zip(NUMBER.findall(more), NUMBER.findall(rest), strict=True)
    return all(abs(float(a) - float(b)) <= _last_digit(b) / 2 + 1e-9 for a, b in pairs)


def _last_digit(text):
    return 10.0 ** -max(2, len(text.partition(".")[2]))


def assert_shows(exhibit, element, *, besides=""):
    """Compare what a script shows, but for some nodes, with what Python draws of the same state."""
    forms = None, element.html
    found, drawn = (seen(exhibit, html=html, awake=False, scaled=besides) for html in forms)
    wrong = differences(found, drawn)
    assert not wrong, f"{len(wrong)} of {len(found)} nodes differ, such as {wrong[:3]}"
