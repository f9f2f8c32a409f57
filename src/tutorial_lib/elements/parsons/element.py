"""The Parsons problem: lines of code to put in order, some of them bugs."""

from hashlib import sha256
from html import escape

from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.markup import (
    HIDDEN,
    NEWS,
    Element,
    answer_box,
    button_row,
    inline,
    region,
    wrap,
)


def parsons(chapter):
    """Show a chapter's Parsons problem: lines of code to put in order, some of them bugs.

    Parameters
    ----------
    chapter : its name, such as "03_attention_weights"

    Raises
    ------
    ValueError : no such chapter, none in its bank, or a malformed bank
    """
    return draw_parsons(load_bank(chapter), chapter)


def draw_parsons(bank, chapter, state=None):
    """Draw the Parsons problem of a bank that `check_bank` accepts.

    Parameters
    ----------
    state : {"program": lines, "pool": lines, "checked": whether the program is judged}; without
        one the lines stand above the lists, for its script to fill these

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
        (f"<code>{escape(bug['line'].strip())}</code>", f"<dd>{_bug(bug)}</dd>")
        for bug in problem["distractors"]
    ]
    solution = "\n".join(problem["lines"])
    html = [
        f"<p>{inline(problem['task'])}</p>",
        *([] if state else [f"<pre>{shown}</pre>"]),
        _lists(name, *_fill_lists(problem, **(state or {}))),
        answer_box(reasons, f"<pre>{escape(solution)}</pre>"),
    ]
    text = [problem["task"], *(f"   {line}" for line, *_ in lines)]
    return Element(wrap("parsons", name, "Parsons problem", html), "\n".join(text))


def _bug(distractor):
    return f'<b class="tl-wrong">✗ A bug.</b> {inline(distractor["why"])}'


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


def _fill_lists(problem, program=(), pool=(), checked=False, solved=False):
    """Draw the lines of both lists and the verdict; whether it once was solved shows nowhere."""
    verdict, wrong = judge(problem, program) if checked else ("", -1)
    kinds = {line: f'data-{key}="{i}"' for line, key, i in shuffled(problem)}
    drawn = []
    for i, line in enumerate([*program, *pool]):
        hang = len(line) - len(line.lstrip()) + 2
        style = f'style="padding-left: {hang}ch; text-indent: -{hang}ch"'
        mark = " data-wrong" * (i == wrong)
        drawn.append(f"<li{mark}><code {kinds[line]} {style}>{escape(line)}</code></li>")
    return "".join(drawn[len(program) :]), "".join(drawn[: len(program)]), verdict


def judge(problem, program):
    """Say of a program which line is the first that is wrong, or how many are missing.

    Returns
    -------
    verdict, wrong : HTML, and the index of that line, -1 where there is none
    """
    solution, bugs = problem["lines"], {bug["line"]: bug for bug in problem["distractors"]}
    wrong = next((i for i, line in enumerate(program) if solution[i : i + 1] != [line]), -1)
    left = len(solution) - sum(line not in bugs for line in program)
    missing = f" {left} line{' is' if left == 1 else 's are'} missing." * bool(left)
    if wrong >= 0 and program[wrong] in bugs:
        return f"Line {wrong + 1}: {_bug(bugs[program[wrong]])}", wrong
    kind, start, rest = "right", "✓ Right.", "Every line is in its place."
    if wrong >= 0:
        kind, start = "wrong", "✗ Not yet."
        rest = f"Line {wrong + 1} is the first out of place.{missing}"
    elif left:
        kind, start = "more", "Not complete."
        rest = "Every line so far is in its place." * bool(program) + missing
    return f'<b class="tl-{kind}">{start}</b> {rest}', wrong


def _lists(name, pool, program, verdict):
    """The two lists of a Parsons problem, which its script fills where they are empty."""
    titles = {"ul": ("Lines to choose from", pool), "ol": ("Your program", program)}
    lists = [
        f'<p class="tl-title" id="{escape(name)}-{tag}">{title}</p>\n'
        f'<{tag} aria-labelledby="{escape(name)}-{tag}">{lines}</{tag}>'
        for tag, (title, lines) in titles.items()
    ]
    row = [button_row(["Check"]), region(verdict), NEWS, "</div>"]
    return "\n".join([f'<div class="tl-lists" {HIDDEN}>', *lists, *row])
