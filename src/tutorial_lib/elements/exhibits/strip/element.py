"""The strip of memory: an array as blocks, and the line of numbers that it is a rule for."""

import json
from html import escape

import numpy as np

from tutorial_lib.elements.maps import TABLE, headings
from tutorial_lib.elements.markup import Element, ask, band, button_row, fold_numbers, inline, wrap
from tutorial_lib.heads import split_heads

_TOKENS, _HEADS, _WIDTH = 3, 2, 4  # T, H, d
_NUMBER = 10  # the number that is in hand at first: token 1, column 0
_RESHAPES = ((2, 3, 4), (3, 2, 4), (3, 8), (24,))
_SWAPS = ((0, 1), (1, 2))
_ROUTES = {  # for each start, the ways in the table without a script, each press by its label
    "heads": ("reshape(2, 3, 4)", "reshape(3, 2, 4)", "reshape(3, 2, 4).swapaxes(0, 1)"),
    "concat": ("reshape(3, 8)", "swapaxes(0, 1)", "swapaxes(0, 1).reshape(3, 8)"),
}
_QUESTIONS = {
    "heads": "Which presses give each head a block, (2, 3, 4), in one colour? "
    "And at each of them: where does 10 go?",
    "concat": "Which presses give each token its row back, (3, 8)? "
    "At each of them: where does 10 go? And after which must NumPy copy?",
}
_HOW_TO = (
    "Press *reshape* or *swapaxes*, then choose the cell to which 10 has gone. Any number shows "
    "its offset in memory."
)
_LEGEND = (
    "The tens are the token: the later, the stronger its colour. The last digit is the column, 0 "
    "to 3 of head 0 (blue), 4 to 7 of head 1 (red). *Guess first* covers the numbers after a "
    "press until you have chosen where the one with the ring went."
)
_HOW = (
    "A stride is how far the offset moves when an index grows by 1, counted in numbers. A view "
    "reads the line that was there, a copy writes a new one. Arrow keys choose a number too; "
    "*Show* uncovers a guess."
)


def memory_strip(start="heads"):
    """Show an array of 24 numbers and the strip of memory below it, to reshape and to swap.

    Introduced in chapters 04 and 05. Each press says whether NumPy gives a view or a copy.

    Parameters
    ----------
    start : "heads", a product to be cut into heads, or "concat", the same product when it is cut

    Raises
    ------
    ValueError : another start
    """
    name, array, memory = _begin(start)
    given = {"name": name, "shape": array.shape, "strides": _strides(array)}
    given |= {"memory": memory.tolist(), "number": _NUMBER}
    attribute = escape(json.dumps(given, separators=(",", ":")))
    body = [
        ask(_QUESTIONS[start]),
        band(_HOW_TO),
        button_row([f"reshape{_plain(shape)}" for shape in _RESHAPES] + _swap_labels()),
        f'<div class="tl-array" data-given="{attribute}">',
        f'<p class="tl-made"><code>{name}</code></p>\n{_blocks(array)}\n{_facts(array)}',
        f"<p>{_sum(array)}</p>\n{_line(memory, array)}</div>",
        button_row(["Guess first", "Show", "Undo", "Reset"]),
        f'<p class="tl-legend">{inline(_LEGEND)}</p>',
        _numbers(start),
    ]
    rows = "\n".join(f"   {line}" for line in str(array).splitlines())
    said = f"{name}, shape {array.shape}, strides {_strides(array)}\n{rows}"
    text = f"Strip of memory: {said}\n   in memory: {' '.join(map(str, memory))}"
    return Element(wrap("strip", f"tl-strip-{start}", "Strip of memory", body), text)


def _begin(start):
    """Return the name of the first array, the array, and the numbers as they lie in memory."""
    if start not in _ROUTES:
        raise ValueError(f"start is {start!r}; expected one of {', '.join(_ROUTES)}.")
    product = 10 * np.arange(_TOKENS)[:, None] + np.arange(_HEADS * _WIDTH)
    if start == "heads":
        return "product", product, product.ravel()
    return "cut", split_heads(product, _HEADS), product.ravel()


def _strides(array):
    return [stride // array.itemsize for stride in array.strides]


def _plain(numbers):
    """Write numbers in brackets, a single one without its comma."""
    return f"({', '.join(map(str, numbers))})"


def _swap_labels():
    return [f"swapaxes{_plain(axes)}" for axes in _SWAPS]


def _cell(tag, number, chosen, inside):
    """Draw a cell by its token and its head."""
    token, column = divmod(int(number), 10)
    mark = " data-on" if chosen else ""
    return f'<{tag} data-t="{token}" data-h="{column // _WIDTH}"{mark}>{inside}</{tag}>'


def _blocks(array):
    """Draw a block for each entry of the first of three axes."""
    blocks = array if array.ndim == 3 else array[None]
    tables = []
    for i, rows in enumerate(blocks):
        caption = f"<caption>[{i}]</caption>" * (array.ndim == 3)
        lines = "\n".join(
            "<tr>" + "".join(_cell("td", n, n == _NUMBER, n) for n in row) + "</tr>" for row in rows
        )
        tables.append(f"<table>{caption}<tbody>{lines}</tbody></table>")
    return f'<div class="tl-blocks">{"".join(tables)}</div>'


def _facts(array):
    """List what NumPy says of the array; before the first press it is no view and no copy."""
    facts = {
        "shape": array.shape,
        "strides": _strides(array),
        "last press": "–",
        "in memory": "product’s line",
    }
    pairs = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts.items())
    return f'<dl class="tl-facts">{pairs}</dl>'


def _index(array, number=_NUMBER):
    return [int(i) for (i,) in np.nonzero(array == number)]


def _offset(array, index):
    """Write the sum that leads from an index to its offset in memory, and the offset."""
    strides = _strides(array)
    terms = [f"{i} · {stride}" for i, stride in zip(index, strides, strict=True)]
    return f"{' + '.join(terms)} = ", int(np.dot(index, strides))


def _sum(array):
    index = _index(array)
    terms, offset = _offset(array, index)
    return f"<b>{_NUMBER}</b> is at {index}: {terms}offset <b>{offset}</b> in memory."


def _line(memory, array):
    chosen = _offset(array, _index(array))[1]
    cells = "".join(
        _cell("div", number, offset == chosen, f"<b>{number}</b><small>{offset}</small>")
        for offset, number in enumerate(memory)
    )
    return f'<div class="tl-memory">{cells}</div>'


def _numbers(start):
    name, array, _ = _begin(start)
    rows = []
    for index in np.ndindex(array.shape):
        terms, offset = _offset(array, index)
        rows.append((list(index), array[index], f"{terms}{offset}"))
    ways = [(f"{name}.{route}", _after(array, route)) for route in _ROUTES[start]]
    tables = [_table(("index", "number", "offset"), rows), _table(("pressed", "gives"), ways)]
    return fold_numbers(*tables, how=inline(_HOW))


def _after(array, route):
    """Press along a route as NumPy does, and say what became of the array at the last press."""
    for press in route.split("."):
        before, (name, numbers) = array, press.rstrip(")").split("(")
        array = getattr(before, name)(*map(int, numbers.split(",")))
    which = "a view" if np.shares_memory(array, before) else "a copy"
    first = " ".join(map(str, array[0].ravel()))
    said = f"{which}, shape {array.shape}, strides {_strides(array)}"
    return f"{said}; {_NUMBER} is at {_index(array)}; [0] holds {first}"


def _table(names, rows):
    cells = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{text}</td>" for text in rest)}</tr>'
        for first, *rest in rows
    ]
    return TABLE.format(headings(*names), "\n".join(cells))
