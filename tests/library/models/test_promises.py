"""Promises: what they measure in layers whose leak, gradient, drift and chunks are known."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import causal_mask, multi_head_attention
from tutorial_lib.models.promises import directional_derivative, drift, in_chunks, leak

T, D_MODEL = 5, 12
ONES = np.ones((5, 2))


def test_a_causal_layer_has_no_leak_and_one_that_sees_all_has(params, normal):
    X, changed_X = normal(1, 2, T, D_MODEL), normal(2, 2, T, D_MODEL)
    assert leak(lambda X: multi_head_attention(X, params, mask=causal_mask(T)), X, changed_X) == 0
    assert leak(lambda X: multi_head_attention(X, params), X, changed_X) > 0.01


def test_a_leak_is_as_large_as_the_largest_change_of_a_row_and_nan_where_one_is():
    X, changed_X = np.zeros((4, 2)), np.zeros((4, 2))
    changed_X[2] = 3  # a quarter of it reaches every row
    assert leak(lambda X: X + X.mean(axis=-2, keepdims=True), X, changed_X) == 0.75
    assert leak(lambda X: X + np.roll(X, -1, axis=0) * [[0], [1], [0], [0]], X, changed_X) == 3
    assert np.isnan(leak(lambda X: np.where(X[-1] == 0, X, np.nan), X, X + 1))


def test_a_directional_derivative_is_the_sum_of_all_differences_along_it(params, normal):
    X, dY, direction = normal(3, T, D_MODEL), normal(4, T, D_MODEL), normal(5, T, D_MODEL)

    def loss(X):
        return (multi_head_attention(X, params) * dY).sum()

    expected = (oracle.central_differences(loss, X) * direction).sum()
    assert directional_derivative(loss, X, direction) == pytest.approx(expected, rel=1e-7)


def test_a_layer_that_counts_positions_drifts_and_one_that_sees_a_window_does_not(normal):
    X, earlier_X = normal(6, T, D_MODEL), normal(7, 9, D_MODEL)

    def windowed_sum(X):
        return sum(np.pad(X, ((n, 0), (0, 0)))[: len(X)] for n in range(3))

    assert drift(windowed_sum, X, earlier_X, 3) < 1e-12
    assert drift(windowed_sum, X, earlier_X, 2) > 0.1  # the second row sees one of them
    assert drift(lambda X: X + np.arange(len(X))[:, None], X, earlier_X, 3) == pytest.approx(9)


@pytest.mark.parametrize("chunk_sizes", [(5,), (1, 1, 1, 1, 1), (2, 3), (4, 1)])
def test_chunks_get_the_cache_that_the_one_before_returned(chunk_sizes, normal):
    def cumsum_step(X, running_sum):
        Y = np.cumsum(X, axis=-2) + running_sum
        return Y, Y[..., -1:, :]

    X = normal(8, 2, T, D_MODEL)
    Y = in_chunks(cumsum_step, X, np.zeros((2, 1, D_MODEL)), chunk_sizes)
    np.testing.assert_allclose(Y, np.cumsum(X, axis=-2), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leak(abs, ONES, ONES[None]), r"other \(1, 5, 2\); expected one shape"),
        (lambda: leak(abs, ONES[:1], ONES[:1]), "two tokens at least"),
        (lambda: directional_derivative(np.sum, ONES, ONES[0]), r"along has shape \(2,\); expec"),
        (lambda: drift(abs, ONES, ONES[None], 2), "only in the number of tokens"),
        (lambda: drift(abs, ONES, ONES, 6), "window=6 and X has 5 tokens"),
        (lambda: in_chunks(abs, ONES, None, (3, 1)), "make 4 tokens; expected chunks that make 5"),
    ],
)
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
