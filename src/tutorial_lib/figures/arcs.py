"""Arcs between the words of a sentence."""

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path

from tutorial_lib.contract import require
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    on_two_lines,
    require_nonempty_dict,
    short_label,
)
from tutorial_lib.figures.ink import HEAD_INKS, INK
from tutorial_lib.figures.svg import LINE, draw_svg, side_by_side, text_width

_INKS = (*HEAD_INKS, INK)
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_WORD_GAP, _LEAST = 10, 24  # pixels between words in a row, and from middle to middle of short ones
_LINE_PITCH = 30  # pixels from word to word down the page
_STEP_RISE = 16  # pixels that an arc rises for each place that it spans, until it is high enough
_MAX_RISE = 130
_RISE_FACTORS = (1, 1.2, 1.5, 1.9, 2.4)  # of all rises, until each name stands free
_OFFSETS = sorted(range(-56, 57, 8), key=abs)  # of a name along the words, from the bend of its arc
_NAME_GAP = 5  # pixels from a name to its arc
_MAX_ROW_HEIGHT, _MAX_WIDTH = 240, 310  # of the arcs above a row, and of a column with its arcs
_LEGEND_ROW = 34  # pixels of a line in the key


def arcs(tokens, kinds, *, caption) -> Figure:
    """Draw an arc from a word to another, such as the word that decides what comes next.

    The words stand in a row where there is room for it, and down the page elsewhere.

    Parameters
    ----------
    tokens : names of the words
    kinds : dict of name -> pairs of places (from, to); kinds differ by colour and by dashes, and
        a name stands at the bend of each of its arcs, or in a key where there is no room
    caption : what to look for

    Raises
    ------
    ValueError : no word, no kind, no arc, an arc without two places that are there, or from a word
        to itself
    """
    words = [escaped_name(token) for token in tokens]
    require_nonempty_dict("kinds", kinds)
    require(words, ValueError, "tokens is empty; expected at least one word. Give the sentence.")
    require(
        any(map(len, kinds.values())),
        ValueError,
        f"kinds has no arc, only {list(kinds)}; expected pairs of two positions. "
        f"Give them: {{'agreement': [(4, 1)]}}.",
    )
    names, numbered = [escaped_name(name) for name in kinds], enumerate(kinds.items())
    end_pairs = ((n, name, pair) for n, (name, pairs) in numbered for pair in pairs)
    curves = [_checked_arc(*end_pair, len(words)) for end_pair in end_pairs]
    row_plan = _row_arc_layout(words, names, curves)
    column_plan = _column_arc_layout(words, names, curves)
    legend = "" if row_plan.places and column_plan.places else _legend_svg(names)
    row_width = _word_middles(words)[-1] + text_width(words[-1]) / 2

    def svg_for_width(room):
        if row_width <= room - 8:
            return _words_in_row_svg(words, curves, row_plan)
        return _words_in_column_svg(words, curves, column_plan)

    svg, table = side_by_side([svg_for_width], key=legend), _arc_table(words, names, curves)
    return Figure(svg, (table,), caption, _arc_alt_text(words, names, curves))


class _WordArc(NamedTuple):
    """The number of its kind, and the places of two words."""

    kind: int
    start: int
    end: int


