"""Matrices as grids of coloured cells: attention weights, signed arrays."""

import re
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from tutorial_lib.describe import as_fraction, printable
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_numbers,
    require_some,
    rounded,
    shortened,
)
from tutorial_lib.figures.ink import DIVERGING, INK, PAPER, SEQUENTIAL, title_ink
from tutorial_lib.figures.svg import LINE, RULE, draw_svg, length_of, pretty, side_by_side

_CELL, _LOW, _HIGH = 64, 30, 42  # widest cell with a number, its least and its largest height
_SMALL, _LARGE = 28, 448  # widest cell without, and the longest side of such a map

FIXED = "fixed offset"  # the last column of a framed grid
_FRAMES = ((2.8, PAPER, 2), (1, INK, 2.2))  # from the edge, colour, width


class Names(NamedTuple):
    """What one axis of a grid is, and what its entries are."""

    axis: str
    entries: list


class Grid(NamedTuple):
    """A matrix with its names; `numbers` are rounded, `texts` are what is written.

    `framed` are booleans: a frame stands in these cells, and a line before the last column, which
    is that of the fixed-offset baseline.
    """

    title: str
    numbers: np.ndarray
    texts: np.ndarray
    rows: Names
    columns: Names
    framed: np.ndarray | None = None


def attention_maps(weights, tokens, *, key_tokens=None, fractions=False, caption):
    """Draw where each query looks: one grid a head, queries down, keys across.

    Parameters
    ----------
    weights : (T, S) or (H, T, S), from 0 to 1
    tokens : T names of the queries; of other rows ("head", T names)
    key_tokens : S names of the keys, where they differ from the queries
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : weights is no array of numbers
    ShapeError : another number of axes, or of tokens
    ValueError : NaN, weights outside 0 to 1, or no such fraction
    """
    axis, tokens = _axis(tokens, "query")
    keys = tokens if key_tokens is None else key_tokens
    axes = "tokens key_tokens" if np.ndim(weights) == 2 else "heads tokens key_tokens"
    require_numbers("weights", weights, axes, limits=(0, 1), tokens=tokens, key_tokens=keys)
    rows, columns = _named(axis, tokens), _named("key", keys)
    heads = weights.reshape(-1, *weights.shape[-2:])  # (H, T, S)
    titles = ["weights"] if weights.ndim == 2 else [f"head {h}" for h in range(len(heads))]
    drawn = zip(titles, *_written(heads, fractions), strict=True)
    grids = [Grid(title, numbers, texts, rows, columns) for title, numbers, texts in drawn]
    levels = [levels_of(grid.numbers, 0, 1) for grid in grids]
    key = colour_bar("weight", SEQUENTIAL, (0, 0.5, 1))
    written = max(heads.shape[1:]) <= 8
    svg = draw_grids(grids, levels, SEQUENTIAL, written=written, key=key)
    alt = "Heat map of attention weights. " + " ".join(map(_strongest_weight, grids))
    return Figure(svg, tuple(map(table_of, grids)), caption, alt)


def signed_maps(arrays, *, rows=None, columns=None, fractions=False, caption):
    """Draw matrices, one grid each, on one scale for all.

    The scale is symmetric about 0 where a number is negative, and runs from 0 to the largest where
    none is. Booleans are drawn as hidden and seen.

    Parameters
    ----------
    arrays : dict of title -> 2-D array of numbers or booleans; a title "head 1" gets that head's
        colour
    rows, columns : names of the entries, or (name of the axis, names of the entries), such as
        ("query", tokens); or a dict of title -> such names; numbers from 0 by default
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : an array is no array of numbers
    ShapeError : not two axes, or as many names as entries are expected
    ValueError : no array, NaN, or no such fraction
    """
    require_some("arrays", arrays)
    grids = [
        grid_of(t, array, rows=_of(rows, t), columns=_of(columns, t), fractions=fractions)
        for t, array in arrays.items()
    ]
    scale, low, high = _scale_of(grids)
    levels = [levels_of(grid.numbers, low, high) for grid in grids]
    if all(array.dtype == bool for array in arrays.values()):
        key, in_words = _seen_bar(), " ".join(map(_seen, grids))
    else:
        key = colour_bar("value", scale, (low, (low + high) / 2, high))
        in_words = " ".join(map(_extremes, grids))
    alt = f"Grid of {'signed numbers' if low else 'cells'}. {in_words}"
    svg = draw_grids(grids, levels, scale, written=all(map(_has_room, grids)), key=key)
    return Figure(svg, tuple(map(table_of, grids)), caption, alt)


def _scale_of(grids):
    """Return one colour scale for all grids, its lowest number and its highest."""
    limit = max(np.abs(grid.numbers).max() for grid in grids) or 1.0
    is_signed = any((grid.numbers < 0).any() for grid in grids)
    return (DIVERGING, -limit, limit) if is_signed else (SEQUENTIAL, 0.0, limit)


