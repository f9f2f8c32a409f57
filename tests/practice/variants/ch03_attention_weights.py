"""Right answers of chapter 03 in other ways."""

import math

import numpy as np


def softmax_by_logarithm(scores, axis=-1):
    top = scores.max(axis, keepdims=True)
    return np.exp(scores - (top + np.log(np.exp(scores - top).sum(axis, keepdims=True))))


def weights_by_adding(scores, *, mask=None):
    added = scores if mask is None else scores + np.where(mask, 0, -1e30)
    weights = softmax_by_logarithm(added)
    return weights if mask is None else weights * mask


def weights_by_nan(scores, *, mask=None):
    hidden = scores if mask is None else np.where(mask, scores, -np.inf)
    positive = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return np.nan_to_num(positive / positive.sum(axis=-1, keepdims=True))


def attention_scaled_before(Q, K, V, *, mask=None):
    scaled = Q / math.sqrt(Q.shape[-1])
    return weights_by_adding(scaled @ np.swapaxes(K, -1, -2), mask=mask) @ V


def summed_axis_by_errors(weights):
    errors = [abs(weights.sum(axis=axis) - 1).max() for axis in range(weights.ndim)]
    return np.argmin(errors) - weights.ndim


VARIANTS = [
    ("attention_weights", "NaN to zero", weights_by_nan),
    (
        "causal_padding_mask",
        "product",
        lambda is_token: np.tril(np.ones((is_token.shape[1],) * 2, bool)) * is_token[:, None, None],
    ),
    ("summed_axis", "np.int64", summed_axis_by_errors),
    (
        "log_softmax",
        "logaddexp",
        lambda scores: scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True),
    ),
]
