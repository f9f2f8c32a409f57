"""The second map: the residual stream from embed to unembed, and the branches of each block."""

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.path import Path

from tutorial_lib.contract import require, require_value_fits_annotation
from tutorial_lib.describe import escaped_name
from tutorial_lib.figures.figure import Figure, Table, require_nonempty_dict
from tutorial_lib.figures.ink import INK, title_colour
from tutorial_lib.figures.svg import RULE, draw_svg, side_by_side, text_width

PARTS = ("norm", "attend", "MLP")
_PANEL_WIDTH, _STREAM_X, _BRANCH_X = 312, 54, 207  # pixels: of a panel, and x of its two columns
_BOX_PX, _CHIP, _ADD = 28, 22, 11  # heights of a box and of a small one, and the radius of an add
_CHIP_NAMES = (("project", "score", "mix"), ("concat", "project out"))
_GAP, _BRANCH_BOX_WIDTH = 26, 186  # from box to box, and the width of attend and of MLP
_FAINT_LINE_ALPHA, _TEXT_ALPHA = 0.6, 0.7  # of the ink, of lines and of texts of what is not there
_BRANCH_BOX_HEIGHTS = {"attend": _BOX_PX + 2 * _CHIP + 4 + 8, "MLP": _BOX_PX}
_END_BOX_SIZE = (92, _BOX_PX)  # of the boxes on the stream
_BLOCK_TOP = 28 + _BOX_PX + _GAP  # of the frame around a block
_FIRST = _BLOCK_TOP + _GAP
_ATTEND_HEIGHT, _MLP_PX = (
    _BOX_PX / 2 + _GAP + _BRANCH_BOX_HEIGHTS[part] + _GAP + _GAP for part in ("attend", "MLP")
)
_PANEL_HEIGHT = _FIRST + _ATTEND_HEIGHT + _MLP_PX + 3 * _GAP + 2 * _BOX_PX
_STEP_ROWS = (
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


def block_map(models, *, layers, caption):
    """Draw the residual stream down from embed to unembed, with the two branches of each block.

    Parameters
    ----------
    models : dict of title -> names of the parts that it lacks, of "norm", "attend" and "MLP";
        what is lacking is dashed
    layers : how many blocks there are
    caption : what to look for

    Returns
    -------
    figure : Figure, a panel for each model

    Raises
    ------
    TypeError : layers that are no whole number
    ValueError : no model, no tuple or list of parts of the three, fewer layers than one
    """
    require_nonempty_dict("models", models)
    for title, missing in models.items():
        require(
            isinstance(missing, tuple | list) and set(missing) <= set(PARTS),
            ValueError,
            f"{title!r} lacks {missing!r}; expected a tuple of {', '.join(PARTS)}. "
            f"Give () for a whole block, or for example ('norm', 'MLP').",
        )
    require_value_fits_annotation("layers", layers, "length")
    named_models = [(escaped_name(title), frozenset(missing)) for title, missing in models.items()]
    svgs = [_residual_stream_svg(*model, layers) for model in named_models]  # they fit every room
    panel_draws = [lambda room, picture=picture: picture for picture in svgs]
    tables = tuple(_stream_step_table(title, missing) for title, missing in named_models)
    alt = (
        f"A residual stream of shape (T, d_model) runs down from embed through {layers} blocks to "
        f"unembed. In each block two branches leave it and come back at an add: one through norm "
        f"and attend, which is project, score, mix, concat and project out, the other through "
        f"norm and MLP. {' '.join(_missing_parts_text(*model) for model in named_models)}"
    )
    return Figure(side_by_side(panel_draws, least=_PANEL_WIDTH), tables, caption, alt)


def _block_count_text(n_blocks):
    """Say how often a block stands in a model."""
    return f"× {n_blocks} {'block' if n_blocks == 1 else 'blocks'}"


def _missing_parts_text(title, missing_parts):
    missing = [part for part in PARTS if part in missing_parts]
    return f"{title}: without {' and '.join(missing)}." if missing else f"{title}: with all of it."


def _stream_step_table(title, missing):
    """Write down what each step takes and gives, from the first to the last."""
    step_owners = [part for part, *_ in _STEP_ROWS]
    step_owners[3], step_owners[6] = "attend", "MLP"  # an add goes with its branch
    presence_words = [
        "no" if step_owner in missing or ("MLP" in missing and step_number == 4) else "yes"
        for step_number, step_owner in enumerate(step_owners)
    ]
    cells = [
        [*step_row[1:], presence_word]
        for step_row, presence_word in zip(_STEP_ROWS, presence_words, strict=True)
    ]
    names = [step_row[0] for step_row in _STEP_ROWS]
    return Table(title, np.array(cells), names, ["takes", "gives", "where", "there"], "step")


class _Pen:
    """Draws on axes in pixels, from the top down; what is `absent` is dashed and faint."""

    def __init__(self, axes):
        self.axes = axes

    def box(self, x, y, text, *, size=None, is_absent=False):
        """Draw a box around x, from y down, and its name in the middle of it."""
        width, height = size or (text_width(text) + 16, _BOX_PX)
        corner = (x - width / 2, y)
        patch_style = {"facecolor": "none", "edgecolor": INK, "linewidth": RULE}
        self._add_patch(Rectangle(corner, width, height, **patch_style), is_absent)
        self.text(x, y + height / 2, text, is_absent=is_absent)

    def draw_add_sign(self, y, *, is_absent):
        """Draw the add of a branch on the stream."""
        patch_style = {"facecolor": "none", "edgecolor": INK, "linewidth": RULE}
        self._add_patch(Circle((_STREAM_X, y), _ADD, **patch_style), is_absent)
        self.line([(_STREAM_X - 5, y), (_STREAM_X + 5, y)], width=RULE + 0.5, is_absent=is_absent)
        self.line([(_STREAM_X, y - 5), (_STREAM_X, y + 5)], width=RULE + 0.5, is_absent=is_absent)
        self.text(_STREAM_X - _ADD - 4, y, "add", ha="right", is_absent=is_absent)

    def line(self, points, *, width=RULE, arrow=False, is_absent=False):
        """Draw a line through points, with a head at its end where it leads to something."""
        arrow_style = "-|>,head_length=0.5,head_width=0.28" if arrow else "-"
        ends = {"arrowstyle": arrow_style, "mutation_scale": 16, "shrinkA": 0, "shrinkB": 0}
        self._add_patch(
            FancyArrowPatch(path=Path(points), color=INK, linewidth=width, **ends), is_absent
        )

    def text(self, x, y, text, *, ha="center", is_absent=False):
        """Write a text, by default around its place."""
        alpha = _TEXT_ALPHA if is_absent else None
        self.axes.text(x, y, text, color=INK, ha=ha, va="center_baseline", alpha=alpha)

    def _add_patch(self, patch, is_absent):
        patch.set(clip_on=False)
        if is_absent:
            patch.set(linestyle=(0, (4, 2.5)), alpha=_FAINT_LINE_ALPHA)
        self.axes.add_patch(patch)


def _residual_stream_svg(title, missing_parts, n_blocks):
    def draw_stream_panel(axes):
        axes.set(xlim=(0, _PANEL_WIDTH), ylim=(_PANEL_HEIGHT, 0))
        axes.set_axis_off()
        axes.set_title(title, color=title_colour(title))
        pen = _Pen(axes)
        attend_y, mlp_y, end = _FIRST, _FIRST + _ATTEND_HEIGHT, _FIRST + _ATTEND_HEIGHT + _MLP_PX
        _draw_embed_unembed(pen, end, is_absent="norm" in missing_parts)
        pen.box(_PANEL_WIDTH / 2, _BLOCK_TOP, "", size=(_PANEL_WIDTH - 4, end - _BLOCK_TOP))
        pen.text(_PANEL_WIDTH - 12, end - 14, _block_count_text(n_blocks), ha="right")
        _draw_block_branch(pen, "attend", attend_y, missing_parts)
        _draw_block_branch(pen, "MLP", mlp_y, missing_parts)
        add_y = {"attend": mlp_y - _GAP, "MLP": end - _GAP}
        _draw_stream(pen, [y for part, y in add_y.items() if part not in missing_parts], end + _GAP)

    return draw_svg(draw_stream_panel, _PANEL_WIDTH, _PANEL_HEIGHT)


def _draw_stream(pen, add_heights, stream_end):
    """Draw the stream itself, from embed to an end, parted by the adds on it."""
    segment_tops = [28 + _BOX_PX, *(add_y + _ADD for add_y in add_heights)]
    segment_bottoms = [*(add_y - _ADD for add_y in add_heights), stream_end]
    for segment_top, segment_bottom in zip(segment_tops, segment_bottoms, strict=True):
        pen.line([(_STREAM_X, segment_top), (_STREAM_X, segment_bottom)], width=4)


def _draw_embed_unembed(pen, block_bottom, *, is_absent):
    """Draw the steps before and after the blocks."""
    pen.line([(_STREAM_X, 4), (_STREAM_X, 28)], arrow=True)
    pen.text(_STREAM_X + 14, 14, "ids (T,)", ha="left")
    pen.box(_STREAM_X, 28, "embed", size=_END_BOX_SIZE)
    pen.text(_STREAM_X + 14, 28 + _BOX_PX + _GAP / 2, "residual stream (T, d_model)", ha="left")
    pen.box(_STREAM_X, block_bottom + _GAP, "norm", size=_END_BOX_SIZE, is_absent=is_absent)
    unembed_top = block_bottom + _GAP + _BOX_PX + _GAP
    pen.line([(_STREAM_X, unembed_top - _GAP), (_STREAM_X, unembed_top)], arrow=True)
    pen.text(_STREAM_X + 14, unembed_top - _GAP / 2 - 2, "(T, d_model)", ha="left")
    pen.box(_STREAM_X, unembed_top, "unembed", size=_END_BOX_SIZE)
    pen.line(
        [(_STREAM_X, unembed_top + _BOX_PX), (_STREAM_X, unembed_top + _BOX_PX + _GAP)], arrow=True
    )
    pen.text(_STREAM_X + 14, unembed_top + _BOX_PX + _GAP / 2, "(T, vocabulary)", ha="left")


def _draw_block_branch(pen, part, norm_y, missing_parts):
    """Draw a branch that leaves the stream at y, from its norm to its add."""
    is_absent, box_height = part in missing_parts, _BRANCH_BOX_HEIGHTS[part]
    norm_left = _BRANCH_X - text_width("norm") / 2 - 8
    pen.line([(_STREAM_X, norm_y), (norm_left, norm_y)], arrow=True, is_absent=is_absent)
    pen.box(_BRANCH_X, norm_y - _BOX_PX / 2, "norm", is_absent=is_absent or "norm" in missing_parts)
    box_top = norm_y + _BOX_PX / 2 + _GAP
    pen.line([(_BRANCH_X, box_top - _GAP), (_BRANCH_X, box_top)], arrow=True, is_absent=is_absent)
    pen.box(_BRANCH_X, box_top, "", size=(_BRANCH_BOX_WIDTH, box_height), is_absent=is_absent)
    pen.text(_BRANCH_X, box_top + _BOX_PX / 2, part, is_absent=is_absent)
    for chip_row, chip_names in enumerate(_CHIP_NAMES if part == "attend" else ()):
        chip_widths = [text_width(chip_name) + 10 for chip_name in chip_names]
        chip_left = _BRANCH_X - (sum(chip_widths) + 6 * (len(chip_widths) - 1)) / 2
        for chip_name, px in zip(chip_names, chip_widths, strict=True):
            chip_top = box_top + _BOX_PX + chip_row * (_CHIP + 4)
            pen.box(chip_left + px / 2, chip_top, chip_name, size=(px, _CHIP), is_absent=is_absent)
            chip_left += px + 6
    add_y = box_top + box_height + _GAP
    return_path = [(_BRANCH_X, add_y - _GAP), (_BRANCH_X, add_y), (_STREAM_X + _ADD, add_y)]
    pen.line(return_path, arrow=True, is_absent=is_absent)
    pen.text(
        (_STREAM_X + _ADD + _BRANCH_X) / 2 + 4, add_y - 11, "(T, d_model)", is_absent=is_absent
    )
    pen.draw_add_sign(add_y, is_absent=is_absent)
