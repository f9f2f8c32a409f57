"""The softmax in one pass, forward and back: against loops, kept weights and memory."""

import math
from functools import partial

import numpy as np
import pytest

from tests import oracle
from tests.memory import peak_bytes
from tests.sampling import long
from tutorial_lib import attention_backward, causal_mask
from tutorial_lib.onepass import flash_backward, flash_forward, fold_block

BLOCKS = (1, 2, 3, 5, 6, 7, 128)
LENGTHS = [(5, 6), (5, 5), (6, 5), (1, 6), (5, 1)]


def equal_mask(causal, T, S):
    """The mask that means the same."""
    return causal_mask(T, S) if causal else np.ones((T, S), dtype=bool)


@pytest.fixture
def make_qkv(normal):
    """`qkv(T, S)`: arrays (2, 3, T, 4), (2, 3, S, 4), (2, 3, S, 7)."""
    return lambda T, S: (normal(1, 2, 3, T, 4), normal(2, 2, 3, S, 4), normal(3, 2, 3, S, 7))


def test_a_row_folds_one_key_at_a_time_as_by_hand():
    scores, V = math.log(2) * np.array([[1.0, -1.0, 0.0]]), np.array([[1.0], [7.0], [14.0]])
    state, row_states = (-1e30, 0.0, 0.0), []
    for key in range(3):
        state = fold_block(state, scores[:, key : key + 1], V[key : key + 1])
        row_states.append([float(array.item()) for array in state])
    ln2 = math.log(2)
    expected = [[ln2, 1, 1], [ln2, 1.25, 1 + 7 / 4], [ln2, 1.75, 1 + 7 / 4 + 7]]
    np.testing.assert_allclose(row_states, expected, rtol=1e-14)
    np.testing.assert_allclose(state[2] / state[1], 4 / 7 * 1 + 1 / 7 * 7 + 2 / 7 * 14, rtol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("T", "S"), LENGTHS)
def test_every_block_size_equals_the_loops(make_qkv, T, S, block, causal, assert_close):
    Q, K, V = make_qkv(T, S)
    trace = flash_forward(Q, K, V, causal=causal, block=block)
    mask = equal_mask(causal, T, S)
    assert_close(trace.heads, oracle.scaled_dot_product_attention(Q, K, V, mask))
    power_sums = np.where(mask, np.exp(oracle.scores(Q, K)), 0).sum(axis=-1, keepdims=True)
    logsumexp = np.where(power_sums > 0, trace.logsumexp, -np.inf)  # a row that sees nothing
    np.testing.assert_allclose(np.exp(logsumexp), power_sums, rtol=1e-12)


@pytest.mark.parametrize("axes", [(), (3,), (8, 2, 3)])
def test_leading_axes_may_be_many_or_none(normal, axes, assert_close):
    Q, K, V = normal(1, *axes, 5, 4), normal(2, *axes, 6, 4), normal(3, *axes, 6, 7)
    trace, dheads = flash_forward(Q, K, V, causal=True, block=2), normal(4, *axes, 5, 7)
    assert_close(trace.heads, oracle.scaled_dot_product_attention(Q, K, V, causal_mask(5, 6)))
    weights = oracle.attention_weights(oracle.scores(Q, K), causal_mask(5, 6))
    expected = attention_backward(Q, K, V, weights, dheads)
    for gradient, expected_gradient in zip(flash_backward(trace, dheads), expected, strict=True):
        assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("block", [1, 2, 128])
def test_large_scores_do_not_overflow(make_qkv, block):
    Q, K, V = make_qkv(5, 6)
    for factor in (1e4, 1e6):
        heads = flash_forward(factor * Q, K, V, block=block).heads
        expected = oracle.scaled_dot_product_attention(factor * Q, K, V)
        np.testing.assert_allclose(heads, expected, rtol=1e-6, atol=1e-6)
    for entry in (2.0**30, 2.0**53, 2.0**498):  # powers of 2, so all six scores are one number
        trace = flash_forward(np.full((1, 4), -entry), np.full((6, 4), entry), V[0, 0], block=block)
        np.testing.assert_allclose(trace.heads[0], V[0, 0].mean(axis=0), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_that_sees_nothing_gets_zeros_and_the_lowest_logsumexp(normal, dtype):
    Q, K, V = (normal(seed, 3, n, 4).astype(dtype) for seed, n in ((1, 5), (2, 3), (3, 3)))
    trace = flash_forward(Q, K, V, causal=True, block=2)
    np.testing.assert_array_equal(trace.heads[:, :2], 0)
    np.testing.assert_array_equal(trace.logsumexp[:, :2], np.finfo(dtype).min)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("query", [3, 0])  # by the causal mask, 0 sees one key alone
def test_scores_that_overflow_are_refused(normal, query, sign, causal):
    Q, K, V = (normal(seed, 2, 5, 4).copy() for seed in (1, 2, 3))
    Q[1, query:], K[1] = sign * 1e200, 1e200
    with pytest.raises(ValueError, match=rf"the scores of query \(1, {query}\) overflow float64"):
        flash_forward(Q, K, V, causal=causal, block=2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [1, 7, 64, 100, 128])
def test_float32_is_within_a_millionth_for_every_block_size(normal, block, causal):
    Q, K, V = (normal(seed, 2, 100, 64) for seed in (1, 2, 3))
    float32_arrays = (array.astype(np.float32) for array in (Q, K, V))
    trace = flash_forward(*float32_arrays, causal=causal, block=block)
    assert trace.heads.dtype == trace.logsumexp.dtype == np.float32
    expected = flash_forward(Q, K, V, causal=causal, block=100).heads
    assert np.linalg.norm(trace.heads - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("T", "S"), LENGTHS)
def test_recomputed_gradients_equal_those_of_kept_weights(make_qkv, normal, T, S, block, causal):
    Q, K, V = make_qkv(T, S)
    dheads = normal(4, 2, 3, T, 7)
    weights = oracle.attention_weights(oracle.scores(Q, K), equal_mask(causal, T, S))
    trace = flash_forward(Q, K, V, causal=causal, block=3)
    gradients = flash_backward(trace, dheads, block=block)
    expected = attention_backward(Q, K, V, weights, dheads)
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [True, *long(False)])
def test_memory_of_the_twin_is_linear_in_the_number_of_tokens(causal):
    peaks_by_length = {256: [], 1024: []}
    for T, peaks in peaks_by_length.items():
        Q, K, V = np.random.default_rng(0).standard_normal((3, T, 8))
        trace = flash_forward(Q, K, V, causal=causal, block=16)
        peaks += [
            peak_bytes(partial(flash_forward, Q, K, V, causal=causal, block=16)),
            peak_bytes(partial(flash_backward, trace, V, block=16)),
        ]
    for short_peak, long_peak in zip(*peaks_by_length.values(), strict=True):
        assert long_peak < 4.2 * short_peak
        assert long_peak < 1024 * 1024 * 8 / 10, "far below one (T, S) array"
