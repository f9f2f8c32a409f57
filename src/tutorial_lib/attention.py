"""Q, K → scores → weights → the heads' outputs."""

import math

import numpy as np

from tutorial_lib.errors import (
    require_broadcast,
    require_length,
    require_mask,
    require_operand,
    require_shape,
    require_softmax_rows,
    require_wide_dtype,
)


def attention_scores(Q, K):
    """Score every query against every key: their dot product, divided by the root of d_k.

    Built in chapter 03. Leading axes broadcast. Whether all entries are finite is checked by
    `scaled_dot_product_attention` and `trace`, not here.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K : (..., H, S, d_k)

    Returns
    -------
    scores : (..., H, T, S)

    Raises
    ------
    TypeError : no arrays of numbers, or integers other than int64
    ShapeError : widths that differ, an empty axis, leading axes that do not broadcast

    Source: Vaswani et al. (2017), section 3.2.1.

    >>> attention_scores(np.ones((3, 5, 4)), np.ones((3, 6, 4))).shape
    (3, 5, 6)
    """
    require_shape("Q", Q, "... T d_k")
    require_shape("K", K, "... S d_k", d_k=Q.shape[-1])
    require_broadcast(Q=Q, K=K)
    require_wide_dtype("Q", Q)
    require_wide_dtype("K", K)
    d_k = Q.shape[-1]
    return Q @ np.swapaxes(K, -1, -2) / math.sqrt(d_k)  # (..., H, T, S)


def softmax(scores, axis=-1):
    """Turn scores into positive weights that sum to 1 along an axis.

    Built in chapter 03.

    Parameters
    ----------
    scores : (..., T, S), or any array; -inf gives weight 0
    axis : along which the weights sum to 1

    Returns
    -------
    weights : the shape of scores

    Raises
    ------
    TypeError : no array of numbers
    ShapeError : no such axis, or an empty one
    ValueError : a row with NaN or +inf, or with nothing but -inf

    >>> softmax(np.zeros((3, 5, 6))).shape
    (3, 5, 6)
    """
    require_softmax_rows(scores, axis)
    scores = scores - scores.max(axis=axis, keepdims=True)  # same weights, exp cannot overflow
    positive = np.exp(scores)
    return positive / positive.sum(axis=axis, keepdims=True)


def causal_mask(T, S=None):
    """Let query t look at every key that is not later than itself.

    Built in chapter 03. The mask is aligned at the bottom right: when S > T, the T queries are the
    last T of S tokens.

    Parameters
    ----------
    T : number of queries
    S : number of keys; T unless given

    Returns
    -------
    mask : (T, S) booleans, True = may look

    Raises
    ------
    TypeError, ValueError : a length that is not a positive whole number

    >>> causal_mask(5, 6).shape
    (5, 6)
    """
    require_length("T", T)
    require_length("S", T if S is None else S)
    S = T if S is None else S
    return np.tril(np.ones((T, S), dtype=bool), k=S - T)


def attention_weights(scores, *, mask=None):
    """Distribute each query's attention over the keys it may look at.

    Built in chapter 03.

    Parameters
    ----------
    scores : (..., H, T, S)
    mask : booleans that broadcast to scores, True = may look; None lets all look

    Returns
    -------
    weights : (..., H, T, S); a row sums to 1, or is 0 throughout where it is fully masked

    Raises
    ------
    TypeError : no array of numbers, or a mask of anything but booleans
    ShapeError : fewer than two axes, an empty axis, or a mask that does not broadcast
    ValueError : NaN or +inf in scores, or a row of -inf

    >>> attention_weights(np.zeros((3, 5, 6)), mask=causal_mask(5, 6)).shape
    (3, 5, 6)
    """
    require_shape("scores", scores, "... T S")
    require_mask(mask, scores.shape)
    if mask is None:
        return softmax(scores)
    has_key = mask.any(axis=-1, keepdims=True)  # (..., T, 1), False: fully masked
    weights = softmax(np.where(mask | ~has_key, scores, -np.inf))
    return weights * has_key


def scaled_dot_product_attention(Q, K, V, *, mask=None):
    """Score every query against every key, and mix the values by the weights.

    Built in chapter 03.

    Parameters
    ----------
    Q : (..., H, T, d_k)
    K : (..., H, S, d_k)
    V : (..., H, S, d_v)
    mask : booleans that broadcast to (..., H, T, S), True = may look; None lets all look

    Returns
    -------
    heads : (..., H, T, d_v)

    Raises
    ------
    TypeError : no arrays of numbers, or a mask of anything but booleans
    ShapeError : widths or lengths that differ, an empty axis, a mask that does not broadcast
    ValueError : NaN or infinity in Q, K or V, or scores that overflow

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.

    >>> scaled_dot_product_attention(np.ones((5, 4)), np.ones((6, 4)), np.ones((6, 7))).shape
    (5, 7)
    """
    require_heads(Q, K, V, mask)
    scores = attention_scores(Q, K)  # (..., H, T, S)
    return attention_weights(scores, mask=mask) @ V  # (..., H, T, d_v)


def require_heads(Q, K, V, mask):
    """Require finite queries, keys and values that fit together, and a mask that fits them.

    Raises
    ------
    TypeError : no arrays of numbers, or a mask of anything but booleans
    ShapeError : widths or lengths that differ, an empty axis, a mask that does not broadcast
    ValueError : NaN or infinity
    """
    require_shape("Q", Q, "... T d_k")
    require_shape("K", K, "... S d_k", d_k=Q.shape[-1])
    require_shape("V", V, "... S d_v", S=K.shape[-2])
    require_broadcast(Q=Q, K=K, V=V)
    for name, array in {"Q": Q, "K": K, "V": V}.items():
        require_operand(name, array)
    batch = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2])
    require_mask(mask, (*batch, Q.shape[-2], K.shape[-2]))
