"""The playground: every array of the running example as a table, and those that can be edited."""

from tutorial_lib.elements.exhibits.arrays import example_arrays
from tutorial_lib.elements.exhibits.board import draw_board
from tutorial_lib.elements.markup import HIDDEN, Element, ask, band, button_row, wrap

_QUESTION = (
    "In head 0 *bark* gives 4/7 of its attention to *dogs*. Which number makes that less than half?"
)
_HOW_TO = "Click a shaded number, or move to it by arrow keys and press Enter, and write another."
_HINT = (
    "Every number after it follows, and those that changed are underlined. Choose any other "
    "number to see which ones made it. The map above the tables shows the same numbers."
)
_STEPS = (  # step, what it makes, what makes one number of it, the arrays to show
    ("embed", "X = word + position", "A row for each token: its word and its position.", ("X",)),
    ("project", "Q = X W_Q", "A row of X times a column of W_Q.", ("W_Q", "Q")),
    ("project", "K = X W_K", "A row of X times a column of W_K.", ("W_K", "K")),
    ("project", "V = X W_V", "A row of X times a column of W_V.", ("W_V", "V")),
    ("score", "scores = Q Kᵀ / scale", "A row of Q times a row of K.", ("scale", "scores")),
    (
        "score",
        "weights = softmax(scores)",
        "2 to the score, divided by the sum of 2 to the score over all keys that the mask shows.",
        ("mask", "weights"),
    ),
    ("mix", "heads = weights V", "A row of weights times a column of V.", ("heads",)),
    ("concat", "concat: the heads side by side", "A number of heads, moved.", ("concat",)),
    ("project out", "Y = concat W_O", "A row of concat times a column of W_O.", ("W_O", "Y")),
)


def playground():
    """Show the running example with every array of the layer, to be edited and asked.

    A change of X, a learned matrix, the mask or the scale changes all numbers after it, on the
    map too. Choosing a number shows the row and the column that made it, the sum, and what it
    reaches.
    """
    return draw_playground({})


def draw_playground(state):
    """Draw the playground in a state, {"X.0.2.1": 2}, whose parts are called as in a link."""
    arrays = example_arrays(state)
    steps = [_step_html(step, arrays) for step in _STEPS]
    hint = f'<p class="tl-legend tl-lists" {HIDDEN}>{_HINT}</p>'
    drawn = draw_board(arrays, beside=button_row(["Undo", "Reset"]))
    bar = f'<div class="tl-bar-above">{band(_HOW_TO)}\n{drawn}</div>'
    html = wrap("playground", "tl-playground", "Playground", [ask(_QUESTION), bar, hint, *steps])
    text = "\n".join(f"   {step}: {makes}" for step, makes, *_ in _STEPS)
    return Element(html, f"Playground: {' '.join(arrays.tokens)}\n{text}")


def _step_html(step, arrays):
    """A part of the playground, and the line below it that says what makes a number."""
    name, makes, rule, shown = step
    tables = [arrays.table(one, h) for one in shown for h in range(len(arrays.matrices[one]))]
    title = f'<p class="tl-title"><i>{name}</i> {makes}</p>'
    many = " tl-many" * (len(tables) > 3)
    grids = "\n".join([title, f'<div class="tl-grids{many}">', *tables, "</div>"])
    return f'<div class="tl-step">\n{grids}\n<p class="tl-sum">{rule}</p>\n</div>'
