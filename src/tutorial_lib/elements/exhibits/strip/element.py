"""The strip of memory: an array as blocks, and the line of numbers that it is a rule for."""

import numpy as np

from tutorial_lib.elements.markup import button_row, exhibit, fold_numbers, given, inline
from tutorial_lib.elements.tables import table
from tutorial_lib.heads import split_heads

_TOKENS, _HEADS, _WIDTH = 3, 2, 4  # T, H, d
_NUMBER = 10  # the number that is in hand at first: token 1, column 0
PRESSES = {  # of the presses, by what a link calls them
    "r2-3-4": "reshape(2, 3, 4)",
    "r3-2-4": "reshape(3, 2, 4)",
    "r3-8": "reshape(3, 8)",
    "r24": "reshape(24)",
    "s0-1": "swapaxes(0, 1)",
    "s1-2": "swapaxes(1, 2)",
}
_GUESS = "Guess first"
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
    return draw_strip(start)


def draw_strip(start="heads", *, do="", number=_NUMBER, guess=True):
    """Draw the array after presses that a link calls "r3-2-4.s0-1", with a number in hand."""
    name, first, memory = _initial_array(start)
    begins = {"name": name, "shape": first.shape, "strides": _strides_in_numbers(first)}
    begins |= {"memory": memory.tolist(), "number": _NUMBER}
    labels = [PRESSES[press] for press in do.split(".") if press]
    array, came, memory = _apply_presses(first, memory, labels)
    parts = [
        button_row(PRESSES.values()),
        f'<div class="tl-array" {given(begins)}>',
        f'<p class="tl-made"><code>{".".join([name, *labels])}</code></p>\n'
        f"{_slice_tables(array, number)}\n{_facts(array, came, np.shares_memory(array, first))}",
        f"<p>{_offset_sentence(array, number)}</p>\n{_memory_line(memory, array, number)}</div>",
        button_row([_GUESS, "Show", "Undo", "Reset"], [_GUESS] * guess),
        f'<p class="tl-legend">{inline(_LEGEND)}</p>',
        _numbers_fold(start, array),
    ]
    rows = "\n".join(f"   {line}" for line in str(array).splitlines())
    said = f"{name}, shape {array.shape}, strides {_strides_in_numbers(array)}\n{rows}"
    text = f"Strip of memory: {said}\n   in memory: {' '.join(map(str, memory))}"
    heading = f"strip-{start}", "Strip of memory", _QUESTIONS[start], _HOW_TO
    return exhibit(*heading, *parts, text=text)


def _initial_array(start):
    """Return the name of the first array, the array, and the numbers as they lie in memory."""
    if start not in _ROUTES:
        raise ValueError(f"start is {start!r}; expected one of {', '.join(_ROUTES)}.")
    product = 10 * np.arange(_TOKENS)[:, None] + np.arange(_HEADS * _WIDTH)
    if start == "heads":
        return "product", product, product.ravel()
    return "cut", split_heads(product, _HEADS), product.ravel()


def _strides_in_numbers(array):
    return [stride // array.itemsize for stride in array.strides]


def apply_press(array, call_text):
    """Press a button as NumPy does."""
    name, numbers = call_text.rstrip(")").split("(")
    return getattr(array, name)(*map(int, numbers.split(",")))


def _apply_presses(array, memory, labels):
    """Return the array after some presses, what the last one gave, and the numbers in memory."""
    came = "–"
    for label in labels:
        before, array = array, apply_press(array, label)
        came = "view" if np.shares_memory(before, array) else "copy"
        memory = memory if came == "view" else array.ravel("K")
    return array, came, memory


def _cell(tag, number, chosen, content):
    """Draw a cell by its token and its head."""
    token, column = divmod(int(number), 10)
    mark = " data-on" if chosen else ""
    return f'<{tag} data-t="{token}" data-h="{column // _WIDTH}"{mark}>{content}</{tag}>'


def _slice_tables(array, number):
    """Draw a block for each entry of the first of three axes."""
    blocks = array if array.ndim == 3 else np.atleast_2d(array)[None]
    line = " data-line" * (array.ndim == 1)
    tables = []
    for i, rows in enumerate(blocks):
        caption = f"<caption>[{i}]</caption>" * (array.ndim == 3)
        lines = "\n".join(
            "<tr>" + "".join(_cell("td", n, n == number, n) for n in row) + "</tr>" for row in rows
        )
        tables.append(f"<table{line}>{caption}<tbody>{lines}</tbody></table>")
    return f'<div class="tl-blocks">{"".join(tables)}</div>'


def _facts(array, last_press, shares_memory):
    """List what NumPy says of the array; before the first press it is no view and no copy."""
    facts = {
        "shape": array.shape,
        "strides": _strides_in_numbers(array),
        "last press": last_press,
        "in memory": "product’s line" if shares_memory else "a new line",
    }
    pairs = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts.items())
    return f'<dl class="tl-facts">{pairs}</dl>'


def _index_of_number(array, number=_NUMBER):
    return [int(i) for (i,) in np.nonzero(array == number)]


def _offset_sum_text(array, index):
    """Write the sum that leads from an index to its offset in memory, and the offset."""
    strides = _strides_in_numbers(array)
    terms = [f"{i} · {stride}" for i, stride in zip(index, strides, strict=True)]
    return f"{' + '.join(terms)} = ", int(np.dot(index, strides))


def _offset_sentence(array, number):
    index = _index_of_number(array, number)
    terms, offset = _offset_sum_text(array, index)
    return f"<b>{number}</b> is at {index}: {terms}offset <b>{offset}</b> in memory."


def _memory_line(memory, array, chosen):
    place = _offset_sum_text(array, _index_of_number(array, chosen))[1]
    cells = "".join(
        _cell("div", number, offset == place, f"<b>{number}</b><small>{offset}</small>")
        for offset, number in enumerate(memory)
    )
    return f'<div class="tl-memory">{cells}</div>'


def _numbers_fold(start, array):
    rows = []
    for index in np.ndindex(array.shape):
        terms, offset = _offset_sum_text(array, index)
        rows.append((list(index), array[index], f"{terms}{offset}"))
    name, first, _ = _initial_array(start)
    ways = [(f"{name}.{route}", _array_facts_after(first, route)) for route in _ROUTES[start]]
    tables = [table(("index", "number", "offset"), rows), table(("pressed", "gives"), ways)]
    return fold_numbers(*tables, how=inline(_HOW))


def _array_facts_after(array, route):
    """Press along a route as NumPy does, and say what became of the array at the last press."""
    array, came, _ = _apply_presses(array, array, route.split("."))
    first = " ".join(map(str, array[0].ravel()))
    said = f"a {came}, shape {array.shape}, strides {_strides_in_numbers(array)}"
    return f"{said}; {_NUMBER} is at {_index_of_number(array)}; [0] holds {first}"
