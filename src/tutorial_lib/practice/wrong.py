"""The parts that wrong functions of several chapters share, and mistakes that return in a whole."""

import math

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.practice.mistake import Mistake, taken_over


def masked(scores, mask, *, fill=-np.inf, axis=-1):
    """Weights along any axis, of scores whose hidden entries are filled with any number."""
    if mask is None:
        return softmax(scores, axis=axis)
    filled = np.where(mask, scores, fill)
    top = filled.max(axis=axis, keepdims=True)
    positive = np.exp(filled - np.where(np.isfinite(top), top, 0))
    total = positive.sum(axis=axis, keepdims=True)
    return positive / np.where(total > 0, total, 1)


def _mask_after(scores, mask):
    return softmax(scores) if mask is None else softmax(scores) * mask


def _nan_in_empty_row(scores, mask):
    filled = scores if mask is None else np.where(mask, scores, -np.inf)
    positive = np.exp(filled - filled.max(axis=-1, keepdims=True))
    return positive / positive.sum(axis=-1, keepdims=True)


def _hide_diagonal(mask):
    return None if mask is None else mask & ~np.eye(*mask.shape[-2:], dtype=bool)


def _weights(name, says, mend, function):
    return Mistake(name, says, mend, lambda scores, *, mask=None: function(scores, mask))


ATTENTION_WEIGHTS = (
    _weights(
        "softmax_over_queries",
        "the softmax runs over the queries: columns sum to 1 instead of rows",
        "Sum over the keys, axis=-1: each query shares out its attention.",
        lambda scores, mask: masked(scores, mask, axis=-2),
    ),
    _weights(
        "mask_ignored",
        "the mask is not used",
        "Put -inf where the mask is False, before the softmax.",
        lambda scores, mask: softmax(scores),
    ),
    _weights(
        "mask_upside_down",
        "the mask is upside down: True is taken for hidden",
        "True = may look: keep the scores where the mask is True.",
        lambda scores, mask: masked(scores, None if mask is None else ~mask),
    ),
    _weights(
        "mask_hides_the_diagonal",
        "the diagonal is hidden: no query may look at its own place",
        "Use the mask as it is given.",
        lambda scores, mask: masked(scores, _hide_diagonal(mask)),
    ),
    _weights(
        "mask_after_softmax",
        "the mask comes after the softmax, so rows no longer sum to 1",
        "Put -inf into the scores first; then the rest of the row shares out the whole 1.",
        _mask_after,
    ),
    _weights(
        "mask_filled_with_0",
        "hidden scores are filled with 0 instead of -inf, so hidden keys still get weight",
        "A score of 0 is an ordinary score: e^0 = 1. Fill with -np.inf.",
        lambda scores, mask: masked(scores, mask, fill=0.0),
    ),
    _weights(
        "empty_row_nan",
        "a query with nothing to look at gets NaN",
        "Give such a row zeros: find it with mask.any(axis=-1, keepdims=True).",
        _nan_in_empty_row,
    ),
    _weights(
        "empty_row_uniform",
        "a query with nothing to look at gets the mean of all keys",
        "A fill of -1e9 does that. Give such a row zeros.",
        lambda scores, mask: masked(scores, mask, fill=-1e9),
    ),
)


def _scores(Q, K, scale=None):
    return Q @ np.swapaxes(K, -1, -2) / (math.sqrt(Q.shape[-1]) if scale is None else scale)


def attend_scaled(Q, K, V, mask, scale):
    """Attention whose scores are divided by any scale."""
    return masked(_scores(Q, K, scale), mask) @ V


def _attend_swapped(Q, K, V, mask):
    scores = K @ np.swapaxes(Q, -1, -2) / math.sqrt(Q.shape[-1])
    if scores.shape[-1] == V.shape[-2]:
        return masked(scores, mask) @ V
    return np.swapaxes(masked(scores, None if mask is None else mask.swapaxes(-1, -2)), -1, -2) @ V


def _attention(name, says, mend, function):
    return Mistake(name, says, mend, lambda Q, K, V, *, mask=None: function(Q, K, V, mask))


def _with_weights(function):
    return lambda Q, K, V, *, mask=None: function(_scores(Q, K), mask=mask) @ V


