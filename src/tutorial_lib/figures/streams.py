"""The second map: the residual stream from embed to unembed, and the branches of each block."""

from itertools import pairwise

from tutorial_lib.contract import require, require_value_fits_annotation
from tutorial_lib.figures.diagrams import Block, Diagram, block_diagram
from tutorial_lib.figures.figure import require_nonempty_dict

PARTS = ("norm", "attend", "MLP")
_UNIT = (112, 40)  # pixels of a block; the stream is one block wide, and so is a branch
_ATTEND_TEXT = "attend:\nproject, score,\nmix, concat,\nproject out"
_X = "X (T, d_model)"


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
    count = f"after {layers} {'block' if layers == 1 else 'blocks'}"
    panels = {title: _stream_diagram(set(missing), count) for title, missing in models.items()}
    alt = (
        f"A residual stream of shape (T, d_model) runs down from embed through {layers} blocks to "
        f"unembed. In each block two branches leave it and come back at an add: one through norm "
        f"and attend, which is project, score, mix, concat and project out, the other through "
        f"norm and MLP. {' '.join(map(_missing_parts_text, models.items()))}"
    )
    return block_diagram(panels, unit=_UNIT, caption=caption, alt=alt)


def _stream_diagram(missing, count):
    """Return the stream on the left, from the top down, and the branches beside it."""
    no_norm, no_attend, no_mlp = (part in missing for part in PARTS)
    blocks = {
        "embed": Block(0, 0, "embed"),
        "X": Block(0, 1.6, _X),
        "norm 1": Block(1.6, 1.6, "norm", dashed=no_norm or no_attend),
        "attend": Block(1.6, 3.2, _ATTEND_TEXT, height=2, dashed=no_attend),
        "add 1": Block(0, 3.7, "add", dashed=no_attend),
        "X, again": Block(0, 5.8, _X),
        "norm 2": Block(1.6, 5.8, "norm", dashed=no_norm or no_mlp),
        "MLP": Block(1.6, 7.4, "MLP", dashed=no_mlp),
        "add 2": Block(0, 7.4, "add", dashed=no_mlp),
        "last norm": Block(0, 9, "norm", dashed=no_norm),
        "unembed": Block(0, 10.6, "unembed"),
    }
    stream = ("embed", "X", "add 1", "X, again", "add 2", "last norm", "unembed")
    arrows = [*pairwise(stream)]
    arrows[4] = (*arrows[4], count)
    for branch in (("X", "norm 1", "attend", "add 1"), ("X, again", "norm 2", "MLP", "add 2")):
        arrows += pairwise(branch)
    return Diagram(blocks, tuple(arrows))


def _missing_parts_text(model):
    title, missing_parts = model
    missing = [part for part in PARTS if part in missing_parts]
    return f"{title}: without {' and '.join(missing)}." if missing else f"{title}: with all of it."
