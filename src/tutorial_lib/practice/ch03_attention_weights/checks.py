"""Checks for chapter 03."""

import numpy as np

from tutorial_lib import attention
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_K, D_V, WIDE, B, H, S, T, masks, normal

MISTAKES, check = room(__file__)


def check_softmax(function):
    """Check `softmax(scores, axis=-1)`: rows that sum to 1. Prints an account."""
    scores = 3 * normal(0, H, T, S)
    fine = np.round(64 * normal(1, T, S)) / 64  # single precision holds these exactly
    far = fine + np.array([0, 1e4, -1e4, 0, 1e4])[:, None]
    apart = fine + 1e4 * (np.arange(S) == 5)
    cases = (
        Case("ordinary scores", {"scores": scores}),
        Case("along another axis", {"scores": scores}, {"axis": -2}),
        Case("scores around ten thousand", {"scores": far}),
        Case("scores ten thousand apart", {"scores": apart}),
    )
    check("softmax", function, attention.softmax, cases)


def check_causal_mask(function):
    """Check `causal_mask(T, S=None)` → (T, S) booleans. Prints an account."""
    cases = (
        Case("5 tokens", {"T": T}),
        Case("5 queries, 7 keys", {"T": T, "S": S}),
        Case("1 query, 7 keys", {"T": 1, "S": S}),
    )
    check("causal_mask", function, attention.causal_mask, cases)


def check_attention_weights(function):
    """Check `attention_weights(scores, *, mask=None)` → (..., H, T, S). Prints an account."""
    scores, square = 2 * normal(3, B, H, T, S), 2 * normal(4, H, T, T)
    cases = (
        Case("no mask", {"scores": scores}),
        *(Case(label, {"scores": scores}, {"mask": mask}) for label, mask in masks().items()),
        Case("without a batch axis", {"scores": square}, {"mask": attention.causal_mask(T)}),
    )
    check("attention_weights", function, attention.attention_weights, cases)


def check_scaled_dot_product_attention(function):
    """Check `scaled_dot_product_attention(Q, K, V, *, mask=None)` → heads. Prints an account."""
    Q, K = 2 * normal(5, B, H, T, D_K), normal(6, B, H, S, D_K)
    inputs = {"Q": Q, "K": K, "V": normal(7, B, H, S, D_V)}
    wide = {"Q": normal(8, H, T, WIDE), "K": normal(9, H, S, WIDE), "V": normal(10, H, S, D_V)}
    cases = (
        Case("5 queries, 7 keys", inputs),
        *(Case(label, inputs, {"mask": mask}) for label, mask in masks().items()),
        Case("wider heads, no batch axis", wide),
    )
    reference = attention.scaled_dot_product_attention
    check("scaled_dot_product_attention", function, reference, cases)


def _log_softmax(scores):
    scores = scores - scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def check_log_softmax(function):
    """Check `log_softmax(scores)`, exercise of chapter 03. Prints an account."""
    scores = 3 * normal(0, H, T, S)
    far = normal(1, T, S) * np.array([1, 1e4, 1, 1e4, 1])[:, None]
    cases = (
        Case("ordinary scores", {"scores": scores}),
        Case("scores of ten thousand", {"scores": far}),
    )
    check("log_softmax", function, _log_softmax, cases)


def _causal_padding_mask(is_token):
    return attention.causal_mask(is_token.shape[-1]) & is_token[:, None, None, :]


def check_causal_padding_mask(function):
    """Check `causal_padding_mask(is_token)`, exercise of chapter 03. Prints an account."""
    right = np.arange(T) < np.array([5, 3])[:, None]
    left = np.arange(S) >= np.array([0, 2, 4])[:, None]
    cases = (
        Case("padding on the right", {"is_token": right}),
        Case("padding on the left", {"is_token": left}),
    )
    check("causal_padding_mask", function, _causal_padding_mask, cases)


def _summed_axis(weights):
    axes = range(-1, -weights.ndim - 1, -1)
    return next(axis for axis in axes if np.allclose(weights.sum(axis=axis), 1))


def check_summed_axis(function):
    """Check `summed_axis(weights)`, exercise of chapter 03. Prints an account."""
    scores = normal(14, B, H, T, S)
    rest = attention.softmax(normal(15, T, T), axis=-2) * (1 - 1 / T)
    first_row_too = np.concatenate([np.full((1, T), 1 / T), rest])  # (S, T): row 0 sums to 1 too
    cases = (
        Case("over the keys", {"weights": attention.softmax(scores, axis=-1)}),
        Case("over the queries", {"weights": attention.softmax(scores, axis=-2)}),
        Case("over the heads", {"weights": attention.softmax(scores, axis=-3)}),
        Case("without a batch axis", {"weights": attention.softmax(scores[0], axis=-1)}),
        Case("one row that sums to 1 by chance", {"weights": first_row_too}),
    )
    check("summed_axis", function, _summed_axis, cases)
