"""The transformer block: norms before attention and the MLP, sums after them."""

import math

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.projection import Params


@checked
def rms_norm(X: "... d_model") -> "... d_model":
    """Divide each row by the root of the mean of its squares, so that this mean becomes 1.

    Built in chapter 19. The gain of the source, one parameter for each column, is left out. The
    10^-12 keeps a row of zeros at zeros.

    Raises
    ------
    TypeError : half precision
    ValueError : numbers whose squares overflow

    Source: Zhang and Sennrich (2019).

    >>> rms_norm(np.array([[3.0, 3.0], [0.0, 0.0]])).round(6).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    require_finite_squares(X)
    return X / np.sqrt((X**2).mean(axis=-1, keepdims=True) + 1e-12)


@checked
def mlp(X: "... d_model", W_1: "d_model d_feed", W_2: "d_feed d_model") -> "... d_model":
    """Multiply each row by two matrices, with a ReLU between: zeros replace what is negative.

    Built in chapter 19.

    Source: Vaswani et al. (2017), section 3.3, without biases.

    >>> mlp(np.ones((5, 12)), np.ones((12, 20)), np.ones((20, 12))).shape
    (5, 12)
    """
    return np.maximum(X @ W_1, 0) @ W_2


@checked
def block(
    X: "... T d_model",
    params: Params,
    W_1: "d_model d_feed",
    W_2: "d_feed d_model",
    *,
    mask: "mask ... H T T" = None,
) -> "... T d_model":
    """Add the output of attention to the residual stream, then that of the MLP.

    Built in chapter 19. Both read the stream X through a norm: pre-norm.

    Raises
    ------
    TypeError, ValueError : as `multi_head_attention` and `rms_norm`

    Source: Xiong et al. (2020), for where the norms are; Zhang and Sennrich (2019), for the norm.

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> block(np.ones((5, 12)), params, np.ones((12, 20)), np.ones((20, 12))).shape
    (5, 12)
    """
    X = X + multi_head_attention(rms_norm(X), params, mask=mask)
    return X + mlp(rms_norm(X), W_1, W_2)


def require_finite_squares(X):
    """Require rows whose squares, and sums of squares, do not overflow."""
    require(
        X.dtype != np.float16,
        TypeError,
        "X is an array of float16; expected float32 or float64, since the square of 256 "
        "overflows float16. Convert it first: X.astype(float).",
    )
    type_info = np.iinfo if X.dtype.kind == "i" else np.finfo
    limit = math.sqrt(float(type_info(X.dtype).max) / X.shape[-1])
    largest = max(float(X.max(initial=0)), -float(X.min(initial=0)))  # 0 where a batch is empty
    require(
        largest < limit,
        ValueError,
        f"the largest number of X is {largest:.3g}; expected less than {limit:.3g}, or the "
        f"sum of its row's squares overflows {X.dtype}. Make X smaller.",
    )
