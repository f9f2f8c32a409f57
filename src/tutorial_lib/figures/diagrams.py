"""Named blocks and the arrows between them: what becomes of which array, step after step."""

from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path

from tutorial_lib.contract import MADE_BY, require, require_instance
from tutorial_lib.describe import printable
from tutorial_lib.errors import ShapeError
from tutorial_lib.figures.figure import Figure, Table, require_some, rounded
from tutorial_lib.figures.ink import HEAD_INKS, HEADS, INK, SEQUENTIAL, title_ink
from tutorial_lib.figures.maps import levels_of
from tutorial_lib.figures.svg import LINE, RULE, draw_svg, length_of, side_by_side

_INSET = 1.5  # pixels from the place of a block to its frame, so that neighbours stay apart
_SHARES = np.arange(0.95, 0.4, -0.05)  # of the width of a block, where there is little room
_SHORTEST = 14  # arrow with a legible head, in pixels
_CORNER = 9  # pixels from a corner to the nearest arrow
_AROUND = 18  # pixels from a block to an arrow that walks around it


class Block(NamedTuple):
    """A rectangle with a text; places and lengths count units, from the upper left corner down.

    Parameters
    ----------
    x, y : of the upper left corner
    text : what is written on it; a line break begins a line
    width, height : lengths
    head : number of the head whose colour it has; by default none
    shade : from 0 to 1, its tint; by default none
    dashed : with a broken frame and no colour inside: what is not there, or not yet
    """

    x: float
    y: float
    text: str = ""
    width: float = 1
    height: float = 1
    head: int | None = None
    shade: float | None = None
    dashed: bool = False


class Diagram(NamedTuple):
    """One panel of `block_diagram`.

    Parameters
    ----------
    blocks : dict of name -> Block
    arrows : (name, name) or (name, name, label), from the first block to the second
    """

    blocks: dict
    arrows: tuple = ()


MADE_BY[Block] = "a Block. Give its place and its text: Block(0, 0, 'Q')."
MADE_BY[Diagram] = "a Diagram. Wrap its blocks: Diagram({{'Q': Block(0, 0, 'Q')}})."


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self):
        """Return its middle, (x, y)."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def meets(self, other):
        """Tell whether two rectangles share more than an edge."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 1e-6 and down > 1e-6


class Arrow(NamedTuple):
    """The points that an arrow runs through, in pixels, its label, and the label's side of it."""

    points: list
    label: str
    side: np.ndarray

    def box(self):
        """Return the room of the label: beside the middle of the arrow's longest part."""
        size = np.array([length_of(self.label), LINE])
        middle = np.mean(_longest(self.points), axis=0)
        middle = middle + self.side * (np.abs(self.side) @ size / 2 + 5)
        return Box(*(middle - size / 2), *(middle + size / 2))


class Layout(NamedTuple):
    """Where the blocks and the arrows of a panel are, in pixels."""

    boxes: dict
    arrows: list

    @property
    def width(self):
        """Return the right end of the blocks, the left one being 0."""
        return max(box.right for box in self.boxes.values())

    @property
    def height(self):
        """Return the lower end of the blocks."""
        return max(box.bottom for box in self.boxes.values())


def block_diagram(panels, *, unit=(84, 40), caption, alt):
    """Draw blocks with texts, and arrows from edge to edge, one panel after the other.

    Parameters
    ----------
    panels : dict of title -> Diagram
    unit : (width, height) of a block of width and height 1, in pixels; on a phone blocks and gaps
        are narrower, as far as their texts leave room
    caption : what to look for
    alt : the picture in words

    Returns
    -------
    figure : Figure

    Raises
    ------
    TypeError : a panel that is no Diagram, a block that is no Block, a place, length or shade that
        is no number
    ShapeError : an arrow without two names
    ValueError : no panel, no block, no alt, a unit without two lengths, numbers that are not
        finite, a shade outside 0 to 1, blocks on top of each other, an arrow without two blocks or
        room, a text without room
    """
    require_some("panels", panels)
    require(
        isinstance(alt, str) and alt.strip(),
        ValueError,
        f"alt is {alt!r}; expected the picture in words, since blocks do not say what they mean. "
        f"Write for someone who cannot see them: which block leads to which.",
    )
    require(
        np.shape(unit) == (2,) and np.isfinite(unit).all() and min(unit) > 0,
        ValueError,
        f"unit is {unit}; expected two lengths above 0, in pixels. "
        f"Give the width and the height of a block, such as (84, 40).",
    )
    widest = _width(_layouts(panels, unit))

    @cache
    def layouts(room):
        return _squeezed(panels, unit, room)

    pictures = [lambda room, t=t: _picture(t, panels[t], layouts(room)[t]) for t in panels]
    tables = [_table(title, diagram) for title, diagram in panels.items()]
    return Figure(side_by_side(pictures, least=widest), tuple(tables), caption, alt)


