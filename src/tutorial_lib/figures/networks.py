"""Sums of products as chains of boxes: an array is a box, an index is a line."""

import re
from typing import NamedTuple

import numpy as np
from matplotlib.patches import FancyBboxPatch

from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import Figure, Table, require_nonempty_dict
from tutorial_lib.figures.ink import INK
from tutorial_lib.figures.svg import RULE, draw_svg, side_by_side, text_width

_BOX, _GAP, _MARGIN = (110, 40), 44, 12  # width and height of a box, pixels between two, around all
_HEADER, _RAIL, _OPEN, _LEG = 28, 28, 46, 34  # heights of a title, of a rail, of an open end; pitch
_OPERATION_HEIGHT = 68  # height of what stands between two chains
_MIN_BOX_PITCH = 76  # pixels of a box and the gap beside it


class EinsumChain(NamedTuple):
    """One sum of products: a title, the arrays' names, their indices, those of the result."""

    title: str
    names: list
    operands: list
    result: str

    @property
    def indices(self):
        """Every index once, in the order in which they appear."""
        return list(dict.fromkeys("".join(self.operands)))

    def operands_with_index(self, index):
        """Return the places of the arrays that have an index."""
        return [place for place, operand in enumerate(self.operands) if index in operand]

    def joins_neighbours(self, index):
        """Tell whether an index is summed between two neighbours: a line from box to box."""
        owners = self.operands_with_index(index)
        return index not in self.result and len(owners) == 2 and owners[1] == owners[0] + 1

    @property
    def shared_indices(self):
        """The other indices that several arrays share: a line below the boxes joins them."""
        shared = [i for i in self.indices if len(self.operands_with_index(i)) > 1]
        return [index for index in shared if not self.joins_neighbours(index)]

    @property
    def height(self):
        """Pixels from the title to the labels of the open ends."""
        return _HEADER + _BOX[1] + _RAIL * len(self.shared_indices) + _OPEN


def tensor_network(chains, *, between="", caption) -> Figure:
    """Draw sums of products: joined lines are summed over, open ends are the result's indices.

    Parameters
    ----------
    chains : dict of title -> (subscripts, names): the string that `np.einsum` takes, such as
        "htd,hsd->hts", and a name for each operand, such as ["Q", "K"]
    between : what happens to the result of one chain before the next, which no sum of products can
    caption : what to look for

    Raises
    ------
    ValueError : no chain, other subscripts than letters with an arrow, an index of the result that
        no operand has, or another number of names than of operands
    """
    require_nonempty_dict("chains", chains)
    parsed_chains = [_parse_einsum(title, *chain) for title, chain in chains.items()]
    max_boxes = max(len(chain.names) for chain in parsed_chains)
    x_max = max_boxes * _BOX[0] + (max_boxes - 1) * _GAP + 2 * _MARGIN
    y_max = sum(chain.height for chain in parsed_chains) + _OPERATION_HEIGHT * (
        len(parsed_chains) - 1
    )

    def svg_for_width(room):  # boxes and lines are scaled to it, texts are not
        px_width = max(min(x_max, room), _MIN_BOX_PITCH * max_boxes)
        return draw_svg(
            lambda axes: _draw_chains(axes, parsed_chains, between, (x_max, y_max)), px_width, y_max
        )

    separator = f" Then {between}. " if between else " "
    alt = "Tensor network. " + separator.join(_chain_alt(chain) for chain in parsed_chains)
    return Figure(
        side_by_side([svg_for_width]), tuple(map(_index_table, parsed_chains)), caption, alt
    )


def _parse_einsum(title, subscripts, names):
    if not re.fullmatch(r"[A-Za-z]+(,[A-Za-z]+)*->[A-Za-z]*", subscripts):
        raise ValueError(
            f"{title!r} has subscripts {subscripts!r}; expected letters, commas and an arrow. "
            f"Write them as for np.einsum without dots, such as 'htd,hsd->hts'."
        )
    operands, result = subscripts.split("->")
    unknown = sorted(set(result) - set(operands))
    if unknown:
        raise ValueError(
            f"{title!r} has {', '.join(unknown)} in its result, {result!r}, and in no operand; "
            f"expected letters of {operands!r}. Leave them out, or add them to an operand."
        )
    operands = operands.split(",")
    if len(names) != len(operands):
        raise ValueError(
            f"{title!r} has {len(names)} names for {len(operands)} operands, {subscripts!r}; "
            f"expected one for each. Give the names in the order of the operands."
        )
    names = list(map(escaped_name, names))
    return EinsumChain(escaped_name(title), names, operands, result)


def _index_table(chain):
    """Say of each index which arrays have it, and what becomes of it."""
    rows = [
        ["●" if index in operand else "" for operand in chain.operands]
        + ["open" if index in chain.result else "summed"]
        for index in chain.indices
    ]
    columns = [*chain.names, chain.title]
    subscripts = f"{','.join(chain.operands)}->{chain.result}"
    title = f"{chain.title} = {subscripts}"
    return Table(title, np.array(rows), chain.indices, columns, "index, array")


