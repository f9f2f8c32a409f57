"""Matrices as grids of coloured cells: attention weights, signed arrays."""

import re
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap

from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_nonempty_dict,
    require_plottable,
    rounded_numbers_and_texts,
    short_label,
)
from tutorial_lib.figures.ink import DIVERGING, SEQUENTIAL, title_colour
from tutorial_lib.figures.svg import LINE, draw_svg, number_text, side_by_side, text_width

_MAX_WIDTH, _LOW, _HIGH = 64, 30, 42  # widest cell with a number, its least and its largest height
_MAX_SQUARE_SIDE, _MAX_SIDE = 28, 448  # widest cell without, and the longest side of such a map


class AxisNames(NamedTuple):
    """What one axis of a grid is, and what its entries are."""

    axis: str
    entries: list


class LabelledGrid(NamedTuple):
    """A matrix with its names; `numbers` are rounded, `texts` are what is written."""

    title: str
    numbers: np.ndarray
    texts: np.ndarray
    rows: AxisNames
    columns: AxisNames


def attention_maps(weights, tokens, *, key_tokens=None, fractions=False, caption) -> Figure:
    """Draw where each query looks: one grid a head, queries down, keys across.

    Parameters
    ----------
    weights : (T, S) or (H, T, S), from 0 to 1
    tokens : T names of the queries; of other rows ("head", T names)
    key_tokens : S names of the keys, where they differ from the queries
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for

    Raises
    ------
    TypeError : weights is no array of numbers
    ShapeError : another number of axes, or of tokens
    ValueError : NaN, weights outside 0 to 1, or no such fraction
    """
    axis, tokens = _axis_and_entry_names(tokens, "query")
    key_names = tokens if key_tokens is None else key_tokens
    words = "tokens key_tokens" if np.ndim(weights) == 2 else "heads tokens key_tokens"
    require_plottable("weights", weights, words, limits=(0, 1), tokens=tokens, key_tokens=key_names)
    rows, columns = _escaped_axis_names(axis, tokens), _escaped_axis_names("key", key_names)
    heads = weights.reshape(-1, *weights.shape[-2:])  # (H, T, S)
    titles = ["weights"] if weights.ndim == 2 else [f"head {head}" for head in range(len(heads))]
    head_matrices = zip(titles, *rounded_numbers_and_texts(heads, fractions=fractions), strict=True)
    grids = [LabelledGrid(*matrix, rows, columns) for matrix in head_matrices]
    colour_levels = [to_colour_levels(grid.numbers, 0, 1) for grid in grids]
    colour_key = _key_svg(11, SEQUENTIAL, ["0", "0.5", "1"], label=["weight"])
    has_numbers = max(heads.shape[1:]) <= 8
    svg = _grids_svg(grids, colour_levels, SEQUENTIAL, written=has_numbers, key=colour_key)
    alt = "Heat map of attention weights. " + " ".join(map(_strongest_weight_text, grids))
    return Figure(svg, tuple(map(_grid_table, grids)), caption, alt)


def signed_maps(arrays, *, rows=None, columns=None, fractions=False, caption) -> Figure:
    """Draw matrices, one grid each, on one scale for all.

    The scale is symmetric about 0 where a number is negative, and runs from 0 to the largest where
    none is. Of booleans, such as a mask, True is drawn dark.

    Parameters
    ----------
    arrays : dict of title -> 2-D array of numbers or booleans; a title "head 1" gets that head's
        colour
    rows, columns : names of the entries, or (name of the axis, names of the entries), such as
        ("query", tokens); or a dict of title -> such names; numbers from 0 by default
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for

    Raises
    ------
    TypeError : an array is no array of numbers
    ShapeError : not two axes, or as many names as entries are expected
    ValueError : no array, NaN, or no such fraction
    """
    require_nonempty_dict("arrays", arrays)
    grids = []
    for title, array in arrays.items():
        names = [n.get(title) if isinstance(n, dict) else n for n in (rows, columns)]
        grids.append(_labelled_grid(title, array, *names, fractions=fractions))
    colours, lowest, highest = _shared_colour_scale_and_limits(grids)
    steps = [to_colour_levels(grid.numbers, lowest, highest) for grid in grids]
    are_masks = all(array.dtype == bool for array in arrays.values())
    if are_masks:
        colour_key = _key_svg(2, SEQUENTIAL, ["False ·", "True ✓"], width=160)
    else:
        ticks = [number_text(tick, 4) for tick in (lowest, (lowest + highest) / 2, highest)]
        colour_key = _key_svg(11, colours, ticks, label=["value"])
    grid_summaries = " ".join(_grid_text(grid, is_mask=are_masks) for grid in grids)
    alt = f"Grid of {'signed numbers' if lowest else 'cells'}. {grid_summaries}"
    svg = _grids_svg(grids, steps, colours, written=all(map(_numbers_fit, grids)), key=colour_key)
    return Figure(svg, tuple(map(_grid_table, grids)), caption, alt)