def _layouts(panels, unit):
    return {title: _layout(title, diagram, unit) for title, diagram in panels.items()}


def _width(layouts):
    return max(layout.width for layout in layouts.values())


def _layout(title, diagram, unit):
    require_instance(repr(title), diagram, Diagram)
    require_some(f"blocks of {title!r}", diagram.blocks)
    for name, block in diagram.blocks.items():
        _require_block(f"block {name!r} of {title!r}", block)
    boxes = _boxes(title, diagram.blocks, unit)
    arrows = [_arrow(title, arrow, diagram, boxes) for arrow in diagram.arrows]
    for (name, block), box in zip(diagram.blocks.items(), boxes.values(), strict=True):
        lines = _lines(block)
        needed = max(map(length_of, lines)) + 5, LINE * len(lines) if block.text else 0
        room = box.right - box.left, box.bottom - box.top
        if needed[0] > room[0] or needed[1] > room[1]:
            raise ValueError(
                f"the text of block {name!r} of {title!r} needs {needed[0]:.0f} by {needed[1]:.0f} "
                f"pixels and has {room[0]:.0f} by {room[1]:.0f}; expected room for it. "
                f"Break its lines with \\n, or give the block or unit= more width or height."
            )
    for arrow in filter(lambda arrow: arrow.label, arrows):
        names = [name for name, box in boxes.items() if box.meets(arrow.box())]
        if names:
            raise ValueError(
                f"the label {arrow.label!r} of {title!r} would lie on block {names[0]!r}; expected "
                f"{length_of(arrow.label):.0f} pixels of room. Move the blocks apart or shorten it."
            )
    return Layout(boxes, arrows)


def _require_block(name, block):
    require_instance(name, block, Block)
    place = (block.x, block.y, block.width, block.height)
    shade = 0 if block.shade is None else block.shade
    for field, value in zip(("x", "y", "width", "height", "shade"), (*place, shade), strict=True):
        require_instance(f"{field} of {name}", value, float)
    require(
        np.isfinite(place).all() and min(place[2:]) > 0,
        ValueError,
        f"{name} has x, y, width, height {place}; expected finite numbers, and lengths above "
        f"0. Count them in units, such as Block(2, 0, 'K', width=1).",
    )
    require(
        0 <= shade <= 1,
        ValueError,
        f"{name} has shade={shade}; expected 0 to 1. "
        f"Divide by the largest number that the tints are to show.",
    )
    require(
        block.head is None or (not isinstance(block.head, bool) and block.head in range(10**6)),
        ValueError,
        f"{name} has head={block.head!r}; expected the number of a head. Give 0, 1, 2, …",
    )


def _boxes(title, blocks, unit):
    """Return each block's place in pixels, the leftmost and the uppermost at 0."""
    left, top = (min(block[axis] for block in blocks.values()) for axis in (0, 1))
    boxes = {
        name: Box(
            (b.x - left) * unit[0],
            (b.y - top) * unit[1],
            (b.x + b.width - left) * unit[0],
            (b.y + b.height - top) * unit[1],
        )
        for name, b in blocks.items()
    }
    for one, other in combinations(boxes, 2):
        if boxes[one].meets(boxes[other]):
            raise ValueError(
                f"blocks {one!r} and {other!r} of {title!r} lie on top of each other; expected a "
                f"place for each. Move one by its width or height: {blocks[one]}, {blocks[other]}."
            )
    return boxes


