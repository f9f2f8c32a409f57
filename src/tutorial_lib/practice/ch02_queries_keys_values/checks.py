"""Checks for chapter 02."""

import numpy as np

from tutorial_lib import projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, B, H, T, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(projection.project_heads)
def check_project_heads():
    W = normal(2, H, D_MODEL, D_K)
    yield "one sequence", {"X": normal(0, T, D_MODEL), "W": W}
    yield "a batch", {"X": normal(1, B, T, D_MODEL), "W": W}


def _project_with_bias(X, W, b):
    """Project with one matrix and one bias per head."""
    return projection.project_heads(X, W) + b[:, None, :]


@cases_of(_project_with_bias)
def check_project_with_bias():
    W, b = normal(2, H, D_MODEL, D_K), normal(3, H, D_K)
    yield "one sequence", {"X": normal(0, T, D_MODEL), "W": W, "b": b}
    yield "a batch", {"X": normal(1, B, T, D_MODEL), "W": W, "b": b}


def _project_sliced_input(X, W):
    """Project with one matrix per head, where a head gets its own slice of each row."""
    w = W.shape[1]
    projected = [X[..., h * w : (h + 1) * w] @ W[h] for h in range(len(W))]
    return np.stack(projected, axis=-3)


@cases_of(_project_sliced_input)
def check_project_sliced_input():
    yield "3 heads", {"X": normal(0, T, 3 * 7), "W": normal(4, 3, 7, D_V)}
    yield "a batch, 7 heads", {"X": normal(1, B, T, 7 * 3), "W": normal(5, 7, 3, D_K)}


def _count_parameters(d_model, n_heads, d_k, d_v, *, bias):
    inputs = n_heads * (2 * d_k + d_v)  # entries of a token in Q, K and V
    weights = inputs * d_model + n_heads * d_v * d_model
    return weights + bias * (inputs + d_model)


@cases_of(_count_parameters)
def check_count_parameters():
    sizes = {"d_model": D_MODEL, "n_heads": H, "d_k": D_K, "d_v": D_V}
    other = {"d_model": 10, "n_heads": 2, "d_k": 3, "d_v": 8}
    yield "without biases", sizes, {"bias": False}
    yield "with biases", sizes, {"bias": True}
    yield "2 heads, with biases", other, {"bias": True}
