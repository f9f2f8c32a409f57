"""Named blocks and the arrows between them: what becomes of which array, step after step."""

from functools import cache, partial
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.path import Path

from tutorial_lib.contract import MADE_BY, require, require_instance
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import (
    Figure,
    Table,
    require_nonempty_dict,
    rounded_numbers_and_texts,
)
from tutorial_lib.figures.ink import HEAD_INKS, HEADS, INK, SEQUENTIAL, title_colour
from tutorial_lib.figures.maps import to_colour_levels
from tutorial_lib.figures.svg import LINE, RULE, draw_arrow, draw_svg, side_by_side, text_width

_BLOCK_INSET = 1.5  # pixels from the place of a block to its frame, so that neighbours stay apart
_WIDTH_SHARES = np.arange(0.95, 0.4, -0.05)  # of the width of a block, where there is little room
_MIN_LENGTH = 14  # arrow with a legible head, in pixels
_CORNER_GAP = 9  # pixels from a corner to the nearest arrow
_DETOUR = 18  # pixels from a block to an arrow that walks around it


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


class PixelBox(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self):
        """Return its middle, (x, y)."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def overlaps(self, other):
        """Tell whether two rectangles share more than an edge."""
        overlap_width = min(self.right, other.right) - max(self.left, other.left)
        overlap_height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return overlap_width > 1e-6 and overlap_height > 1e-6


class ArrowPath(NamedTuple):
    """The points that an arrow runs through, in pixels, its label, and the label's side of it."""

    points: list
    label: str
    side: np.ndarray

    def label_box(self):
        """Return the room of the label: beside the middle of the arrow's longest part."""
        label_size = np.array([text_width(self.label), LINE])
        longest = max(pairwise(self.points), key=lambda part: np.hypot(*np.subtract(*part)))
        distance = np.abs(self.side) @ label_size / 2 + 5
        middle = np.mean(longest, axis=0) + self.side * distance
        return PixelBox(*(middle - label_size / 2), *(middle + label_size / 2))


def block_diagram(panels, *, unit=(84, 40), caption, alt) -> Figure:
    """Draw blocks with texts, and arrows from edge to edge, one panel after the other.

    Parameters
    ----------
    panels : dict of title -> Diagram
    unit : (width, height) of a block of width and height 1, in pixels; on a phone blocks and gaps
        are narrower, as far as their texts leave room
    caption : what to look for
    alt : the picture in words

    Raises
    ------
    TypeError : a panel that is no Diagram, a block that is no Block
    ValueError : no panel, no block, no alt, blocks on top of each other, an arrow without two
        blocks or room, a text without room
    """
    require_nonempty_dict("panels", panels)
    require(
        isinstance(alt, str) and alt.strip(),
        ValueError,
        f"alt is {alt!r}; expected the picture in words, since blocks do not say what they mean. "
        f"Write for someone who cannot see them: which block leads to which.",
    )
    _, full_width = _diagram_layouts(panels, unit)
    layouts_within = cache(partial(_narrowed_layouts, panels, unit))
    draws = [lambda room, t=t: _diagram_svg(t, panels[t], layouts_within(room)[t]) for t in panels]
    tables = [_table_of_diagram_blocks(title, diagram) for title, diagram in panels.items()]
    return Figure(side_by_side(draws, least=full_width), tuple(tables), caption, alt)


def _diagram_layouts(panels, unit):
    """Return the layout of each panel, and the width of the widest."""
    layouts = {title: _diagram_layout(title, diagram, unit) for title, diagram in panels.items()}
    return layouts, max(box.right for boxes, _ in layouts.values() for box in boxes.values())


