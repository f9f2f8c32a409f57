"""Curves over a common x."""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from tutorial_lib.describe import printable
from tutorial_lib.figures.figure import Figure, Table, require_numbers, require_some, rounded
from tutorial_lib.figures.ink import HEAD_INKS, INK, head_of
from tutorial_lib.figures.svg import Ticks, draw_within, length_of, pretty, side_by_side

_MARKERS = "osD^vPX*"
_GAPS = (5, 2), (1, 1.5), (7, 2, 1, 2), (10, 3), (4, 1.5, 1, 1.5, 1, 1.5)
_DASHES = ("-", *((0, gaps) for gaps in _GAPS))


class Curve(NamedTuple):
    """Named numbers; `values` are rounded, `texts` are what is written."""

    name: str
    values: np.ndarray
    texts: np.ndarray


def line_chart(x, series, *, labels, caption, log=()):
    """Draw curves that differ by colour, marker and dash.

    Parameters
    ----------
    x : (n,) places of the points
    series : dict of name -> (n,) values; a name "head 1" gets that head's colour
    labels : (name of x, name of y)
    caption : what to look for
    log : which axes are logarithmic: "x", "y" or both

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : x or a curve is no array of numbers
    ShapeError : a curve with another number of points than x
    ValueError : no curve, NaN, or a number on a logarithmic axis that is not positive
    """
    require_some("series", series)
    require_numbers("x", x, "points", log="x" in log)
    for name, y in series.items():
        require_numbers(name, y, "x", x=x, log="y" in log)
    places = Curve("x", *rounded(x, fine="x" in log))
    curves = [Curve(printable(name), *rounded(y, fine="y" in log)) for name, y in series.items()]

    def picture(room):
        height = 130 + 0.25 * room
        return draw_within(
            lambda axes: _draw_chart(axes, places, curves, labels, log), room, height
        )

    cells = np.stack([curve.texts for curve in curves], axis=1)
    names = [curve.name for curve in curves]
    table = Table(labels[1], cells, places.texts.tolist(), names, labels[0])
    first, *_, last = [*places.texts, places.texts[-1]]
    alt = f"Line chart of {labels[1]} against {labels[0]}. " + " ".join(
        f"{curve.name}: {curve.texts[0]} at {first}, {curve.texts[-1]} at {last}."
        for curve in curves
    )
    return Figure(side_by_side([picture]), (table,), caption, alt)


def _draw_chart(axes, places, curves, labels, log):
    every = -(-len(places.values) // 12)  # markers tell curves apart; more would hide them
    for number, curve in enumerate(curves):
        head = head_of(curve.name)
        axes.plot(
            places.values,
            curve.values,
            label=curve.name,
            color=HEAD_INKS[(number if head is None else head) % len(HEAD_INKS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markevery=(number * every // len(curves), every),
            linestyle=_DASHES[number % len(_DASHES)],
            linewidth=2,
        )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=INK, alpha=0.15, linewidth=0.8)
    _draw_scale(axes, "x", places.values, "x" in log)
    _draw_scale(axes, "y", np.concatenate([curve.values for curve in curves]), "y" in log)
    if len(curves) > 1:
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        ncols = legend_columns(axes, [curve.name for curve in curves])
        axes.legend(ncols=ncols, frameon=False, handlelength=3, **above)


def legend_columns(axes, names):
    """Return in how many columns the names of a key stand above the axes, as even as they can."""
    widest = 70 + max(map(length_of, names))
    rows = -(-len(names) // max(1, int(axes.bbox.width // widest)))
    return -(-len(names) // rows)


def _draw_scale(axes, name, values, is_log):
    """Mark the points themselves where there is room for their names, round numbers otherwise."""
    axis = {"x": axes.xaxis, "y": axes.yaxis}[name]
    places = np.unique(np.log(values) if is_log else values)
    if is_log:
        axes.set(**{f"{name}scale": "log"})
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(LogLocator(subs=(1,) if np.ptp(places) > 5 else (1, 2, 5)))
    elif (values == np.rint(values)).all():
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=(1, 2, 5, 10)))
    gaps = np.diff(places) / (np.ptp(places) or 1)
    if name == "x" and gaps.size and gaps.min() > 0.11:
        needed = 8 + max(length_of(pretty(value)) for value in values)
        step = math.ceil(needed / (gaps.min() * axes.bbox.width))
        axis.set_major_locator(FixedLocator(np.unique(values)[::step]))
    axis.set_major_formatter(Ticks(is_log=is_log))
