"""Arcs between the words of a sentence."""

from functools import cache
from itertools import pairwise

import numpy as np
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path

from tutorial_lib.describe import printable
from tutorial_lib.errors import ShapeError
from tutorial_lib.figures.figure import Figure, Table, require_some, shortened
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.svg import LINE, draw_svg, length_of, side_by_side

_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_APART, _LEAST = 12, 30  # pixels between words, and from middle to middle of two short ones
_LIFT = 16  # pixels that an arc rises for each place that it spans, until it is high enough
_HIGHEST = 130
_KEY = 34  # pixels of a line in the key


def arcs(tokens, kinds, *, caption):
    """Draw an arc from a word to another, such as the word that decides what comes next.

    The words stand in a row where there is room for it, and down the page elsewhere.

    Parameters
    ----------
    tokens : names of the words
    kinds : dict of name -> pairs of places (from, to); kinds differ by colour and by dashes
    caption : what to look for

    Returns
    -------
    figure : Figure

    Raises
    ------
    ShapeError : an arc without two places
    ValueError : no word, no kind, no arc, a place that is not there, an arc from a word to itself
    """
    require_some("kinds", kinds)
    words = [printable(token) for token in tokens]
    if not words:
        raise ValueError("tokens is empty; expected at least one word. Give the sentence.")
    if not any(map(len, kinds.values())):
        raise ValueError(
            f"kinds has no arc, only {list(kinds)}; expected pairs of two places. "
            f"Give them: {{'agreement': [(4, 1)]}}."
        )
    for name, pairs in kinds.items():
        for pair in pairs:
            _require_arc(name, pair, len(words))
    drawn = [
        (number, *map(int, pair)) for number, pairs in enumerate(kinds.values()) for pair in pairs
    ]
    width = _middles(words)[-1] + length_of(words[-1]) / 2

    @cache
    def way(is_row):
        return (_row if is_row else _column)(words, drawn)

    names = [printable(name) for name in kinds]
    svg = side_by_side([lambda room: way(width <= room - 8)], key=_key(names))
    return Figure(svg, (_table(words, names, drawn),), caption, _in_words(words, names, drawn))


def _require_arc(name, pair, length):
    if np.shape(pair) != (2,):
        raise ShapeError(
            f"{name!r} has an arc {pair!r}; expected two places. "
            f"Give the word that it leaves and the word that it leads to, such as (4, 1)."
        )
    for place in pair:
        if isinstance(place, bool | np.bool_) or place not in range(length):
            raise ValueError(
                f"{name!r} has an arc {tuple(pair)}; expected places from 0 to {length - 1}. "
                f"Count the words from 0."
            )
    if pair[0] == pair[1]:
        raise ValueError(
            f"{name!r} has an arc {tuple(pair)} from a word to itself; expected two words. "
            f"Leave it out, and say in words that the word itself decides."
        )


def _middles(words):
    """Return the middle of each word in a row, in pixels."""
    lengths = [length_of(word) for word in words]
    middles = [lengths[0] / 2]
    for left, right in pairwise(lengths):
        middles.append(middles[-1] + max(_LEAST, (left + right) / 2 + _APART))
    return middles


def _height(arc):
    """Return how far an arc rises from the words; two kinds between the same words lie apart."""
    number, start, end = arc
    return min(_HIGHEST, 10 + _LIFT * abs(start - end)) + 6 * number


def _row(words, drawn):
    """Draw words in a row, and the arcs above them."""
    middles = _middles(words)
    width, top = middles[-1] + length_of(words[-1]) / 2, max(map(_height, drawn))

    def draw(axes):
        axes.set(xlim=(0, width), ylim=(top + LINE + 6, 0))
        axes.set_axis_off()
        for middle, word in zip(middles, words, strict=True):
            axes.text(middle, top + 12, word, color=INK, ha="center", va="center_baseline")
        for arc in drawn:
            start, end = ((middles[place], top) for place in arc[1:])
            _draw_arc(axes, arc[0], start, end, (0, -_height(arc)))

    return draw_svg(draw, width, top + LINE + 6)


def _column(words, drawn):
    """Draw words down the page, and the arcs to the right of them."""
    left = max(length_of(shortened(word)) for word in words) + 8
    far, height = max(map(_height, drawn)), _LEAST * len(words)

    def draw(axes):
        axes.set(xlim=(0, left + far), ylim=(height, 0))
        axes.set_axis_off()
        for place, word in enumerate(words):
            y = _LEAST * (place + 0.5)
            axes.text(left - 6, y, shortened(word), color=INK, ha="right", va="center_baseline")
        for arc in drawn:
            start, end = ((left, _LEAST * (place + 0.5)) for place in arc[1:])
            _draw_arc(axes, arc[0], start, end, (_height(arc), 0))

    return draw_svg(draw, left + far, height)


def _draw_arc(axes, number, start, end, rise):
    """Draw an arc of a kind, whose two middle points lie away from its ends."""
    away = np.multiply(rise, 4 / 3)
    codes = [Path.MOVETO, *[Path.CURVE4] * 3]
    curve = Path([start, np.add(start, away), np.add(end, away), end], codes)
    _add_line(axes, number, curve)


def _add_line(axes, number, path):
    patch = FancyArrowPatch(
        path=path,
        arrowstyle="-|>,head_length=0.45,head_width=0.25",
        mutation_scale=16,
        color=HEAD_INKS[number % len(HEAD_INKS)],
        linestyle=_DASHES[(number + number // len(HEAD_INKS)) % len(_DASHES)],
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


def _table(words, names, drawn):
    """Write down each arc: its kind, and the words at both ends with their places."""
    cells = [[f"{words[start]} ({start})", f"{words[end]} ({end})"] for _, start, end in drawn]
    rows = [names[number] for number, *_ in drawn]
    return Table("arcs", np.array(cells).reshape(-1, 2), rows, ["from", "to"], "kind")


def _in_words(words, names, drawn):
    said = (f"{names[n]}: from {words[start]} to {words[end]}." for n, start, end in drawn)
    return f"Arcs between the words {' '.join(words)} {' '.join(said)}"