def _chain_alt(chain):
    free = [index for index in chain.indices if index in chain.result]
    summed = [index for index in chain.indices if index not in chain.result]
    return (
        f"{chain.title}: {', '.join(chain.names)} in a row. "
        f"Summed over: {', '.join(summed) or 'nothing'}. Open: {', '.join(free) or 'nothing'}."
    )


def _draw_chains(axes, chains, operation, full_size):
    axes.set(xlim=(0, full_size[0]), ylim=(full_size[1], 0))
    axes.set_axis_off()
    chain_top = 0
    for chain_number, chain in enumerate(chains):
        if chain_number:
            _draw_operation_between_chains(axes, operation, full_size[0], chain_top)
            chain_top += _OPERATION_HEIGHT
        _draw_chain(axes, chain, chain_top)
        chain_top += chain.height


def _draw_operation_between_chains(axes, text, width, top):
    middle_x = width / 2
    half_width = (text_width(text) / 2 + 20) * width / axes.bbox.width
    if text:
        _draw_box(axes, (middle_x - half_width, top + 14), (2 * half_width, 32), round_corners=True)
        axes.text(middle_x, top + 30, text, ha="center", va="center_baseline", style="italic")
    for line_start, line_end in ((4, 14), (46, 60)) if text else ((4, 60),):
        _draw_line(axes, (middle_x, middle_x), (top + line_start, top + line_end))
    axes.plot(middle_x, top + 60, marker="v", markersize=7, color=INK, linestyle="none")


def _draw_chain(axes, chain, chain_top):
    axes.text(0, chain_top + 10, chain.title, va="center_baseline", weight="bold")
    box_top = chain_top + _HEADER
    for operand_index, name in enumerate(chain.names):
        corner = _box_left_x(operand_index), box_top
        _draw_box(axes, corner, _BOX)
        box_middle = _box_left_x(operand_index) + _BOX[0] / 2, box_top + _BOX[1] / 2
        axes.text(*box_middle, name, ha="center", va="center_baseline")
    for index in filter(chain.joins_neighbours, chain.indices):
        line_start = _box_left_x(chain.operands_with_index(index)[0]) + _BOX[0]
        _draw_line(axes, (line_start, line_start + _GAP), (box_top + _BOX[1] / 2,) * 2)
        axes.text(line_start + _GAP / 2, box_top + _BOX[1] / 2 - 9, index, ha="center")
    _draw_index_legs(axes, chain, box_top + _BOX[1])


def _draw_index_legs(axes, chain, box_bottom):
    """Draw what hangs below the boxes: rails through shared indices, and open ends."""
    open_end_y = box_bottom + _RAIL * len(chain.shared_indices) + _OPEN - 24
    for index in [name for name in chain.indices if not chain.joins_neighbours(name)]:
        leg_xs = [_index_leg_x(chain, n, index) for n in chain.operands_with_index(index)]
        line_top = box_bottom
        if index in chain.shared_indices:
            line_top = box_bottom + _RAIL * (chain.shared_indices.index(index) + 0.75)
            _draw_index_rail(axes, leg_xs, (box_bottom, line_top))
        if index not in chain.result:
            axes.text(np.mean(leg_xs), line_top + 15, f"{index}, summed", ha="center")
            continue
        _draw_line(axes, (np.mean(leg_xs),) * 2, (line_top, open_end_y - 3))
        axes.plot(np.mean(leg_xs), open_end_y, "o", markersize=6, color=INK, markerfacecolor="none")
        axes.text(np.mean(leg_xs), open_end_y + 13, index, ha="center", va="center_baseline")


def _draw_index_rail(axes, leg_xs, rail_span):
    box_bottom, rail_y = rail_span
    _draw_line(axes, (min(leg_xs), max(leg_xs)), (rail_y, rail_y))
    for leg_position in leg_xs:
        _draw_line(axes, (leg_position, leg_position), (box_bottom, rail_y))
    axes.plot(leg_xs, [rail_y] * len(leg_xs), "o", markersize=5, color=INK, linestyle="none")


def _index_leg_x(chain, operand_index, index):
    """Return where the line of an index leaves a box: open ends outside, shared ones inside."""
    own_indices = chain.operands[operand_index]
    leg_indices = [name for name in own_indices if not chain.joins_neighbours(name)]
    opens_outward = 2 * operand_index < len(chain.operands) - 1
    leg_indices.sort(key=lambda i: (i in chain.shared_indices) == opens_outward)
    offset = leg_indices.index(index) - (len(leg_indices) - 1) / 2
    return _box_left_x(operand_index) + _BOX[0] / 2 + _LEG * offset


def _box_left_x(operand_index):
    return _MARGIN + operand_index * (_BOX[0] + _GAP)


def _draw_line(axes, x, y, linewidth=RULE):
    axes.plot(x, y, color=INK, linewidth=linewidth, solid_capstyle="butt")


def _draw_box(axes, corner, size, *, round_corners=False):
    style = "round,pad=0,rounding_size=14" if round_corners else "square,pad=0"
    shape = FancyBboxPatch(corner, *size, boxstyle=style, fill=False, edgecolor=INK, linewidth=RULE)
    axes.add_patch(shape)
