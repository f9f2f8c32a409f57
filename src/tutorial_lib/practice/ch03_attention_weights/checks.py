"""Checks for chapter 03."""

import numpy as np

from tutorial_lib import attention
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_V, WIDE, B, H, S, T, masks, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(attention.softmax)
def check_softmax():
    scores = 3 * normal(0, H, T, S)
    fine = np.round(64 * normal(1, T, S)) / 64  # single precision holds these exactly
    far = fine + np.array([0, 1e4, -1e4, 0, 1e4])[:, None]
    apart = fine + 1e4 * (np.arange(S) == 5)
    yield "ordinary scores", {"scores": scores}
    yield "along another axis", {"scores": scores}, {"axis": -2}
    yield "scores around ten thousand", {"scores": far}
    yield "scores ten thousand apart", {"scores": apart}


@cases_of(attention.causal_mask)
def check_causal_mask():
    yield "5 tokens", {"T": T}
    yield "5 queries, 7 keys", {"T": T, "S": S}
    yield "1 query, 7 keys", {"T": 1, "S": S}


@cases_of(attention.attention_weights)
def check_attention_weights():
    scores, square = 2 * normal(3, B, H, T, S), 2 * normal(4, H, T, T)
    yield "no mask", {"scores": scores}
    yield from ((label, {"scores": scores}, {"mask": mask}) for label, mask in masks().items())
    yield "without a batch axis", {"scores": square}, {"mask": attention.causal_mask(T)}


@cases_of(attention.scaled_dot_product_attention)
def check_scaled_dot_product_attention():
    Q, K = 2 * normal(5, B, H, T, D_K), normal(6, B, H, S, D_K)
    inputs = {"Q": Q, "K": K, "V": normal(7, B, H, S, D_V)}
    wide = {"Q": normal(8, H, T, WIDE), "K": normal(9, H, S, WIDE), "V": normal(10, H, S, D_V)}
    yield "5 queries, 7 keys", inputs
    yield from ((label, inputs, {"mask": mask}) for label, mask in masks().items())
    yield "wider heads, no batch axis", wide


def _log_softmax(scores):
    """Return the logarithm of the softmax of each row, for scores of any size."""
    scores = scores - scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


@cases_of(_log_softmax)
def check_log_softmax():
    scores = 3 * normal(0, H, T, S)
    far = normal(1, T, S) * np.array([1, 1e4, 1, 1e4, 1])[:, None]
    yield "ordinary scores", {"scores": scores}
    yield "scores of ten thousand", {"scores": far}


def _causal_padding_mask(is_token):
    """Let each query attend to the real tokens that are not later than itself."""
    return attention.causal_mask(is_token.shape[-1]) & is_token[:, None, None, :]


@cases_of(_causal_padding_mask)
def check_causal_padding_mask():
    right = np.arange(T) < np.array([5, 3])[:, None]
    left = np.arange(S) >= np.array([0, 2, 4])[:, None]
    yield "padding on the right", {"is_token": right}
    yield "padding on the left", {"is_token": left}


def _summed_axis(weights):
    axes = range(-1, -weights.ndim - 1, -1)
    return next(axis for axis in axes if np.allclose(weights.sum(axis=axis), 1))


@cases_of(_summed_axis)
def check_summed_axis():
    scores = normal(14, B, H, T, S)
    rest = attention.softmax(normal(15, T, T), axis=-2) * (1 - 1 / T)
    first_row_too = np.concatenate([np.full((1, T), 1 / T), rest])  # (S, T): row 0 sums to 1 too
    yield "over the keys", {"weights": attention.softmax(scores, axis=-1)}
    yield "over the queries", {"weights": attention.softmax(scores, axis=-2)}
    yield "over the heads", {"weights": attention.softmax(scores, axis=-3)}
    yield "without a batch axis", {"weights": attention.softmax(scores[0], axis=-1)}
    yield "one row that sums to 1 by chance", {"weights": first_row_too}
