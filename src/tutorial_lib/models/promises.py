"""What a layer promises, as functions that test any layer: leak, gradient, drift, chunks."""

import numpy as np

from tutorial_lib.errors import (
    ShapeError,
    require_array,
    require_finite,
    require_length,
    require_shape,
)


def leak(layer, X, other):
    """Return how much a row changes, at most, when tokens after it are exchanged for others.

    Built in chapter 23. A causal layer gives 0. A layer that gives NaN gives NaN.

    Parameters
    ----------
    layer : function from (..., T, d_model) to as many rows
    X : (..., T, d_model)
    other : the shape of X, a different sequence

    Returns
    -------
    most : a number

    Raises
    ------
    TypeError : no function, no arrays of numbers
    ShapeError : sequences of different shapes, or of one token
    ValueError : NaN or infinity in a sequence

    >>> float(leak(lambda X: X + X.mean(axis=-2, keepdims=True), np.zeros((4, 2)), np.ones((4, 2))))
    0.75
    """
    require_sequences(layer, X, other)
    Y, changes = layer(X), []
    for s in range(1, X.shape[-2]):
        mixed = np.concatenate([X[..., :s, :], other[..., s:, :]], axis=-2)
        changes.append(np.abs(layer(mixed) - Y)[..., :s, :].max())
    return np.max(changes)


def directional_derivative(loss, array, along, step=1e-5):
    """Return how fast a loss rises along one direction of an array.

    Built in chapter 23. It is the sum of `gradient * along`: two calls check all entries together,
    where chapter 08 needs two calls for each.

    Parameters
    ----------
    loss : function from an array of this shape to a number
    array : any shape
    along : the shape of array
    step : how far to go to each side

    Returns
    -------
    slope : a number

    Raises
    ------
    TypeError : no function, no arrays of numbers
    ShapeError : a direction of another shape
    ValueError : NaN or infinity

    >>> ones = np.ones((2, 3))
    >>> round(float(directional_derivative(lambda X: (X**2).sum(), ones, ones)), 6)
    12.0
    """
    require_direction(loss, array, along)
    return (loss(array + step * along) - loss(array - step * along)) / (2 * step)


def drift(layer, X, before, window):
    """Return how much rows change when other tokens come before them that they do not see.

    Built in chapter 23. The first window - 1 rows do see some of them, and are left out.

    Parameters
    ----------
    layer : function from (..., T, d_model), any T, to as many rows; each sees `window` keys
    X : (..., T, d_model)
    before : (..., S, d_model)
    window : number of keys that a row sees, at most T

    Returns
    -------
    most : a number

    Raises
    ------
    TypeError : no function, no arrays of numbers, a window that is no whole number
    ShapeError : sequences of other widths or batches
    ValueError : NaN or infinity, a window below 1 or above T

    >>> float(drift(lambda X: np.cumsum(X, axis=-2), np.ones((4, 2)), np.ones((3, 2)), 2))
    3.0
    """
    require_before(layer, X, before, window)
    T, Y = X.shape[-2], layer(X)
    after = layer(np.concatenate([before, X], axis=-2))[..., -T:, :]
    return np.abs(after - Y)[..., window - 1 :, :].max()


def in_chunks(step, X, cache, sizes):
    """Let a step process a sequence in chunks, each with the cache that the one before returned.

    Built in chapter 23.

    Parameters
    ----------
    step : function from rows and a cache to (rows, cache)
    X : (..., T, d_model)
    cache : what the first chunk is given
    sizes : numbers of tokens, with the sum T

    Returns
    -------
    Y : (..., T, d_model), the rows of all chunks

    Raises
    ------
    TypeError : no function, X no array of numbers
    ShapeError : chunks that are no T together

    >>> in_chunks(lambda X, cache: (X, cache), np.ones((5, 2)), None, (3, 1, 1)).shape
    (5, 2)
    """
    require_chunks(step, X, sizes)
    rows, start = [], 0
    for size in sizes:
        Y, cache = step(X[..., start : start + size, :], cache)
        rows.append(Y)
        start += size
    return np.concatenate(rows, axis=-2)


def require_function(name, function):
    """Require something that can be called.

    Raises
    ------
    TypeError : it cannot
    """
    if not callable(function):
        raise TypeError(
            f"{name} is a {type(function).__name__}; expected a function. Give the function "
            f"itself, such as lambda X: attention(X, params)[0], and not its result."
        )


def require_sequences(layer, X, other):
    """Require a layer and two finite sequences of one shape, of two tokens at least.

    Raises
    ------
    TypeError : no function, no arrays of numbers
    ShapeError : sequences of different shapes, or of one token
    ValueError : NaN or infinity
    """
    require_function("layer", layer)
    for name, rows in (("X", X), ("other", other)):
        require_shape(name, rows, "... T d_model")
        require_finite(name, rows)
    if X.shape != other.shape or X.shape[-2] < 2:
        raise ShapeError(
            f"X has shape {X.shape} and other {other.shape}; expected one shape, with two tokens "
            f"at least, since a leak goes from a token to one before it. Give longer ones."
        )


def require_direction(loss, array, along):
    """Require a loss, and a direction of the array's shape.

    Raises
    ------
    TypeError : no function, no arrays of numbers
    ShapeError : a direction of another shape
    ValueError : NaN or infinity
    """
    require_function("loss", loss)
    for name, entries in (("array", array), ("along", along)):
        require_array(name, entries)
        require_finite(name, entries)
    if array.shape != along.shape:
        raise ShapeError(
            f"along has shape {along.shape}; expected {array.shape}, a number for each entry of "
            f"the array. Sample it: rng.standard_normal(array.shape)."
        )


def require_before(layer, X, before, window):
    """Require a layer, two sequences of one width and batch, and a window within the second.

    Raises
    ------
    TypeError : no function, no arrays of numbers, a window that is no whole number
    ShapeError : sequences of other widths or batches
    ValueError : NaN or infinity, a window below 1 or above T
    """
    require_function("layer", layer)
    for name, rows in (("X", X), ("before", before)):
        require_shape(name, rows, "... T d_model")
        require_finite(name, rows)
    if X.shape[:-2] + X.shape[-1:] != before.shape[:-2] + before.shape[-1:]:
        raise ShapeError(
            f"X has shape {X.shape} and before {before.shape}; expected them to differ only in the "
            f"number of tokens. Give both one width and one batch."
        )
    require_length("window", window)
    if window > X.shape[-2]:
        raise ValueError(
            f"window={window} and X has {X.shape[-2]} tokens; expected a window within X, or every "
            f"row sees what comes before it. Give a longer X or a smaller window."
        )


def require_chunks(step, X, sizes):
    """Require a step, and chunks that are the whole sequence together.

    Raises
    ------
    TypeError : no function, X no array of numbers
    ShapeError : chunks that are no T together
    """
    require_function("step", step)
    require_shape("X", X, "... T d_model")
    if sum(sizes) != X.shape[-2] or min(sizes, default=0) < 1:
        raise ShapeError(
            f"the chunks {tuple(sizes)} make {sum(sizes)} tokens; expected chunks of 1 at least "
            f"that make {X.shape[-2]}, the tokens of X. Cut it otherwise."
        )
