"""The product concat @ W_O as blocks of cells, and the same product as a sum over heads."""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.patches import Rectangle

from tutorial_lib.errors import ShapeError, require_operand, require_shape
from tutorial_lib.figures.figure import Figure, shortened
from tutorial_lib.figures.ink import DIVERGING, HEAD_INKS, INK
from tutorial_lib.figures.maps import colour_bar, draw_cells, grid_of, levels_of, table_of
from tutorial_lib.figures.svg import LINE, RULE, draw_svg, length_of, side_by_side


class Matrix(NamedTuple):
    """A matrix at its place in the picture; `corner` is (x, y) in cells, `head` may be None."""

    title: str
    numbers: np.ndarray
    corner: tuple
    head: int | None = None


def sum_over_heads(heads, W_O, tokens, *, fractions=False, caption):
    """Draw concat @ W_O = Y, and below it each head times its own rows of W_O.

    Parameters
    ----------
    heads : (H, T, d_v), what each head hands on
    W_O : (H*d_v, d_model)
    tokens : T names of the rows
    fractions : write 4/7 instead of 0.5714 in the tables, as `show_fractions` does
    caption : what to look for

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : heads or W_O is no array of numbers
    ShapeError : other axes, rows of W_O that do not fit the heads, or other than T tokens
    ValueError : NaN, or no such fraction
    """
    _require_parts(heads, W_O, tokens)
    H, T, d_v = heads.shape
    parts = heads @ W_O.reshape(H, d_v, -1)  # (H, T, d_model)
    concat = np.concatenate(list(heads), axis=1)  # (T, H*d_v)
    matrices = {"concat": concat, "W_O": W_O}
    matrices |= {f"part of head {h}": part for h, part in enumerate(parts)}
    matrices["Y"] = parts.sum(axis=0)
    names = {title: ("token", tokens) for title in matrices if title != "W_O"}
    grids = [
        grid_of(title, matrix, rows=names.get(title), fractions=fractions)
        for title, matrix in matrices.items()
    ]
    blocks = _first_line(grids) + _lines_of_heads(grids, d_v)
    limit = max(np.abs(grid.numbers).max() for grid in grids) or 1.0
    key = colour_bar("value", DIVERGING, (-limit, 0, limit))
    tokens = grids[0].rows.entries
    svg = side_by_side([lambda room: _picture(blocks, tokens, d_v, limit, room)], key=key)
    alt = (
        f"concat, {T} rows and {H * d_v} columns, times W_O gives Y. Below it, for each of "
        f"{H} heads, its {d_v} columns of concat times its {d_v} rows of W_O give its part of Y; "
        f"the parts add up to Y."
    )
    return Figure(svg, tuple(map(table_of, grids)), caption, alt)


def _require_parts(heads, W_O, tokens):
    require_shape("heads", heads, "H T d_v")
    H, T, d_v = heads.shape
    require_shape("W_O", W_O, "H*d_v d_model", **{"H*d_v": H * d_v})
    require_operand("heads", heads)
    require_operand("W_O", W_O)
    if len(tokens) != T:
        raise ShapeError(
            f"heads has shape {heads.shape}, {T} tokens, but {len(tokens)} names are given; "
            f"expected one for each. Pass {T} names."
        )


_APART = 2  # cells between two matrices, where the sign stands


def _first_line(grids):
    concat, W_O, *_, Y = (grid.numbers for grid in grids)
    across = concat.shape[1] + _APART
    return [
        Matrix("concat", concat, (0, 0)),
        Matrix("W_O", W_O, (across, 0)),
        Matrix("Y", Y, (across + W_O.shape[1] + _APART, 0)),
    ]


