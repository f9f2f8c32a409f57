"""Keys that heads share, and keys that layers share: against loops, and in the limit."""

import numpy as np
import pytest

from tests import oracle
from tests.library.test_errors import array
from tests.memory import peak_bytes
from tutorial_lib import Params, causal_mask, multi_head_attention, project_heads
from tutorial_lib.variants.grouped import (
    GroupedParams,
    cross_layer_attention,
    group_params,
    grouped_attention,
)

H, T, S, D_MODEL, D_K, D_V = 6, 5, 8, 12, 4, 7
AXES = [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((3,), (1,)), ((3,), ())]  # of Q, of K and V


@pytest.fixture
def six_head_params(normal):
    """Params of 6 heads."""
    shapes = (H, D_MODEL, D_K), (H, D_MODEL, D_K), (H, D_MODEL, D_V), (H * D_V, D_MODEL)
    return Params(*(normal(20 + n, *shape) / shape[-2] ** 0.5 for n, shape in enumerate(shapes)))


def grouped_layer(X, grouped, mask=None):
    """The layer with its middle arrow replaced."""
    Q, K, V = (project_heads(X, W) for W in (grouped.W_Q, grouped.W_K, grouped.W_V))
    heads = grouped_attention(Q, K, V, mask=mask)
    return oracle.project_out(oracle.concat_heads(heads), grouped.W_O)


@pytest.mark.parametrize("mask_name", ["none", "causal"])
def test_as_many_kv_heads_as_heads_is_the_layer(six_head_params, normal, mask_name, make_mask):
    X, mask = normal(9, 3, T, D_MODEL), make_mask(mask_name, (3,), T)
    Y = grouped_layer(X, group_params(six_head_params, H), mask)
    expected = multi_head_attention(X, six_head_params, mask=mask)
    np.testing.assert_allclose(Y, expected, rtol=1e-13, atol=1e-14)


def test_a_layer_with_its_own_keys_each_is_the_layers(normal, params, assert_close):
    X, mask = normal(1, 2, 5, 12), causal_mask(5)
    expected = X
    for _ in range(3):
        expected = expected + oracle.mha(expected, params, mask=mask)
    assert_close(cross_layer_attention(X, [params] * 3, [0, 1, 2], mask=mask), expected)


LIMITS = {
    "Shared keys (GQA, MQA)": test_as_many_kv_heads_as_heads_is_the_layer,
    "Keys of an earlier layer": test_a_layer_with_its_own_keys_each_is_the_layers,
}


@pytest.mark.parametrize(("batch", "kv_batch"), AXES)
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_each_group_of_heads_equals_loops(normal, batch, kv_batch, n_kv_heads, assert_close):
    Q = normal(1, *batch, H, T, D_K)
    K, V = normal(2, *kv_batch, n_kv_heads, S, D_K), normal(3, *kv_batch, n_kv_heads, S, D_V)
    partial_mask, gaps_mask = oracle.drawn_masks((*batch, H, T, S))
    for mask in (None, causal_mask(T, S), partial_mask, gaps_mask, partial_mask[..., :1, :, :]):
        heads = grouped_attention(Q, K, V, mask=mask)
        assert_close(heads, oracle.grouped_attention(Q, K, V, mask))


def test_no_key_is_copied(normal):
    Q, K, V = normal(1, 8, 1, 64), normal(2, 2, 9_000, 64), normal(3, 2, 9_000, 64)
    n_bytes = peak_bytes(lambda: grouped_attention(Q, K, V))
    assert n_bytes < K.nbytes / 2  # a few times the scores, no copy of K and no mark for each entry


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_params_are_the_means_of_heads_and_compute_what_expanded_ones_do(
    six_head_params, normal, n_kv_heads, assert_close
):
    grouped = group_params(six_head_params, n_kv_heads)
    sizes = {"H": H, "G": n_kv_heads, "d_model": D_MODEL, "d_k": D_K, "d_v": D_V}
    assert grouped.sizes == sizes | {"H*d_v": H * D_V}
    for name in ("W_K", "W_V"):
        pooled_weights = oracle.pooled_heads(getattr(six_head_params, name), n_kv_heads)
        assert_close(getattr(grouped, name), pooled_weights)
    assert grouped.W_Q is six_head_params.W_Q
    assert grouped.W_O is six_head_params.W_O
    X = normal(9, 3, T, D_MODEL)
    assert_close(grouped_layer(X, grouped), oracle.mha(X, grouped.expanded()))


