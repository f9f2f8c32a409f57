"""The second map: the residual stream from embed to unembed, and the branches of each block."""

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.path import Path

from tutorial_lib.contract import require, require_value
from tutorial_lib.describe import printable
from tutorial_lib.figures.figure import Figure, Table, require_some
from tutorial_lib.figures.ink import INK, title_ink
from tutorial_lib.figures.svg import RULE, draw_svg, length_of, side_by_side

PARTS = ("norm", "attend", "MLP")
_WIDTH, _STREAM, _BRANCH = 312, 54, 207  # pixels: of a panel, and x of its two columns
_FRAME, _CHIP, _ADD = 28, 22, 11  # heights of a box and of a small one, and the radius of an add
_CHIPS = (("project", "score", "mix"), ("concat", "project out"))
_GAP, _WIDE = 26, 186  # from box to box, and the width of attend and of MLP
_FAINT, _PALE = 0.6, 0.7  # of the ink, of lines and of texts of what is not there
_HEIGHTS = {"attend": _FRAME + 2 * _CHIP + 4 + 8, "MLP": _FRAME}
_END = (92, _FRAME)  # of the boxes on the stream
_TOP = 28 + _FRAME + _GAP  # of the frame around a block
_FIRST = _TOP + _GAP
_ATTENDING, _FEEDING = (
    _FRAME / 2 + _GAP + _HEIGHTS[part] + _GAP + _GAP for part in ("attend", "MLP")
)
_HEIGHT = _FIRST + _ATTENDING + _FEEDING + 3 * _GAP + 2 * _FRAME
_ROWS = (
    ("embed", "ids (T,)", "(T, d_model)", "before the blocks"),
    ("norm", "(T, d_model)", "(T, d_model)", "in each block"),
    ("attend", "(T, d_model)", "(T, d_model)", "in each block"),
    ("add", "(T, d_model), twice", "(T, d_model)", "in each block"),
    ("norm", "(T, d_model)", "(T, d_model)", "in each block"),
    ("MLP", "(T, d_model)", "(T, d_model)", "in each block"),
    ("add", "(T, d_model), twice", "(T, d_model)", "in each block"),
    ("norm", "(T, d_model)", "(T, d_model)", "after the blocks"),
    ("unembed", "(T, d_model)", "(T, vocabulary)", "after the blocks"),
)


def block_map(models, *, layers="L", caption):
    """Draw the residual stream down from embed to unembed, with the two branches of each block.

    Parameters
    ----------
    models : dict of title -> names of the parts that it lacks, of "norm", "attend" and "MLP";
        what is lacking is dashed
    layers : how many blocks there are, a whole number or the letter of one
    caption : what to look for

    Returns
    -------
    figure : Figure, a panel for each model

    Raises
    ------
    TypeError : layers that are no whole number
    ValueError : no model, no tuple or list of parts of the three, fewer layers than one
    """
    require_some("models", models)
    for title, lacks in models.items():
        require(
            isinstance(lacks, tuple | list) and set(lacks) <= set(PARTS),
            ValueError,
            f"{title!r} lacks {lacks!r}; expected a tuple of {', '.join(PARTS)}. "
            f"Give () for a whole block, or for example ('norm', 'MLP').",
        )
    if not isinstance(layers, str):
        require_value("layers", layers, "length")
    named = [(printable(title), frozenset(lacks)) for title, lacks in models.items()]
    pictures = [_picture(*panel, layers) for panel in named]  # narrow enough for every room
    draws = [lambda room, picture=picture: picture for picture in pictures]
    tables = tuple(_table(title, lacks) for title, lacks in named)
    alt = (
        f"A residual stream of shape (T, d_model) runs down from embed through {layers} blocks to "
        f"unembed. In each block two branches leave it and come back at an add: one through norm "
        f"and attend, which is project, score, mix, concat and project out, the other through "
        f"norm and MLP. {' '.join(_lacking(*panel) for panel in named)}"
    )
    return Figure(side_by_side(draws, least=_WIDTH), tables, caption, alt)


def _count(layers):
    """Say how often a block stands in a model."""
    return f"× {printable(str(layers))} {'block' if layers == 1 else 'blocks'}"


def _lacking(title, lacks):
    there = [part for part in PARTS if part in lacks]
    return f"{title}: without {' and '.join(there)}." if there else f"{title}: with all of it."


def _table(title, lacks):
    """Write down what each step takes and gives, from the first to the last."""
    owners = [part for part, *_ in _ROWS]
    owners[3], owners[6] = "attend", "MLP"  # an add goes with its branch
    there = [
        "no" if owner in lacks or ("MLP" in lacks and place == 4) else "yes"
        for place, owner in enumerate(owners)
    ]
    cells = [[*row[1:], word] for row, word in zip(_ROWS, there, strict=True)]
    names = [row[0] for row in _ROWS]
    return Table(title, np.array(cells), names, ["takes", "gives", "where", "there"], "step")


