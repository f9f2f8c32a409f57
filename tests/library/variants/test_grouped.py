"""Keys that heads share, and keys that layers share: against loops, and in the limit."""

import dataclasses

import numpy as np
import pytest

from tests import oracle
from tests.library.test_errors import array
from tests.memory import peak_bytes
from tutorial_lib import Params, ShapeError, causal_mask, multi_head_attention, project_heads
from tutorial_lib.variants.grouped import (
    GroupedParams,
    cross_layer_attention,
    group_params,
    grouped_attention,
)

H, G, T, S, D_MODEL, D_K, D_V = 6, 2, 5, 8, 12, 4, 7
BATCHES = [(), (3,), (8, 3)]


@pytest.fixture
def wide(normal):
    """Params of 6 heads."""
    shapes = (H, D_MODEL, D_K), (H, D_MODEL, D_K), (H, D_MODEL, D_V), (H * D_V, D_MODEL)
    return Params(*(normal(20 + n, *shape) / shape[-2] ** 0.5 for n, shape in enumerate(shapes)))


@pytest.fixture
def qkv(normal):
    """`qkv(*batch)`: queries of 6 heads, keys and values of 2."""
    return lambda *batch: (
        normal(1, *batch, H, T, D_K),
        normal(2, *batch, G, S, D_K),
        normal(3, *batch, G, S, D_V),
    )


def grouped_layer(X, grouped, mask=None):
    """The layer with its middle arrow replaced."""
    Q, K, V = (project_heads(X, W) for W in (grouped.W_Q, grouped.W_K, grouped.W_V))
    heads = grouped_attention(Q, K, V, mask=mask)
    return oracle.project_out(oracle.concat_heads(heads), grouped.W_O)


@pytest.mark.parametrize("kind", ["none", "causal"])
def test_as_many_kv_heads_as_heads_is_the_layer(wide, normal, kind, make_mask):
    X, mask = normal(9, 3, T, D_MODEL), make_mask(kind, (3,), T)
    Y = grouped_layer(X, group_params(wide, H), mask)
    np.testing.assert_allclose(Y, oracle.mha(X, wide, mask=mask), rtol=1e-10, atol=1e-12)
    expected = multi_head_attention(X, wide, mask=mask)
    np.testing.assert_allclose(Y, expected, rtol=1e-13, atol=1e-14)


def test_a_layer_with_its_own_keys_each_is_the_layers(normal, params, assert_close):
    X, layers, mask = normal(1, 2, 5, 12), [params, params, params], causal_mask(5)
    expected = X
    for layer in layers:
        expected = expected + oracle.mha(expected, layer, mask=mask)
    assert_close(cross_layer_attention(X, layers, (0, 1, 2), mask=mask), expected)


