"""Q, K → scores → weights → heads, against plain loops and against what must hold of them."""

import ast
import inspect

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import (
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    multihead,
    scaled_dot_product_attention,
    softmax,
)


@pytest.mark.parametrize("axis", [-1, -2, -3, 0])
def test_softmax_equals_a_loop_over_rows(scores, axis, assert_close):
    assert_close(softmax(scores, axis=axis), oracle.softmax(scores, axis))


def test_softmax_runs_over_the_last_axis_unless_told(scores, assert_close):
    assert_close(softmax(scores), oracle.softmax(scores, -1))


@pytest.mark.parametrize("shift", [1e4, -1e4, 1e300])
def test_softmax_survives_scores_far_from_zero(scores, shift):
    moved = np.round(scores * 64) + shift
    np.testing.assert_allclose(softmax(moved).sum(axis=-1), 1, rtol=1e-12)


def test_softmax_does_not_change_when_a_number_is_added_to_a_row(scores, assert_close):
    whole = np.round(scores * 64) / 64  # adding to these is exact
    assert_close(softmax(whole + 1024), softmax(whole))


def test_score_of_minus_infinity_gets_weight_0():
    np.testing.assert_array_equal(softmax(np.array([1.0, -np.inf, 1.0])), [0.5, 0, 0.5])


def test_softmax_of_whole_numbers_is_that_of_floats():
    np.testing.assert_array_equal(softmax(np.array([1, 2, 3])), softmax(np.array([1.0, 2, 3])))


@pytest.mark.parametrize(("queries", "keys"), [(5, None), (5, 6), (1, 6), (6, 5), (1, 1)])
def test_causal_mask_ends_in_the_last_corner(queries, keys):
    mask = causal_mask(queries, keys)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, oracle.causal_mask(queries, keys))


def test_last_rows_of_a_square_causal_mask_are_the_mask_of_new_queries():
    np.testing.assert_array_equal(causal_mask(6)[-2:], causal_mask(2, 6))


def test_scores_equal_a_loop_over_queries_and_keys(Q, K, assert_close):
    assert_close(attention_scores(Q, K), oracle.scores(Q, K))


@pytest.mark.parametrize("batches", [((), (2,)), ((2,), ()), ((2,), (1,)), ((8, 1), (2,))])
def test_scores_of_queries_and_keys_with_other_leading_axes_broadcast(
    batches, normal, assert_close
):
    Q, K = normal(1, *batches[0], 3, 5, 4), normal(2, *batches[1], 3, 6, 4)
    assert_close(attention_scores(Q, K), oracle.scores(Q, K))


def test_one_head_of_keys_serves_all_heads_of_queries(Q, K, assert_close):
    shared = K[..., :1, :, :]
    assert_close(attention_scores(Q, shared), oracle.scores(Q, shared))


def test_what_is_added_to_the_scores_goes_into_the_weights(Q, K, V, mask, sizes, assert_close):
    bias = -np.abs(np.arange(sizes.T)[:, None] - np.arange(sizes.S)) / 4  # a slope: (T, S)
    weights = attention_weights(attention_scores(Q, K) + bias, mask=mask)
    assert_close(weights, oracle.attention_weights(oracle.scores(Q, K) + bias, mask))
    assert_close(
        attention_weights(attention_scores(Q, K), mask=mask) @ V,
        scaled_dot_product_attention(Q, K, V, mask=mask),
    )


def names_with_a_root(module):
    """The functions of a module, and other statements at its top level, that take a root."""
    statements = ast.parse(inspect.getsource(module)).body
    with_root = [one for one in statements if any(map(takes_root, ast.walk(one)))]
    return [getattr(one, "name", ast.unparse(one)) for one in with_root]