def _arrow(title, arrow, diagram, boxes):
    if isinstance(arrow, str) or len(arrow) not in (2, 3):
        raise ShapeError(
            f"{title!r} has an arrow {arrow!r}; expected two names of blocks and at most a label. "
            f"Give it as ('Q', 'scores') or ('Q', 'scores', 'times')."
        )
    unknown = [name for name in arrow[:2] if name not in boxes]
    if unknown:
        raise ValueError(
            f"{title!r} has an arrow {arrow!r}, but no block {unknown[0]!r}; expected names of "
            f"its blocks, {list(boxes)}. Correct the name, or add the block."
        )
    back = any(tuple(other[:2]) == (arrow[1], arrow[0]) for other in diagram.arrows)
    start, end = boxes[arrow[0]], boxes[arrow[1]]
    others = [box for name, box in boxes.items() if name not in arrow[:2]]
    points = _straight(start, end, others, keep_left=back)
    if _meets_any(points, others):
        points = _walk_around(start, end, others)
    if np.hypot(*np.subtract(points[0], points[-1])) < _SHORTEST:
        raise ValueError(
            f"{title!r} has an arrow {arrow!r} without room; expected {_SHORTEST} pixels or more "
            f"between its two blocks. Move them apart."
        )
    label = printable(arrow[2]) if len(arrow) == 3 else ""
    return Arrow(points, label, _side(points, keep_left=back))


def _straight(start, end, others, *, keep_left):
    """Return the ends of a short line between two rectangles, past the others where it can be.

    With an arrow back beside it, each of the two keeps to the left.
    """
    gaps = [max(start[axis], end[axis]) - min(start[axis + 2], end[axis + 2]) for axis in (0, 1)]
    wider = int(gaps[0] < gaps[1])
    ways = [_across(start, end, wider, keep_left=keep_left)]
    if min(gaps) > 0:  # a corner looks at a corner: the line may leave by either edge
        ways.append(_across(start, end, 1 - wider, keep_left=keep_left))
    return next((way for way in ways if not _meets_any(way, others)), ways[0])


def _across(start, end, across, *, keep_left):
    """Return the ends of a line over the gap along one axis: 0 from left to right, 1 downwards."""
    along = 1 - across
    ahead = start[across] < end[across]
    share = (1 / 3 if ahead == bool(along) else 2 / 3) if keep_left else 1 / 2
    low, high = max(start[along], end[along]), min(start[along + 2], end[along + 2])
    place, points = low + (high - low) * share, []
    for box, edge in ((start, across + 2 * ahead), (end, across + 2 * (not ahead))):
        # a line from a corner could belong to the next block as well
        corner = min(_CORNER, (box[along + 2] - box[along]) / 3) if high - low < _CORNER / 2 else 0
        within = np.clip(place, box[along] + corner, box[along + 2] - corner)
        points.append((float(within), box[edge])[:: 1 if across else -1])
    return points


def _longest(points):
    """Return the ends of the longest part of a broken line."""
    return max(pairwise(points), key=lambda part: np.hypot(*np.subtract(*part)))


def _side(points, *, keep_left):
    """Return the direction from an arrow to its label: up or right, or away from its neighbours."""
    x, y = np.subtract(points[1], points[0])
    x, y = np.array([x, y]) / (np.hypot(x, y) or 1.0)
    if len(points) > 2:  # around other blocks, the way of its first step
        return np.array([x, y])
    normal = np.array([y, -x])
    if keep_left:
        return normal
    return normal if normal[1] < -1e-9 or (abs(normal[1]) < 1e-9 and normal[0] > 0) else -normal


def _crosses(points, box):
    """Tell whether a straight line runs through a rectangle, by places on the line."""
    places = np.linspace(*points, 200)
    within = (places > (box.left + 1, box.top + 1)) & (places < (box.right - 1, box.bottom - 1))
    return within.all(axis=1).any()


def _walk_around(start, end, others):
    """Return the corners of an arrow around what is between two blocks of a row or of a column.

    It goes below a row and to the right of a column, or the other way if that way is free alone.
    """
    is_row = start.top < end.bottom and end.top < start.bottom
    ways = [_way(start, end, others, is_row=is_row, is_far=is_far) for is_far in (True, False)]
    return next((way for way in ways if not _meets_any(way, others)), ways[0])


