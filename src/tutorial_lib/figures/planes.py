"""Vectors as arrows in a plane."""

import re
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from tutorial_lib.describe import printable
from tutorial_lib.errors import ShapeError, require_finite
from tutorial_lib.figures.figure import Figure, Table, require_some, rounded, shortened
from tutorial_lib.figures.ink import INK, title_ink
from tutorial_lib.figures.svg import LINE, RULE, Ticks, draw_svg, length_of, side_by_side

_SIDES = (220, 400)  # least and largest side of a plane, in pixels
_LEFT = 44  # pixels left of it, for the numbers
_HEAD = 10  # of an arrow, in pixels
_KINDS = (  # line and, at its end, a full triangle, an open ring, a full diamond
    {"linestyle": "-", "marker": (3, 0)},
    {"linestyle": (0, (4, 2)), "marker": "o", "markerfacecolor": "none"},
    {"linestyle": (0, (1, 1.5)), "marker": "D"},
)
_TURNS = np.linspace(-np.pi, np.pi, 24, endpoint=False)  # from the direction of the arrow


def planes(panels, *, caption, alt=None):
    """Draw vectors of two numbers as arrows from the origin, one plane a panel, on one scale.

    Parameters
    ----------
    panels : dict of title -> dict of label -> (x, y); the first word of a label, such as "query"
        or "key", chooses the line and the head of its arrow, a title "head 1" its colour
    caption : what to look for
    alt : the picture in words; by default every arrow's end

    Returns
    -------
    figure : Figure

    Raises
    ------
    ShapeError : an arrow without exactly two numbers
    ValueError : no panel, no arrow, or NaN
    """
    require_some("panels", panels)
    drawn = {title: rounded(_ends(title, arrows)) for title, arrows in panels.items()}
    limits = _square(np.concatenate([ends for ends, _ in drawn.values()]))
    pictures, tables = [], []
    for title, (ends, texts) in drawn.items():
        labels = [printable(label) for label in panels[title]]
        plane = Plane(title, ends, labels, limits)
        pictures.append(plane.picture)
        tables.append(Table(title, texts, labels, ["x", "y"]))
    alt = alt or "Arrows from the origin. " + " ".join(map(_in_words, tables))
    return Figure(side_by_side(pictures, least=_SIDES[0] + _LEFT), tuple(tables), caption, alt)


class Plane(NamedTuple):
    """One panel: the rounded ends of its arrows, their labels, the limits of both axes."""

    title: str
    ends: np.ndarray
    labels: list
    limits: tuple

    def picture(self, room):
        """Return the SVG of the plane."""
        side = max(_SIDES[0], min(_SIDES[1], room - _LEFT))
        return draw_svg(self._draw, side, side)

    def _draw(self, axes):
        self._draw_axes(axes)
        scale = axes.bbox.width / (self.limits[1] - self.limits[0])  # pixels for a step of 1
        kinds = [re.match(r"[^\W\d_]*", label)[0] for label in self.labels]
        order = list(dict.fromkeys(kinds))
        for end, kind in zip(self.ends * scale, kinds, strict=True):
            _draw_arrow(axes, end, scale, order.index(kind) % len(_KINDS), title_ink(self.title))
        texts = [shortened(label) for label in self.labels]
        sizes = np.array([(length_of(text) + 2, LINE) for text in texts])
        bounds = np.array(self.limits) * scale
        places = _label_places(self.ends * scale, sizes, bounds) / scale
        for text, place in zip(texts, places, strict=True):
            axes.text(*place, text, ha="center", va="center_baseline")

    def _draw_axes(self, axes):
        axes.set(xlim=self.limits, ylim=self.limits)
        axes.set_title(self.title, color=title_ink(self.title))
        axes.spines[:].set_visible(False)
        axes.grid(color=INK, alpha=0.15, linewidth=0.8)
        axes.tick_params(length=0)
        axes.axhline(0, color=INK, alpha=0.6, linewidth=RULE)
        axes.axvline(0, color=INK, alpha=0.6, linewidth=RULE)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, steps=(1, 2, 5, 10)))
            axis.set_major_formatter(Ticks())


def _ends(title, arrows):
    """Return the ends of the arrows, (arrows, 2)."""
    require_some(title, arrows)
    for label, end in arrows.items():
        if np.shape(end) != (2,):
            raise ShapeError(
                f"arrow {label!r} of {title!r} has shape {np.shape(end)}; expected two numbers, "
                f"(x, y). Pick two entries of the vector, for example vector[:2]."
            )
    ends = np.array([[*end] for end in arrows.values()])
    require_finite(title, ends)
    return ends


def _square(ends):
    """Return limits for both axes that hold the origin, every end, and some room for labels."""
    low, high = min(0.0, ends.min()), max(0.0, ends.max())
    room = 0.15 * (high - low) or 1.0
    return low - room, high + room


def _draw_arrow(axes, end, scale, kind, colour):
    """Draw an arrow; a full head points with its tip at the end, a ring has it in its middle."""
    style = dict(_KINDS[kind])
    line, marker = style.pop("linestyle"), style.pop("marker")
    length = np.hypot(*end) or 1.0
    neck = end * (1 - _HEAD / 2 / length) if np.any(end) else end
    if kind == 0:
        marker = (*marker, np.degrees(np.arctan2(end[1], end[0])) - 90)
    stem = np.stack([np.zeros(2), neck]) / scale
    head = (neck if kind == 0 else end) / scale
    axes.plot(*stem.T, color=colour, linestyle=line, linewidth=2)
    style |= {"linestyle": "none", "markersize": _HEAD, "markeredgewidth": 1.6}
    axes.plot(*head, color=colour, marker=marker, **style)


def _label_places(ends, sizes, bounds):
    """Return the middle of each label, in pixels, near its arrow's end and clear of the others."""
    arrows = np.linspace(0, 1, 40)[:, None, None] * ends
    along = np.linspace(*bounds, 40)
    axes = np.stack([along, 0 * along], axis=1)
    ink = np.concatenate([arrows.reshape(-1, 2), ends, ends, axes, axes[:, ::-1]])
    placed = np.empty((0, 2))
    for end, size in zip(ends, sizes, strict=True):
        places, costs = _candidates(end, size)
        outside = np.abs(places - bounds.mean()) + size / 2 > np.ptp(bounds) / 2
        costs += 2 * _hits(places, ink, size / 2 + 2) + 20 * outside.sum(axis=1)
        costs += 40 * _hits(places, placed, (size + sizes[: len(placed)]) / 2 + 2)
        placed = np.vstack([placed, places[costs.argmin()]])
    return placed


def _candidates(end, size):
    """Return places for a label around an arrow's end, and the cost of each: its distance."""
    turns, radii = (grid.ravel() for grid in np.meshgrid(_TURNS, (8, 16, 26)))
    angles = np.arctan2(end[1], end[0]) + turns
    away = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    places = end + away * (radii + np.abs(away) @ (size / 2))[:, None]
    return places, np.abs(turns) + radii / 8


def _hits(places, others, reach):
    """Count the others within reach of each place, to the sides and up and down."""
    return np.all(np.abs(others - places[:, None]) < reach, axis=-1).sum(axis=1)


def _in_words(table):
    arrows = zip(table.rows, table.cells.tolist(), strict=True)
    return f"{table.title}: " + ", ".join(f"{name} to ({x}, {y})" for name, (x, y) in arrows) + "."