def _diagram_layout(title, diagram, unit):
    """Return where the blocks and the arrows of a panel are, in pixels."""
    require_instance(repr(title), diagram, Diagram)
    require_nonempty_dict(f"blocks of {title!r}", diagram.blocks)
    for name, block in diagram.blocks.items():
        require_instance(f"block {name!r} of {title!r}", block, Block)
    boxes = _block_pixel_boxes(title, diagram.blocks, unit)
    arrows = [_checked_arrow_path(title, arrow, diagram, boxes) for arrow in diagram.arrows]
    for (name, block), box in zip(diagram.blocks.items(), boxes.values(), strict=True):
        text_lines = _block_text_lines(block)
        size = max(map(text_width, text_lines)) + 5, LINE * len(text_lines) if block.text else 0
        block_room = box.right - box.left, box.bottom - box.top
        if size[0] > block_room[0] or size[1] > block_room[1]:
            raise ValueError(
                f"the text of block {name!r} of {title!r} needs {size[0]:.0f} by {size[1]:.0f} "
                f"pixels and has {block_room[0]:.0f} by {block_room[1]:.0f}; expected room for it. "
                f"Break its lines with \\n, or give the block or unit= more width or height."
            )
    for arrow in filter(lambda arrow: arrow.label, arrows):
        names = [name for name, box in boxes.items() if box.overlaps(arrow.label_box())]
        if names:
            raise ValueError(
                f"the label {arrow.label!r} of {title!r} would lie on block {names[0]!r}; expected "
                f"{text_width(arrow.label):.0f} pixels of room. Move the blocks apart or shorten."
            )
    return boxes, arrows


def _block_pixel_boxes(title, blocks, unit):
    """Return each block's place in pixels, the leftmost and the uppermost at 0."""
    origin = np.min([block[:2] for block in blocks.values()], axis=0)
    boxes = {}
    for name, block in blocks.items():
        corners = (block.x, block.y), (block.x + block.width, block.y + block.height)
        boxes[name] = PixelBox(*((corners - origin) * unit).ravel().tolist())
    for one, second in combinations(boxes, 2):
        if boxes[one].overlaps(boxes[second]):
            raise ValueError(
                f"blocks {one!r} and {second!r} of {title!r} lie on top of each other; expected a "
                f"place for each. Move one by its width or height: {blocks[one]}, {blocks[second]}."
            )
    return boxes


def _checked_arrow_path(title, arrow, diagram, boxes):
    unknown = [name for name in arrow[:2] if name not in boxes]
    if unknown:
        raise ValueError(
            f"{title!r} has an arrow {arrow!r}, but no block {unknown[0]!r}; expected names of "
            f"its blocks, {list(boxes)}. Correct the name, or add the block."
        )
    has_return = any(tuple(other[:2]) == (arrow[1], arrow[0]) for other in diagram.arrows)
    start_box, end_box = boxes[arrow[0]], boxes[arrow[1]]
    other_boxes = [box for name, box in boxes.items() if name not in arrow[:2]]
    arrow_points = _straight_arrow_ends(start_box, end_box, other_boxes, keep_left=has_return)
    if _path_crosses_boxes(arrow_points, other_boxes):
        arrow_points = _detour_corners(start_box, end_box, other_boxes)
    if np.hypot(*np.subtract(arrow_points[0], arrow_points[-1])) < _MIN_LENGTH:
        raise ValueError(
            f"{title!r} has an arrow {arrow!r} without room; expected {_MIN_LENGTH} pixels or more "
            f"between its two blocks. Move them apart."
        )
    label = escaped_name(arrow[2]) if len(arrow) == 3 else ""
    return ArrowPath(arrow_points, label, _label_direction(arrow_points, keep_left=has_return))


def _straight_arrow_ends(start, end, others, *, keep_left):
    """Return the ends of a short line between two rectangles, past the others where it can be.

    With an arrow back beside it, each of the two keeps to the left.
    """
    axis_gaps = [
        max(start[axis], end[axis]) - min(start[axis + 2], end[axis + 2]) for axis in (0, 1)
    ]
    wider_axis = int(axis_gaps[0] < axis_gaps[1])
    lines = [_arrow_ends_across_gap(start, end, wider_axis, keep_left=keep_left)]
    if min(axis_gaps) > 0:  # a corner looks at a corner: the line may leave by either edge
        lines.append(_arrow_ends_across_gap(start, end, 1 - wider_axis, keep_left=keep_left))
    return next((line for line in lines if not _path_crosses_boxes(line, others)), lines[0])