def _way(start, end, others, *, is_row, is_far):
    axis, edge = int(not is_row), (3 if is_far else 1) - int(not is_row)
    places = [box.middle[axis] for box in (start, end)]
    obstacles = [box for box in others if min(places) < box.middle[axis] < max(places)]
    edges = [box[edge] for box in (start, end, *obstacles)]
    beyond = max(edges) + _AROUND if is_far else min(edges) - _AROUND
    corners = [
        (places[0], start[edge]),
        (places[0], beyond),
        (places[1], beyond),
        (places[1], end[edge]),
    ]
    return corners if is_row else [corner[::-1] for corner in corners]


def _meets_any(points, boxes):
    return any(_crosses(part, box) for part in pairwise(points) for box in boxes)


def _lines(block):
    return [printable(line) for line in str(block.text).split("\n")]


def _picture(title, diagram, layout):
    def draw(axes):
        axes.set(xlim=(0, layout.width), ylim=(layout.height, 0))
        axes.set_axis_off()
        axes.set_title(printable(title), color=title_ink(title))
        for name, block in diagram.blocks.items():
            _draw_block(axes, block, layout.boxes[name])
        for arrow in layout.arrows:
            _draw_arrow(axes, arrow)

    return draw_svg(draw, layout.width, layout.height)


def _squeezed(panels, unit, room):
    """Return the layouts of panels as narrow as a room, or as every text and arrow allows."""
    layouts = _layouts(panels, unit)
    for share in _SHARES:
        if _width(layouts) <= room:
            break
        try:
            layouts = _layouts(panels, (unit[0] * share, unit[1]))
        except ValueError:  # no room for a text or an arrow
            break
    return layouts


def _draw_block(axes, block, box):
    face, edge, ink = _colours(block)
    frame = Rectangle(
        (box.left + _INSET, box.top + _INSET),
        box.right - box.left - 2 * _INSET,
        box.bottom - box.top - 2 * _INSET,
        facecolor=face,
        edgecolor=edge,
        linewidth=RULE,
        linestyle=(0, (4, 2.5)) if block.dashed else "-",
    )
    frame.set_clip_on(False)
    axes.add_patch(frame)
    lines = _lines(block)
    x, y = box.middle
    for number, line in enumerate(lines):
        place = (x, y + LINE * (number - (len(lines) - 1) / 2))
        axes.text(*place, line, color=ink, ha="center", va="center_baseline")


def _colours(block):
    """Return the colours of a block's inside, of its frame and of its text."""
    own = INK if block.head is None else HEAD_INKS[block.head % len(HEAD_INKS)]
    if block.dashed:
        return "none", own, own
    if block.shade is not None:
        level = int(levels_of(_tint(block)[0], 0, 1))
        return SEQUENTIAL.cells[level], own, SEQUENTIAL.texts[level]
    if block.head is not None:
        head = block.head % len(HEADS.cells)
        return HEADS.cells[head], HEADS.cells[head], HEADS.texts[head]
    return "none", own, own


def _draw_arrow(axes, arrow):
    patch = FancyArrowPatch(
        path=Path(arrow.points),
        arrowstyle="-|>,head_length=0.5,head_width=0.28",
        mutation_scale=16,
        color=INK,
        linewidth=RULE,
        shrinkA=0,
        shrinkB=0,
    )
    patch.set_clip_on(False)
    axes.add_patch(patch)
    if arrow.label:
        box = arrow.box()
        axes.text(*box.middle, arrow.label, ha="center", va="center_baseline")


def _table(title, diagram):
    """Write down each block's text; where blocks have tints or arrows, these too."""
    blocks = diagram.blocks
    columns = {"text": [" ".join(_lines(block)) for block in blocks.values()]}
    if any(block.shade is not None for block in blocks.values()):
        columns["tint"] = [_tint(block)[1] for block in blocks.values()]
    if diagram.arrows:
        columns["arrows to"] = [_targets(name, diagram.arrows) for name in blocks]
    cells = np.array(list(columns.values())).T
    return Table(printable(title), cells, [*map(printable, blocks)], [*columns], "block")


def _tint(block):
    """Return a block's shade rounded, and as it is written; 0 and nothing where it has none."""
    if block.shade is None:
        return 0.0, ""
    numbers, texts = rounded(np.array([block.shade], dtype=float))
    return numbers[0], texts[0]


def _targets(name, arrows):
    targets = [arrow[1:] for arrow in arrows if arrow[0] == name]
    return ", ".join(f"{to} ({label[0]})" if label else str(to) for to, *label in targets)
