"""Upright bars over the same names, one panel after the other."""

import re
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tutorial_lib.describe import as_fraction, printable
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_numbers,
    require_some,
    rounded,
    shortened,
)
from tutorial_lib.figures.ink import INK, title_ink
from tutorial_lib.figures.svg import LINE, RULE, draw_svg, length_of, side_by_side

_HEIGHT = 140  # of a panel's axes, in pixels
_ROOM = LINE + 4  # for a number beyond the end of its bar
_PITCH = (46, 104)  # least and largest pixels from bar to bar


class Panel(NamedTuple):
    """One panel: its title, the rounded heights of its bars, and what is written at their ends."""

    title: str
    numbers: np.ndarray
    texts: list


def bar_panels(panels, names, *, fractions=False, caption, alt=None):
    """Draw each array as upright bars over the same names, with the number at the end of each bar.

    Every panel has a scale of its own, from 0, since panels may have different units.

    Parameters
    ----------
    panels : dict of title -> (n,) array; a title "head 1" gets that head's colour
    names : n names of the bars, the same in each panel
    fractions : write 4/7 instead of 0.5714, as `show_fractions` does
    caption : what to look for
    alt : the picture in words; by default every bar's number

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : an array is no array of numbers
    ShapeError : other than one axis, or another number of entries than of names
    ValueError : no array, NaN, infinity, or no such fraction
    """
    require_some("panels", panels)
    names = [printable(name) for name in names]
    drawn = [_panel(title, array, names, fractions) for title, array in panels.items()]
    least = len(names) * _needed(drawn, names)
    pictures = [lambda room, p=p: _picture(p, names, max(least, room)) for p in drawn]
    cells = np.stack([panel.texts for panel in drawn], axis=1)
    table = Table("bars", cells, names, [panel.title for panel in drawn])
    alt = alt or "Bars. " + " ".join(_in_words(panel, names) for panel in drawn)
    return Figure(side_by_side(pictures, least=least + 8), (table,), caption, alt)


def _panel(title, array, names, fractions):
    require_numbers(title, array, "names", names=names)
    if not fractions:
        return Panel(printable(title), *rounded(array))
    texts = [as_fraction(entry) for entry in array.tolist()]
    return Panel(printable(title), np.array([float(Fraction(text)) for text in texts]), texts)


def _needed(panels, names):
    """Return the pixels from bar to bar: room for every number, and for names if they are short."""
    numbers = 5 + max(length_of(text) for panel in panels for text in panel.texts)
    longest = 8 + max(length_of(shortened(name)) for name in names)
    return max(_PITCH[0], numbers, longest if longest <= _PITCH[1] else 0)


def _picture(panel, names, room):
    pitch = min(_PITCH[1], (room - 8) / len(names))
    return draw_svg(lambda axes: _draw(axes, panel, names, pitch), pitch * len(names), _HEIGHT)


def _draw(axes, panel, names, pitch):
    colour = title_ink(panel.title)
    places = np.arange(len(names)) + 0.5
    axes.bar(
        places,
        panel.numbers,
        width=min(0.62, 52 / pitch),
        facecolor=(colour, 0.35),
        edgecolor=colour,
        linewidth=RULE,
    )
    axes.axhline(0, color=INK, linewidth=RULE)
    axes.set(xlim=(0, len(names)), ylim=_limits(panel.numbers), yticks=[])
    for place, number, text in zip(places, panel.numbers, panel.texts, strict=True):
        _write(axes, (place, number), text)
    axes.set_xticks(places, [shortened(name) for name in names])
    if max(length_of(shortened(name)) for name in names) > pitch:
        for label in axes.get_xticklabels():
            label.set(rotation=45, rotation_mode="anchor", ha="right", va="center")
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.title, color=colour)


def _limits(numbers):
    """Return y limits that hold 0, every bar, and a number beyond the highest and the lowest."""
    low, high = min(0.0, numbers.min()), max(0.0, numbers.max())
    below = _ROOM if low < 0 else 3
    above = _ROOM
    pixel = (high - low or 1.0) / (_HEIGHT - below - above)
    return low - below * pixel, high + above * pixel


def _write(axes, end, text):
    """Write a number beyond the end of its bar: above one that rises, below one that falls."""
    down = end[1] < 0
    axes.annotate(
        re.sub(r"\.0+$", "", text).replace("-", "−"),  # whole numbers stand out
        end,
        xytext=(0, -4 if down else 4),
        textcoords="offset pixels",
        ha="center",
        va="top" if down else "bottom",
    )


def _in_words(panel, names):
    bars = zip(names, panel.texts, strict=True)
    return f"{panel.title}: " + ", ".join(f"{name} {text}" for name, text in bars) + "."
