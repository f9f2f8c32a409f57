"""Sums of products as chains of boxes: an array is a box, an index is a line."""

import re
from typing import NamedTuple

import numpy as np
from matplotlib.patches import FancyBboxPatch

from tutorial_lib.describe import printable
from tutorial_lib.figures.figure import Figure, Table, require_some
from tutorial_lib.figures.ink import INK
from tutorial_lib.figures.svg import RULE, draw_svg, length_of, side_by_side

_BOX, _GAP, _MARGIN = (110, 40), 44, 12  # width and height of a box, pixels between two, around all
_TITLE, _RAIL, _OPEN, _LEG = 28, 28, 46, 34  # heights of a title, of a rail, of an open end; pitch
_BETWEEN = 68  # height of what stands between two chains
_LEAST = 76  # pixels of a box and the gap beside it


class Chain(NamedTuple):
    """One sum of products: a title, the arrays' names, their indices, those of the result."""

    title: str
    names: list
    operands: list
    result: str

    @property
    def indices(self):
        """Every index once, in the order in which they appear."""
        return list(dict.fromkeys("".join(self.operands)))

    def owners(self, index):
        """Return the places of the arrays that have an index."""
        return [place for place, operand in enumerate(self.operands) if index in operand]

    def is_joint(self, index):
        """Tell whether an index is summed between two neighbours: a line from box to box."""
        owners = self.owners(index)
        return index not in self.result and len(owners) == 2 and owners[1] == owners[0] + 1

    @property
    def rails(self):
        """The other indices that several arrays share: a line below the boxes joins them."""
        shared = [index for index in self.indices if len(self.owners(index)) > 1]
        return [index for index in shared if not self.is_joint(index)]

    @property
    def height(self):
        """Pixels from the title to the labels of the open ends."""
        return _TITLE + _BOX[1] + _RAIL * len(self.rails) + _OPEN


def tensor_network(chains, *, between="", caption, alt=None):
    """Draw sums of products: joined lines are summed over, open ends are the result's indices.

    Parameters
    ----------
    chains : dict of title -> (subscripts, names): the string that `np.einsum` takes, such as
        "htd,hsd->hts", and a name for each operand, such as ["Q", "K"]
    between : what happens to the result of one chain before the next, which no sum of products can
    caption : what to look for
    alt : the picture in words; by default the indices of every chain

    Returns
    -------
    figure : Figure

    Raises
    ------
    ValueError : no chain, other subscripts than letters with an arrow, an index of the result that
        no operand has, or another number of names than of operands
    """
    require_some("chains", chains)
    parsed = [_parse(title, *chain) for title, chain in chains.items()]
    widest = max(len(chain.names) for chain in parsed)
    width = widest * _BOX[0] + (widest - 1) * _GAP + 2 * _MARGIN
    height = sum(chain.height for chain in parsed) + _BETWEEN * (len(parsed) - 1)

    def picture(room):  # boxes and lines are scaled to it, texts are not
        wide = max(min(width, room), _LEAST * widest)
        return draw_svg(lambda axes: _draw(axes, parsed, between, (width, height)), wide, height)

    then = f" Then {between}. " if between else " "
    alt = alt or "Tensor network. " + then.join(_in_words(chain) for chain in parsed)
    return Figure(side_by_side([picture]), tuple(map(_table, parsed)), caption, alt)


def _parse(title, subscripts, names):
    if not re.fullmatch(r"[A-Za-z]+(,[A-Za-z]+)*->[A-Za-z]*", subscripts):
        raise ValueError(
            f"{title!r} has subscripts {subscripts!r}; expected letters, commas and an arrow. "
            f"Write them as for np.einsum without dots, such as 'htd,hsd->hts'."
        )
    operands, result = subscripts.split("->")
    missing = sorted(set(result) - set(operands))
    if missing:
        raise ValueError(
            f"{title!r} has {', '.join(missing)} in its result, {result!r}, and in no operand; "
            f"expected letters of {operands!r}. Leave them out, or add them to an operand."
        )
    operands = operands.split(",")
    if len(names) != len(operands):
        raise ValueError(
            f"{title!r} has {len(names)} names for {len(operands)} operands, {subscripts!r}; "
            f"expected one for each. Give the names in the order of the operands."
        )
    return Chain(printable(title), [printable(name) for name in names], operands, result)