def takes_root(node):
    """Whether a node of a syntax tree names `sqrt`, or is `... ** 0.5` or `... ** -0.5`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ast.unparse(node.right) in ("0.5", "-0.5", "1 / 2", "-1 / 2")
    return "sqrt" in (getattr(node, "attr", None), getattr(node, "id", None))


def test_attention_scores_is_the_one_place_of_the_layer_that_takes_a_root():
    assert names_with_a_root(attention) == ["attention_scores"]
    assert names_with_a_root(multihead) == []


def test_weights_equal_a_loop_over_rows_and_keys(scores, mask, assert_close):
    assert_close(attention_weights(scores, mask=mask), oracle.attention_weights(scores, mask))


def test_heads_equal_a_loop_over_heads_and_tokens(Q, K, V, mask, assert_close):
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    assert_close(scaled_dot_product_attention(Q, K, V, mask=mask), expected)


def test_rows_sum_to_1_and_hidden_keys_get_exactly_0(scores, mask):
    weights = attention_weights(scores, mask=mask)
    seen = np.broadcast_to(True if mask is None else mask, scores.shape)
    np.testing.assert_allclose(weights.sum(axis=-1), seen.any(axis=-1), rtol=1e-12)
    assert (weights[~seen] == 0).all()
    assert (weights[seen] > 0).all()


def test_score_of_a_hidden_key_changes_nothing(scores, sizes):
    mask = causal_mask(sizes.T, sizes.S)
    loud = np.where(mask, scores, 1e9)
    np.testing.assert_array_equal(
        attention_weights(loud, mask=mask), attention_weights(scores, mask=mask)
    )


def test_value_of_a_later_key_does_not_reach_an_earlier_query(Q, K, V, sizes):
    mask = causal_mask(sizes.T, sizes.S)
    changed = V.copy()
    changed[..., -1, :] += 1e6
    before = scaled_dot_product_attention(Q, K, V, mask=mask)
    after = scaled_dot_product_attention(Q, K, changed, mask=mask)
    # Exact: the same sums, to which the changed value adds itself times 0.
    np.testing.assert_array_equal(after[..., :-1, :], before[..., :-1, :])
    assert (after[..., -1, :] != before[..., -1, :]).all()


@pytest.mark.parametrize("rows", [(2,), (0, 4), (0, 1, 2, 3, 4)])
def test_query_with_nothing_to_look_at_gets_zero_weights(scores, sizes, rows):
    mask = np.ones((sizes.T, sizes.S), dtype=bool)
    mask[list(rows)] = False
    weights = attention_weights(scores, mask=mask)
    assert (weights[..., list(rows), :] == 0).all()
    assert weights.sum() == pytest.approx((sizes.T - len(rows)) * scores[..., 0, 0].size)


def test_query_with_nothing_to_look_at_gets_a_zero_output(Q, K, V, sizes):
    mask = np.arange(sizes.T)[:, None] != 2  # (T, 1), for all keys
    heads = scaled_dot_product_attention(Q, K, V, mask=mask)
    assert (heads[..., 2, :] == 0).all()
    assert (heads[..., [0, 1, 3, 4], :] != 0).all()


def test_mask_of_all_true_is_no_mask(scores, sizes):
    mask = np.ones((sizes.T, sizes.S), dtype=bool)
    np.testing.assert_array_equal(attention_weights(scores, mask=mask), attention_weights(scores))


def test_keys_and_values_without_a_batch_axis_serve_every_sequence(Q, K, V, assert_close):
    K, V = (array.reshape(-1, *array.shape[-3:])[0] for array in (K, V))
    expected = oracle.scaled_dot_product_attention(Q, K, V)
    assert_close(scaled_dot_product_attention(Q, K, V), expected)


@pytest.mark.parametrize("batches", [((2,), ()), ((), (2,))])
def test_a_mask_of_each_sequence_fits_where_only_queries_or_keys_are_a_batch(
    batches, normal, make_mask, assert_close
):
    for_queries, for_keys = batches
    Q = normal(1, *for_queries, 3, 5, 4)
    K, V = normal(2, *for_keys, 3, 6, 4), normal(3, *for_keys, 3, 6, 7)
    mask = make_mask("per sequence and head", (2,), 6)
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    assert_close(scaled_dot_product_attention(Q, K, V, mask=mask), expected)


def test_one_head_without_a_head_axis(Q, K, V, sizes, assert_close):
    Q, K, V = (array.reshape(-1, *array.shape[-2:])[0] for array in (Q, K, V))
    mask = causal_mask(sizes.T, sizes.S)
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    assert_close(scaled_dot_product_attention(Q, K, V, mask=mask), expected)


def test_equal_scores_give_equal_weights(sizes):
    weights = attention_weights(np.zeros((sizes.T, sizes.T)), mask=causal_mask(sizes.T))
    for t, row in enumerate(weights):  # exact: e^0 is 1, and t + 1 of them are a whole number
        np.testing.assert_array_equal(row[: t + 1], 1 / (t + 1))


def test_scores_are_divided_by_the_square_root_of_d_k(assert_close):
    Q, K = np.array([[2.0, 0, 0, 0]]), np.array([[np.log(3), 0, 0, 0], [0, 0, 0, 0]])
    heads = scaled_dot_product_attention(Q, K, np.eye(2))
    assert_close(heads, np.array([[3 / 4, 1 / 4]]))  # 2 ln 3 / sqrt(4) = ln 3
