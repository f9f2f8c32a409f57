"""From a bank to HTML that reads without a script, and to text that does not give the answer."""

import re
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib import resources

from tutorial_lib.elements.banks import as_number

_RIGHT = '<b class="tl-right">✓ Right.</b>'
_WRONG = '<b class="tl-wrong">✗ Not this one.</b>'
_BUG = '<b class="tl-wrong">✗ A bug.</b>'
# Until the style sheet and the script are there: JupyterLab drops both, and the attribute
# `hidden`, from a notebook that it does not trust.
HIDDEN = 'style="display:none"'
# JupyterLab takes a key pressed in an output for a command to the notebook, except here.
KEYS = "data-lm-suppress-shortcuts"
REGION = '<p aria-live="polite"></p>'
NEWS = '<p class="tl-news" aria-live="polite"></p>'  # heard, not seen
PARTS = {
    "quiz": ("shared", "choice", "quiz"),
    "predict-choice": ("shared", "choice", "prediction", "predict-choice"),
    "predict-number": ("shared", "prediction", "readings", "predict-number"),
    "parsons": ("shared", "parsons"),
    "playground": ("shared", "readings", "layer", "playground"),
    "inspector": ("shared", "weights", "inspector"),
    "gallery": ("shared", "weights", "gallery"),
}


@dataclass(frozen=True)
class Element:
    """What a cell shows: HTML where there is a page, text everywhere else."""

    html: str
    text: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self):
        return self.text


def draw_quiz(bank, chapter):
    """Draw the quiz of a bank that `check_bank` accepts."""
    name = f"tl-{chapter}-quiz"
    html, text = [], ["Quiz"]
    for i, question in enumerate(bank["quiz"], start=1):
        html.append(_choice(f"{i}.", question, f"{name}-{i}", ["Check"]))
        text.append(_plain_choice(f"{i}.", question))
    page = wrap("quiz", name, "Quiz", [*html, REGION])
    return Element(page, "\n\n".join(text))


def draw_prediction(bank, chapter, number):
    """Draw one prediction of a bank that `check_bank` accepts.

    Raises
    ------
    ValueError : a number that the bank does not have
    """
    numbers = range(1, len(bank["predictions"]) + 1)
    if type(number) is not int or number not in numbers:
        raise ValueError(f"{chapter} has no prediction {number!r}. It has: {list(numbers)}.")
    question = bank["predictions"][number - 1]
    name = f"tl-{chapter}-prediction-{number}"
    buttons = ["Commit", "Show me"]
    if "options" in question:
        kind, html = "predict-choice", _choice("Predict.", question, f"{name}-1", buttons)
        text = _plain_choice("Predict.", question)
    else:
        kind, html = "predict-number", _number("Predict.", question, f"{name}-1", buttons)
        text = f"Predict. {question['question']}\n   a number: …"
    return Element(wrap(kind, name, f"Prediction {number}", [html, REGION]), text)


def draw_parsons(bank, chapter):
    """Draw the Parsons problem of a bank that `check_bank` accepts.

    Raises
    ------
    ValueError : a bank without one
    """
    problem = bank["parsons"]
    if problem is None:
        raise ValueError(f"{chapter} has no Parsons problem. Ask for another chapter's.")
    name = f"tl-{chapter}-parsons"
    lines = shuffled(problem)
    shown = "\n".join(f'<code data-{key}="{i}">{escape(line)}</code>' for line, key, i in lines)
    reasons = [
        (f"<code>{escape(bug['line'].strip())}</code>", f"<dd>{_BUG} {inline(bug['why'])}</dd>")
        for bug in problem["distractors"]
    ]
    solution = "\n".join(problem["lines"])
    html = [
        f"<p>{inline(problem['task'])}</p>",
        f"<pre>{shown}</pre>",
        _lists(name),
        answer_box(reasons, f"<pre>{escape(solution)}</pre>"),
    ]
    text = [problem["task"], *(f"   {line}" for line, *_ in lines)]
    return Element(wrap("parsons", name, "Parsons problem", html), "\n".join(text))


def shuffled(problem):
    """The lines and distractors in an order that depends on their text alone.

    Returns
    -------
    list of (line, "place" or "why", its index among its kind); the lines that belong to the
    solution never stand in the order of the solution
    """
    pieces = [(line, "place", i) for i, line in enumerate(problem["lines"])]
    pieces += [(d["line"], "why", i) for i, d in enumerate(problem["distractors"])]
    salt = 0
    while True:
        order = sorted(pieces, key=lambda piece: sha256(f"{salt}{piece}".encode()).digest())
        if [line for line, kind, _ in order if kind == "place"] != problem["lines"]:
            return order
        salt += 1


