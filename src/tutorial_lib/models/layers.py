"""Layers and heads of a model: how its list of arrays is cut, and whether a head is there."""

import numpy as np

from tutorial_lib.contract import require, require_value_fits_annotation
from tutorial_lib.errors import ShapeError, require_whole_number

AXES = {"TinyModel": (3, 3, 3, 2), "BlockModel": (3, 3, 3, 2, 2, 2)}  # of the arrays of a layer


def split_arrays_into_layers(arrays, kind):
    """Return E, P, the arrays of each layer, and U, of what checkpoint(name) returns."""
    require_value_fits_annotation("arrays", arrays, list[object])
    n_arrays, axes = len(AXES[kind]), tuple(map(np.ndim, arrays[2:-1]))
    fits = [name for name, layer in AXES.items() if axes == layer * max(1, len(axes) // len(layer))]
    require(
        kind in fits,
        ShapeError,
        f"{len(arrays)} arrays make no {kind}; expected E, P, {n_arrays} for each layer, and U: "
        f"{3 + n_arrays}, {3 + 2 * n_arrays} or more. "
        + (f"Take {fits[0]}.of(arrays)." if fits else "Is the checkpoint whole, and of this kind?"),
    )
    E, P, *matrices, U = arrays
    starts = range(0, len(matrices), n_arrays)
    return E, P, [matrices[start : start + n_arrays] for start in starts], U


def require_heads(layers, *heads):
    """Require heads of these layers, each named by a tuple (layer, head), both counted from 0."""
    for head in heads:
        require(
            isinstance(head, tuple) and len(head) == 2,
            TypeError,
            f"a head is named {head!r}; expected a tuple (layer, head). Head 1.2 is (1, 2).",
        )
        count = len(layers)
        for name, index in zip(("layer", "head"), head, strict=True):
            require_whole_number(name, index)
            require(
                0 <= index < count,
                ValueError,
                f"{name} {index} of {count}: expected 0 to {count - 1}. Choose one that is there; "
                f"the first is {name} 0.",
            )
            count = layers[head[0]].n_heads
