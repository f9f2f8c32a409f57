"""Y as a sum: what each head writes into the features of a word, stacked up and down from zero."""

import numpy as np

from tutorial_lib.elements.exhibits.arrays import entry, example_arrays
from tutorial_lib.elements.maps import TABLE, headings
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    Element,
    ask,
    band,
    button_row,
    fold_numbers,
    wrap,
)

_WORD = 2  # the word that stands there first
_END = 3  # of the axis, up and down
_QUESTION = "In which features do the heads pull against each other? Choose one to read its sum."
_BUTTONS = ["Silence head 0", "Silence head 1", "Swap heads and rows", "Swap only heads", "Reset"]
_HOW_TO = (
    "Choose a bar to read its sum, another word, or an entry of concat to scale the row of `W_O` "
    "that it is multiplied by."
)
_LEGEND = (
    "Full bars are what head 0 writes into Y, hatched ones what head 1 does; the thick line is Y, "
    "a dashed one Y as it was. Heads swap their positions in concat."
)


def heads_sum():
    """Show Y of a word of the running example as a sum over heads, which the reader takes apart.

    Introduced in chapter 06. Heads can be silenced and swapped, a row of W_O scaled.
    """
    arrays = example_arrays()
    parts = _parts(arrays)
    drawn = f"<figure>{_features(arrays, parts[:, _WORD])}</figure>"
    body = [
        ask(_QUESTION),
        band(_HOW_TO),
        button_row(arrays.tokens),
        f'<div class="tl-adds" {arrays.given()}>{_concat(arrays)}\n{_slider()}\n{drawn}</div>',
        button_row(_BUTTONS),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers(arrays, parts),
    ]
    text = "\n".join(
        f"   {name}: {', '.join(map(_text, row))}" for name, row in _rows(parts[:, _WORD])
    )
    title = f"Y of {arrays.tokens[_WORD]} as a sum"
    return Element(wrap("sum", "tl-sum", "Y as a sum over heads", body), f"{title}\n{text}")


def _parts(arrays):
    """Return what each head writes: its rows of heads times its rows of W_O, (H, T, d_model)."""
    heads, W_O = (np.array(arrays.matrices[name]) for name in ("heads", "W_O"))
    H, _, d_v = heads.shape
    return heads @ W_O[0].reshape(H, d_v, -1)


def _rows(parts):
    """Name the parts of a word, and their sum."""
    return [*((f"head {h}", part) for h, part in enumerate(parts)), ("Y", parts.sum(axis=0))]


def _text(number):
    return entry("Y", number)


def _cell(number):
    """Write a fraction that may break where it is narrow."""
    return f"<td>{_text(number).replace('/', '<wbr>/')}</td>"


def _concat(arrays):
    """Draw each number of concat over the row of W_O that it is multiplied by."""
    numbers = arrays.matrices["concat"][0][_WORD]
    d_v = len(arrays.matrices["heads"][0][0])
    cells = "".join(
        f'<span><b data-head="{i // d_v}">{_text(number).replace("/", "<wbr>/")}</b>'
        f'<i data-head="{i // d_v}">{i}</i></span>'
        for i, number in enumerate(numbers)
    )
    names = "<span><b>concat</b><i>row</i></span>"
    return f'<div class="tl-meets">{names}<div>{cells}</div></div>'


def _slider():
    field = f'<input type="range" min="-1" max="2" step="0.5" value="1" {KEYS}>'
    return (
        f'<div class="tl-lists" {HIDDEN}><label class="tl-times">'
        f"<span>row 0 of W<sub>O</sub></span>{field}<b>× 1</b></label></div>"
    )


def _features(arrays, parts):
    """Draw the bars of each feature, and under them their numbers."""
    bars = "".join(f"<td>{_bars(column)}</td>" for column in parts.T)
    marks = "".join(
        f'<i style="top:{_place(n)}">{_text(n)}</i>' for n in range(_END - 1, -_END, -1)
    )
    lines = [f'<tr><td><div class="tl-marks" aria-hidden="true">{marks}</div></td>{bars}</tr>']
    rows = [*_rows(parts), ("row 0", np.array(arrays.matrices["W_O"][0][0]))]
    for h, (name, numbers) in enumerate(rows):
        head = f' data-head="{h}"' * (h < len(parts))
        lines.append(f'<tr><th scope="row"{head}>{name}</th>{"".join(map(_cell, numbers))}</tr>')
    names = f"<td>feature</td>{headings(*range(parts.shape[1]))}"
    return TABLE.format(names, "\n".join(lines))


def _bars(column):
    """Stack what the heads write into a feature, each from where the one before it ends."""
    ends, bars = {True: 0.0, False: 0.0}, []
    for h, number in enumerate(column):
        start = ends[number > 0]
        ends[number > 0] = start + number
        size = f"{_place(max(start, start + number))};height:{_percent(abs(number))}"
        bars.append(f'<i data-head="{h}" style="top:{size}"></i>')
    line = f'style="top:{_place(column.sum())}"'
    drawn = f"{''.join(bars)}<s {line}></s><b {line}></b>"
    return f'<div class="tl-heap" aria-hidden="true">{drawn}</div>'


def _percent(number):
    return f"{round(100 * number / (2 * _END), 2) + 0:g}%"


def _place(number):
    return _percent(_END - number)


def _numbers(arrays, parts):
    lines = [
        f'<tr><th scope="row">{word}, {name}</th>{"".join(map(_cell, numbers))}</tr>'
        for t, word in enumerate(arrays.tokens)
        for name, numbers in _rows(parts[:, t])
    ]
    names = headings("feature", *range(parts.shape[2]))
    table = TABLE.format(names, "\n".join(lines))
    return fold_numbers(table, summary="The numbers as a table, for all words")
