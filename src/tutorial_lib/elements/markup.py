"""What all elements are made of: HTML that reads without a script, and text beside it."""

import json
import re
from dataclasses import dataclass
from html import escape, unescape

from tutorial_lib.elements.sources import script, style

RIGHT = '<b class="tl-right">✓ Right.</b>'
WRONG = '<b class="tl-wrong">✗ Not this one.</b>'
# Until the style sheet and the script are there: JupyterLab drops both, and the attribute
# `hidden`, from a notebook that it does not trust.
HIDDEN = 'style="display:none"'
# JupyterLab takes a key pressed in an output for a command to the notebook, except here.
KEYS = "data-lm-suppress-shortcuts"
NEWS = '<p class="tl-news" aria-live="polite"></p>'  # heard, not seen


@dataclass(frozen=True)
class Element:
    """What a cell shows: HTML where there is a page, text everywhere else."""

    html: str
    text: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self):
        return self.text


def wrap(kind, name, label, body):
    """Wrap a form: its style before it, its script after it, so that both are in time."""
    family = kind.split("-")[0]
    attributes = f'id="{escape(name)}" class="tl tl-{family}" role="group" aria-label="{label}"'
    return "\n".join(
        [
            f"<style>\n{style(kind)}\n</style>",
            f"<tl-{kind} {attributes}>",
            *body,
            f"</tl-{kind}>",
            f"<script>\n{script(kind)}\n</script>",
        ]
    )


def exhibit(name, label, question, how, *parts, text):
    """Put an exhibit together: what is asked, how to begin, what is shown, and it as text.

    Its name begins with its kind, such as "strip-heads".
    """
    kind = name.partition("-")[0]
    return Element(wrap(kind, f"tl-{name}", label, [ask(question), band(how), *parts]), text)


def given(value, name="given"):
    """Write what a script reads as an attribute."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f'data-{name}="{escape(text)}"'


def region(html=""):
    """Draw where a script tells what follows, which a screen reader speaks."""
    return f'<p aria-live="polite">{html}</p>'


def button_row(labels, pressed=()):
    """Draw the buttons that a script serves; without one they stay hidden."""
    marks = {label: ' aria-pressed="true"' * (label in pressed) for label in labels}
    buttons = "".join(
        f'<button type="button" {KEYS}{mark}>{label}</button>' for label, mark in marks.items()
    )
    return f'<div class="tl-row" {HIDDEN}>{buttons}</div>'


def text_field(label, value, more=""):
    """Draw a field for a number, without the help of the browser's memory."""
    plain = f'autocomplete="off" spellcheck="false"{more}'
    return f'<input type="text" {plain} aria-label="{label}" value="{value}">'


def slider(label, value, most, least=0, step=None):
    """Draw a slider."""
    by = "" if step is None else f' step="{step}"'
    ends = f'min="{least}" max="{most}"{by}'
    return f'<input type="range" aria-label="{label}" {ends} value="{value}">'


def ask(question):
    """Ask what a reader is to find out."""
    return f'<p class="tl-ask">{inline(question)}</p>'


def band(how):
    """Keep the place where the last touch is told; until the first one, it says how to begin."""
    return f'<div class="tl-said">{region()}\n<p class="tl-how">{inline(how)}</p></div>'


def fold(summary, *parts):
    """Fold away what a reader may open."""
    opened = f'<details class="tl-numbers"><summary>{summary}</summary>'
    return "\n".join([opened, *parts, "</details>"])


def fold_numbers(*tables, summary="The numbers as a table", how=""):
    """Fold away the tables of an exhibit, and how its numbers are reckoned.

    On a narrow screen tables scroll in a box of their own, which keys reach.
    """
    scrolls = 'style="overflow-x:auto" tabindex="0" role="group" aria-label="Numbers"'
    numbers = "\n".join([f"<div {scrolls}>", *tables, "</div>"])
    if not how:
        return fold(summary, numbers)
    more = f"More, and {summary[0].lower()}{summary[1:]}"
    return fold(more, numbers, f'<div class="tl-legend">{how}</div>')


def answer_box(reasons, solution="", again=""):
    """What a reader without scripts opens; the script of the element reads it from here."""
    rows = [f"<dt>{term}</dt>\n{reason}" for term, reason in reasons]
    body = "\n".join([f"{solution}<dl>", *rows, f"</dl>{again}"])
    return f"<details>\n<summary>Answer</summary>\n{body}\n</details>"


def text_of(html):
    """Return the text of a piece of HTML, as a script reads it."""
    return unescape(re.sub("<.*?>", "", html))


def inline(text):
    """Escape a text; `code` and *emphasis* are the only markup it may hold."""
    pattern = r"`([^`]+)`|(?<![\w*])\*(?=\S)([^*`]+)(?<=\S)\*(?![\w*])"
    return re.sub(
        pattern,
        lambda m: f"<code>{m[1]}</code>" if m[1] else f"<em>{m[2]}</em>",
        escape(text),
    )
