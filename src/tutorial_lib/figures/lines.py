"""Curves over a common x."""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_nonempty_dict,
    require_plottable,
    rounded_numbers_and_texts,
)
from tutorial_lib.figures.ink import HEAD_INKS, head_number_in_title
from tutorial_lib.figures.svg import (
    TickFormat,
    chart_svg,
    draw_legend_above,
    number_text,
    open_frame,
    text_width,
)

_MARKERS = "osD^vPX*"
_DASH_PATTERNS = (5, 2), (1, 1.5), (7, 2, 1, 2), (10, 3), (4, 1.5, 1, 1.5, 1, 1.5)
_LINE_STYLES = ("-", *((0, gaps) for gaps in _DASH_PATTERNS))


class NamedCurve(NamedTuple):
    """Named numbers; `values` are rounded, `texts` are what is written."""

    name: str
    values: np.ndarray
    texts: np.ndarray


def line_chart(x, series, *, labels, caption, log=()) -> Figure:
    """Draw curves that differ by colour, marker and dash.

    Parameters
    ----------
    x : (n,) places of the points
    series : dict of name -> (n,) values; a name "head 1" gets that head's colour
    labels : (name of x, name of y)
    caption : what to look for
    log : which axes are logarithmic: "x", "y" or both

    Raises
    ------
    TypeError : x or a curve is no array of numbers
    ShapeError : a curve with another number of points than x
    ValueError : no curve, NaN, or a number on a logarithmic axis that is not positive
    """
    require_nonempty_dict("series", series)
    require_plottable("x", x, "points", log="x" in log)
    for name, y in series.items():
        require_plottable(name, y, "x", x=x, log="y" in log)
    x_values = NamedCurve("x", *rounded_numbers_and_texts(x, fine="x" in log))
    rounded = {name: rounded_numbers_and_texts(y, fine="y" in log) for name, y in series.items()}
    curves = [NamedCurve(escaped_name(name), *values) for name, values in rounded.items()]
    svg = chart_svg(
        lambda axes: _draw_line_chart(axes, x_values, curves, labels, log),
        lambda room: 130 + 0.25 * room,
    )
    cells = np.stack([curve.texts for curve in curves], axis=1)
    names = [curve.name for curve in curves]
    table = Table(labels[1], cells, x_values.texts.tolist(), names, labels[0])
    first_x, *_, last_x = [*x_values.texts, x_values.texts[-1]]
    alt = f"Line chart of {labels[1]} against {labels[0]}. " + " ".join(
        f"{curve.name}: {curve.texts[0]} at {first_x}, {curve.texts[-1]} at {last_x}."
        for curve in curves
    )
    return Figure(svg, (table,), caption, alt)


def _draw_line_chart(axes, x_values, curves, labels, log):
    marker_step = -(-len(x_values.values) // 12)  # markers tell curves apart; more would hide them
    for curve_index, curve in enumerate(curves):
        head_number = head_number_in_title(curve.name)
        axes.plot(
            x_values.values,
            curve.values,
            label=curve.name,
            color=HEAD_INKS[(curve_index if head_number is None else head_number) % len(HEAD_INKS)],
            marker=_MARKERS[curve_index % len(_MARKERS)],
            markevery=(curve_index * marker_step // len(curves), marker_step),
            linestyle=_LINE_STYLES[curve_index % len(_LINE_STYLES)],
            linewidth=2,
        )
    axes.set(xlabel=labels[0], ylabel=labels[1])
    open_frame(axes, grid="both")
    _set_scale_and_ticks(axes, "x", x_values.values, "x" in log)
    _set_scale_and_ticks(axes, "y", np.concatenate([curve.values for curve in curves]), "y" in log)
    draw_legend_above(axes, [curve.name for curve in curves], handlelength=3)


def _set_scale_and_ticks(axes, name, values, is_log):
    """Mark the points themselves where there is room for their names, round numbers otherwise."""
    axis = {"x": axes.xaxis, "y": axes.yaxis}[name]
    scale_positions = np.unique(np.log(values) if is_log else values)
    if is_log:
        axes.set(**{f"{name}scale": "log"})
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(LogLocator(subs=(1,) if np.ptp(scale_positions) > 5 else (1, 2, 5)))
    elif (values == np.rint(values)).all():
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=(1, 2, 5, 10)))
    tick_gaps = np.diff(scale_positions) / (np.ptp(scale_positions) or 1)
    if name == "x" and tick_gaps.size and tick_gaps.min() > 0.11:
        label_width = 8 + max(text_width(number_text(value)) for value in values)
        tick_step = math.ceil(label_width / (tick_gaps.min() * axes.bbox.width))
        axis.set_major_locator(FixedLocator(np.unique(values)[::tick_step]))
    axis.set_major_formatter(TickFormat(is_log=is_log))
