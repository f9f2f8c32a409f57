"""Arcs between the words of a sentence."""

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path

from tutorial_lib.contract import require
from tutorial_lib.describe import printable
from tutorial_lib.figures.figure import Figure, Table, in_two, require_some, shortened
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.svg import LINE, draw_svg, length_of, side_by_side

_INKS = (*HEAD_INKS, INK)
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_APART, _LEAST = 10, 24  # pixels between words in a row, and from middle to middle of short ones
_PITCH = 30  # pixels from word to word down the page
_LIFT = 16  # pixels that an arc rises for each place that it spans, until it is high enough
_HIGHEST = 130
_SPREADS = (1, 1.2, 1.5, 1.9, 2.4)  # of all rises, until each name stands free
_SHIFTS = sorted(range(-56, 57, 8), key=abs)  # of a name along the words, from the bend of its arc
_BESIDE = 5  # pixels from a name to its arc
_TALLEST, _WIDEST = 240, 310  # of the arcs above a row, and of a column with its arcs
_KEY = 34  # pixels of a line in the key


def arcs(tokens, kinds, *, caption):
    """Draw an arc from a word to another, such as the word that decides what comes next.

    The words stand in a row where there is room for it, and down the page elsewhere.

    Parameters
    ----------
    tokens : names of the words
    kinds : dict of name -> pairs of places (from, to); kinds differ by colour and by dashes, and
        a name stands at the bend of each of its arcs, or in a key where there is no room
    caption : what to look for

    Returns
    -------
    figure : Figure

    Raises
    ------
    ValueError : no word, no kind, no arc, an arc without two places that are there, or from a word
        to itself
    """
    words = [printable(token) for token in tokens]
    require_some("kinds", kinds)
    require(words, ValueError, "tokens is empty; expected at least one word. Give the sentence.")
    require(
        any(map(len, kinds.values())),
        ValueError,
        f"kinds has no arc, only {list(kinds)}; expected pairs of two positions. "
        f"Give them: {{'agreement': [(4, 1)]}}.",
    )
    names = [printable(name) for name in kinds]
    numbered = enumerate(kinds.items())
    curves = [_arc(n, name, pair, len(words)) for n, (name, pairs) in numbered for pair in pairs]
    row, column = _row(words, names, curves), _column(words, names, curves)
    key = "" if row.places and column.places else _key(names)
    width = _middles(words)[-1] + length_of(words[-1]) / 2

    def picture(room):
        if width <= room - 8:
            return _draw_row(words, curves, row)
        return _draw_column(words, curves, column)

    svg = side_by_side([picture], key=key)
    return Figure(svg, (_table(words, names, curves),), caption, _in_words(words, names, curves))


class _Arc(NamedTuple):
    """The number of its kind, and the places of two words."""

    kind: int
    start: int
    end: int


def _arc(kind, name, pair, n_words):
    require(
        np.shape(pair) == (2,) and all(place in range(n_words) for place in pair),
        ValueError,
        f"{name!r} has an arc {pair!r}; expected two positions from 0 to {n_words - 1}. "
        f"Give the word that it leaves and the word that it leads to, such as (4, 1).",
    )
    require(
        pair[0] != pair[1],
        ValueError,
        f"{name!r} has an arc {tuple(pair)} from a word to itself; expected two words. "
        f"Leave it out, and say in words that the word itself decides.",
    )
    return _Arc(kind, *map(int, pair))


class _Plan(NamedTuple):
    """How arcs and their names lie, in pixels along the words and away from them.

    `ends` are (arcs, 2) places along the words, `rises` (arcs,) lie away; `names` are as they are
    written, and `places` (arcs, 2) are their middles, none where they do not all stand free.
    """

    ends: np.ndarray
    rises: np.ndarray
    names: list
    places: list


def _middles(words):
    """Return the middle of each word in a row, in pixels."""
    lengths = [length_of(word) for word in words]
    middles = [lengths[0] / 2]
    for left, right in pairwise(lengths):
        middles.append(middles[-1] + max(_LEAST, (left + right) / 2 + _APART))
    return middles


def _height(arc):
    """Return how far an arc rises from the words; two kinds between the same words lie apart."""
    return min(_HIGHEST, 10 + _LIFT * abs(arc.start - arc.end)) + 6 * arc.kind


def _row(words, names, curves):
    """Plan arcs above words in a row."""
    middles = _middles(words)
    names = [names[arc.kind] for arc in curves]
    sizes = [(length_of(name) + 6, LINE) for name in names]
    ends = np.array([[middles[arc.start], middles[arc.end]] for arc in curves])
    limits = middles[-1] + length_of(words[-1]) / 2, _TALLEST
    return _planned(names, sizes, ends, curves, limits)


def _column(words, names, curves):
    """Plan arcs to the right of words down the page."""
    names = [in_two(names[arc.kind], 8) for arc in curves]
    lines = [name.split("\n") for name in names]
    sizes = [(LINE * len(parts), max(map(length_of, parts))) for parts in lines]
    ends = _PITCH * (np.array([[arc.start, arc.end] for arc in curves]) + 0.5)
    limits = _PITCH * len(words), _WIDEST - _left(words)
    return _planned(names, sizes, ends, curves, limits)


def _planned(names, sizes, ends, curves, limits):
    """Spread arcs until there is a free place for each name at the bend of its arc."""
    heights = np.array([_height(arc) for arc in curves], dtype=float)
    for spread in _SPREADS:
        rises = spread * heights
        places = _free_places(ends, rises, sizes, limits)
        if places:
            return _Plan(ends, rises, names, places)
    return _Plan(ends, heights, names, [])


