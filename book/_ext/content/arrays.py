"""Printed arrays as small tinted tables: what `show` and `show_fractions` print, on the site alone.

A text becomes a table only where printing the table again gives the same text; all else that a cell
prints stays as it is. A table says the printed label, names and numbers in their order.

The tint is linear: from 0 to 1 where no number lies outside, else up to the largest number of the
array, with a colour for either sign. What is too large for an entry of a matrix, such as bytes,
has none.
"""

import math
import re
from fractions import Fraction
from html import escape
from itertools import product
from typing import NamedTuple

import numpy as np
from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from tutorial_lib.describe import format_array

HEAD = r"(.*\S) {3}(\((?:\d+,|\d+(?:, \d+)+)\))"  # "weights   (2, 3, 3)", "ids   (3,)"
TITLE = r"\[[\d, ]+\]"  # of one matrix of several
VALUE = r"-?(?:\d+(?:\.\d+|/\d+|(?:,\d{3})*)|inf)|nan|[✓·]"
UNMEASURED = {"nan", "inf", "-inf"}  # beyond every tint
MOST_COLUMNS, MOST_ROWS = 12, 24  # a larger matrix stays text
LEVELS = 10  # of a tint; each is a class, since a style in the page would weigh more
MOST_TINTED = 100
CLASSES = "output stream book-array"
SCROLLS = "pst-scrollable-table-container"  # the theme's, which keys can scroll
PLAIN = ' class="book-plain"'


class Array(NamedTuple):
    """An array as printed: what `show` was given, each number as its text."""

    label: str
    cells: np.ndarray
    rows: list[str] | None
    columns: list[str] | None


def arrays_and_texts(output) -> list:
    """Return what a cell printed as its arrays and the texts between them, in order.

    Parameters
    ----------
    output : str

    Returns
    -------
    arrays_and_texts : list of Array and str; no text has an empty line at either end
    """
    found, text, lines = [], [], output.split("\n")
    while lines:
        array, height = parse_array(lines)
        if array:
            found += ["\n".join(text), array]
        text = [] if array else [*text, lines[0]]
        lines = lines[height:]
    found.append("\n".join(text))
    stripped = [piece.strip("\n") if isinstance(piece, str) else piece for piece in found]
    return [piece for piece in stripped if piece]


def parse_array(lines) -> tuple[Array | None, int]:
    """Return the array that lines begin with, if they do, and how many of them are read."""
    head = re.fullmatch(HEAD, lines[0])
    shape = tuple(map(int, re.findall(r"\d+", head[2]))) if head else (0,)
    *blocks, rows, columns = (1, *shape) if len(shape) == 1 else shape
    if not math.prod(shape) or rows > MOST_ROWS or columns > MOST_COLUMNS:
        return None, 1
    for named in (True, False):  # with a line that names the columns, or without
        height = 1 + math.prod(blocks) * (bool(blocks) + named + rows)
        ends = len(shape) == 1 or lines[height : height + 1] == [""]
        array = ends and parse_array_below_label(head[1], shape, lines[1:height], named)
        if array:
            return array, height
    return None, 1


def parse_array_below_label(label, shape, lines, named) -> Array | None:
    """Return the array that is printed as these lines, below its label, or None."""
    rows, columns = (1, *shape)[-2:]
    printed = [line for line in lines if not re.fullmatch(TITLE, line)]
    height = named + rows
    blocks = [printed[i : i + height] for i in range(0, len(printed), height)]
    found = [matrix for block in blocks if (matrix := parse_matrix(block, columns, named))]
    if len(found) * rows * columns != math.prod(shape):
        return None
    cells = np.reshape([matrix.cells for matrix in found], shape)
    array = Array(label, cells, found[0].rows, found[0].columns)
    return array if as_show_prints(array) == "\n".join(lines) else None