def _shared_colour_scale_and_limits(grids):
    max_abs = max(np.abs(grid.numbers).max() for grid in grids) or 1.0
    is_signed = any((grid.numbers < 0).any() for grid in grids)
    return (DIVERGING, -max_abs, max_abs) if is_signed else (SEQUENTIAL, 0.0, max_abs)


def _labelled_grid(title, array, rows, columns, *, fractions):
    """Return a matrix of finite numbers as a LabelledGrid; names as in `signed_maps`.

    Booleans are 1 and 0, and are written as `show` writes them.
    """
    is_bool = isinstance(array, np.ndarray) and array.dtype == bool
    numbers = array.astype(int) if is_bool else array
    (axis_0, rows), (axis_1, columns) = _axis_and_entry_names(rows), _axis_and_entry_names(columns)
    require_plottable(title, numbers, "rows columns", rows=rows, columns=columns)
    numbers, texts = rounded_numbers_and_texts(numbers, fractions=fractions)
    texts = np.where(array, "✓", "·") if is_bool else texts
    row_names = _escaped_axis_names(axis_0, rows or range(len(array)))
    column_names = _escaped_axis_names(axis_1, columns or range(len(array.T)))
    return LabelledGrid(title, numbers, texts, row_names, column_names)


def _axis_and_entry_names(names, axis=""):
    """Return the name of an axis and those of its entries, either of which may be left out."""
    is_pair = isinstance(names, tuple) and len(names) == 2 and not isinstance(names[1], str)
    axis, entries = names if is_pair else (axis, names)
    return axis, entries if entries is None else list(entries)


def _escaped_axis_names(axis, entries):
    return AxisNames(axis, [escaped_name(entry) for entry in entries])


def to_colour_levels(numbers, low, high):
    """Return the steps of a colour scale that numbers from low to high fall on."""
    last_level = len(SEQUENTIAL.cells) - 1
    return np.rint(np.clip((numbers - low) / (high - low), 0, 1) * last_level).astype(int)


def _numbers_fit(grid):
    return (
        len(grid.rows.entries) <= 12 and _number_width_px(grid) * len(grid.columns.entries) <= 480
    )


def _number_width_px(grid):
    return max(26, 8.5 + max(map(text_width, grid.texts.ravel().tolist())))


def _grids_svg(grids, levels, scale, *, written, key):
    """Return the pictures of grids, with or without their numbers, and the key to their colours."""
    px = [_number_width_px(grid) if written else 10 for grid in grids]
    least = max(
        _row_names_width_px(g) + len(g.columns.entries) * c for g, c in zip(grids, px, strict=True)
    )
    panels = zip(grids, levels, strict=True)
    draw_grid = partial(_grid_svg, scale=scale, written=written)
    panel_draws = [partial(draw_grid, *panel) for panel in panels]
    return side_by_side(panel_draws, least=least, key=key)


def _row_names_width_px(grid):
    """Return the pixels left of a grid: the names of its rows, and of their axis."""
    names_width = max(text_width(short_label(entry)) for entry in grid.rows.entries)
    return names_width + 12 + (LINE + 4 if grid.rows.axis else 0)


def _grid_svg(grid, colour_levels, room, *, scale, written):
    """Return the SVG of a grid: cells with numbers as wide as the room allows, or squares."""
    n_rows, n_columns = colour_levels.shape
    free_width = room - _row_names_width_px(grid)
    if written:
        cell_width = max(_number_width_px(grid), min(_MAX_WIDTH, free_width / n_columns))
        cell_height = max(_LOW, min(_HIGH, 0.7 * cell_width))
    else:
        side_limits = min(free_width, _MAX_SIDE) / n_columns, _MAX_SIDE / n_rows
        cell_width = cell_height = max(4, min(_MAX_SQUARE_SIDE, *map(int, side_limits)))

    def draw_grid(axes):
        _draw_cells(axes, colour_levels, scale, gap=0.03 if cell_height > 9 else 0)
        _draw_names_along_axis(axes.xaxis, grid.columns, cell_width)
        _draw_names_along_axis(axes.yaxis, grid.rows, cell_height)
        axes.set_title(grid.title, color=title_colour(grid.title))
        if written:
            _write_cell_numbers(axes, grid.texts, colour_levels, scale)

    return draw_svg(draw_grid, n_columns * cell_width, n_rows * cell_height)


