"""Checks for chapter 05."""

import numpy as np

from tutorial_lib import attention, heads
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_V, B, H, S, T, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(heads.concat_heads)
def check_concat_heads():
    yield "3 heads", {"heads": normal(10, H, T, D_V)}
    yield "a batch", {"heads": normal(11, B, H, T, D_V)}
    yield "two batch axes", {"heads": normal(43, 8, B, H, T, D_V)}


def _concat_tokens_first(heads):
    """Lay the heads side by side, where the axis of the tokens comes before that of the heads."""
    *batch, T, H, d_v = heads.shape
    return heads.reshape(*batch, T, H * d_v)


@cases_of(_concat_tokens_first)
def check_concat_tokens_first():
    yield "one sequence", {"heads": normal(22, T, H, D_V)}
    yield "a batch", {"heads": normal(23, B, T, H, D_V)}
    yield "two batch axes", {"heads": normal(44, 8, B, T, H, D_V)}


def _passes_round_trip(split, concat, X, n_heads):
    tokens = np.arange(X[..., 0].size).reshape(X.shape[:-1])  # (..., T), each its own number
    marks = split(np.broadcast_to(tokens[..., None], X.shape), n_heads)  # (..., H, T, d)
    comes_back = np.array_equal(concat(split(X, n_heads)), X)
    return comes_back and bool((marks == tokens[..., None, :, None]).all())


def _split_by_reshape(X, n_heads):
    *batch, T, width = X.shape
    return X.reshape(*batch, n_heads, T, width // n_heads)


def _concat_by_reshape(Z):
    *batch, n_heads, T, d = Z.shape
    return Z.reshape(*batch, T, n_heads * d)


def _zero_last_column(array):
    copy = array.copy()
    copy[..., -1] = 0
    return copy


def _insert(change, undo):
    """Return split and concat with a step between them that is undone."""
    return lambda X, n: change(heads.split_heads(X, n)), lambda Z: heads.concat_heads(undo(Z))


def _reverse_heads(Z):
    return Z[..., ::-1, :, :]


def _swap_rows(Z):
    """Exchange two rows of the last head of the last sentence; twice gives Z again."""
    swapped = Z.copy()
    swapped[-1, -1, [1, 3]] = Z[-1, -1, [3, 1]]
    return swapped


def _shift_across_sentences(X, sign):
    """Move position t of each sentence on by t sentences; the other sign moves it back."""
    b, t = np.indices(X.shape[:2])
    return X[(b + sign * t) % len(X), t]


def _split_shifted(X, n_heads):
    return heads.split_heads(_shift_across_sentences(X, 1), n_heads)


def _round_trip_cases():
    """Return (label, (split, concat), X, n_heads) of right pairs and of wrong ones."""
    right = heads.split_heads, heads.concat_heads
    wrong = _split_by_reshape, _concat_by_reshape
    mixed = _split_shifted, lambda Z: _shift_across_sentences(right[1](Z), -1)
    one = normal(24, T, 2 * D_V), 2
    batch, batches = ((normal(24, *lead, T, H * D_K), H) for lead in ((B,), (S, B)))
    return (
        ("a right pair", right, *one),
        ("a right pair, a batch", right, *batch),
        ("a right pair, two leading axes", right, *batches),
        ("a pair by reshape", wrong, *one),
        ("a pair by reshape, a batch", wrong, *batch),
        ("heads reversed", (right[0], lambda Z: right[1](_reverse_heads(Z))), *batch),
        ("heads reversed and put back", _insert(_reverse_heads, _reverse_heads), *batch),
        ("two rows of one head exchanged and put back", _insert(_swap_rows, _swap_rows), *batch),
        ("sentences mixed and put back", mixed, *batch),
        ("only the split is wrong", (wrong[0], right[1]), *batch),
        ("heads added up", (right[0], lambda Z: Z.sum(axis=-3)), *batch),
        ("a column lost", (right[0], lambda Z: _zero_last_column(right[1](Z))), *batch),
    )


@cases_of(_passes_round_trip)
def check_passes_round_trip():
    yield from (
        (label, {"split": split, "concat": concat, "X": X, "n_heads": n_heads})
        for label, (split, concat), X, n_heads in _round_trip_cases()
    )


def _attend_packed(packed, n_heads):
    """Attend in all heads, where one array holds Q, K and V of all heads side by side."""
    parts = np.split(packed, 3, axis=-1)  # each (..., T, H*d)
    Q, K, V = (heads.split_heads(part, n_heads) for part in parts)
    return heads.concat_heads(attention.scaled_dot_product_attention(Q, K, V))


@cases_of(_attend_packed)
def check_attend_packed():
    yield "5 heads", {"packed": normal(25, B, S, 3 * 5 * D_K), "n_heads": 5}
    yield "2 heads", {"packed": normal(26, 8, S, 3 * 2 * D_V), "n_heads": 2}