def script(kind):
    """The parts of the one JavaScript source that an element needs, in a block of their own."""
    parts = source_parts("elements.js")
    lines = "".join(parts[part] for part in PARTS[kind]).splitlines()
    kept = (line.strip() for line in lines)
    return "{\n" + "\n".join(k for k in kept if k and not k.startswith("//")) + "\n}"


def style(*kinds):
    """The parts of the one style sheet that elements need, without indentation and comments."""
    parts = source_parts("elements.css")
    needed = dict.fromkeys(part for kind in kinds for part in PARTS[kind])
    source = "".join(parts.get(part, "") for part in needed)
    bare = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


def source_parts(name):
    """Cut a source where a line says "part: name": the text of each part by its name."""
    source = resources.files("tutorial_lib.elements").joinpath(name).read_text(encoding="utf-8")
    start = r"^(?://|/\*) part: "
    found = re.findall(rf"{start}([\w-]+).*?\n(.*?)(?={start}|\Z)", source, re.M | re.S)
    return dict(found)


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


def _choice(mark, question, name, buttons):
    """A question with radio buttons, and the reason for each option."""
    source = question.get("from")
    note = f" <i>From chapter {escape(source[:2])}.</i>" if source else ""
    options, reasons = [], []
    for option in question["options"]:
        text = inline(option["text"])
        button = f'<input type="radio" name="{escape(name)}" {KEYS}>'
        options.append(f"<div><label>{button} <span>{text}</span></label>{REGION}</div>")
        verdict = _RIGHT if option["correct"] else _WRONG
        reasons.append((text, f"<dd>{verdict} {inline(option['why'])}{note}</dd>"))
    legend = f"<legend><b>{mark}</b> {inline(question['question'])}</legend>"
    row = [button_row(buttons), REGION, answer_box(reasons)]
    return "\n".join(["<fieldset>", legend, *options, *row, "</fieldset>"])


def _number(mark, question, name, buttons):
    """A question with a field for a number, and the reason for each number that it knows."""
    answer, tolerance = question["answer"], as_number(question["tolerance"])
    known = [(answer, _RIGHT, question["why"])]
    known += [(near["value"], _WRONG, near["why"]) for near in question["near"]]
    reasons = []
    for value, verdict, why in known:
        number = as_number(value)
        within = tolerance + 1e-9 * max(1.0, abs(number))  # a float is not quite its decimals
        data = f'data-value="{number!r}" data-within="{within!r}"'
        reasons.append((escape(str(value)), f"<dd {data}>{verdict} {inline(why)}</dd>"))
    other = f'<b class="tl-wrong">✗ It is {escape(str(answer))}.</b>'
    reasons.append(("another number", f"<dd>{other} {inline(question['why'])}</dd>"))
    field = f'<input id="{escape(name)}" type="text" autocomplete="off" spellcheck="false" {KEYS}>'
    label = f'<label for="{escape(name)}"><b>{mark}</b> {inline(question["question"])}</label>'
    return "\n".join(
        ["<div>", label, field, button_row(buttons), REGION, answer_box(reasons), "</div>"]
    )


def button_row(labels):
    """Draw the buttons that a script serves; without one they stay hidden."""
    buttons = "".join(f'<button type="button" {KEYS}>{label}</button>' for label in labels)
    return f'<div class="tl-row" {HIDDEN}>{buttons}</div>'


def _lists(name):
    """The two lists of a Parsons problem, for its script to fill."""
    titles = {"ul": "Lines to choose from", "ol": "Your program"}
    lists = [
        f'<p class="tl-title" id="{escape(name)}-{tag}">{title}</p>\n'
        f'<{tag} aria-labelledby="{escape(name)}-{tag}"></{tag}>'
        for tag, title in titles.items()
    ]
    return "\n".join(
        [f'<div class="tl-lists" {HIDDEN}>', *lists, button_row(["Check"]), REGION, NEWS, "</div>"]
    )


def answer_box(reasons, solution=""):
    """What a reader without scripts opens; the script of the element reads it from here."""
    rows = [f"<dt>{term}</dt>\n{reason}" for term, reason in reasons]
    body = "\n".join([f"{solution}<dl>", *rows, "</dl>"])
    return f"<details>\n<summary>Answer</summary>\n{body}\n</details>"


def _plain_choice(mark, question):
    letters = zip("abcdefgh", question["options"], strict=False)
    options = (f"   {letter}) {option['text']}" for letter, option in letters)
    return "\n".join([f"{mark} {question['question']}", *options])


def inline(text):
    """Escape a text; `code` and *emphasis* are the only markup it may hold."""
    pattern = r"`([^`]+)`|(?<![\w*])\*(?=\S)([^*`]+)(?<=\S)\*(?![\w*])"
    return re.sub(pattern, _mark, escape(text))


def _mark(match):
    code, emphasis = match.groups()
    return f"<code>{code}</code>" if code else f"<em>{emphasis}</em>"
