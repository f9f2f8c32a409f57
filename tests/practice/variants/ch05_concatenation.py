"""Right answers of chapter 05 in other ways, and too narrow ones."""

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch03_attention_weights import (
    attention_scaled_before,
)


def concat_of_a_batch(heads):
    B, H, T, d_v = heads.shape
    return heads.swapaxes(1, 2).reshape(B, T, H * d_v)


def concat_with_and_without_batch(heads):
    if heads.ndim == 3:
        return np.concatenate(list(heads), axis=-1)
    return np.stack([np.concatenate(list(sentence), axis=-1) for sentence in heads])


def tokens_first_of_a_batch(heads):
    B, T, H, d_v = heads.shape
    return heads.reshape(B, T, H * d_v)


def tokens_first_with_and_without_batch(heads):
    if heads.ndim == 3:
        return np.stack([row.ravel() for row in heads])
    return np.stack([[row.ravel() for row in sentence] for sentence in heads])


def round_trip_at(part):
    """A round trip that looks at some heads and rows of (..., H, T), or at some sentences."""

    def passes(split, concat, X, n_heads):
        tokens = np.arange(X[..., 0].size).reshape(X.shape[:-1])
        marks = split(np.broadcast_to(tokens[..., None], X.shape), n_heads)
        right = (marks == tokens[..., None, :, None]).all(axis=-1)
        first = right[(0,) * (right.ndim - 2)]
        seen = first if part == "first sentence" else right[part]
        return bool(seen.all()) and np.array_equal(concat(split(X, n_heads)), X)

    return passes


def round_trip_by_changes(split, concat, X, n_heads):
    there, fine = split(X, n_heads).copy(), np.array_equal(concat(split(X, n_heads)), X)
    for *sentence, t in np.ndindex(X.shape[:-1]):
        changed = X.copy()
        changed[*sentence, t] += 1
        moved = (split(changed, n_heads) != there).any(axis=-1)
        fine = fine and moved[*sentence, :, t].all() and moved.sum() == n_heads
    return bool(fine)


def packed_by_transpose(packed, n_heads):
    B, T, width = packed.shape
    Q, K, V = packed.reshape(B, T, 3, n_heads, -1).transpose(2, 0, 3, 1, 4)
    mixed = attention_scaled_before(Q, K, V)
    return mixed.transpose(0, 2, 1, 3).reshape(B, T, width // 3)


VARIANTS = [
    (
        "concat_heads",
        "list of heads",
        lambda heads: np.concatenate(list(np.moveaxis(heads, -3, 0)), axis=-1),
    ),
    (
        "concat_tokens_first",
        "swapped twice",
        lambda heads: tl.concat_heads(np.swapaxes(heads, -3, -2)),
    ),
    ("passes_round_trip", "one token changed at a time", round_trip_by_changes),
    ("attend_packed", "one transpose", packed_by_transpose),
]


NARROW = [
    ("concat_heads", "a batch alone", concat_of_a_batch),
    ("concat_heads", "no batch or one", concat_with_and_without_batch),
    ("concat_tokens_first", "a batch alone", tokens_first_of_a_batch),
    ("concat_tokens_first", "no batch or one", tokens_first_with_and_without_batch),
    ("passes_round_trip", "head 0 alone", round_trip_at(np.s_[..., 0, :])),
    ("passes_round_trip", "row 0 alone", round_trip_at(np.s_[..., 0])),
    ("passes_round_trip", "the last row alone", round_trip_at(np.s_[..., -1])),
    ("passes_round_trip", "the first sentence alone", round_trip_at("first sentence")),
]