LIMITS = {
    "Shared keys (GQA, MQA)": test_as_many_kv_heads_as_heads_is_the_layer,
    "Keys of an earlier layer": test_a_layer_with_its_own_keys_each_is_the_layers,
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_each_group_of_heads_equals_loops_over_its_heads(normal, batch, n_kv_heads, assert_close):
    Q = normal(1, *batch, H, T, D_K)
    K, V = normal(2, *batch, n_kv_heads, S, D_K), normal(3, *batch, n_kv_heads, S, D_V)
    some, empty = oracle.drawn_masks((*batch, H, T, S))
    for mask in (None, causal_mask(T, S), some, empty, some[..., :1, :, :]):
        heads = grouped_attention(Q, K, V, mask=mask)
        assert_close(heads, oracle.grouped_attention(Q, K, V, mask))


def test_tiled_keys_serve_other_heads_than_repeated_array(normal):
    Q, K, V = normal(1, 4, T, D_K), normal(2, 2, S, D_K), normal(3, 2, S, D_V)
    folded = grouped_attention(Q, K, V)
    repeated, tiled = (
        oracle.scaled_dot_product_attention(Q, *(A[order] for A in (K, V)))
        for order in ([0, 0, 1, 1], [0, 1, 0, 1])
    )
    np.testing.assert_allclose(folded, repeated, rtol=1e-10, atol=1e-12)
    assert [np.allclose(folded[h], tiled[h]) for h in range(4)] == [True, False, False, True]


def test_a_batch_of_queries_may_share_one_context(qkv, normal, assert_close):
    Q, (_, K, V) = normal(4, 3, H, T, D_K), qkv(1)
    expected = oracle.grouped_attention(Q, *(np.repeat(A, 3, axis=0) for A in (K, V)))
    assert_close(grouped_attention(Q, K, V), expected)
    assert_close(grouped_attention(Q, K[0], V[0]), expected)


def test_no_key_is_copied(normal):
    Q, K, V = normal(1, 8, 1, 64), normal(2, 2, 9_000, 64), normal(3, 2, 9_000, 64)
    peak = peak_bytes(lambda: grouped_attention(Q, K, V))
    assert peak < K.nbytes / 2  # a few times the scores, no copy of K and no mark for each entry


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_pooled_heads_are_the_mean_of_their_group(wide, n_kv_heads, assert_close):
    grouped = group_params(wide, n_kv_heads)
    assert grouped.n_kv_heads == n_kv_heads
    for name in ("W_K", "W_V"):
        assert_close(getattr(grouped, name), oracle.pooled_heads(getattr(wide, name), n_kv_heads))
    assert grouped.W_Q is wide.W_Q
    assert grouped.W_O is wide.W_O


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3])
def test_expanded_params_compute_the_same(wide, normal, n_kv_heads, assert_close):
    X, grouped = normal(9, 3, T, D_MODEL), group_params(wide, n_kv_heads)
    assert_close(grouped_layer(X, grouped), oracle.mha(X, grouped.expanded()))


def test_grouped_params_know_their_sizes(wide):
    grouped = group_params(wide, G)
    known = [getattr(grouped, size) for size in ("n_heads", "n_kv_heads", "d_model", "d_k", "d_v")]
    assert known == [H, G, D_MODEL, D_K, D_V]
    with pytest.raises(dataclasses.FrozenInstanceError):
        grouped.W_K = grouped.W_V


@pytest.mark.parametrize("sources", [(0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 1), [0, 1, 2]])
def test_borrowed_keys_are_those_of_the_earlier_layer(normal, params, sources, assert_close):
    flip = Params(params.W_K, params.W_Q, -params.W_V, params.W_O)
    X, layers, mask = normal(1, 2, 5, 12), [params, flip, params], causal_mask(5)
    found = cross_layer_attention(X, layers, sources, mask=mask)
    assert_close(found, oracle.cross_layer_attention(X, layers, sources, mask))


def test_a_borrower_s_own_keys_are_not_used(normal, params):
    X, none = normal(1, 5, 12), np.zeros_like(params.W_K)
    bare = Params(params.W_Q, none, np.zeros_like(params.W_V), params.W_O)
    one, other = (cross_layer_attention(X, [params, last], (0, 0)) for last in (params, bare))
    np.testing.assert_array_equal(one, other)


def record(G=2, d_model=12, d_k=4, d_v=7):
    """GroupedParams of arrays that refuse arithmetic, one length of which may be wrong."""
    return GroupedParams(
        array(6, 12, 4), array(G, d_model, d_k), array(G, 12, 7), array(6 * d_v, 12)
    )