def _of(names, title):
    return names.get(title) if isinstance(names, dict) else names


def grid_of(title, array, *, rows, columns, fractions=False):
    """Return a matrix of finite numbers as a Grid; names and fractions as in `signed_maps`.

    Booleans are 1 and 0, and are written as `show` writes them.
    """
    is_bool = isinstance(array, np.ndarray) and array.dtype == bool
    numbers = array.astype(int) if is_bool else array
    (row, rows), (column, columns) = _axis(rows), _axis(columns)
    require_numbers(title, numbers, "rows columns", rows=rows, columns=columns)
    numbers, texts = _written(numbers, fractions)
    texts = np.where(array, "✓", "·") if is_bool else texts
    names = _named(row, rows or range(len(array))), _named(column, columns or range(len(array.T)))
    return Grid(title, numbers, texts, *names)


def _written(array, fractions):
    """Return what is drawn and what is written: decimals, or the fractions that the numbers are."""
    if not fractions:
        return rounded(array)
    texts = np.array([as_fraction(entry) for entry in array.ravel().tolist()])
    numbers = np.array([float(Fraction(text)) for text in texts.tolist()])
    return numbers.reshape(array.shape), texts.reshape(array.shape)


def _axis(names, axis=""):
    """Return the name of an axis and those of its entries, either of which may be left out."""
    pair = isinstance(names, tuple) and len(names) == 2 and not isinstance(names[1], str)
    axis, entries = names if pair else (axis, names)
    return axis, entries if entries is None else list(entries)


def _named(axis, entries):
    return Names(axis, [printable(entry) for entry in entries])


def levels_of(numbers, low, high):
    """Return the steps of a colour scale that numbers from low to high fall on."""
    steps = len(SEQUENTIAL.cells) - 1
    return np.rint(np.clip((numbers - low) / (high - low), 0, 1) * steps).astype(int)


def _has_room(grid):
    return len(grid.rows.entries) <= 12 and _needed(grid) * len(grid.columns.entries) <= 480


def _needed(grid):
    """Return the pixels that the longest number of a grid needs."""
    return max(26, 8.5 + max(map(length_of, grid.texts.ravel().tolist())))


def draw_grids(grids, levels, scale, *, written, key):
    """Return the pictures of grids, with or without their numbers, and the key to their colours."""
    draw = _draw_numbered if written else _draw_small
    cells = [_needed(grid) if written else 12 for grid in grids]
    least = max(_left_of(g) + len(g.columns.entries) * c for g, c in zip(grids, cells, strict=True))
    panels = zip(grids, levels, strict=True)
    draws = [lambda room, panel=panel: draw(*panel, scale, room) for panel in panels]
    return side_by_side(draws, least=least, key=key)


def _left_of(grid):
    """Return the pixels left of a grid: the names of its rows, and of their axis."""
    names = max(length_of(shortened(entry)) for entry in grid.rows.entries)
    return names + 12 + (LINE + 4 if grid.rows.axis else 0)


def _draw_numbered(grid, levels, scale, room):
    """Return the SVG of a grid with its numbers, in cells as wide as the room allows."""
    width = (room - _left_of(grid)) / levels.shape[1]
    width = max(_needed(grid), min(_CELL, width))
    height = max(_LOW, min(_HIGH, 0.7 * width))

    def draw(axes):
        _draw_grid(axes, grid, levels, scale, (width, height))
        _write_numbers(axes, grid.texts, levels, scale)

    return draw_svg(draw, levels.shape[1] * width, levels.shape[0] * height)


def _draw_small(grid, levels, scale, room):
    """Return the SVG of a grid of squares, too many for numbers."""
    most = min(room - _left_of(grid), _LARGE) / levels.shape[1], _LARGE / levels.shape[0]
    side = max(4, min(_SMALL, *map(int, most)))
    return draw_svg(
        lambda axes: _draw_grid(axes, grid, levels, scale, (side, side)),
        levels.shape[1] * side,
        levels.shape[0] * side,
    )


def _draw_grid(axes, grid, levels, scale, cell):
    _draw_cells(axes, levels, scale, gap=0.03 if cell[1] > 9 else 0)
    framed = grid.framed is not None
    columns = grid.columns._replace(entries=grid.columns.entries[: -1 if framed else None])
    _draw_names(axes.xaxis, columns, cell[0] - 4 * framed)
    _draw_names(axes.yaxis, grid.rows, cell[1])
    none = ", no frame" * (framed and not grid.framed.any())
    axes.set_title(grid.title + none, color=title_ink(grid.title))
    if framed:
        _draw_frames(axes, grid.framed, cell)


