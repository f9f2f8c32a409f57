"""Upright bars over the same names, one panel after the other."""

import re
from typing import NamedTuple

import numpy as np

from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_nonempty_dict,
    require_plottable,
    rounded_numbers_and_texts,
    short_label,
)
from tutorial_lib.figures.ink import INK, title_colour
from tutorial_lib.figures.svg import LINE, RULE, draw_svg, side_by_side, text_width

_AXES_HEIGHT = 140  # of a panel's axes, in pixels
_NUMBER_ROOM = LINE + 4  # for a number beyond the end of its bar
_PITCH_LIMITS = (46, 104)  # least and largest pixels from bar to bar


class BarPanel(NamedTuple):
    """One panel: its title, the rounded heights of its bars, and what is written at their ends."""

    title: str
    numbers: np.ndarray
    texts: list


def bar_panels(panels, names, *, fractions=False, caption) -> Figure:
    """Draw each array as upright bars over the same names, with the number at the end of each bar.

    Every panel has a scale of its own, from 0, since panels may have different units.

    Parameters
    ----------
    panels : dict of title -> (n,) array; a title "head 1" gets that head's colour
    names : n names of the bars, the same in each panel
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for

    Raises
    ------
    TypeError : an array is no array of numbers
    ShapeError : other than one axis, or another number of entries than of names
    ValueError : no array, NaN, infinity, or no such fraction
    """
    require_nonempty_dict("panels", panels)
    names = [escaped_name(name) for name in names]
    rounded_panels = [_rounded_bar_panel(t, array, names, fractions) for t, array in panels.items()]
    min_width = len(names) * _min_bar_pitch(rounded_panels, names)
    draws = [lambda room, p=p: _panel_svg(p, names, max(min_width, room)) for p in rounded_panels]
    cells = np.stack([panel.texts for panel in rounded_panels], axis=1)
    table = Table("bars", cells, names, [panel.title for panel in rounded_panels])
    alt = "Bars. " + " ".join(_bars_alt_text(panel, names) for panel in rounded_panels)
    return Figure(side_by_side(draws, least=min_width + 8), (table,), caption, alt)


def _rounded_bar_panel(title, array, names, fractions):
    require_plottable(title, array, "names", names=names)
    return BarPanel(escaped_name(title), *rounded_numbers_and_texts(array, fractions=fractions))


def _min_bar_pitch(panels, names):
    """Return the pixels from bar to bar: room for every number, and for names if they are short."""
    number_width = 5 + max(text_width(text) for panel in panels for text in panel.texts)
    name_width = 8 + max(text_width(short_label(name)) for name in names)
    return max(_PITCH_LIMITS[0], number_width, name_width if name_width <= _PITCH_LIMITS[1] else 0)


def _panel_svg(panel, names, room):
    pitch = min(_PITCH_LIMITS[1], (room - 8) / len(names))
    width = pitch * len(names)
    return draw_svg(lambda axes: _draw_upright_bars(axes, panel, names, pitch), width, _AXES_HEIGHT)


def _draw_upright_bars(axes, panel, names, bar_pitch):
    colour = title_colour(panel.title)
    bar_positions = np.arange(len(names)) + 0.5
    axes.bar(
        bar_positions,
        panel.numbers,
        width=min(0.62, 52 / bar_pitch),
        facecolor=(colour, 0.35),
        edgecolor=colour,
        linewidth=RULE,
    )
    axes.axhline(0, color=INK, linewidth=RULE)
    axes.set(xlim=(0, len(names)), ylim=_bar_y_limits(panel.numbers), yticks=[])
    for bar_x, number, text in zip(bar_positions, panel.numbers, panel.texts, strict=True):
        _write_bar_number(axes, (bar_x, number), text)
    axes.set_xticks(bar_positions, [short_label(name) for name in names])
    if max(text_width(short_label(name)) for name in names) > bar_pitch:
        for tick_label in axes.get_xticklabels():
            tick_label.set(rotation=45, rotation_mode="anchor", ha="right", va="center")
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.title, color=colour)


def _bar_y_limits(numbers):
    """Return y limits that hold 0, every bar, and a number beyond the highest and the lowest."""
    lowest_end, highest_end = min(0.0, numbers.min()), max(0.0, numbers.max())
    room_below = _NUMBER_ROOM if lowest_end < 0 else 3
    room_above = _NUMBER_ROOM
    units_per_pixel = (highest_end - lowest_end or 1.0) / (_AXES_HEIGHT - room_below - room_above)
    return lowest_end - room_below * units_per_pixel, highest_end + room_above * units_per_pixel


def _write_bar_number(axes, bar_end, text):
    """Write a number beyond the end of its bar: above one that rises, below one that falls."""
    is_negative = bar_end[1] < 0
    axes.annotate(
        re.sub(r"\.0+$", "", text).replace("-", "−"),  # whole numbers stand out
        bar_end,
        xytext=(0, -4 if is_negative else 4),
        textcoords="offset pixels",
        ha="center",
        va="top" if is_negative else "bottom",
    )


def _bars_alt_text(panel, names):
    named_texts = zip(names, panel.texts, strict=True)
    return f"{panel.title}: " + ", ".join(f"{name} {text}" for name, text in named_texts) + "."