class _Pen:
    """Draws on axes in pixels, from the top down; what is `absent` is dashed and faint."""

    def __init__(self, axes):
        self.axes = axes

    def box(self, x, y, text, *, size=None, absent=False):
        """Draw a box around x, from y down, and its name in the middle of it."""
        width, height = size or (length_of(text) + 16, _FRAME)
        corner = (x - width / 2, y)
        look = {"facecolor": "none", "edgecolor": INK, "linewidth": RULE}
        self._add(Rectangle(corner, width, height, **look), absent)
        self.text(x, y + height / 2, text, absent=absent)

    def add(self, y, *, absent):
        """Draw the add of a branch on the stream."""
        look = {"facecolor": "none", "edgecolor": INK, "linewidth": RULE}
        self._add(Circle((_STREAM, y), _ADD, **look), absent)
        self.line([(_STREAM - 5, y), (_STREAM + 5, y)], width=RULE + 0.5, absent=absent)
        self.line([(_STREAM, y - 5), (_STREAM, y + 5)], width=RULE + 0.5, absent=absent)
        self.text(_STREAM - _ADD - 4, y, "add", ha="right", absent=absent)

    def line(self, points, *, width=RULE, arrow=False, absent=False):
        """Draw a line through points, with a head at its end where it leads to something."""
        head = "-|>,head_length=0.5,head_width=0.28" if arrow else "-"
        ends = {"arrowstyle": head, "mutation_scale": 16, "shrinkA": 0, "shrinkB": 0}
        self._add(FancyArrowPatch(path=Path(points), color=INK, linewidth=width, **ends), absent)

    def text(self, x, y, text, *, ha="center", absent=False):
        """Write a text, by default around its place."""
        alpha = _PALE if absent else None
        self.axes.text(x, y, text, color=INK, ha=ha, va="center_baseline", alpha=alpha)

    def _add(self, patch, absent):
        patch.set(clip_on=False)
        if absent:
            patch.set(linestyle=(0, (4, 2.5)), alpha=_FAINT)
        self.axes.add_patch(patch)


def _picture(title, lacks, layers):
    def draw(axes):
        axes.set(xlim=(0, _WIDTH), ylim=(_HEIGHT, 0))
        axes.set_axis_off()
        axes.set_title(title, color=title_ink(title))
        pen = _Pen(axes)
        first, second, end = _FIRST, _FIRST + _ATTENDING, _FIRST + _ATTENDING + _FEEDING
        _draw_ends(pen, end, absent="norm" in lacks)
        pen.box(_WIDTH / 2, _TOP, "", size=(_WIDTH - 4, end - _TOP))
        pen.text(_WIDTH - 12, end - 14, _count(layers), ha="right")
        _draw_branch(pen, "attend", first, lacks)
        _draw_branch(pen, "MLP", second, lacks)
        adds = {"attend": second - _GAP, "MLP": end - _GAP}
        _draw_stream(pen, [y for part, y in adds.items() if part not in lacks], end + _GAP)

    return draw_svg(draw, _WIDTH, _HEIGHT)


def _draw_stream(pen, adds, end):
    """Draw the stream itself, from embed to an end, parted by the adds on it."""
    tops = [28 + _FRAME, *(y + _ADD for y in adds)]
    bottoms = [*(y - _ADD for y in adds), end]
    for top, bottom in zip(tops, bottoms, strict=True):
        pen.line([(_STREAM, top), (_STREAM, bottom)], width=4)


def _draw_ends(pen, end, *, absent):
    """Draw the steps before and after the blocks."""
    pen.line([(_STREAM, 4), (_STREAM, 28)], arrow=True)
    pen.text(_STREAM + 14, 14, "ids (T,)", ha="left")
    pen.box(_STREAM, 28, "embed", size=_END)
    pen.text(_STREAM + 14, 28 + _FRAME + _GAP / 2, "residual stream (T, d_model)", ha="left")
    pen.box(_STREAM, end + _GAP, "norm", size=_END, absent=absent)
    top = end + _GAP + _FRAME + _GAP
    pen.line([(_STREAM, top - _GAP), (_STREAM, top)], arrow=True)
    pen.text(_STREAM + 14, top - _GAP / 2 - 2, "(T, d_model)", ha="left")
    pen.box(_STREAM, top, "unembed", size=_END)
    pen.line([(_STREAM, top + _FRAME), (_STREAM, top + _FRAME + _GAP)], arrow=True)
    pen.text(_STREAM + 14, top + _FRAME + _GAP / 2, "(T, vocabulary)", ha="left")


def _draw_branch(pen, part, y, lacks):
    """Draw a branch that leaves the stream at y, from its norm to its add."""
    absent, height = part in lacks, _HEIGHTS[part]
    left = _BRANCH - length_of("norm") / 2 - 8
    pen.line([(_STREAM, y), (left, y)], arrow=True, absent=absent)
    pen.box(_BRANCH, y - _FRAME / 2, "norm", absent=absent or "norm" in lacks)
    top = y + _FRAME / 2 + _GAP
    pen.line([(_BRANCH, top - _GAP), (_BRANCH, top)], arrow=True, absent=absent)
    pen.box(_BRANCH, top, "", size=(_WIDE, height), absent=absent)
    pen.text(_BRANCH, top + _FRAME / 2, part, absent=absent)
    for line, names in enumerate(_CHIPS if part == "attend" else ()):
        rooms = [length_of(name) + 10 for name in names]
        x = _BRANCH - (sum(rooms) + 6 * (len(rooms) - 1)) / 2
        for name, room in zip(names, rooms, strict=True):
            place = top + _FRAME + line * (_CHIP + 4)
            pen.box(x + room / 2, place, name, size=(room, _CHIP), absent=absent)
            x += room + 6
    end = top + height + _GAP
    way = [(_BRANCH, end - _GAP), (_BRANCH, end), (_STREAM + _ADD, end)]
    pen.line(way, arrow=True, absent=absent)
    pen.text((_STREAM + _ADD + _BRANCH) / 2 + 4, end - 11, "(T, d_model)", absent=absent)
    pen.add(end, absent=absent)
