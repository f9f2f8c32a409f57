"""The layer in blocks, against plain loops and against the layer that keeps every score."""

import math

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle
from tests.memory import peak_bytes

BLOCKS = (1, 2, 3, 5, 7, 128)


def equal_mask(causal, T):
    """The mask that means the same, None for no mask."""
    return tl.causal_mask(T) if causal else None


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_size_equals_the_loops(X, params, block, causal, assert_close):
    expected = oracle.mha(X, params, mask=equal_mask(causal, X.shape[-2]))
    assert_close(tl.tiled_multi_head_attention(X, params, causal=causal, block=block), expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T", "block"), [(1, 4), (7, 4), (8, 4), (9, 4), (33, 16), (300, 128)])
def test_every_length_equals_the_layer_that_keeps_all_scores(T, block, causal, normal, params):
    X = normal(1, 2, T, 12)
    expected = tl.multi_head_attention(X, params, mask=equal_mask(causal, T))
    Y = tl.tiled_multi_head_attention(X, params, causal=causal, block=block)
    np.testing.assert_allclose(Y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("d_model", "H", "d_k", "d_v"), [(12, 3, 4, 7), (10, 2, 8, 3), (6, 1, 1, 5)]
)
def test_widths_need_not_agree(d_model, H, d_k, d_v, normal, assert_close):
    params = tl.init_params(np.random.default_rng(3), d_model=d_model, n_heads=H, d_k=d_k, d_v=d_v)
    X = normal(2, 3, 6, d_model)
    expected = oracle.mha(X, params, mask=tl.causal_mask(6))
    assert_close(tl.tiled_multi_head_attention(X, params, causal=True, block=4), expected)


def test_heads_that_do_not_fit_into_the_cache_at_once_are_taken_in_groups(normal, assert_close):
    T = 1100  # 2**19 // (256 * T) is 1: one head at a time; a block of 64 takes 7
    params = tl.init_params(np.random.default_rng(0), d_model=6, n_heads=3)
    X = normal(4, T, 6)
    single_heads, grouped_heads = (
        tl.tiled_multi_head_attention(X, params, causal=True, block=block) for block in (256, 64)
    )
    assert_close(single_heads, tl.multi_head_attention(X, params, mask=tl.causal_mask(T)))
    assert_close(grouped_heads, single_heads)


@pytest.mark.parametrize("block", [2, 128])
def test_float32_stays_float32_and_close_to_float64(params, params_32, normal, block):
    X = normal(1, 2, 5, 12)
    Y = tl.tiled_multi_head_attention(X.astype(np.float32), params_32, causal=True, block=block)
    assert Y.dtype == np.float32
    expected = oracle.mha(X, params, mask=tl.causal_mask(5))
    np.testing.assert_allclose(Y, expected, rtol=1e-4, atol=1e-5)


def test_large_scores_do_not_overflow(params, normal):
    X = 100 * normal(1, 5, 12)
    Y = tl.tiled_multi_head_attention(X, params, causal=True, block=2)
    expected = oracle.mha(X, params, mask=tl.causal_mask(5))
    np.testing.assert_allclose(Y, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("block", [2, 128])
def test_scores_that_overflow_are_refused_as_by_the_layer_that_keeps_them(params, normal, block):
    X = normal(1, 2, 5, 12) * np.array([1, 1e160])[:, None, None]
    with pytest.raises(ValueError, match=r"\(head, query\) \(0, 0\) got NaN: a score"):
        tl.tiled_multi_head_attention(X, params, causal=True, block=block)
    with pytest.raises(ValueError, match="the largest score"):
        tl.multi_head_attention(X, params, mask=tl.causal_mask(5))


def test_input_of_any_layout_gives_the_same(params, normal, assert_close):
    X = normal(1, 2, 5, 12)
    expected = oracle.mha(X, params)
    for equal_X in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1]):
        assert_close(tl.tiled_multi_head_attention(equal_X, params, block=2), expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("S", [5, 6, 9])
def test_a_block_is_the_last_rows_of_attention(S, causal, batch, normal, assert_close):
    Q, K, V = normal(1, *batch, 5, 4), normal(2, *batch, S, 4), normal(3, *batch, S, 7)
    mask = oracle.causal_mask(5, S) if causal else None
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    heads = tl.attend_block(Q / math.sqrt(4), np.swapaxes(K, -1, -2), V, causal=causal)
    assert_close(heads, expected)


def test_a_block_that_is_not_causal_may_have_more_queries_than_keys(normal, assert_close):
    Q, K, V = normal(1, 5, 4), normal(2, 3, 4), normal(3, 3, 7)
    assert_close(tl.attend_block(Q / 2, K.T, V), oracle.scaled_dot_product_attention(Q, K, V))


def peak_of(T):
    """The most that a call on T tokens holds at once, output included."""
    params = tl.init_params(np.random.default_rng(0), d_model=8, n_heads=2)
    X = np.random.default_rng(1).standard_normal((T, 8))
    return peak_bytes(lambda: tl.tiled_multi_head_attention(X, params, causal=True, block=16))


def test_memory_is_linear_in_the_number_of_tokens():
    short_peak, long_peak = peak_of(1024), peak_of(4096)
    assert long_peak < 4.2 * short_peak
    assert long_peak < 4096 * 4096 * 8 / 20, "far below one (T, S) array"
