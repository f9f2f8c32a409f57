"""Q, K → scores → weights → the heads' outputs."""

import math

import numpy as np

from tutorial_lib.contract import checked
from tutorial_lib.errors import require_finite_row_maxima


@checked
def attention_scores(Q: "any ... T d_k", K: "any ... S d_k") -> "... T S":
    """Score every query against every key: their dot product, divided by the root of d_k.

    Built in chapter 03. H stands among the leading axes. Whether all entries are finite is checked
    by `scaled_dot_product_attention` and `trace`, not here.

    Source: Vaswani et al. (2017), section 3.2.1.

    >>> attention_scores(np.ones((3, 5, 4)), np.ones((3, 6, 4))).shape
    (3, 5, 6)
    """
    d_k = Q.shape[-1]
    return Q @ np.swapaxes(K, -1, -2) / math.sqrt(d_k)  # (..., H, T, S)


@checked
def softmax(scores: "any ...", axis: "integer" = -1) -> "...":
    """Turn scores into positive weights that sum to 1 along an axis; -inf gives weight 0.

    Built in chapter 03.

    Raises
    ------
    ShapeError : no such axis, or an empty one
    ValueError : a row with NaN or +inf, or with nothing but -inf

    >>> softmax(np.zeros((3, 5, 6))).shape
    (3, 5, 6)
    """
    require_finite_row_maxima(scores, axis)
    scores = scores - scores.max(axis=axis, keepdims=True)  # same weights, exp cannot overflow
    positive = np.exp(scores)
    return positive / positive.sum(axis=axis, keepdims=True)


@checked
def causal_mask(T: "length", S: "length" = None) -> "mask T S":
    """Let query t look at every key that is not later than itself: booleans, True = may look.

    Built in chapter 03. The mask is aligned at the bottom right: when S > T, the T queries are the
    last T of S tokens. S is T unless given.

    >>> causal_mask(5, 6).shape
    (5, 6)
    """
    S = T if S is None else S
    return np.tril(np.ones((T, S), dtype=bool), k=S - T)


@checked
def attention_weights(scores: "any ... T S", *, mask: "mask ... T S" = None) -> "... T S":
    """Distribute each query's attention over the keys it may look at.

    Built in chapter 03. A row of weights sums to 1, or is 0 throughout where it is fully masked.

    Raises
    ------
    ValueError : NaN or +inf in scores, or a row of -inf

    >>> attention_weights(np.zeros((3, 5, 6)), mask=causal_mask(5, 6)).shape
    (3, 5, 6)
    """
    if mask is None:
        return softmax(scores)
    has_key = mask.any(axis=-1, keepdims=True)  # (..., T, 1), False: fully masked
    weights = softmax(np.where(mask | ~has_key, scores, -np.inf))
    return weights * has_key


@checked
def scaled_dot_product_attention(
    Q: "... T d_k", K: "... S d_k", V: "... S d_v", *, mask: "mask ... T S" = None
) -> "... T d_v":
    """Score every query against every key, and mix the values by the weights.

    Built in chapter 03. H stands among the leading axes.

    Raises
    ------
    ValueError : scores that overflow

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.

    >>> scaled_dot_product_attention(np.ones((5, 4)), np.ones((6, 4)), np.ones((6, 7))).shape
    (5, 7)
    """
    scores = attention_scores(Q, K)  # (..., H, T, S)
    return attention_weights(scores, mask=mask) @ V  # (..., H, T, d_v)