REFUSED = {
    "more KV heads than heads": (lambda: record(G=12), "n_heads=6 does not split into n_kv_heads"),
    "a number that does not divide": (lambda: record(G=4), "Choose n_kv_heads from [1, 2, 3, 6]"),
    "keys of a different width": (lambda: record(d_k=5), "W_K has shape (2, 12, 5)"),
    "keys of a different layer": (lambda: record(d_model=9), "W_K has shape (2, 9, 4)"),
    "values wider than W_O": (lambda: record(d_v=5), "W_O has shape (30, 12)"),
    "values of a different group": (
        lambda: GroupedParams(array(6, 12, 4), array(2, 12, 4), array(3, 12, 7), array(42, 12)),
        "W_V has shape (3, 12, 7)",
    ),
    "values of a different layer": (
        lambda: GroupedParams(array(6, 12, 4), array(2, 12, 4), array(2, 9, 7), array(42, 12)),
        "W_V has shape (2, 9, 7)",
    ),
    "queries, fewer than keys": (
        lambda: grouped_attention(array(2, 5, 4), array(6, 8, 4), array(6, 8, 7)),
        "the number of query heads=2 does not split into KV heads=6",
    ),
    "queries that do not divide": (
        lambda: grouped_attention(array(6, 5, 4), array(4, 8, 4), array(4, 8, 7)),
        "Choose KV heads from [1, 2, 3, 6]",
    ),
    "queries of a different width": (
        lambda: grouped_attention(array(6, 5, 4), array(2, 8, 3), array(2, 8, 7)),
        "with d_k=4",
    ),
    "more values than keys": (
        lambda: grouped_attention(array(6, 5, 4), array(2, 8, 4), array(2, 9, 7)),
        "with S=8",
    ),
    "values of other groups": (
        lambda: grouped_attention(array(6, 5, 4), array(2, 8, 4), array(3, 8, 7)),
        "with G=2",
    ),
    "a different batch": (
        lambda: grouped_attention(array(3, 6, 5, 4), array(2, 2, 8, 4), array(2, 2, 8, 7)),
        "the leading axes do not fit together: Q has (3,), K has (2,)",
    ),
    "values of a different batch": (
        lambda: grouped_attention(array(6, 5, 4), array(2, 8, 4), array(3, 2, 8, 7)),
        "K has the batch axes (), V has (3,)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_words_before_any_arithmetic(name):
    call, says = REFUSED[name]
    with pytest.raises((ShapeError, ValueError, TypeError)) as caught:
        call()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("n_kv_heads", "error", "says"),
    [
        (4, ShapeError, "n_heads=6 does not split into n_kv_heads=4 equal parts"),
        (12, ShapeError, "Choose n_kv_heads from [1, 2, 3, 6]"),
    ],
)
def test_groups_that_do_not_divide_the_heads_are_refused(wide, n_kv_heads, error, says):
    with pytest.raises(error) as caught:
        group_params(wide, n_kv_heads)
    assert says in str(caught.value)


def test_a_key_that_is_nan_is_told_by_its_row_of_scores(qkv):
    Q, K, V = (A.copy() for A in qkv())
    K[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"the largest score of row \(3, 0\) is nan"):
        grouped_attention(Q, K, V)


def test_params_are_not_grouped_twice(wide):
    with pytest.raises(TypeError, match="GroupedParams; expected Params"):
        group_params(group_params(wide, 2), 1)


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ((0,), "there are 2 layers and 1 sources"),
        ((0, 2), "layer 1 takes its keys from layer 2"),
        ((1, 1), "layer 0 takes its keys from layer 1"),
        ((0, -1), "layer 1 takes its keys from layer -1"),
        ((0, None), "layer 1 takes its keys from layer None"),
    ],
)
def test_sources_that_keep_no_keys_are_refused(params, sources, says):
    with pytest.raises(ValueError, match=says):
        cross_layer_attention(np.ones((5, 12)), [params, params], sources)


def test_a_borrower_of_a_borrower_is_refused(params):
    with pytest.raises(ValueError, match="layer 2 takes its keys from layer 1; expected itself"):
        cross_layer_attention(np.ones((5, 12)), [params] * 3, (0, 0, 1))


def test_layers_of_other_widths_share_no_keys(params, wide):
    with pytest.raises(ShapeError, match="expected the same in each"):
        cross_layer_attention(np.ones((5, 12)), [params, wide], (0, 0))
    with pytest.raises(TypeError, match="GroupedParams; expected Params"):
        cross_layer_attention(np.ones((5, 12)), [group_params(params, 1)], (0,))
