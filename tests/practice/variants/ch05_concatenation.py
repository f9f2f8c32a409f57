"""Right answers of chapter 05 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch03_attention_weights import (
    attention_scaled_before,
)


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
        "concat_tokens_first",
        "swapped twice",
        lambda heads: tl.concat_heads(np.swapaxes(heads, -3, -2)),
    ),
    ("passes_round_trip", "one token changed at a time", round_trip_by_changes),
    ("attend_packed", "one transpose", packed_by_transpose),
]


NARROW = [
    ("concat_heads", "a batch alone", "pieces =", "assert len(batch) == 1\npieces ="),
    ("concat_heads", "no batch or one", "pieces =", "assert len(batch) < 2\npieces ="),
    ("concat_tokens_first", "a batch alone", "return", "assert len(batch) == 1\nreturn"),
    ("concat_tokens_first", "no batch or one", "return", "assert len(batch) < 2\nreturn"),
    ("passes_round_trip", "head 0 alone", ".all()", "[..., 0, :, :].all()"),
    ("passes_round_trip", "row 0 alone", ".all()", "[..., 0, :].all()"),
    ("passes_round_trip", "the last row alone", ".all()", "[..., -1, :].all()"),
    ("passes_round_trip", "the first sentence alone", ".all()", "[(0,) * (X.ndim - 2)].all()"),
]