def parse_matrix(lines, columns, named) -> Array | None:
    """Return the one matrix of so many columns that is printed as these lines, or None."""
    length, found = len(lines[0]), []
    for width in range(1, length // columns + 1):
        margin = length - columns * (width + 2) + 2
        starts = [margin + i * (width + 2) for i in range(columns)]
        cut = [[line[start : start + width].strip() for start in starts] for line in lines]
        if margin >= 0 and all(re.fullmatch(VALUE, text) for row in cut[named:] for text in row):
            names = [line[: max(margin - 2, 0)].rstrip() for line in lines[named:]]
            matrix = Array(
                "", np.array(cut[named:]), names if margin else None, cut[0] if named else None
            )
            found += [matrix] if as_show_prints(matrix) == "\n".join(lines) else []
    return found[0] if len(found) == 1 else None


def as_show_prints(array) -> str | None:
    """Return an array as `show` prints it below its label, or None where `show` would refuse."""
    try:
        return format_array(array.cells, str, rows=array.rows, columns=array.columns)
    except ValueError:
        return None


def number_of_cell(cell_text) -> float | None:
    """Return the number that a cell shows, or None where no tint could show it."""
    number = {"✓": "1", "·": "0"}.get(cell_text, cell_text.replace(",", ""))
    return None if cell_text in UNMEASURED else float(Fraction(number))


def full_tint_size(cells) -> float | None:
    """Return the size of the number that has the fullest tint, or None where nothing has a tint."""
    numbers = [number for text in cells.flat if (number := number_of_cell(text)) is not None]
    largest = max(map(abs, numbers), default=0)
    if cells.size == 1 or not 0 < largest <= MOST_TINTED:
        return None
    return largest if min(numbers) < 0 else max(largest, 1)


def array_html(array) -> str:
    """Return an array as HTML: a table, or one for each matrix of the last two axes."""
    shape = f"({', '.join(map(str, array.cells.shape))}{',' * (array.cells.ndim == 1)})"
    label = f"{escape(array.label)} <small>{shape}</small>"
    matrices = array.cells[None] if array.cells.ndim == 1 else array.cells
    if matrices.ndim == 2:
        caption = f"<span>{label}</span>"
        return f'<div class="{CLASSES}">{matrix_html(matrices, array, caption)}</div>'
    titles = product(*map(range, matrices.shape[:-2]))
    tables = [matrix_html(matrices[i], array, f"[{', '.join(map(str, i))}]") for i in titles]
    return (
        f'<div class="{CLASSES}" role="group" aria-label="{escape(array.label)}">'
        f"<div>{label}</div><div>{''.join(tables)}</div></div>"
    )


def matrix_html(cells, array, caption) -> str:
    """Return the table of one matrix of an array, in a box that scrolls where it is too wide."""
    full = full_tint_size(array.cells)
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in array.columns or [])
    corner = "<td></td>" if array.rows and heads else ""
    rows = [f'<th scope="row">{escape(name)}</th>' for name in array.rows or []]
    lines = [
        f"<tr>{name}{''.join(cell_html(text, full) for text in row)}</tr>"
        for name, row in zip(rows or [""] * len(cells), cells, strict=True)
    ]
    return (
        f'<div class="{SCROLLS}"><table{"" if full else PLAIN}><caption>{caption}</caption>'
        + (f"<thead><tr>{corner}{heads}</tr></thead>" if heads else "")
        + f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def cell_html(text, full) -> str:
    """Return a cell, with a class for its tint: t3 for three tenths of the fullest, n3 below 0."""
    number = number_of_cell(text)
    level = math.ceil(LEVELS * abs(number) / full - 0.5) if number and full else 0
    tint = f' class="{"n" if number < 0 else "t"}{level}"' if level else ""
    return f"<td{tint}>{text}</td>"


class DrawArrays(SphinxPostTransform):
    """Draw the arrays among what the cells of a page printed."""

    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place."""
        for printed in list(self.document.findall(nodes.literal_block)):
            if "stream" not in printed["classes"]:
                continue
            parts = arrays_and_texts(printed.astext())
            if any(isinstance(part, Array) for part in parts):
                printed.parent.replace(printed, [self.node(part, printed) for part in parts])

    def node(self, part, printed):
        """Return a part of what was printed as a node: a table, or text as before."""
        if isinstance(part, Array):
            return nodes.raw("", array_html(part), format="html")
        text = printed.copy()
        text.rawsource = part  # what differs from it would not be highlighted
        text += nodes.Text(part)
        return text