@pytest.mark.parametrize("sources", [(0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 1)])
def test_borrowed_keys_are_those_of_the_earlier_layer(normal, params, sources, assert_close):
    flipped_params = Params(params.W_K, params.W_Q, -params.W_V, params.W_O)
    X, layers, mask = normal(1, 2, 5, 12), [params, flipped_params, params], causal_mask(5)
    Y = cross_layer_attention(X, layers, sources, mask=mask)
    assert_close(Y, oracle.cross_layer_attention(X, layers, sources, mask))


W_Q, W_O = array(6, 12, 4), array(42, 12)
SIX = Params(W_Q, W_Q, array(6, 12, 7), W_O)
TWO = Params(array(2, 12, 4), array(2, 12, 4), array(2, 12, 7), array(14, 12))
X5, NAN_KEY = array(5, 12), np.where(np.arange(64).reshape(2, 8, 4) == 43, np.nan, 1)


def attend(n_heads, *K, V=(2, 8, 7)):
    """Grouped attention of arrays of these shapes that refuse arithmetic."""
    return grouped_attention(array(n_heads, 5, 4), array(*K), array(*V))


REFUSED = [
    (lambda: GroupedParams(W_Q, array(4, 12, 4), array(4, 12, 7), W_O), "from [1, 2, 3, 6]"),
    (lambda: group_params(SIX, 4), "n_heads=6 does not split into n_kv_heads=4 equal parts"),
    (lambda: group_params(SIX, 12), "Choose n_kv_heads from [1, 2, 3, 6]"),
    (lambda: attend(2, 6, 8, 4, V=(6, 8, 7)), "query heads=2 does not split into KV heads=6"),
    (lambda: attend(6, 4, 8, 4, V=(4, 8, 7)), "Choose KV heads from [1, 2, 3, 6]"),
    (lambda: attend(6, 2, 8, 4, V=(3, 2, 8, 7)), "K has the batch axes (), V has (3,)"),
    (
        lambda: grouped_attention(np.ones((6, 5, 4)), NAN_KEY, np.ones((2, 8, 7))),
        "the largest score of row (3, 0) is nan",
    ),
    (lambda: cross_layer_attention(X5, [SIX] * 2, (0,)), "there are 2 layers and 1 sources"),
    (lambda: cross_layer_attention(X5, [SIX] * 2, (0, 2)), "layer 1 takes its keys from layer 2"),
    (lambda: cross_layer_attention(X5, [SIX] * 2, (1, 1)), "layer 0 takes its keys from layer 1"),
    (lambda: cross_layer_attention(X5, [SIX] * 2, (0, -1)), "layer 1 takes its keys from layer -1"),
    (lambda: cross_layer_attention(X5, [SIX] * 3, (0, 0, 1)), "from layer 1; expected itself"),
    (lambda: cross_layer_attention(X5, [SIX, TWO], (0, 0)), "expected the same in each"),
    (lambda: cross_layer_attention(array(5, 9), [SIX], (0,)), "with d_model=9"),
    (lambda: cross_layer_attention(X5, [SIX], (0,), mask=X5), "expected a NumPy array of booleans"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused_in_words_before_any_arithmetic(call, message):
    with pytest.raises((ValueError, TypeError)) as refusal:
        call()
    assert message in str(refusal.value)
