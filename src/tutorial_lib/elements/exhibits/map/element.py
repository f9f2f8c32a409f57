"""The live map: the running example's way through the layer, on one screen."""

from html import escape

from tutorial_lib.contract import require
from tutorial_lib.elements.exhibits.arrays import example_arrays
from tutorial_lib.elements.exhibits.board import STEPS, draw_board
from tutorial_lib.elements.markup import button_row, exhibit, fold_numbers
from tutorial_lib.elements.tables import table

_QUESTION = "Which numbers of Y change if *that* changes? Choose a number in its row of X."
_HOW_TO = (
    "Point, tap or use the arrow keys: what made a number and what it reaches light up. In X, "
    "+ and − change it."
)
_LEGEND = (
    "The fuller a cell, the larger its number; a ring is below 0, a dot is hidden by the mask. "
    "In X, Enter takes a number in hand for ↑ and ↓."
)
_SHOWN = ("X", "Q", "K", "V", "scores", "weights", "heads", "concat", "Y")


def live_map(steps=(), *, links=None, playground=""):
    """Show every number of the running example on its way from X to Y.

    Any number shows what made it and what it reaches; those of X can be changed.

    Parameters
    ----------
    steps : names of the six steps that are lit at first, such as ("score", "mix"); none lights all
    links : {step: the address of its chapter}, where the page has them
    playground : the address of the page with the playground, where there is one

    Returns
    -------
    element : Element

    Raises
    ------
    ValueError : a step that is none of the six
    """
    return draw_map({}, steps, links=links, playground=playground)


def draw_map(state, steps=(), *, links=None, playground=""):
    """Draw the map in a state, {"X.0.2.1": 2}, whose parts are called as a link calls them."""
    for step in (*steps, *(links or {})):
        require(
            step in STEPS,
            ValueError,
            f"{step!r} is no step; expected one of {', '.join(STEPS)}. "
            f"Write the steps as the chapters do.",
        )
    arrays = example_arrays(state)
    controls = button_row(["− 1", "+ 1", "Reset"])
    drawn = draw_board(arrays, steps=steps, links=links, beside=controls)
    onward = f'<a data-playground href="{escape(playground)}">Open in the playground</a>'
    parts = [
        drawn,
        f'<p class="tl-onward">{onward}</p>' if playground else "",
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers_fold(arrays),
    ]
    lines = [f"   {title}: {row}" for title, row in _table_rows(arrays)]
    text = "\n".join([f"Live map: {' '.join(arrays.tokens)}", *lines])
    name = f"map-{'-'.join(steps)}"
    return exhibit(name, "Live map", _QUESTION, _HOW_TO, *parts, text=text)


def _numbers_fold(arrays):
    units = "Q is shown without its factor 2 ln 2, the scores without ln 2."
    return fold_numbers(f"<p>{units}</p>", table(("row", "numbers"), _table_rows(arrays)))


def _table_rows(arrays):
    """List every row of the map: what it is called, its numbers."""
    found = []
    for name in _SHOWN:
        for h, matrix in enumerate(arrays.matrices[name]):
            several = f", head {h}" * (len(arrays.matrices[name]) > 1)
            for t in range(len(matrix)):
                title = f"{name}{several}, {arrays.tokens[t]}"
                found.append((title, arrays.row(name, h, t)))
    return found
