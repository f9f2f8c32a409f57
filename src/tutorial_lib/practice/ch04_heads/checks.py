"""Checks for chapter 04."""

import numpy as np

from tutorial_lib import attention, heads
from tutorial_lib.practice.account import D_K, D_MODEL, B, Case, H, S, T, against, normal
from tutorial_lib.practice.ch04_heads.mistakes import MISTAKES

check = against(MISTAKES)


def check_split_heads(function):
    """Check `split_heads(X, n_heads)`: (..., T, H*d) → (..., H, T, d). Prints an account."""
    cases = (
        Case("5 tokens, 3 heads", {"X": normal(8, T, D_MODEL), "n_heads": H}),
        Case("a batch", {"X": normal(9, B, T, D_MODEL), "n_heads": H}),
        Case("2 heads", {"X": normal(8, T, D_MODEL), "n_heads": 2}),
    )
    check("split_heads", function, heads.split_heads, cases)


def _same_token_weights(ids, n_tokens, strength):
    X = np.eye(n_tokens)[ids]
    return attention.attention_weights(strength * X @ X.T, mask=attention.causal_mask(len(ids)))


def check_same_token_weights(function):
    """Check `same_token_weights(ids, n_tokens, strength)`, exercise of chapter 04."""
    ids = np.array([3, 1, 3, 0, 1, 3])
    cases = (
        Case("strength 2", {"ids": ids, "n_tokens": 5, "strength": 2.0}),
        Case("strength 10", {"ids": ids, "n_tokens": 5, "strength": 10.0}),
    )
    check("same_token_weights", function, _same_token_weights, cases)


def _multiply_adds(T, d_model, n_heads, d_k):
    return 4 * T * d_model * n_heads * d_k + 2 * T * T * n_heads * d_k


def check_multiply_adds(function):
    """Check `multiply_adds(T, d_model, n_heads, d_k)`, exercise of chapter 04."""
    cases = (
        Case("split heads", {"T": T, "d_model": D_MODEL, "n_heads": H, "d_k": D_K}),
        Case("full heads", {"T": T, "d_model": D_MODEL, "n_heads": 2, "d_k": D_MODEL}),
    )
    check("multiply_adds", function, _multiply_adds, cases)


def _score_ranks(Q, K):
    return np.linalg.matrix_rank(Q @ np.swapaxes(K, -1, -2))


def check_score_ranks(function):
    """Check `score_ranks(Q, K)`: (H, T, d_k), (H, S, d_k) → (H,), exercise of chapter 04."""
    Q, K = normal(18, 4, T, D_K), normal(19, 4, S, D_K)
    Q[0, 1] = Q[0, 0]  # head 0 asks one question twice
    Q[1, :, 2:] = 0  # the queries of head 1 use two features
    K[2, :, 1:] = 0  # the keys of head 2 use one
    Q[3, :, 2:], K[3, :, :2] = 0, 0  # queries and keys of head 3 share none
    cases = (
        Case("four heads", {"Q": Q, "K": K}),
        Case("two heads of width 2", {"Q": normal(20, 2, T, 2), "K": normal(21, 2, S, 2)}),
    )
    check("score_ranks", function, _score_ranks, cases)
