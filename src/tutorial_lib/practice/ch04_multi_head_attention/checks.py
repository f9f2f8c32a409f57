"""Checks for chapter 04."""

import numpy as np

from tutorial_lib import attention, heads
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, H, S, T, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(heads.split_heads)
def check_split_heads():
    yield "15 tokens, 3 heads of 8", {"X": normal(8, 15, 3 * 8), "n_heads": 3}
    yield "a batch, 2 heads of 11", {"X": normal(9, 3, 14, 2 * 11), "n_heads": 2}


def _same_token_weights(ids, n_tokens, strength):
    X = np.eye(n_tokens)[ids]
    scores, mask = strength * X @ X.T, attention.causal_mask(len(ids))
    return attention.softmax(np.where(mask, scores, -np.inf))


@cases_of(_same_token_weights)
def check_same_token_weights():
    ids, others = np.array([3, 1, 3, 0, 1, 3]), np.array([2, 0, 2, 6, 0, 0, 2, 6])
    yield "strength 2", {"ids": ids, "n_tokens": 5, "strength": 2.0}
    yield "strength 10", {"ids": others, "n_tokens": 9, "strength": 10.0}


def _multiply_adds(T, d_model, n_heads, d_k):
    projections = 4 * T * d_model * n_heads * d_k  # Q, K, V, and out
    return projections + 2 * T * T * n_heads * d_k


@cases_of(_multiply_adds)
def check_multiply_adds():
    wide = {"T": S, "d_model": D_V, "n_heads": 2, "d_k": WIDE}
    yield "5 tokens, 3 heads of 8", {"T": T, "d_model": D_MODEL, "n_heads": H, "d_k": D_K}
    yield "7 tokens, 2 heads of 17", wide


def _score_ranks(Q, K):
    return np.linalg.matrix_rank(Q @ np.swapaxes(K, -1, -2))


@cases_of(_score_ranks)
def check_score_ranks():
    Q, K = normal(18, 4, T, D_K), normal(19, 4, S, D_K)
    Q[0, 1] = Q[0, 0]  # head 0 has one query twice
    Q[1, :, 2:] = 0  # the queries of head 1 use two features
    K[2, :, 1:] = 0  # the keys of head 2 use one
    Q[3, :, 2:], K[3, :, :2] = 0, 0  # queries and keys of head 3 share none
    yield "4 heads", {"Q": Q, "K": K}
    yield "3 heads of width 2", {"Q": normal(20, H, T, 2), "K": normal(21, H, S, 2)}
