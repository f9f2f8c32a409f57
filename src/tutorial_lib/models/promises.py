"""What a layer promises, as functions that test any layer: leak, gradient, drift, chunks."""

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.errors import ShapeError


@checked
def leak(layer: callable, X: "... T d_model", other: "... T d_model") -> float:
    """Return how much a row changes, at most, when tokens after it are exchanged for others.

    Built in chapter 23. A causal layer gives 0. A layer that gives NaN gives NaN. `layer` is a
    function from (..., T, d_model) to as many rows; `other` is a sequence of the shape of X.

    Raises
    ------
    ShapeError : sequences of different shapes, or of one token

    >>> float(leak(lambda X: X + X.mean(axis=-2, keepdims=True), np.zeros((4, 2)), np.ones((4, 2))))
    0.75
    """
    require(
        X.shape == other.shape and X.shape[-2] > 1,
        ShapeError,
        f"X has shape {X.shape} and other {other.shape}; expected one shape, with two tokens at "
        f"least, since a leak goes from a token to one before it. Give longer ones.",
    )
    Y, changes = layer(X), []
    for s in range(1, X.shape[-2]):
        mixed = np.concatenate([X[..., :s, :], other[..., s:, :]], axis=-2)
        changes.append(np.abs(layer(mixed) - Y)[..., :s, :].max())
    return np.max(changes)


@checked
def directional_derivative(loss: callable, array: "...", along: "...", step: float = 1e-5) -> float:
    """Return how fast a loss rises along one direction of an array.

    Built in chapter 23. It is the sum of `gradient * along`: two calls check all entries together,
    where chapter 08 needs two calls for each. `loss` is a function from an array to a number;
    `along` is a direction of the same shape; `step` is how far to go to each side.

    Raises
    ------
    ShapeError : a direction of another shape

    >>> ones = np.ones((2, 3))
    >>> round(float(directional_derivative(lambda X: (X**2).sum(), ones, ones)), 6)
    12.0
    """
    require(
        array.shape == along.shape,
        ShapeError,
        f"along has shape {along.shape}; expected {array.shape}, a number for each entry of the "
        f"array. Sample it: rng.standard_normal(array.shape).",
    )
    return (loss(array + step * along) - loss(array - step * along)) / (2 * step)


@checked
def drift(layer: callable, X: "... T d_model", before: "... S d_model", window: "length") -> float:
    """Return how much rows change when other tokens come before them that they do not see.

    Built in chapter 23. The first window - 1 rows do see some of them, and are left out. `layer` is
    a function from (..., T, d_model), any T, to as many rows, each of which sees `window` keys.

    Raises
    ------
    ShapeError, ValueError : sequences of other batches; a window above T

    >>> float(drift(lambda X: np.cumsum(X, axis=-2), np.ones((4, 2)), np.ones((3, 2)), 2))
    3.0
    """
    require(
        X.shape[:-2] == before.shape[:-2],
        ShapeError,
        f"X has shape {X.shape} and before {before.shape}; expected them to differ only in the "
        f"number of tokens. Give both one batch.",
    )
    require(
        window <= X.shape[-2],
        ValueError,
        f"window={window} and X has {X.shape[-2]} tokens; expected a window within X, or every "
        f"row sees what comes before it. Give a longer X or a smaller window.",
    )
    T, Y = X.shape[-2], layer(X)
    after = layer(np.concatenate([before, X], axis=-2))[..., -T:, :]
    return np.abs(after - Y)[..., window - 1 :, :].max()


@checked
def in_chunks(
    step: callable, X: "raw ... T d_model", cache: object, sizes: list["length"]
) -> "... T d_model":
    """Let a step process a sequence in chunks, each with the cache that the one before returned.

    Built in chapter 23. `step` is a function from rows and a cache to both; the first chunk gets
    `cache`. `sizes` are numbers of tokens.

    Raises
    ------
    ShapeError : chunks that are not T together

    >>> in_chunks(lambda X, cache: (X, cache), np.ones((5, 2)), None, (3, 1, 1)).shape
    (5, 2)
    """
    require(
        sum(sizes) == X.shape[-2],
        ShapeError,
        f"the chunks {tuple(sizes)} make {sum(sizes)} tokens; expected chunks that make "
        f"{X.shape[-2]}, the tokens of X. Cut it otherwise.",
    )
    rows, start = [], 0
    for size in sizes:
        Y, cache = step(X[..., start : start + size, :], cache)
        rows.append(Y)
        start += size
    return np.concatenate(rows, axis=-2)
