"""Circuits of two heads: against plain loops, on the example, and what they refuse."""

import functools
import math

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import trace
from tutorial_lib.models import circuits
from tutorial_lib.models.circuits import compose, composition, match_scores, ov_circuit, qk_circuit
from tutorial_lib.models.grammar import CLASSES
from tutorial_lib.models.language import encode

GIVEN_NAMES = f"{CLASSES['given:f']} {CLASSES['given:m']}"


def matmul(*matrices):
    """The product of matrices, by sums over pairs."""
    return functools.reduce(oracle.project_out, matrices)


def norm(matrix):
    """The root of the sum of all squares."""
    return math.sqrt(math.fsum(float(x) ** 2 for x in matrix.ravel()))


def test_circuits_give_the_scores_of_each_head_and_together_the_output(
    X, params, sizes, assert_close
):
    record, Y = trace(X, params), 0
    for head in range(sizes.H):
        products = X @ qk_circuit(params, head) @ np.swapaxes(X, -1, -2)
        assert_close(products / math.sqrt(sizes.d_k), record.scores[..., head, :, :])
        Y = Y + record.weights[..., head, :, :] @ X @ ov_circuit(params, head)
    assert_close(Y, record.Y)


def test_composition_is_the_norm_of_the_product_by_the_norms(normal, assert_close):
    first_matrix, second_matrix = normal(90, 5, 3), normal(91, 3, 4)
    expected = norm(matmul(first_matrix, second_matrix)) / norm(first_matrix) / norm(second_matrix)
    assert_close(composition(first_matrix, second_matrix), np.array(expected))


def test_composition_is_0_where_nothing_is_read_and_1_along_one_direction():
    projections = [np.outer(axis, axis) for axis in np.eye(3)]
    assert composition(*projections[:2]) == composition(*projections[1:]) == 0
    assert composition(3 * projections[0], -2 * projections[0]) == 1


@pytest.mark.parametrize("size", [-7, 1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_composition_ignores_scale_where_no_float_holds_the_squares_too(size, normal, assert_close):
    A, B = normal(92, 5, 5), normal(93, 5, 5)
    score = composition(A, B)
    for matrices in ((size * A, B), (A, size * B), (size * A, size * B)):
        assert_close(composition(*matrices), score)


def test_match_scores_are_products_of_the_query_and_the_word_written_into_the_key(
    normal, assert_close
):
    E, W_QK, W_OV = normal(94, 4, 5), normal(95, 5, 5), normal(96, 5, 5)
    expected = matmul(E, W_QK, np.swapaxes(matmul(E, W_OV), 0, 1))
    assert_close(match_scores(E, W_QK, W_OV), expected)


@pytest.mark.parametrize("through", ["keys", "queries", "values"])
def test_compose_is_what_reaches_the_keys_the_queries_and_the_values(through, model, assert_close):
    lower_layer, layer_1 = model.layers
    for a, b in np.ndindex(2, 3):
        W_OV = matmul(lower_layer.W_V[a], lower_layer.W_O[2 * a : 2 * a + 2])
        W_Q, W_K, W_O = layer_1.W_Q[b], layer_1.W_K[b], layer_1.W_O[4 * b : 4 * b + 4]
        matrices = {"keys": (W_K, W_Q.T), "queries": (W_Q, W_K.T), "values": (layer_1.W_V[b], W_O)}
        score = compose(model, (0, a), (1, b), through=through)
        assert_close(score, composition(W_OV, matmul(*matrices[through])))


def test_keys_are_what_is_meant_where_no_path_is_named(model):
    assert compose(model, (0, 1), (1, 2)) == compose(model, (0, 1), (1, 2), through="keys")


@pytest.mark.parametrize(
    ("first_head", "second_head", "message"),
    [
        ((1, 0), (0, 1), "head 0.1 reads nothing of head 1.0.*Exchange them"),
        ((0, 1), (0, 0), "head 0.0 reads nothing of head 0.1.*Take heads of two"),
        ((1, 2), (1, 2), "head 1.2 reads nothing of head 1.2"),
        ((0, 2), (1, 0), "head 2 of 2: expected 0 to 1"),
        ((0, 0), (1, 3), "head 3 of 3: expected 0 to 2"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(first_head, second_head, message, model, monkeypatch):
    monkeypatch.setattr(circuits, "ov_circuit", None)  # nothing is computed
    with pytest.raises(ValueError, match=message):
        compose(model, first_head, second_head)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: compose(m, (0, 0), (1, 0), through="key"), "through='key'; expected one of"),
        (lambda m: qk_circuit(m.layers[0], 2), "head 2 of 2: expected 0 to 1. Choose one that is"),
        (lambda m: ov_circuit(m.layers[0], -1), "head -1 of 2: expected 0 to 1. Choose one that"),
        (lambda m: composition(np.zeros((5, 5)), np.eye(5)), "^first is all zeros; expected a n"),
        (lambda m: composition(np.eye(5), np.zeros((5, 5))), "^second is all zeros; expected a "),
    ],
)
def test_what_has_no_circuit_is_refused(call, message, model):
    with pytest.raises(ValueError, match=message):
        call(model)


def test_in_the_example_each_name_written_by_head_0_0_is_matched_by_two_heads(example_model):
    name_E = example_model.E[encode(GIVEN_NAMES)[1:]]
    W_OV, match_counts = ov_circuit(example_model.layers[0], 0), []
    for head in range(4):
        match_table = match_scores(name_E, qk_circuit(example_model.layers[1], head), W_OV)
        match_counts.append((match_table.argmax(axis=1) == np.arange(len(name_E))).sum())
    assert match_counts[0] == match_counts[3] == len(name_E) > max(match_counts[1], match_counts[2])


def test_in_the_example_the_strongest_composition_through_keys_is_that_pairs(example_model):
    scores = {(a, b): compose(example_model, (0, a), (1, b)) for a, b in np.ndindex(4, 4)}
    assert sorted(scores, key=scores.get)[-2:] == [(0, 3), (0, 0)]
