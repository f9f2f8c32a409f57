"""Checks at the door of models: what is given is a model, whole, and has such a layer and head."""

import numpy as np

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


def require_steps(steps):
    """Require how often to step: a whole number, 0 or more.

    Raises
    ------
    TypeError : not a whole number
    ValueError : below 0
    """
    require_whole("steps", steps)
    if steps < 0:
        raise ValueError(f"steps={steps}; expected 0 or more. Give a number such as 300.")


def require_rate(rate):
    """Require how far an entry moves in a step at most: above 0, and no further than 1.

    Raises
    ------
    TypeError : not a number
    ValueError : 0, negative, above 1, or NaN
    """
    if isinstance(rate, bool | np.bool_) or not isinstance(rate, int | float | np.number):
        raise TypeError(
            f"rate is {rate!r}, a {type(rate).__name__}; expected a number. Give one such as 5e-3."
        )
    if not 0 < rate <= 1:
        raise ValueError(
            f"rate={rate}; expected a number above 0, at most 1: so far an entry moves in a step, "
            f"and all begin near 0. Give one such as 5e-3."
        )


def require_periods(periods, length):
    """Require the shortest and the longest period of sequences so long that a block repeats.

    Raises
    ------
    TypeError : no pair of whole numbers
    ShapeError : another number of entries
    ValueError : below 1, the longest first, or so long that nothing repeats
    """
    require_sequence("periods", periods, "the shortest and the longest", 2)
    for period in periods:
        require_whole("a period", period)
    shortest, longest = periods
    if not 1 <= shortest <= longest < length:
        raise ValueError(
            f"periods={tuple(periods)}; expected the shortest, at least 1, and then the longest, "
            f"below {length}, so that a block repeats. Give a pair such as (4, 12), or (6, 6)."
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
    require_position("layer", layer, len(model.layers))
    require_position("head", head, model.layers[layer].n_heads)


def require_pair(model, pair):
    """Require the name of a head that is there: the tuple (layer, head), both counted from 0.

    Raises
    ------
    TypeError : no tuple of two whole numbers
    ValueError : a layer or a head that is not there
    """
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(
            f"a head is named {pair!r}; expected a tuple (layer, head). Head 1.2 is (1, 2)."
        )
    require_head(model, *pair)


def require_position(name, value, n):
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