def _arrow_ends_across_gap(start, end, gap_axis, *, keep_left):
    """Return the ends of a line over the gap along one axis: 0 from left to right, 1 downwards."""
    side = 1 - gap_axis
    is_forward = start[gap_axis] < end[gap_axis]
    edge_share = (1 / 3 if is_forward == bool(side) else 2 / 3) if keep_left else 1 / 2
    start_overlap, end_overlap = max(start[side], end[side]), min(start[side + 2], end[side + 2])
    line_position, line_ends = start_overlap + (end_overlap - start_overlap) * edge_share, []
    for box, edge in ((start, gap_axis + 2 * is_forward), (end, gap_axis + 2 * (not is_forward))):
        # a line from a corner could belong to the next block as well
        margin = (
            min(_CORNER_GAP, (box[side + 2] - box[side]) / 3)
            if end_overlap - start_overlap < _CORNER_GAP / 2
            else 0
        )
        clamped_position = np.clip(line_position, box[side] + margin, box[side + 2] - margin)
        line_ends.append((float(clamped_position), box[edge])[:: 1 if gap_axis else -1])
    return line_ends


def _label_direction(line_points, *, keep_left):
    """Return the direction from an arrow to its label: up or right, or away from its neighbours."""
    x, y = np.subtract(line_points[1], line_points[0])
    x, y = np.array([x, y]) / (np.hypot(x, y) or 1.0)
    if len(line_points) > 2:  # around other blocks, the way of its first step
        return np.array([x, y])
    normal = np.array([y, -x])
    if keep_left:
        return normal
    return normal if normal[1] < -1e-9 or (abs(normal[1]) < 1e-9 and normal[0] > 0) else -normal


def _detour_corners(start, end, others):
    """Return the corners of an arrow around what is between two blocks of a row or of a column.

    It goes below a row and to the right of a column, or the other way if that way is free alone.
    """
    is_row = start.top < end.bottom and end.top < start.bottom
    paths = [_side_detour(start, end, others, is_row=is_row, is_far=far) for far in (True, False)]
    return next((path for path in paths if not _path_crosses_boxes(path, others)), paths[0])


def _side_detour(start_box, end_box, other_boxes, *, is_row, is_far):
    axis, edge_index = int(not is_row), (3 if is_far else 1) - int(not is_row)
    edges = [box.centre[axis] for box in (start_box, end_box)]
    obstacles = [box for box in other_boxes if min(edges) < box.centre[axis] < max(edges)]
    edge_positions = [box[edge_index] for box in (start_box, end_box, *obstacles)]
    detour_position = max(edge_positions) + _DETOUR if is_far else min(edge_positions) - _DETOUR
    corners = [
        (edges[0], start_box[edge_index]),
        (edges[0], detour_position),
        (edges[1], detour_position),
        (edges[1], end_box[edge_index]),
    ]
    return corners if is_row else [corner[::-1] for corner in corners]


def _path_crosses_boxes(line_points, boxes):
    """Tell whether a broken line runs through a rectangle, by places on the line."""
    places = np.concatenate([np.linspace(*segment, 200) for segment in pairwise(line_points)])
    return any(
        ((places > np.add(box[:2], 1)) & (places < np.subtract(box[2:], 1))).all(axis=1).any()
        for box in boxes
    )


def _block_text_lines(block):
    return [escaped_name(line) for line in str(block.text).split("\n")]


