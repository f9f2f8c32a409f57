"""Groups of horizontal bars."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_plottable,
    rounded_numbers_and_texts,
    short_label,
)
from tutorial_lib.figures.ink import HEAD_INKS
from tutorial_lib.figures.svg import RULE, TickFormat, chart_svg, draw_legend_above, open_frame

_BAR_HEIGHT = 13  # of a bar, in pixels
_GROUP_GAP = 0.9  # bars that would fit between two groups
_FILL_OPACITIES = (1.0, 0.0, 0.35)  # full, hollow and pale bars differ without colour too


def bar_chart(values, rows, columns, *, label, caption) -> Figure:
    """Draw a group of horizontal bars for each row of a table, a bar for each of its columns.

    Parameters
    ----------
    values : (rows, columns), none below 0
    rows : names of the groups, from the top
    columns : names of the bars of a group, in the key above
    label : what the lengths mean
    caption : what to look for

    Raises
    ------
    TypeError : values is no array of numbers
    ShapeError : other axes, or another number of names than of rows or columns
    ValueError : NaN, infinity or a number below 0
    """
    rows, columns = ([escaped_name(name) for name in names] for names in (rows, columns))
    value_rules = {"limits": (0, np.inf), "rows": rows, "columns": columns}
    require_plottable("values", values, "rows columns", **value_rules)
    numbers, texts = rounded_numbers_and_texts(values)
    chart_height = _BAR_HEIGHT * len(rows) * (len(columns) + _GROUP_GAP)
    svg = chart_svg(
        lambda axes: _draw_horizontal_bars(axes, numbers, rows, columns, label),
        lambda room: chart_height,
    )
    alt = f"Bar chart of {label}. " + " ".join(
        f"{name}: longest for {rows[group]}, {texts[group, bar_index]}."
        for bar_index, (name, group) in enumerate(zip(columns, numbers.argmax(axis=0), strict=True))
    )
    return Figure(svg, (Table(label, texts, rows, columns),), caption, alt)


def _draw_horizontal_bars(axes, numbers, rows, columns, label):
    group_tops = np.arange(len(rows)) * (len(columns) + _GROUP_GAP)
    for column_index, name in enumerate(columns):
        colour = HEAD_INKS[column_index % len(HEAD_INKS)]
        axes.barh(
            group_tops + column_index + 0.5,
            numbers[:, column_index],
            height=0.75,
            label=name,
            facecolor=(colour, _FILL_OPACITIES[column_index % len(_FILL_OPACITIES)]),
            edgecolor=colour,
            linewidth=RULE,
        )
    axes.set(xlabel=label, ylim=(group_tops[-1] + len(columns) + _GROUP_GAP / 2, -_GROUP_GAP / 2))
    axes.set_yticks(group_tops + len(columns) / 2, [short_label(name) for name in rows])
    axes.tick_params(axis="y", length=0)
    open_frame(axes, grid="x")
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10)))
    axes.xaxis.set_major_formatter(TickFormat())
    draw_legend_above(axes, columns)