def _lines_of_heads(grids, d_v):
    """Return three blocks a head, each below the part of the first line that it repeats."""
    concat, W_O, *parts, _ = (grid.numbers for grid in grids)
    across, top = concat.shape[1] + _APART, max(len(concat), len(W_O)) + 4
    blocks = []
    for h, part in enumerate(parts):
        own = slice(h * d_v, (h + 1) * d_v)
        blocks += [
            Matrix(f"head {h}", concat[:, own], (h * d_v, top), h),
            Matrix(f"rows {own.start} to {own.stop - 1}", W_O[own], (across, top), h),
            Matrix(f"part {h}", part, (across + W_O.shape[1] + _APART, top), h),
        ]
        top += max(len(concat), d_v) + 3
    return blocks


def _picture(blocks, tokens, d_v, limit, room):
    corners = [np.add(block.corner, block.numbers.shape[::-1]) for block in blocks]
    width, height = np.max(corners, axis=0)
    names = max(length_of(shortened(token)) for token in tokens) + 12
    named = width <= 40  # cells of more columns are too small for names
    side = max(5, min(26, (room - names * named) / width))
    line = max(side, LINE + 1) if named else side

    def draw(axes):
        for place, block in enumerate(blocks):
            _draw_block(axes, block, limit, side)
            _draw_sign(axes, block, place, blocks)
            if place % 3 == 0 and named:
                _draw_tokens(axes, block, tokens)
            if place % 3 == 2 and named:
                _draw_features(axes, block, side)
        _frame_parts(axes, blocks[:2], d_v)
        axes.set(xlim=(0, width), ylim=(height, -1), xticks=[], yticks=[])

    return draw_svg(draw, width * side, (height + 1) * line)


def _draw_block(axes, block, limit, side):
    levels = levels_of(block.numbers, -limit, limit)
    draw_cells(axes, levels, DIVERGING, gap=0.03 if side > 9 else 0, corner=block.corner)
    x, y = block.corner
    ink = INK if block.head is None else HEAD_INKS[block.head % len(HEAD_INKS)]
    axes.text(x, y - 0.4, block.title, color=ink, ha="left", va="bottom")
    if block.head is not None:
        n_rows, n_columns = block.numbers.shape
        _frame(axes, (x, y), n_columns, n_rows, block.head)


def _draw_sign(axes, block, place, blocks):
    """Write @ or = before a factor or a result, and what joins a line to the one above it."""
    x, y = block.corner
    middle = y + min(len(b.numbers) for b in blocks[:3]) / 2
    if place % 3:
        sign = "@" if place % 3 == 1 else "="
        axes.text(x - _APART / 2, middle, sign, ha="center", va="center")
    if place % 3 == 2 and place > 5:
        axes.text(x - _APART / 2, y - 1.1, "+", ha="center", va="center")


def _draw_tokens(axes, block, tokens):
    x, y = block.corner
    for row, token in enumerate(tokens):
        axes.text(x - 0.4, y + row + 0.5, shortened(token), ha="right", va="center_baseline")


def _draw_features(axes, block, side):
    x, y = block.corner
    n_rows, n_columns = block.numbers.shape
    needed = length_of("0" * len(str(n_columns - 1))) + 3
    for feature in range(0, n_columns, math.ceil(needed / side)):
        place = (x + feature + 0.5, y + n_rows + 0.2)
        axes.text(*place, str(feature), ha="center", va="top")


def _frame_parts(axes, factors, d_v):
    """Frame each head's columns of concat and its rows of W_O in the head's colour."""
    concat, W_O = factors
    for h in range(concat.numbers.shape[1] // d_v):
        _frame(axes, (concat.corner[0] + h * d_v, 0), d_v, len(concat.numbers), h)
        _frame(axes, (W_O.corner[0], h * d_v), W_O.numbers.shape[1], d_v, h)


def _frame(axes, corner, width, height, head):
    colour = HEAD_INKS[head % len(HEAD_INKS)]
    frame = Rectangle(corner, width, height, fill=False, edgecolor=colour, linewidth=RULE)
    axes.add_patch(frame)
    frame.set_clip_on(False)
