"""The playground: every array of the running example as a table, and those that can be edited."""

import math
from fractions import Fraction

from tutorial_lib.elements.markup import HIDDEN, NEWS, Element, button_row, wrap
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace

_HINT = (
    "Click a shaded number, or move to it by the arrow keys and press Enter, and write another: "
    "every number after it follows, and those that changed are underlined. Choose any other "
    "number to see which ones made it."
)
_UNITS = {"W_Q": 2 * math.log(2), "Q": 2 * math.log(2), "scores": math.log(2)}
_UNIT_NAMES = {"W_Q": "× 2 ln 2", "Q": "× 2 ln 2", "scores": "× ln 2"}
_STEPS = (  # step, what it makes, what makes one number of it, the arrays to show
    ("embed", "X = word + place", "A row for each token: its word and its place.", ("X",)),
    ("project", "Q = X W_Q", "A row of X times a column of W_Q.", ("W_Q", "Q")),
    ("project", "K = X W_K", "A row of X times a column of W_K.", ("W_K", "K")),
    ("project", "V = X W_V", "A row of X times a column of W_V.", ("W_V", "V")),
    ("score", "scores = Q Kᵀ / scale", "A row of Q times a row of K.", ("scale", "scores")),
    (
        "score",
        "weights = softmax(scores)",
        "2 to the score, divided by the sum of these powers for all keys that the mask shows.",
        ("mask", "weights"),
    ),
    ("mix", "heads = weights V", "A row of weights times a column of V.", ("heads",)),
    ("concat", "concat: the heads side by side", "A number of heads, moved.", ("concat",)),
    ("project out", "Y = concat W_O", "A row of concat times a column of W_O.", ("W_O", "Y")),
)


def playground():
    """Show the running example with every array of the layer, to be edited and asked.

    A change of X, a learned matrix, the mask or the scale changes all numbers after it. Choosing
    a number shows the row and the column that made it, and the sum.
    """
    example = running_example()
    arrays = _arrays(example)
    steps = [_step(step, arrays, example.tokens) for step in _STEPS]
    hint = f'<p class="tl-lists" {HIDDEN}>{_HINT}</p>'
    controls = _block(button_row(["Undo", "Reset"]), "")
    html = wrap("playground", "tl-playground", "Playground", [hint, controls, *steps, NEWS])
    text = "\n".join(f"   {step}: {makes}" for step, makes, *_ in _STEPS)
    return Element(html, f"Playground: {' '.join(example.tokens)}\n{text}")


def _arrays(example):
    """The matrices of every array, one for each head, in the units in which they are shown."""
    params = example.params
    record = trace(example.X, params, mask=example.mask)
    arrays = {**vars(params), **vars(record), "mask": example.mask}
    shown = {"scale": [[[math.sqrt(params.d_k)]]]}
    for name in {name for *_, names in _STEPS for name in names} - set(shown):
        array = arrays[name] / _UNITS.get(name, 1)
        shown[name] = array.tolist() if array.ndim == 3 else [array.tolist()]
    return shown


def _step(step, arrays, tokens):
    name, makes, rule, shown = step
    tables = [_table(one, h, arrays, tokens) for one in shown for h in range(len(arrays[one]))]
    title = f'<p class="tl-title"><i>{name}</i> {makes}</p>'
    grids = "\n".join([title, '<div class="tl-grids">', *tables, "</div>"])
    return _block(grids, rule)


def _block(body, rule):
    """A part of the playground, and the line below it where its script answers."""
    return f'<div class="tl-step">\n{body}\n<p class="tl-sum">{rule}</p>\n</div>'


def _table(name, head, arrays, tokens):
    matrix, heads = arrays[name][head], len(arrays[name])
    rows, columns = _names(name, matrix, tokens)
    title = f"{name}, head {head}" if heads > 1 else name
    unit = f" <i>{_UNIT_NAMES[name]}</i>" if name in _UNIT_NAMES else ""
    kind = f' class="tl-head-{head}"' if heads > 1 else ""
    lines = ["<td></td>" + "".join(f"<th>{column}</th>" for column in columns)]
    for row, entries in zip(rows, matrix, strict=True):
        cells = "".join(f"<td>{_entry(name, entry)}</td>" for entry in entries)
        lines.append(f"<th>{row}</th>{cells}")
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table{kind}>\n<caption>{title}{unit}</caption>\n{body}\n</table>"


def _names(name, matrix, tokens):
    """What the rows and the columns of a matrix are called."""
    if name == "scale":
        return ("scores",), ("÷",)
    rows = range(len(matrix)) if name.startswith("W_") else tokens
    return rows, tokens if name in ("mask", "scores", "weights") else range(len(matrix[0]))


def _entry(name, value):
    if name == "mask":
        return "✓" if value else "·"
    return str(Fraction(value).limit_denominator(1000)).replace("-", "−")
