"""Y as a sum: what each head writes into the features of a word, stacked up and down from zero."""

from dataclasses import dataclass

import numpy as np

from tutorial_lib.elements.exhibits.arrays import entry_text, example_arrays
from tutorial_lib.elements.markup import HIDDEN, KEYS, button_row, exhibit, fold_numbers
from tutorial_lib.elements.tables import TABLE, headings, table
from tutorial_lib.heads import concat_heads

_END = 3  # of the axis, up and down
_QUESTION = "In which features do the heads pull against each other? Choose one to read its sum."
_SILENCE = {"0": "Silence head 0", "1": "Silence head 1"}
_SWAP = {"with": "Swap heads and rows", "without": "Swap only heads"}
_HOW_TO = (
    "Choose a bar to read its sum, another word, or an entry of concat to scale the row of `W_O` "
    "that it is multiplied by."
)
_LEGEND = (
    "Full bars are what head 0 writes into Y, hatched ones what head 1 does; the thick line is Y, "
    "a dashed one Y as it was. Heads swap their positions in concat."
)


@dataclass(frozen=True)
class _SumState:
    """A word, and what the reader has done to the heads.

    Parameters
    ----------
    off : the numbers of silent heads
    swap : "no", "with" their rows of W_O, or "without"
    row, times : the row of W_O that is scaled, and its factor
    """

    word: str = "bark"
    off: str = ""
    swap: str = "no"
    row: int = 0
    times: float = 1

    def order(self):
        """Return the head in each place of concat, and the head whose rows of W_O stand there."""
        return [0, 1] if self.swap == "no" else [1, 0], [1, 0] if self.swap == "with" else [0, 1]

    def concat_and_contributions(self, arrays):
        """Return concat, W_O, and what each head writes, its rows times its rows of W_O.

        (T, d_model), (d_model, d_model) and (H, T, d_model)
        """
        heads, [W_O] = (np.array(arrays.matrices[name]) for name in ("heads", "W_O"))
        H, _, d_v = heads.shape
        W_O[self.row] *= self.times
        heads *= np.array([str(h) not in self.off for h in range(H)])[:, None, None]
        order, owners = self.order()
        blocks = W_O.reshape(H, d_v, -1)[owners]
        return concat_heads(heads[order]), W_O, (heads[order] @ blocks)[np.argsort(order)]


def heads_sum():
    """Show Y of a word of the running example as a sum over heads, which the reader takes apart.

    Introduced in chapter 06. Heads can be silenced and swapped, a row of W_O scaled.
    """
    return draw_sum()


def draw_sum(**state):
    """Draw the sum in a state, whose parts are called as a link calls them."""
    arrays, chosen = example_arrays(), _SumState(**state)
    t = arrays.tokens.index(chosen.word)
    concat, W_O, parts = chosen.concat_and_contributions(arrays)
    before = np.array(arrays.matrices["Y"][0][t])
    scaled = f"row {chosen.row}", W_O[chosen.row]
    drawn = f"<figure>{_feature_bars(parts[:, t], before, scaled)}</figure>"
    pressed = [_SILENCE[h] for h in chosen.off] + [_SWAP.get(chosen.swap)]
    shown = [
        button_row(arrays.tokens, [chosen.word]),
        f'<div class="tl-adds" {arrays.given()}>{_concat_table(concat[t], *chosen.order())}\n'
        f"{_scale_slider(chosen)}\n{drawn}</div>",
        button_row([*_SILENCE.values(), *_SWAP.values(), "Reset"], pressed),
        f'<p class="tl-legend">{_LEGEND}</p>',
        _numbers_fold(arrays, parts),
    ]
    text = "\n".join(f"   {name}: {', '.join(map(_text, row))}" for name, row in _rows(parts[:, t]))
    text = f"Y of {chosen.word} as a sum\n{text}"
    return exhibit("sum", "Y as a sum over heads", _QUESTION, _HOW_TO, *shown, text=text)


def _rows(parts):
    """Name the parts of a word, and their sum."""
    return [*((f"head {h}", part) for h, part in enumerate(parts)), ("Y", parts.sum(axis=0))]


def _text(number):
    return entry_text("Y", number)


def _breaking(number):
    """Write a fraction that may break where it is narrow."""
    return _text(number).replace("/", "<wbr>/")


def _concat_table(numbers, order, owners):
    """Draw each number of concat over the row of W_O that it is multiplied by."""
    d_v = len(numbers) // len(order)
    cells = []
    for i, number in enumerate(numbers):
        slot, place = divmod(i, d_v)
        row = d_v * owners[slot] + place
        cells.append(
            f'<span><b data-head="{order[slot]}">{_breaking(number)}</b>'
            f'<i data-head="{owners[slot]}">{row}</i></span>'
        )
    names = "<span><b>concat</b><i>row</i></span>"
    return f'<div class="tl-meets">{names}<div>{"".join(cells)}</div></div>'


def _scale_slider(state):
    field = f'<input type="range" min="-1" max="2" step="0.5" value="{state.times:g}" {KEYS}>'
    return (
        f'<div class="tl-lists" {HIDDEN}><label class="tl-times"><span>row {state.row} of '
        f"W<sub>O</sub></span>{field}<b>× {_text(state.times)}</b></label></div>"
    )


def _feature_bars(contributions, Y_before, scaled_row):
    """Draw the bars of each feature, under them their numbers and those of the scaled row."""
    bars = "".join(f"<td>{bars}</td>" for bars in map(_stacked_bars, contributions.T, Y_before))
    marks = "".join(f'<i style="top:{_top(n)}">{_text(n)}</i>' for n in range(_END - 1, -_END, -1))
    lines = [f'<tr><td><div class="tl-marks" aria-hidden="true">{marks}</div></td>{bars}</tr>']
    rows = [*_rows(contributions), scaled_row]
    for h, (name, numbers) in enumerate(rows):
        head = f' data-head="{h}"' * (h < len(contributions))
        cells = "".join(f"<td>{_breaking(number)}</td>" for number in numbers)
        lines.append(f'<tr><th scope="row"{head}>{name}</th>{cells}</tr>')
    names = f"<td>feature</td>{headings(*range(contributions.shape[1]))}"
    return TABLE.format(names, "\n".join(lines))


def _stacked_bars(contributions, before):
    """Stack what the heads write into a feature, each from where the one before it ends."""
    ends, bars = {True: 0.0, False: 0.0}, []
    for h, number in enumerate(contributions):
        start = ends[number > 0]
        ends[number > 0] = start + number
        size = f"{_top(max(start, start + number))};height:{_percent(abs(number))}"
        bars.append(f'<i data-head="{h}" style="top:{size}"></i>')
    lines = [f'style="top:{_top(total)}"' for total in (before, contributions.sum())]
    drawn = "{}<s {}></s><b {}></b>".format("".join(bars), *lines)
    return f'<div class="tl-heap" aria-hidden="true">{drawn}</div>'


def _percent(number):
    return f"{round(100 * number / (2 * _END), 2) + 0:g}%"


def _top(number):
    return _percent(_END - number)


def _numbers_fold(arrays, parts):
    lines = [
        (f"{word}, {name}", *map(_breaking, numbers))
        for t, word in enumerate(arrays.tokens)
        for name, numbers in _rows(parts[:, t])
    ]
    shown = table(("feature", *range(parts.shape[2])), lines)
    return fold_numbers(shown, summary="The numbers as a table, for all words")
