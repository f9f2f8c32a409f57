"""The Parsons problem: lines of code to put in order, some of them bugs."""

from hashlib import sha256
from html import escape

from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.markup import (
    HIDDEN,
    NEWS,
    REGION,
    Element,
    answer_box,
    button_row,
    inline,
    wrap,
)

_BUG = '<b class="tl-wrong">✗ A bug.</b>'


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