def _checked_arc(kind, name, pair, n_words):
    require(
        np.shape(pair) == (2,) and all(position in range(n_words) for position in pair),
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
    return _WordArc(kind, *map(int, pair))


class _ArcLayout(NamedTuple):
    """How arcs and their names lie, in pixels along the words and away from them.

    `ends` are (arcs, 2) places along the words, `rises` (arcs,) lie away; `names` are as they are
    written, and `places` (arcs, 2) are their middles, none where they do not all stand free.
    """

    ends: np.ndarray
    rises: np.ndarray
    names: list
    places: list


def _word_middles(words):
    """Return the middle of each word in a row, in pixels."""
    word_widths = [text_width(word) for word in words]
    middles = [word_widths[0] / 2]
    for left_width, right_width in pairwise(word_widths):
        middles.append(middles[-1] + max(_LEAST, (left_width + right_width) / 2 + _WORD_GAP))
    return middles


def _arc_height(arc):
    """Return how far an arc rises from the words; two kinds between the same words lie apart."""
    return min(_MAX_RISE, 10 + _STEP_RISE * abs(arc.start - arc.end)) + 6 * arc.kind


def _row_arc_layout(words, names, curves):
    """Plan arcs above words in a row."""
    middles = _word_middles(words)
    names = [names[arc.kind] for arc in curves]
    name_sizes = [(text_width(name) + 6, LINE) for name in names]
    arc_ends = np.array([[middles[arc.start], middles[arc.end]] for arc in curves])
    plan_bounds = middles[-1] + text_width(words[-1]) / 2, _MAX_ROW_HEIGHT
    return _place_arcs_and_labels(names, name_sizes, arc_ends, curves, plan_bounds)


def _column_arc_layout(words, names, curves):
    """Plan arcs to the right of words down the page."""
    names = [on_two_lines(names[arc.kind], 8) for arc in curves]
    line_lists = [name.split("\n") for name in names]
    name_sizes = [(LINE * len(text), max(map(text_width, text))) for text in line_lists]
    arc_ends = _LINE_PITCH * (np.array([[arc.start, arc.end] for arc in curves]) + 0.5)
    plan_bounds = _LINE_PITCH * len(words), _MAX_WIDTH - _word_column_width(words)
    return _place_arcs_and_labels(names, name_sizes, arc_ends, curves, plan_bounds)


def _place_arcs_and_labels(names, name_sizes, arc_ends, curves, plan_bounds):
    """Spread arcs until there is a free place for each name at the bend of its arc."""
    base_rises = np.array([_arc_height(arc) for arc in curves], dtype=float)
    for rise_factor in _RISE_FACTORS:
        rises = rise_factor * base_rises
        name_middles = _free_label_centres(arc_ends, rises, name_sizes, plan_bounds)
        if name_middles:
            return _ArcLayout(arc_ends, rises, names, name_middles)
    return _ArcLayout(arc_ends, base_rises, names, [])


def _free_label_centres(arc_ends, rises, sizes, bounds):
    """Return the middle of each name that no arc and no other name crosses, or [] without one."""
    arc_points = np.concatenate([_points_on_arc(*arc) for arc in zip(arc_ends, rises, strict=True)])
    name_centres = {}
    for n in np.argsort(rises).tolist():
        half_size = np.array(sizes[n]) / 2
        placed = [(name_centre, np.array(sizes[m]) / 2) for m, name_centre in name_centres.items()]
        for shift, sign in product(_OFFSETS, (1, -1)):
            place = np.array(
                [arc_ends[n].mean() + shift, rises[n] + sign * (half_size[1] + _NAME_GAP)]
            )
            is_inside = (place - half_size >= (0, 8)).all() and (place + half_size <= bounds).all()
            is_crossed = (abs(arc_points - place) < half_size + 2).all(axis=1).any()
            if (
                is_inside
                and not is_crossed
                and not any(
                    (abs(candidate - place) < half_size + half).all() for candidate, half in placed
                )
            ):
                name_centres[n] = place
                break
        else:
            return []
    return [name_centres[n] for n in range(len(rises))]


def _points_on_arc(arc_ends, rise):
    """Return points of an arc, (64, 2), along the words and away from them."""
    fractions = np.linspace(0, 1, 64)
    along = arc_ends[0] + (arc_ends[1] - arc_ends[0]) * fractions * fractions * (3 - 2 * fractions)
    return np.stack([along, 4 * rise * fractions * (1 - fractions)], axis=1)


def _word_column_width(words):
    """Return the room of words down the page, in pixels."""
    return max(text_width(short_label(word)) for word in words) + 8


def _words_in_row_svg(words, curves, plan):
    """Draw words in a row, and the arcs above them."""
    middles = _word_middles(words)
    row_width = middles[-1] + text_width(words[-1]) / 2
    words_y = max([*plan.rises, *(place[1] + LINE / 2 for place in plan.places)])

    def draw_words_across(axes):
        axes.set(xlim=(0, row_width), ylim=(words_y + LINE + 6, 0))
        axes.set_axis_off()
        for middle, word in zip(middles, words, strict=True):
            axes.text(middle, words_y + 12, word, color=INK, ha="center", va="center_baseline")
        _draw_named_arcs(axes, curves, plan, lambda x, y: (x, words_y - y))

    return draw_svg(draw_words_across, row_width, words_y + LINE + 6)


def _words_in_column_svg(words, curves, plan):
    """Draw words down the page, and the arcs to the right of them."""
    margin, height = _word_column_width(words), _LINE_PITCH * len(words)
    arcs_width = _MAX_WIDTH - margin if plan.places else plan.rises.max()

    def draw_words_down(axes):
        axes.set(xlim=(0, margin + arcs_width), ylim=(height, 0))
        axes.set_axis_off()
        for position, word in enumerate(words):
            y = _LINE_PITCH * (position + 0.5)
            axes.text(margin - 6, y, short_label(word), color=INK, ha="right", va="center_baseline")
        _draw_named_arcs(axes, curves, plan, lambda y_along, x_away: (margin + x_away, y_along))

    return draw_svg(draw_words_down, margin + arcs_width, height)


def _draw_named_arcs(axes, curves, plan, to_xy):
    """Draw arcs and their names; `at` makes (x, y) of pixels along the words and away from them."""
    for arc, arc_ends, rise in zip(curves, plan.ends, plan.rises, strict=True):
        control_rise = 4 / 3 * rise  # of the middle points, so that the bend lies at the rise
        control_points = zip(
            np.repeat(arc_ends, 2), (0, control_rise, control_rise, 0), strict=True
        )
        path_codes = [Path.MOVETO, *[Path.CURVE4] * 3]
        _draw_arc(axes, arc.kind, Path([to_xy(*point) for point in control_points], path_codes))
    for arc, name, name_middle in zip(curves, plan.names, plan.places, strict=bool(plan.places)):
        name_colour, lines = _INKS[arc.kind % len(_INKS)], name.split("\n")
        x, y = to_xy(*name_middle)
        for line_number, line in enumerate(lines):
            offset = LINE * (line_number - (len(lines) - 1) / 2)
            axes.text(x, y + offset, line, color=name_colour, ha="center", va="center_baseline")


def _draw_arc(axes, kind_number, path):
    """Draw a line in the look of a kind: no two of the first twenty share hue and dashes."""
    arrow_patch = FancyArrowPatch(
        path=path,
        arrowstyle="-|>,head_length=0.45,head_width=0.25",
        mutation_scale=16,
        color=_INKS[kind_number % len(_INKS)],
        linestyle=_DASHES[kind_number % len(_DASHES)],
        linewidth=2,
        shrinkA=0,
        shrinkB=0,
    )
    arrow_patch.set_clip_on(False)
    axes.add_patch(arrow_patch)


def _legend_svg(names):
    """Return the SVG of what the colours and the dashes mean, a piece for each kind."""
    key_width = _LEGEND_ROW + 8 + max(map(text_width, names))

    def legend_entry(kind_number, name):
        def draw_legend_entry(axes):
            axes.set(xlim=(0, key_width), ylim=(LINE, 0))
            axes.set_axis_off()
            _draw_arc(axes, kind_number, Path([(0, LINE / 2), (_LEGEND_ROW, LINE / 2)]))
            axes.text(_LEGEND_ROW + 8, LINE / 2, name, color=INK, ha="left", va="center_baseline")

        line_svg = draw_svg(draw_legend_entry, key_width, LINE)
        return lambda room: line_svg

    return side_by_side([legend_entry(*numbered) for numbered in enumerate(names)], least=key_width)


def _arc_table(words, names, curves):
    """Write down each arc: its kind, and the words at both ends with their positions."""
    cells = [[f"{words[start]} ({start})", f"{words[end]} ({end})"] for _, start, end in curves]
    rows = [names[kind_number] for kind_number, *_ in curves]
    return Table("arcs", np.array(cells).reshape(-1, 2), rows, ["from", "to"], "kind")


def _arc_alt_text(words, names, curves):
    sentences = (f"{names[n]}: from {words[start]} to {words[end]}." for n, start, end in curves)
    return f"Arcs between the words {' '.join(words)} {' '.join(sentences)}"
