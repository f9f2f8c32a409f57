"""Q, K → scores → weights → heads, against plain loops and against what must hold of them."""

import ast
import inspect

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle

# the leading axes of Q, of K and V, and of a mask
LEADING_AXES = [
    ((), (), ()),
    ((3,), (3,), (3,)),
    ((3,), (2, 3), (2, 3)),
    ((2, 3), (3,), (2, 3)),
    ((2, 3), (1, 3), (3,)),
    ((8, 1, 3), (2, 3), (2, 3)),
    ((2, 3), (2, 1), (2, 1)),
]


@pytest.mark.parametrize("axis", [{}, {"axis": -2}, {"axis": -3}, {"axis": 0}])
def test_softmax_equals_a_loop_over_rows(scores, axis, assert_close):
    assert_close(tl.softmax(scores, **axis), oracle.softmax(scores, **axis))


@pytest.mark.parametrize("shift", [1e4, -1e4, 1e300])
def test_softmax_survives_scores_far_from_zero(scores, shift):
    shifted_scores = np.round(scores * 64) + shift
    np.testing.assert_allclose(tl.softmax(shifted_scores).sum(axis=-1), 1, rtol=1e-12)


def test_score_of_minus_infinity_gets_weight_0():
    np.testing.assert_array_equal(tl.softmax(np.array([1.0, -np.inf, 1.0])), [0.5, 0, 0.5])


def test_softmax_of_whole_numbers_is_that_of_floats():
    np.testing.assert_array_equal(
        tl.softmax(np.array([1, 2, 3])), tl.softmax(np.array([1.0, 2, 3]))
    )


@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, None), (5, 6), (1, 6), (6, 5), (1, 1)])
def test_causal_mask_ends_in_the_last_corner(n_queries, n_keys):
    mask = tl.causal_mask(n_queries, n_keys)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, oracle.causal_mask(n_queries, n_keys))


@pytest.mark.parametrize(("query_axes", "key_axes", "mask_axes"), LEADING_AXES)
def test_leading_axes_broadcast(query_axes, key_axes, mask_axes, normal, assert_close):
    Q, K, V = normal(1, *query_axes, 5, 4), normal(2, *key_axes, 6, 4), normal(3, *key_axes, 6, 7)
    assert_close(tl.attention_scores(Q, K), oracle.scores(Q, K))
    mask = normal(4, *mask_axes, 5, 6) > 0
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    assert_close(tl.scaled_dot_product_attention(Q, K, V, mask=mask), expected)


def names_with_a_root(module):
    """The functions of a module, and other statements at its top level, that take a root."""
    statements = ast.parse(inspect.getsource(module)).body
    rooted = [statement for statement in statements if any(map(takes_root, ast.walk(statement)))]
    return [getattr(statement, "name", ast.unparse(statement)) for statement in rooted]


def takes_root(node):
    """Whether a node of a syntax tree names `sqrt`, or is `... ** 0.5` or `... ** -0.5`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ast.unparse(node.right) in ("0.5", "-0.5", "1 / 2", "-1 / 2")
    return "sqrt" in (getattr(node, "attr", None), getattr(node, "id", None))


def test_attention_scores_is_the_one_place_of_the_layer_that_takes_a_root():
    assert names_with_a_root(tl.attention) == ["attention_scores"]
    assert names_with_a_root(tl.multihead) == []


def test_weights_equal_a_loop_over_rows_and_keys(scores, mask, assert_close):
    assert_close(tl.attention_weights(scores, mask=mask), oracle.attention_weights(scores, mask))


def test_heads_equal_a_loop_over_heads_and_tokens(Q, K, V, mask, assert_close):
    expected = oracle.scaled_dot_product_attention(Q, K, V, mask)
    assert_close(tl.scaled_dot_product_attention(Q, K, V, mask=mask), expected)


def test_rows_sum_to_1_and_hidden_keys_get_exactly_0(scores, mask):
    weights = tl.attention_weights(scores, mask=mask)
    visible_keys = np.broadcast_to(True if mask is None else mask, scores.shape)
    np.testing.assert_allclose(weights.sum(axis=-1), visible_keys.any(axis=-1), rtol=1e-12)
    assert (weights[~visible_keys] == 0).all()
    assert (weights[visible_keys] > 0).all()


def test_score_of_a_hidden_key_changes_nothing(scores, sizes):
    mask = tl.causal_mask(sizes.T, sizes.S)
    loud_scores = np.where(mask, scores, 1e9)
    np.testing.assert_array_equal(
        tl.attention_weights(loud_scores, mask=mask), tl.attention_weights(scores, mask=mask)
    )


def test_mask_of_all_true_is_no_mask_and_one_of_all_false_gives_zeros(scores, sizes):
    mask = np.ones((sizes.T, sizes.S), dtype=bool)
    np.testing.assert_array_equal(
        tl.attention_weights(scores, mask=mask), tl.attention_weights(scores)
    )
    assert not tl.attention_weights(scores, mask=~mask).any()


def test_equal_scores_give_equal_weights(sizes):
    weights = tl.attention_weights(np.zeros((sizes.T, sizes.T)), mask=tl.causal_mask(sizes.T))
    for t, row in enumerate(weights):  # exact: e^0 is 1, and t + 1 of them are a whole number
        np.testing.assert_array_equal(row[: t + 1], 1 / (t + 1))


def test_scores_are_divided_by_the_square_root_of_d_k(assert_close):
    Q, K = np.array([[2.0, 0, 0, 0]]), np.array([[np.log(3), 0, 0, 0], [0, 0, 0, 0]])
    heads = tl.scaled_dot_product_attention(Q, K, np.eye(2))
    assert_close(heads, np.array([[3 / 4, 1 / 4]]))  # 2 ln 3 / sqrt(4) = ln 3
