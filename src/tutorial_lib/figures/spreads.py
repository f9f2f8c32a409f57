"""Repeated measurements as points, with their range."""

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from tutorial_lib.contract import require_value_fits_annotation
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    on_two_lines,
    require_nonempty_dict,
    require_plottable,
    rounded_numbers_and_texts,
    short_label,
)
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.svg import RULE, TickFormat, chart_svg, open_frame, text_width

_ROW_HEIGHT, _TALL_ROW = 34, 42  # pixels from row to row, and where a name takes two lines
_MAX_LINE_LENGTH = 20  # signs of a name on one line


def spread_chart(runs, *, label, caption, log=False, at=None) -> Figure:
    """Draw a row of points for each series of runs, on a line from the least to the most.

    Parameters
    ----------
    runs : dict of name -> (n,) values, one for each run; the same number in each, or a
        wider range would mean more runs
    label : what the values are
    caption : what to look for
    log : whether the axis is logarithmic
    at : value at which a line stands, such as 1 for ratios; None: no line

    Raises
    ------
    TypeError : runs that are no array of numbers
    ShapeError : other axes, or another number of runs than in the first row
    ValueError : no row, NaN, infinity, or a number on a logarithmic axis that is not positive,
        in runs or as at
    """
    require_nonempty_dict("runs", runs)
    for name, values in runs.items():
        require_plottable(name, values, "runs", log=log)
        require_value_fits_annotation(name, values, "raw runs", runs=len(next(iter(runs.values()))))
    if at is not None:
        require_plottable("at", np.array([at]), "line", log=log)
    names = [escaped_name(name) for name in runs]
    numbers, texts = rounded_numbers_and_texts(np.stack([*runs.values()]), fine=log)

    def draw_spreads_and_line(axes):
        _draw_spreads(axes, numbers, names, label, log)
        if at is not None:
            axes.axvline(at, color=INK, linewidth=1.5 * RULE)

    row_height = _TALL_ROW if any("\n" in _two_lines(name) for name in names) else _ROW_HEIGHT
    svg = chart_svg(draw_spreads_and_line, lambda room: row_height * len(names))
    extreme_runs = zip(names, numbers.argmin(axis=1), numbers.argmax(axis=1), texts, strict=True)
    alt = f"Points of {label}, a row for each. " + " ".join(
        f"{name}: {row[lowest_run]} to {row[top]}." for name, lowest_run, top, row in extreme_runs
    )
    table = Table(label, texts, names, [f"run {run_index}" for run_index in range(texts.shape[1])])
    return Figure(svg, (table,), caption, alt)


def _two_lines(name):
    """Write a name on one line, or on two where it is long."""
    return "\n".join(map(short_label, on_two_lines(name, _MAX_LINE_LENGTH).split("\n")))


def _draw_spreads(axes, numbers, names, label, log):
    for row_y, row in enumerate(numbers):
        axes.plot([row.min(), row.max()], [row_y, row_y], color=INK, alpha=0.5, linewidth=RULE)
        marker = {"linestyle": "none", "marker": "o", "markersize": 8, "markerfacecolor": "none"}
        axes.plot(row, np.full(len(row), row_y), color=HEAD_INKS[0], markeredgewidth=1.6, **marker)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10)))
    label = on_two_lines(label, 0) if text_width(label) > axes.bbox.width else label
    axes.set(xlabel=label, ylim=(len(names) - 0.4, -0.6))
    axes.set_yticks(range(len(names)), list(map(_two_lines, names)))
    axes.tick_params(axis="y", length=0)
    open_frame(axes, grid="x")
    axes.xaxis.set_major_formatter(TickFormat(is_log=log))
