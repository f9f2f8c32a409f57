"""The transformer block: norms before attention and the MLP, sums after them."""

import math

import numpy as np

from tutorial_lib.errors import require_operand, require_shape
from tutorial_lib.multihead import multi_head_attention, require_layer_input


def rms_norm(X):
    """Divide each row by the root of the mean of its squares, so that this mean becomes 1.

    Built in chapter 19. The gain of the source, one parameter for each column, is left out. The
    10^-12 keeps a row of zeros at zeros.

    Parameters
    ----------
    X : (..., d_model), each row by itself

    Returns
    -------
    normed : the shape of X

    Raises
    ------
    TypeError : no array of numbers, integers other than int64, half precision
    ShapeError : no axis, or an empty one
    ValueError : NaN, infinity, or numbers whose squares overflow

    Source: Zhang and Sennrich (2019).

    >>> rms_norm(np.array([[3.0, 3.0], [0.0, 0.0]])).round(6).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    require_squares(X)
    return X / np.sqrt((X**2).mean(axis=-1, keepdims=True) + 1e-12)


def mlp(X, W_1, W_2):
    """Multiply each row by two matrices, with a ReLU between: zeros replace what is negative.

    Built in chapter 19. There are no biases.

    Parameters
    ----------
    X : (..., d_model), each row by itself
    W_1 : (d_model, d_feed)
    W_2 : (d_feed, d_model)

    Returns
    -------
    fed : the shape of X

    Raises
    ------
    TypeError : no arrays of numbers, or integers other than int64
    ShapeError : widths that differ, or an empty axis
    ValueError : NaN or infinity

    Source: Vaswani et al. (2017), section 3.3, without biases.

    >>> mlp(np.ones((5, 12)), np.ones((12, 20)), np.ones((20, 12))).shape
    (5, 12)
    """
    require_feed(X, W_1, W_2)
    return np.maximum(X @ W_1, 0) @ W_2


def block(X, params, W_1, W_2, *, mask=None):
    """Add the output of attention to the residual stream, then that of the MLP.

    Built in chapter 19. Both read the stream through a norm: pre-norm.

    Parameters
    ----------
    X : (..., T, d_model), the residual stream
    params : Params
    W_1, W_2 : (d_model, d_feed), (d_feed, d_model)
    mask : booleans that broadcast to (..., H, T, T), True = may attend; None lets all attend

    Returns
    -------
    X : (..., T, d_model), a new array

    Raises
    ------
    TypeError, ShapeError, ValueError : as `multi_head_attention`, `rms_norm` and `mlp`

    Source: Xiong et al. (2020), for where the norms are; Zhang and Sennrich (2019), for the norm.

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> block(np.ones((5, 12)), params, np.ones((12, 20)), np.ones((20, 12))).shape
    (5, 12)
    """
    require_layer_input(X, params, None, mask)
    require_squares(X)
    require_feed(X, W_1, W_2)
    X = X + multi_head_attention(rms_norm(X), params, mask=mask)
    return X + mlp(rms_norm(X), W_1, W_2)


def require_squares(X):
    """Require rows of finite numbers whose squares, and sums of squares, do not overflow.

    Raises
    ------
    TypeError : no array of numbers, integers other than int64, half precision
    ShapeError : no axis, or an empty one
    ValueError : NaN, infinity, or too large a number
    """
    require_shape("X", X, "... d_model")
    require_operand("X", X)
    if X.dtype == np.float16:
        raise TypeError(
            "X is an array of float16; expected float32 or float64, since the square of 256 "
            "overflows float16. Convert it first: X.astype(float)."
        )
    kind = np.iinfo if X.dtype.kind == "i" else np.finfo
    most = math.sqrt(float(kind(X.dtype).max) / X.shape[-1])
    largest = max(float(X.max(initial=0)), -float(X.min(initial=0)))  # 0 where a batch is empty
    if largest >= most:
        raise ValueError(
            f"the largest number of X is {largest:.3g}; expected less than {most:.3g}, or the "
            f"sum of its row's squares overflows {X.dtype}. Make X smaller."
        )


def require_feed(X, W_1, W_2):
    """Require rows of the width of W_1, and a W_2 that returns to it; finite numbers in all.

    Raises
    ------
    TypeError : no arrays of numbers, or integers other than int64
    ShapeError : widths that differ, or an empty axis
    ValueError : NaN or infinity
    """
    require_shape("X", X, "... d_model")
    require_shape("W_1", W_1, "d_model d_feed", d_model=X.shape[-1])
    require_shape("W_2", W_2, "d_feed d_model", d_feed=W_1.shape[-1], d_model=X.shape[-1])
    for name, array in {"X": X, "W_1": W_1, "W_2": W_2}.items():
        require_operand(name, array)