def _draw_frames(axes, framed, cell):
    """Draw a frame into cells, parted from any colour by a rim, and part the last column by a line.

    Lengths are in pixels.
    """
    for (row, column), (edge, ink, width) in product(np.argwhere(framed).tolist(), _FRAMES):
        x, y = (edge / side for side in cell)
        place = (column + x, row + y), 1 - 2 * x, 1 - 2 * y
        axes.add_patch(
            Rectangle(*place, facecolor="none", edgecolor=ink, linewidth=width, clip_on=False)
        )
    last = framed.shape[1] - 1
    axes.axvline(last, color=INK, linewidth=RULE)
    below = {"textcoords": "offset pixels", "xytext": (1, -4), "va": "top"}
    axes.annotate(FIXED.replace(" ", "\n"), (last, len(framed)), **below)


def _draw_cells(axes, levels, scale, *, gap):
    """Draw a matrix of steps as coloured cells of side 1."""
    n_rows, n_columns = levels.shape
    cells, edges = levels, [np.arange(n_columns + 1), np.arange(n_rows + 1)]
    if gap:
        cells = np.ma.array(np.zeros((2 * n_rows - 1, 2 * n_columns - 1)), mask=True)
        cells[::2, ::2] = levels
        edges = [np.add.outer(edge[:-1], (gap, 1 - gap)).ravel() for edge in edges]
    limits = {"vmin": -0.5, "vmax": len(scale.cells) - 0.5}
    mesh = axes.pcolormesh(*edges, cells, cmap=ListedColormap(scale.cells), **limits)
    mesh.set_gid("cells" if gap else "solid cells")
    axes.set(xlim=(0, n_columns), ylim=(n_rows, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4)


def _write_numbers(axes, texts, levels, scale):
    for (row, column), text in np.ndenumerate(texts):
        text = re.sub(r"\.0+$", "", text).replace("-", "−")  # whole numbers stand out
        ink = scale.texts[levels[row, column]]
        place = {"ha": "center", "va": "center_baseline", "in_layout": False}
        axes.text(column + 0.5, row + 0.5, text, color=ink, **place)


def _draw_names(axis, names, room):
    """Write the names along an axis, turned or thinned out where they have little room."""
    entries = [shortened(entry) for entry in names.entries]
    widest = max(map(length_of, entries))
    across = axis.axis_name == "x"
    numbered = all(entry.isdigit() for entry in entries)
    needed = widest + 4 if across and numbered else LINE - 2
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if n * room >= needed)
    axis.set_ticks(np.arange(len(entries))[::step] + 0.5, entries[::step])
    if across and widest > room * step:
        for label in axis.get_ticklabels():
            label.set(rotation=45 if room > 15 else 90, rotation_mode="anchor")
            label.set(ha="right", va="center")
    axis.set_label_text(names.axis, style="italic")


def colour_bar(label, scale, ticks):
    """Return the SVG of the key to a colour scale, as eleven of its colours."""

    def draw(axes):
        steps = len(scale.cells) - 1
        _draw_cells(axes, np.arange(0, steps + 1, steps // 10)[None], scale, gap=0.03)
        texts = [pretty(tick, 4) for tick in ticks]
        axes.set_xticks(np.linspace(0.5, 10.5, len(ticks)), texts)
        axes.set_yticks([0.5], [label])

    return draw_svg(draw, 220, 14)


def _seen_bar():
    """Return the SVG of the key to booleans: the colours of False and of True."""

    def draw(axes):
        _draw_cells(axes, np.array([[0, len(SEQUENTIAL.cells) - 1]]), SEQUENTIAL, gap=0.03)
        axes.set_xticks([0.5, 1.5], ["hidden ·", "seen ✓"])
        axes.set_yticks([])

    return draw_svg(draw, 160, 14)


def table_of(grid):
    """Return a Grid as the table that stands below the picture."""
    corner = ", ".join(filter(None, (grid.rows.axis, grid.columns.axis)))
    return Table(grid.title, grid.texts, grid.rows.entries, grid.columns.entries, corner)


def _strongest_weight(grid):
    row, column = np.unravel_index(grid.numbers.argmax(), grid.numbers.shape)
    query, key = grid.rows.entries[row], grid.columns.entries[column]
    return f"{grid.title}: largest weight {grid.texts[row, column]}, from {query} to {key}."


def _seen(grid):
    n_rows, n_columns = grid.numbers.shape
    seen = int(grid.numbers.sum())
    return f"{grid.title}: {n_rows} rows, {n_columns} columns, {seen} of {grid.numbers.size} seen."


def _extremes(grid):
    order = grid.numbers.argsort(axis=None)
    low, high = grid.texts.ravel()[order[[0, -1]]]
    n_rows, n_columns = grid.numbers.shape
    return f"{grid.title}: {n_rows} rows, {n_columns} columns, from {low} to {high}."
