"""The arrays of the running example, as tables of numbers and as a map of tints."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from tutorial_lib.elements.markup import given
from tutorial_lib.example import running_example
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params

INPUTS = ("X", "W_Q", "W_K", "W_V", "W_O", "mask", "scale")
_MADE = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")
_UNITS = {"W_Q": 2 * math.log(2), "Q": 2 * math.log(2), "scores": math.log(2)}
UNIT_NAMES = {"W_Q": "× 2 ln 2", "Q": "× 2 ln 2", "scores": "× ln 2"}


@dataclass(frozen=True)
class Arrays:
    """The running example as an exhibit shows it.

    Parameters
    ----------
    tokens : T names
    matrices : {name: a list of matrices, one for each head}, in the units in which they are shown
    """

    tokens: tuple
    matrices: dict

    def given(self):
        """Return the inputs as the attribute that the script reads."""
        inputs = {name: _whole_as_int(self.matrices[name]) for name in INPUTS}
        return given(inputs)

    def table(self, name, head=0):
        """Draw a matrix as numbers, under its name."""
        several = len(self.matrices[name]) > 1
        title = f"{name}, head {head}" if several else name
        unit = f" <i>{UNIT_NAMES[name]}</i>" if name in UNIT_NAMES else ""
        kind = f' class="tl-head-{head}"' if several else ""
        return self._table_html(name, head, f"{title}{unit}", kind)

    def tints(self, name, head=0, *, dim=False):
        """Draw a matrix as tints, which a script reads out."""
        kind = ' class="tl-dim"' * dim
        return self._table_html(name, head, name, f'{kind} aria-hidden="true"', as_tints=True)

    def row(self, name, head, t):
        """Write a row of numbers, with commas between them."""
        return ", ".join(entry_text(name, number) for number in self.matrices[name][head][t])

    def _table_html(self, name, head, caption, attributes, as_tints=False):
        matrix = self.matrices[name][head]
        rows, columns = self._row_and_column_names(name, matrix)
        lines = ["<td></td>" + "".join(f"<th>{column}</th>" for column in columns)]
        for t, (row, numbers) in enumerate(zip(rows, matrix, strict=True)):
            visible = self.matrices["mask"][0][t % len(self.tokens)]
            hidden = [name in ("scores", "weights") and not may for may in visible]
            draw = _tint_cell if as_tints else lambda name, n, _: f"<td>{entry_text(name, n)}</td>"
            cells = map(partial(draw, name), numbers, hidden + [False] * len(numbers))
            lines.append(f"<th>{row}</th>{''.join(cells)}")
        body = "\n".join(f"<tr>{line}</tr>" for line in lines)
        array = f"{name}.{head}" if len(self.matrices[name]) > 1 else name
        unit = f' data-unit="{UNIT_NAMES[name]}"' if name in UNIT_NAMES else ""
        opening = f'<table data-array="{array}"{unit}{attributes}>'
        return f"{opening}\n<caption>{caption}</caption>\n{body}\n</table>"

    def _row_and_column_names(self, name, matrix):
        """What the rows and the columns of a matrix are called."""
        if name == "scale":
            return ("scores",), ("÷",)
        rows = range(len(matrix)) if name.startswith("W_") else self.tokens
        named = name in ("mask", "scores", "weights")
        return rows, self.tokens if named else range(len(matrix[0]))


def example_arrays(state=None):
    """Return the arrays of the running example, in units that make them whole numbers.

    Parameters
    ----------
    state : {"X.0.2.1": 2, ...}, inputs that differ, by array, head, row and column, in those units
    """
    example = running_example()
    root = math.sqrt(example.params.d_k)
    inputs = {**vars(example.params), "X": example.X, "mask": example.mask, "scale": [[root]]}
    for name, array in inputs.items():
        matrices = array / np.array(_UNITS.get(name, 1))
        inputs[name] = matrices.reshape(-1, *matrices.shape[-2:])
    for place, number in (state or {}).items():
        name, *index = place.split(".")
        inputs[name][tuple(map(int, index))] = number
    arrays = inputs | _computed_arrays(inputs, root)
    return Arrays(example.tokens, {name: array.tolist() for name, array in arrays.items()})


def _computed_arrays(inputs, root_of_d_k):
    """Run the layer, which divides by the root of d_k; what else is divided by goes into W_Q."""
    ratio = root_of_d_k / inputs["scale"].item()
    W_Q, W_K, W_V, [W_O] = (inputs[name] for name in ("W_Q", "W_K", "W_V", "W_O"))
    params = Params(W_Q * _UNITS["W_Q"] * ratio, W_K, W_V, W_O)
    record = trace(inputs["X"][0], params, mask=inputs["mask"][0] == 1)
    arrays = {name: getattr(record, name) / np.array(_UNITS.get(name, 1)) for name in _MADE}
    arrays["Q"] /= ratio
    return {name: array.reshape(-1, *array.shape[-2:]) for name, array in arrays.items()}


def entry_text(name, value):
    """Write a number as a fraction, if that is short, and one of the mask as its sign."""
    if name == "mask":
        return "✓" if value else "·"
    if math.isnan(value):
        return "NaN"
    near = Fraction(value).limit_denominator(1000)
    short = abs(near - value) <= 1e-13 * max(1, abs(value)) and len(str(near)) < 9
    return (str(near) if short else f"{value:.4f}").replace("-", "−")


def four_places(number):
    """Write a number with four decimals, and no 0 below 0."""
    return f"{round(number, 4) + 0:.4f}".replace("-", "−")


def _whole_as_int(numbers):
    """Return nested lists of numbers in which whole ones are integers."""
    if isinstance(numbers, list):
        return [_whole_as_int(number) for number in numbers]
    return int(numbers) if numbers == int(numbers) else numbers


def strength_percent(name, value):
    """Return in percent how strong a cell is drawn; half a percent goes down, as in the script."""
    size = value if name == "weights" else 1 - 2 ** (-1.5 * abs(value))
    return math.floor(100 * size + 0.5 - 1e-9)


def _tint_cell(name, value, hidden):
    """Draw a number by its strength and by the marks of its cell."""
    marks = " data-minus" * (value < -1e-12) + " data-hidden" * hidden
    return f'<td style="--n:{strength_percent(name, value)}%"{marks}></td>'
