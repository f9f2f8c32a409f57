"""Checks for chapter 05."""

import numpy as np

from tutorial_lib import attention, heads
from tutorial_lib.checks.account import D_K, D_MODEL, D_V, B, Case, H, S, T, check, normal
from tutorial_lib.mistakes import MISTAKES


def check_concat_heads(function):
    """Check `concat_heads(heads)`: (..., H, T, d_v) → (..., T, H*d_v). Prints an account."""
    cases = (
        Case("3 heads", {"heads": normal(10, H, T, D_V)}),
        Case("a batch", {"heads": normal(11, B, H, T, D_V)}),
    )
    check("concat_heads", function, heads.concat_heads, cases)


def _concat_tokens_first(heads):
    return heads.reshape(*heads.shape[:-2], heads.shape[-2] * heads.shape[-1])


def check_concat_tokens_first(function):
    """Check `concat_tokens_first(heads)`: (..., T, H, d_v) → (..., T, H*d_v), exercise of 05."""
    cases = (
        Case("one sequence", {"heads": normal(22, T, H, D_V)}),
        Case("a batch", {"heads": normal(23, B, T, H, D_V)}),
    )
    check("concat_tokens_first", function, _concat_tokens_first, cases)


def _passes_round_trip(split, concat, X, n_heads):
    there = split(X, n_heads)
    marks = np.broadcast_to(np.arange(X.shape[-2])[:, None], X.shape)
    apart = split(marks, n_heads) == np.arange(X.shape[-2])[:, None]
    return bool(np.array_equal(concat(there), X) and apart.all())


def _wrong(name, mistake):
    return next(m.function for m in MISTAKES[name] if m.name == mistake)


def _without_last(array):
    kept = array.copy()
    kept[..., -1] = 0
    return kept


def check_passes_round_trip(function):
    """Check `passes_round_trip(split, concat, X, n_heads)`, exercise of chapter 05."""
    right = heads.split_heads, heads.concat_heads
    by_reshape = _wrong("split_heads", "reshape_without_transpose")
    wrong = by_reshape, _wrong("concat_heads", "concat_without_transpose")
    one, batch, batches = (normal(24, *lead, T, D_MODEL) for lead in ((), (B,), (8, B)))
    trips = (
        ("a right pair", right, one),
        ("a right pair, a batch", right, batch),
        ("a right pair, two leading axes", right, batches),
        ("a pair by reshape", wrong, one),
        ("a pair by reshape, a batch", wrong, batch),
        ("heads reversed", (right[0], lambda Z: right[1](Z[..., ::-1, :, :])), batch),
        ("only the split is wrong", (wrong[0], right[1]), batch),
        ("heads added up", (right[0], lambda Z: Z.sum(axis=-3)), batch),
        ("a column lost", (right[0], lambda Z: _without_last(right[1](Z))), batch),
    )
    cases = tuple(
        Case(label, {"split": split, "concat": concat, "X": X, "n_heads": H})
        for label, (split, concat), X in trips
    )
    check("passes_round_trip", function, _passes_round_trip, cases)


def _attend_packed(packed, n_heads):
    parts = np.split(packed, 3, axis=-1)  # each (..., T, H*d)
    Q, K, V = (heads.split_heads(part, n_heads) for part in parts)
    return heads.concat_heads(attention.scaled_dot_product_attention(Q, K, V))


def check_attend_packed(function):
    """Check `attend_packed(packed, n_heads)`: (B, T, 3*H*d) → (B, T, H*d), exercise of 05."""
    cases = (
        Case("3 heads", {"packed": normal(25, B, T, 3 * H * D_K), "n_heads": H}),
        Case("2 heads", {"packed": normal(26, 8, S, 3 * 2 * D_V), "n_heads": 2}),
    )
    check("attend_packed", function, _attend_packed, cases)