def _table(chain):
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


def _in_words(chain):
    ends = [index for index in chain.indices if index in chain.result]
    summed = [index for index in chain.indices if index not in chain.result]
    return (
        f"{chain.title}: {', '.join(chain.names)} in a row. "
        f"Summed over: {', '.join(summed) or 'nothing'}. Open: {', '.join(ends) or 'nothing'}."
    )


def _draw(axes, chains, between, size):
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
    axes.set_axis_off()
    top = 0
    for number, chain in enumerate(chains):
        if number:
            _draw_between(axes, between, size[0], top)
            top += _BETWEEN
        _draw_chain(axes, chain, top)
        top += chain.height


def _draw_between(axes, text, width, top):
    middle = width / 2
    half = (length_of(text) / 2 + 20) * width / axes.bbox.width
    if text:
        _box(axes, (middle - half, top + 14), (2 * half, 32), round_corners=True)
        axes.text(middle, top + 30, text, ha="center", va="center_baseline", style="italic")
    for start, end in ((4, 14), (46, 60)) if text else ((4, 60),):
        _line(axes, (middle, middle), (top + start, top + end))
    axes.plot(middle, top + 60, marker="v", markersize=7, color=INK, linestyle="none")


def _draw_chain(axes, chain, top):
    axes.text(0, top + 10, chain.title, va="center_baseline", weight="bold")
    roof = top + _TITLE
    for place, name in enumerate(chain.names):
        corner = _left(place), roof
        _box(axes, corner, _BOX)
        middle = _left(place) + _BOX[0] / 2, roof + _BOX[1] / 2
        axes.text(*middle, name, ha="center", va="center_baseline")
    for index in filter(chain.is_joint, chain.indices):
        start = _left(chain.owners(index)[0]) + _BOX[0]
        _line(axes, (start, start + _GAP), (roof + _BOX[1] / 2,) * 2)
        axes.text(start + _GAP / 2, roof + _BOX[1] / 2 - 9, index, ha="center")
    _draw_legs(axes, chain, roof + _BOX[1])


def _draw_legs(axes, chain, floor):
    """Draw what hangs below the boxes: rails through shared indices, and open ends."""
    bottom = floor + _RAIL * len(chain.rails) + _OPEN - 24
    for index in [i for i in chain.indices if not chain.is_joint(i)]:
        legs = [_leg(chain, place, index) for place in chain.owners(index)]
        start = floor
        if index in chain.rails:
            start = floor + _RAIL * (chain.rails.index(index) + 0.75)
            _draw_rail(axes, legs, (floor, start))
        if index not in chain.result:
            axes.text(np.mean(legs), start + 15, f"{index}, summed", ha="center")
            continue
        _line(axes, (np.mean(legs),) * 2, (start, bottom - 3))
        axes.plot(np.mean(legs), bottom, "o", markersize=6, color=INK, markerfacecolor="none")
        axes.text(np.mean(legs), bottom + 13, index, ha="center", va="center_baseline")


def _draw_rail(axes, legs, heights):
    floor, rail = heights
    _line(axes, (min(legs), max(legs)), (rail, rail))
    for leg in legs:
        _line(axes, (leg, leg), (floor, rail))
    axes.plot(legs, [rail] * len(legs), "o", markersize=5, color=INK, linestyle="none")


def _leg(chain, place, index):
    """Return where the line of an index leaves a box: open ends outside, shared ones inside."""
    below = [i for i in chain.operands[place] if not chain.is_joint(i)]
    outward = 2 * place < len(chain.operands) - 1
    below.sort(key=lambda i: (i in chain.rails) == outward)
    offset = below.index(index) - (len(below) - 1) / 2
    return _left(place) + _BOX[0] / 2 + _LEG * offset


def _left(place):
    return _MARGIN + place * (_BOX[0] + _GAP)


def _line(axes, x, y, linewidth=RULE):
    axes.plot(x, y, color=INK, linewidth=linewidth, solid_capstyle="butt")


def _box(axes, corner, size, *, round_corners=False):
    style = "round,pad=0,rounding_size=14" if round_corners else "square,pad=0"
    patch = FancyBboxPatch(corner, *size, boxstyle=style, fill=False, edgecolor=INK, linewidth=RULE)
    axes.add_patch(patch)