def _diagram_svg(title, diagram, layout):
    boxes, arrows = layout
    _, _, width, height = map(max, zip(*boxes.values(), strict=True))

    def draw_diagram(axes):
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        axes.set_title(escaped_name(title), color=title_colour(title))
        for name, block in diagram.blocks.items():
            _draw_block(axes, block, boxes[name])
        for arrow in arrows:
            _draw_arrow(axes, arrow)

    return draw_svg(draw_diagram, width, height)


def _narrowed_layouts(panels, unit, available_width):
    """Return the layouts of panels as narrow as a room, or as every text and arrow allows."""
    layouts, width = _diagram_layouts(panels, unit)
    for width_share in _WIDTH_SHARES:
        if width <= available_width:
            break
        try:
            layouts, width = _diagram_layouts(panels, (unit[0] * width_share, unit[1]))
        except ValueError:  # no room for a text or an arrow
            break
    return layouts


def _draw_block(axes, block, box):
    face_colour, edge_colour, text_colour = _fill_frame_and_text_colours(block)
    frame = Rectangle(
        (box.left + _BLOCK_INSET, box.top + _BLOCK_INSET),
        box.right - box.left - 2 * _BLOCK_INSET,
        box.bottom - box.top - 2 * _BLOCK_INSET,
        facecolor=face_colour,
        edgecolor=edge_colour,
        linewidth=RULE,
        linestyle=(0, (4, 2.5)) if block.dashed else "-",
    )
    frame.set_clip_on(False)
    axes.add_patch(frame)
    text_lines = _block_text_lines(block)
    x, y = box.centre
    for line_number, line in enumerate(text_lines):
        line_place = (x, y + LINE * (line_number - (len(text_lines) - 1) / 2))
        axes.text(*line_place, line, color=text_colour, ha="center", va="center_baseline")


def _fill_frame_and_text_colours(block):
    frame_colour = INK if block.head is None else HEAD_INKS[block.head % len(HEAD_INKS)]
    if block.dashed:
        return "none", frame_colour, frame_colour
    if block.shade is not None:
        tint_level = int(to_colour_levels(_rounded_shade_and_text(block)[0], 0, 1))
        return SEQUENTIAL.cells[tint_level], frame_colour, SEQUENTIAL.texts[tint_level]
    if block.head is not None:
        head_number = block.head % len(HEADS.cells)
        return HEADS.cells[head_number], HEADS.cells[head_number], HEADS.texts[head_number]
    return "none", frame_colour, frame_colour


def _draw_arrow(axes, arrow):
    style = "-|>,head_length=0.5,head_width=0.28"
    draw_arrow(axes, Path(arrow.points), arrowstyle=style, color=INK, linewidth=RULE)
    if arrow.label:
        axes.text(*arrow.label_box().centre, arrow.label, ha="center", va="center_baseline")


def _table_of_diagram_blocks(title, diagram):
    """Write down each block's text; where blocks have tints or arrows, these too."""
    blocks = diagram.blocks
    columns = {"text": [" ".join(_block_text_lines(block)) for block in blocks.values()]}
    if any(block.shade is not None for block in blocks.values()):
        columns["tint"] = [_rounded_shade_and_text(block)[1] for block in blocks.values()]
    if diagram.arrows:
        columns["arrows to"] = [_arrow_targets_text(name, diagram.arrows) for name in blocks]
    cells = np.array(list(columns.values())).T
    return Table(escaped_name(title), cells, [*map(escaped_name, blocks)], [*columns], "block")


def _rounded_shade_and_text(block):
    """Return a block's shade rounded, and as it is written; 0 and nothing where it has none."""
    if block.shade is None:
        return 0.0, ""
    rounded_shades, texts = rounded_numbers_and_texts(np.array([block.shade], dtype=float))
    return rounded_shades[0], texts[0]


def _arrow_targets_text(name, arrows):
    arrow_ends = [arrow[1:] for arrow in arrows if arrow[0] == name]
    return ", ".join(f"{to} ({label[0]})" if label else str(to) for to, *label in arrow_ends)
