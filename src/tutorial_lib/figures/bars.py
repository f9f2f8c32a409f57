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
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.lines import legend_column_count
from tutorial_lib.figures.svg import RULE, TickFormat, draw_svg_within_width, side_by_side

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

    def svg_for_width(room):
        return draw_svg_within_width(
            lambda axes: _draw_horizontal_bars(axes, numbers, rows, columns, label),
            room,
            chart_height,
        )

    alt = f"Bar chart of {label}. " + " ".join(
        f"{name}: longest for {rows[group]}, {texts[group, bar_index]}."
        for bar_index, (name, group) in enumerate(zip(columns, numbers.argmax(axis=0), strict=True))
    )
    return Figure(
        side_by_side([svg_for_width]), (Table(label, texts, rows, columns),), caption, alt
    )


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
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color=INK, alpha=0.15, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10)))
    axes.xaxis.set_major_formatter(TickFormat())
    if len(columns) > 1:
        legend_place = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        axes.legend(ncols=legend_column_count(axes, columns), frameon=False, **legend_place)
