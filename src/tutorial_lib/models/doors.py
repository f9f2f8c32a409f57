"""Checks at the door of models: what is given is a model, whole, and has such a layer and head."""

from tutorial_lib.errors import ShapeError, require_operand, require_shape, require_whole
from tutorial_lib.projection import Params

LAYERS = {"TinyModel": (3, 3, 3, 2), "BlockModel": (3, 3, 3, 2, 2, 2)}  # axes of a layer's arrays


def require_kind(model, kind):
    """Require a model of one kind: what one adds up, another would leave out without a word.

    Raises
    ------
    TypeError : a model of another kind, or none
    """
    if not isinstance(model, kind):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a {kind.__name__}, such as "
            f"{kind.__name__}.of(checkpoint(name)) makes."
        )


def require_list(arrays, kind):
    """Require a list of E, P, the arrays of every layer, and U, as a model of this kind has them.

    Raises
    ------
    TypeError : no list
    ShapeError : the arrays of another kind of model, or another number of them
    """
    require_sequence("arrays", arrays, "arrays such as checkpoint(name) returns")
    axes = tuple(getattr(array, "ndim", None) for array in arrays[2:-1])
    for other, layer in LAYERS.items():
        if other != kind and axes and axes == layer * (len(axes) // len(layer)):
            raise ShapeError(
                f"these are the arrays of a {other}; expected those of a {kind}. "
                f"Make the model with {other}.of(arrays), or load another checkpoint."
            )
    each = len(LAYERS[kind])
    if len(arrays) < 3 + each or (len(arrays) - 3) % each:
        raise ShapeError(
            f"{len(arrays)} arrays make no {kind}; expected E, P, {each} for each layer, and U: "
            f"{3 + each}, {3 + 2 * each} or more. Is the checkpoint whole, and of this kind?"
        )


def require_sequence(name, value, what, n=None):
    """Require a list or a tuple, of `n` entries where that is given.

    Raises
    ------
    TypeError : neither of them
    ShapeError : another number of entries
    """
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a list or a tuple of {what}."
        )
    if n not in (None, len(value)):
        raise ShapeError(f"{name} has {len(value)} entries; expected {n}: {what}.")


def require_model(model):
    """Require tables and layers of one width, a layer at least, and finite numbers in all.

    Raises
    ------
    TypeError : no arrays of numbers, layers that are no list of Params
    ShapeError : arrays of other shapes, another width in a layer, no layer
    ValueError : NaN or infinity
    """
    require_shape("E", model.E, "vocabulary d_model")
    words, d_model = model.E.shape
    require_shape("P", model.P, "length d_model", d_model=d_model)
    require_shape("U", model.U, "d_model vocabulary", d_model=d_model, vocabulary=words)
    for name in "EPU":
        require_operand(name, getattr(model, name))
    require_sequence("layers", model.layers, "Params, one for each layer")
    if not model.layers:
        raise ShapeError("layers is empty; expected at least one. Give a tuple of Params.")
    for n, params in enumerate(model.layers):
        if not isinstance(params, Params):
            raise TypeError(
                f"layer {n} is a {type(params).__name__}; expected Params. "
                f"Make them with Params(W_Q, W_K, W_V, W_O)."
            )
        if params.d_model != d_model:
            raise ShapeError(
                f"layer {n} has d_model={params.d_model}, but E has shape {model.E.shape}; "
                f"expected d_model={d_model} in both. Take arrays of one model."
            )


def require_head(model, layer, head):
    """Require a layer and a head of it that are there, both counted from 0.

    Raises
    ------
    TypeError : no whole number
    ValueError : a layer or a head that is not there
    """
    require_place("layer", layer, len(model.layers))
    require_place("head", head, model.layers[layer].n_heads)


def require_place(name, value, n):
    """Require a whole number from 0 to `n` - 1.

    Raises
    ------
    TypeError : no whole number
    ValueError : below 0, or n and more
    """
    require_whole(name, value)
    if not 0 <= value < n:
        raise ValueError(
            f"{name} {value} of {n}: expected 0 to {n - 1}. Choose one that is there; "
            f"the first is {name} 0."
        )
