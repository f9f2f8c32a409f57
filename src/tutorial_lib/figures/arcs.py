"""Arcs between the words of a sentence."""

import numpy as np
from matplotlib.path import Path

from tutorial_lib.contract import require
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import Figure, Table, require_nonempty_dict, short_label
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.svg import LINE, draw_arrow, draw_svg, side_by_side, text_width

_INKS = (*HEAD_INKS, INK)
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_LINE_PITCH = 26  # pixels from word to word down the page
_STEP_RISE, _MAX_RISE = 16, 150  # pixels that an arc rises for each place it spans, and at most
_KEY_LINE = 34  # pixels of a line in the key


def arcs(tokens, kinds, *, caption) -> Figure:
    """Draw an arc from a word to another, such as the word that decides what comes next.

    The words run down the page, the arcs stand to the right of them.

    Parameters
    ----------
    tokens : names of the words
    kinds : dict of name -> pairs of places (from, to); kinds differ by colour and by dashes, which
        a key below explains
    caption : what to look for

    Raises
    ------
    ValueError : no word, no kind, no arc, an arc without two places that are there
    """
    words = [escaped_name(token) for token in tokens]
    require_nonempty_dict("kinds", kinds)
    names = [escaped_name(name) for name in kinds]
    curves = [(kind, *pair) for kind, pairs in enumerate(kinds.values()) for pair in pairs]
    require(
        curves and all(position in range(len(words)) for _, *pair in curves for position in pair),
        ValueError,
        f"kinds is {kinds}; expected pairs of two positions from 0 to {len(words) - 1}, the word "
        f"that an arc leaves and the word that it leads to. Give them: {{'agreement': [(4, 1)]}}.",
    )
    svg = side_by_side([lambda room: _arcs_svg(words, curves)], key=_key_svg(names))
    cells = [[f"{words[start]} ({start})", f"{words[end]} ({end})"] for _, start, end in curves]
    table = Table("arcs", np.array(cells), [names[n] for n, *_ in curves], ["from", "to"], "kind")
    sentences = (f"{names[n]}: from {words[start]} to {words[end]}." for n, start, end in curves)
    alt = f"Arcs between the words {' '.join(words)} {' '.join(sentences)}"
    return Figure(svg, (table,), caption, alt)


def _arcs_svg(words, curves):
    """Draw the words down the page, and the arcs to the right of them."""
    margin, height = max(text_width(short_label(word)) for word in words) + 8, len(words)
    rises = [min(_MAX_RISE, 10 + _STEP_RISE * abs(a - b)) + 8 * kind for kind, a, b in curves]

    def draw_words_and_arcs(axes):
        axes.set(xlim=(0, margin + max(rises)), ylim=(height, 0))
        axes.set_axis_off()
        for place, word in enumerate(words):
            axes.text(margin - 6, place + 0.5, short_label(word), ha="right", va="center_baseline")
        for (kind, start, end), rise in zip(curves, rises, strict=True):
            bend = margin + rise * 4 / 3  # of the control points, so that the arc reaches the rise
            ys = (start + 0.5, start + 0.5, end + 0.5, end + 0.5)
            points = zip((margin, bend, bend, margin), ys, strict=True)
            _draw_arc(axes, kind, Path([*points], [Path.MOVETO, *[Path.CURVE4] * 3]))

    return draw_svg(draw_words_and_arcs, margin + max(rises), _LINE_PITCH * height)


def _draw_arc(axes, kind, path):
    """Draw a line in the look of a kind: no two of the first twenty share hue and dashes."""
    look = {"color": _INKS[kind % len(_INKS)], "linestyle": _DASHES[kind % len(_DASHES)]}
    draw_arrow(axes, path, arrowstyle="-|>,head_length=0.45,head_width=0.25", linewidth=2, **look)


def _key_svg(names):
    """Return the SVG of what the colours and the dashes mean, a line for each kind."""
    width = _KEY_LINE + 8 + max(map(text_width, names))

    def draw_key(axes):
        axes.set(xlim=(0, width), ylim=(len(names), 0))
        axes.set_axis_off()
        for kind, name in enumerate(names):
            _draw_arc(axes, kind, Path([(0, kind + 0.5), (_KEY_LINE, kind + 0.5)]))
            axes.text(_KEY_LINE + 8, kind + 0.5, name, va="center_baseline")

    return draw_svg(draw_key, width, (LINE + 3) * len(names))