def _draw_cells(axes, colour_levels, scale, *, gap):
    """Draw a matrix of steps as coloured cells of side 1."""
    n_rows, n_columns = colour_levels.shape
    cell_levels, borders = colour_levels, [np.arange(n_columns + 1), np.arange(n_rows + 1)]
    if gap:
        cell_levels = np.ma.array(np.zeros((2 * n_rows - 1, 2 * n_columns - 1)), mask=True)
        cell_levels[::2, ::2] = colour_levels
        borders = [np.add.outer(axis_edges[:-1], (gap, 1 - gap)).ravel() for axis_edges in borders]
    level_limits = {"vmin": -0.5, "vmax": len(scale.cells) - 0.5}
    mesh = axes.pcolormesh(*borders, cell_levels, cmap=ListedColormap(scale.cells), **level_limits)
    mesh.set_gid("cells" if gap else "solid cells")
    axes.set(xlim=(0, n_columns), ylim=(n_rows, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4)


def _write_cell_numbers(axes, texts, colour_levels, colour_scale):
    for (row, column), text in np.ndenumerate(texts):
        text = re.sub(r"\.0+$", "", text).replace("-", "−")  # whole numbers stand out
        text_colour = colour_scale.texts[colour_levels[row, column]]
        text_alignment = {"ha": "center", "va": "center_baseline", "in_layout": False}
        axes.text(column + 0.5, row + 0.5, text, color=text_colour, **text_alignment)


def _draw_names_along_axis(axis, names, room):
    """Write the names along an axis, turned or thinned out where they have little room."""
    shown_names = [short_label(entry) for entry in names.entries]
    widest_name = max(map(text_width, shown_names))
    is_horizontal = axis.axis_name == "x"
    are_numbers = all(entry.isdigit() for entry in shown_names)
    name_room = widest_name + 4 if is_horizontal and are_numbers else LINE - 2
    tick_step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if n * room >= name_room)
    axis.set_ticks(np.arange(len(shown_names))[::tick_step] + 0.5, shown_names[::tick_step])
    if is_horizontal and widest_name > room * tick_step:
        for tick_label in axis.get_ticklabels():
            tick_label.set(rotation=45 if room > 15 else 90, rotation_mode="anchor")
            tick_label.set(ha="right", va="center")
    axis.set_label_text(names.axis, style="italic")


def _key_svg(n_colours, scale, texts, *, label=(), width=220):
    """Return the SVG of the key to a colour scale: some of its colours, and texts below them."""

    def draw_key(axes):
        levels = np.linspace(0, len(scale.cells) - 1, n_colours, dtype=int)
        _draw_cells(axes, levels[None], scale, gap=0.03)
        axes.set_xticks(np.linspace(0.5, n_colours - 0.5, len(texts)), texts)
        axes.set_yticks([0.5] * len(label), label)

    return draw_svg(draw_key, width, 14)


def _grid_table(grid):
    """Return a LabelledGrid as the table that stands below the picture."""
    corner_text = ", ".join(filter(None, (grid.rows.axis, grid.columns.axis)))
    return Table(grid.title, grid.texts, grid.rows.entries, grid.columns.entries, corner_text)


def _strongest_weight_text(grid):
    row, column = np.unravel_index(grid.numbers.argmax(), grid.numbers.shape)
    query_name, key = grid.rows.entries[row], grid.columns.entries[column]
    return f"{grid.title}: largest weight {grid.texts[row, column]}, from {query_name} to {key}."


def _grid_text(grid, *, is_mask):
    n_rows, n_columns = grid.numbers.shape
    least, largest = grid.texts.ravel()[grid.numbers.argsort(axis=None)[[0, -1]]]
    count = f"{int(grid.numbers.sum())} of {grid.numbers.size} True"
    content = count if is_mask else f"from {least} to {largest}"
    return f"{grid.title}: {n_rows} rows, {n_columns} columns, {content}."