SCALED_DOT_PRODUCT_ATTENTION = (
    _attention(
        "no_scale",
        "the scores are not divided by the square root of d_k",
        "Divide Q Kᵀ by math.sqrt(d_k), or the softmax sharpens as heads get wider.",
        lambda Q, K, V, mask: attend_scaled(Q, K, V, mask, 1.0),
    ),
    _attention(
        "scale_d_k",
        "the scores are divided by d_k instead of its square root",
        "The spread of a dot product grows as the square root of d_k: divide by math.sqrt(d_k).",
        lambda Q, K, V, mask: attend_scaled(Q, K, V, mask, Q.shape[-1]),
    ),
    _attention(
        "scale_d_model",
        "the scores are divided by the square root of d_model instead of d_k",
        "One head's dot product adds up d_k products: divide by math.sqrt(d_k).",
        lambda Q, K, V, mask: attend_scaled(Q, K, V, mask, math.sqrt(Q.shape[-1] * Q.shape[-3])),
    ),
    _attention(
        "q_k_swapped",
        "queries and keys have changed places",
        "Rows of the scores are queries: Q @ Kᵀ, not K @ Qᵀ.",
        _attend_swapped,
    ),
    *(taken_over(mistake, _with_weights) for mistake in ATTENTION_WEIGHTS),
)


def _split_reshape(X, n_heads):
    *batch, T, width = X.shape
    return X.reshape(*batch, n_heads, T, width // n_heads)


def _split_interleaved(X, n_heads):
    *batch, T, width = X.shape
    return np.moveaxis(X.reshape(*batch, T, width // n_heads, n_heads), -1, -3)


SPLIT_HEADS = (
    Mistake(
        "reshape_without_transpose",
        "reshape alone: the shape is right, but head 0 holds the features of other tokens",
        "Cut the width, (..., T, H, d), and then swap the head and token axes.",
        _split_reshape,
    ),
    Mistake(
        "interleaved",
        "the heads are interleaved: head 0 takes every H-th column",
        "Head 0 takes the first d columns: reshape to (..., T, H, d), not (..., T, d, H).",
        _split_interleaved,
    ),
    Mistake(
        "no_transpose",
        "the head axis stands behind the token axis",
        "Swap the head and token axes at the end: (..., H, T, d).",
        lambda X, n_heads: np.swapaxes(split_heads(X, n_heads), -3, -2),
    ),
    Mistake(
        "features_first",
        "each head is transposed: features are rows, tokens are columns",
        "Swap the head and token axes, not the last two.",
        lambda X, n_heads: np.swapaxes(split_heads(X, n_heads), -2, -1),
    ),
)


def _concat_interleaved(heads):
    *batch, H, T, d_v = heads.shape
    return np.moveaxis(heads, -3, -1).reshape(*batch, T, H * d_v)


def _concat_reshape(heads):
    *batch, H, T, d_v = heads.shape
    return heads.reshape(*batch, T, H * d_v)


CONCAT_HEADS = (
    Mistake(
        "concat_without_transpose",
        "the heads are reshaped without a transpose, so a row mixes tokens",
        "Swap the head and token axes first, then merge the last two.",
        _concat_reshape,
    ),
    Mistake(
        "interleaved",
        "the heads are interleaved: a row takes one feature of each head in turn",
        "Head 0 fills the first d_v columns, head 1 the next.",
        _concat_interleaved,
    ),
    Mistake(
        "heads_reversed",
        "the heads lie in reverse order",
        "Head 0 stands first.",
        lambda heads: concat_heads(heads[..., ::-1, :, :]),
    ),
    Mistake(
        "summed",
        "the heads are added instead of laid side by side",
        "Concatenation keeps every number: the width is H*d_v.",
        lambda heads: heads.sum(axis=-3),
    ),
    Mistake(
        "along_tokens",
        "the heads are stacked along the tokens",
        "Lay them along the last axis: the width is H*d_v, the length stays T.",
        lambda heads: heads.reshape(*heads.shape[:-3], -1, heads.shape[-1]),
    ),
    Mistake(
        "sentences_side_by_side",
        "it walks along the first axis, which in a batch counts sentences, not heads",
        "Count axes from the end: the heads are axis -3.",
        lambda heads: np.concatenate(list(heads), axis=-1),
    ),
)