def _free_places(ends, rises, sizes, limits):
    """Return the middle of each name that no arc and no other name crosses, or [] without one."""
    lines = np.concatenate([_points(*arc) for arc in zip(ends, rises, strict=True)])
    centres = {}
    for n in np.argsort(rises).tolist():
        half = np.array(sizes[n]) / 2
        boxes = [(centre, np.array(sizes[m]) / 2) for m, centre in centres.items()]
        for shift, side in product(_SHIFTS, (1, -1)):
            place = np.array([ends[n].mean() + shift, rises[n] + side * (half[1] + _BESIDE)])
            inside = (place - half >= (0, 8)).all() and (place + half <= limits).all()
            crossed = (abs(lines - place) < half + 2).all(axis=1).any()
            if (
                inside
                and not crossed
                and not any((abs(other - place) < half + size).all() for other, size in boxes)
            ):
                centres[n] = place
                break
        else:
            return []
    return [centres[n] for n in range(len(rises))]


def _points(ends, rise):
    """Return points of an arc, (64, 2), along the words and away from them."""
    t = np.linspace(0, 1, 64)
    along = ends[0] + (ends[1] - ends[0]) * t * t * (3 - 2 * t)
    return np.stack([along, 4 * rise * t * (1 - t)], axis=1)


def _left(words):
    """Return the room of words down the page, in pixels."""
    return max(length_of(shortened(word)) for word in words) + 8


def _draw_row(words, curves, plan):
    """Draw words in a row, and the arcs above them."""
    middles = _middles(words)
    width = middles[-1] + length_of(words[-1]) / 2
    top = max([*plan.rises, *(place[1] + LINE / 2 for place in plan.places)])

    def draw(axes):
        axes.set(xlim=(0, width), ylim=(top + LINE + 6, 0))
        axes.set_axis_off()
        for middle, word in zip(middles, words, strict=True):
            axes.text(middle, top + 12, word, color=INK, ha="center", va="center_baseline")
        _draw_arcs(axes, curves, plan, lambda along, away: (along, top - away))

    return draw_svg(draw, width, top + LINE + 6)


def _draw_column(words, curves, plan):
    """Draw words down the page, and the arcs to the right of them."""
    left, height = _left(words), _PITCH * len(words)
    far = _WIDEST - left if plan.places else plan.rises.max()

    def draw(axes):
        axes.set(xlim=(0, left + far), ylim=(height, 0))
        axes.set_axis_off()
        for place, word in enumerate(words):
            y = _PITCH * (place + 0.5)
            axes.text(left - 6, y, shortened(word), color=INK, ha="right", va="center_baseline")
        _draw_arcs(axes, curves, plan, lambda along, away: (left + away, along))

    return draw_svg(draw, left + far, height)


def _draw_arcs(axes, curves, plan, at):
    """Draw arcs and their names; `at` makes (x, y) of pixels along the words and away from them."""
    for arc, ends, rise in zip(curves, plan.ends, plan.rises, strict=True):
        away = 4 / 3 * rise  # of the middle points, so that the bend lies at the rise
        points = zip(np.repeat(ends, 2), (0, away, away, 0), strict=True)
        codes = [Path.MOVETO, *[Path.CURVE4] * 3]
        _add_line(axes, arc.kind, Path([at(*point) for point in points], codes))
    for arc, name, place in zip(curves, plan.names, plan.places, strict=bool(plan.places)):
        ink, lines = _INKS[arc.kind % len(_INKS)], name.split("\n")
        x, y = at(*place)
        for n, line in enumerate(lines):
            lower = LINE * (n - (len(lines) - 1) / 2)
            axes.text(x, y + lower, line, color=ink, ha="center", va="center_baseline")


def _add_line(axes, number, path):
    """Draw a line in the look of a kind: no two of the first twenty share hue and dashes."""
    patch = FancyArrowPatch(
        path=path,
        arrowstyle="-|>,head_length=0.45,head_width=0.25",
        mutation_scale=16,
        color=_INKS[number % len(_INKS)],
        linestyle=_DASHES[number % len(_DASHES)],
        linewidth=2,
        shrinkA=0,
        shrinkB=0,
    )
    patch.set_clip_on(False)
    axes.add_patch(patch)


def _key(names):
    """Return the SVG of what the colours and the dashes mean, a piece for each kind."""
    width = _KEY + 8 + max(map(length_of, names))

    def piece(number, name):
        def draw(axes):
            axes.set(xlim=(0, width), ylim=(LINE, 0))
            axes.set_axis_off()
            _add_line(axes, number, Path([(0, LINE / 2), (_KEY, LINE / 2)]))
            axes.text(_KEY + 8, LINE / 2, name, color=INK, ha="left", va="center_baseline")

        picture = draw_svg(draw, width, LINE)
        return lambda room: picture

    return side_by_side([piece(*kind) for kind in enumerate(names)], least=width)


def _table(words, names, curves):
    """Write down each arc: its kind, and the words at both ends with their positions."""
    cells = [[f"{words[start]} ({start})", f"{words[end]} ({end})"] for _, start, end in curves]
    rows = [names[number] for number, *_ in curves]
    return Table("arcs", np.array(cells).reshape(-1, 2), rows, ["from", "to"], "kind")


def _in_words(words, names, curves):
    sentences = (f"{names[n]}: from {words[start]} to {words[end]}." for n, start, end in curves)
    return f"Arcs between the words {' '.join(words)} {' '.join(sentences)}"
