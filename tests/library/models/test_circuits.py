"""Circuits of two heads: against plain loops, on the example, and what they refuse."""

import math

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import trace
from tutorial_lib.models import circuits
from tutorial_lib.models.circuits import (
    compose,
    composition,
    match_scores,
    ov_circuit,
    qk_circuit,
)
from tutorial_lib.models.grammar import CLASSES
from tutorial_lib.models.language import encode

NAMES = f"{CLASSES['given:f']} {CLASSES['given:m']}"


def by_loops(*matrices):
    """The product of matrices, by sums over pairs."""
    product, *rest = matrices
    for matrix in rest:
        product = oracle.project_out(product, matrix)
    return product


# --- against the layer, and plain loops ---


def test_the_qk_circuit_gives_a_heads_scores_of_two_rows(X, params, sizes, assert_close):
    scores = trace(X, params).scores
    for head in range(sizes.H):
        products = X @ qk_circuit(params, head) @ np.swapaxes(X, -1, -2)
        assert_close(products / math.sqrt(sizes.d_k), scores[..., head, :, :])


def test_the_ov_circuits_of_all_heads_give_the_output_of_the_layer(X, params, sizes, assert_close):
    record = trace(X, params)
    parts = [record.weights[..., h, :, :] @ X @ ov_circuit(params, h) for h in range(sizes.H)]
    assert_close(sum(parts), record.Y)


def test_composition_is_the_length_of_the_product_by_the_lengths(normal, assert_close):
    first, second = normal(90, 5, 3), normal(91, 3, 4)
    product = by_loops(first, second)
    length = math.sqrt(math.fsum(float(x) ** 2 for x in product.ravel()))
    for matrix in (first, second):
        length /= math.sqrt(math.fsum(float(x) ** 2 for x in matrix.ravel()))
    assert_close(np.array(composition(first, second)), np.array(length))


def test_composition_is_0_where_nothing_is_read_and_1_along_one_direction():
    write, read, other = (np.outer(row, row) for row in np.eye(3))
    assert composition(write, read) == composition(read, other) == 0
    assert composition(3 * write, -2 * write) == 1


def test_composition_ignores_scale_and_minds_the_order(normal, assert_close):
    first, second = normal(92, 5, 5), normal(93, 5, 5)
    score = composition(first, second)
    assert_close(composition(-7 * first, second / 3), score)
    assert abs(composition(second, first) - score) > 1e-3


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_composition_of_matrices_whose_squares_no_float_holds(size, normal, assert_close):
    first, second = normal(92, 5, 5), normal(93, 5, 5)
    score = composition(first, second)
    for matrices in ((size * first, second), (first, size * second), (size * first, size * second)):
        assert_close(np.array(composition(*matrices)), np.array(score))


def test_match_scores_are_products_of_the_query_and_the_word_written_into_the_key(normal):
    E, W_QK, W_OV = normal(94, 4, 5), normal(95, 5, 5), normal(96, 5, 5)
    found = match_scores(E, W_QK, W_OV)
    for a, b in np.ndindex(4, 4):
        written = by_loops(E[b : b + 1], W_OV)
        product = by_loops(E[a : a + 1], W_QK, np.swapaxes(written, 0, 1))
        np.testing.assert_allclose(found[a, b], product[0, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("through", ["keys", "queries", "values"])
def test_compose_is_what_reaches_the_keys_the_queries_and_the_values(through, tiny, assert_close):
    first, second = tiny.layers
    for a, b in np.ndindex(2, 3):
        written = by_loops(first.W_V[a], first.W_O[2 * a : 2 * a + 2])
        W_Q, W_K, rows = second.W_Q[b], second.W_K[b], second.W_O[4 * b : 4 * b + 4]
        read = {
            "keys": by_loops(W_K, W_Q.T),
            "queries": by_loops(W_Q, W_K.T),
            "values": by_loops(second.W_V[b], rows),
        }[through]
        score = compose(tiny, (0, a), (1, b), through=through)
        assert_close(np.array(score), np.array(composition(written, read)))


def test_keys_are_what_is_meant_where_no_path_is_named(tiny):
    assert compose(tiny, (0, 1), (1, 2)) == compose(tiny, (0, 1), (1, 2), through="keys")
    assert compose(tiny, (0, 1), (1, 2)) != compose(tiny, (0, 1), (1, 2), through="queries")


# --- what is refused ---


@pytest.mark.parametrize(
    ("first", "second", "error", "says"),
    [
        ((1, 0), (0, 1), ValueError, "head 0.1 reads nothing of head 1.0.*Exchange them"),
        ((0, 1), (0, 0), ValueError, "head 0.0 reads nothing of head 0.1.*Take heads of two"),
        ((1, 2), (1, 2), ValueError, "head 1.2 reads nothing of head 1.2"),
        ((0, 2), (1, 0), ValueError, "head 2 of 2: expected 0 to 1"),
        ((0, 0), (1, 3), ValueError, "head 3 of 3: expected 0 to 2"),
        ((-1, 0), (1, 0), ValueError, "layer -1 of 2: expected 0 to 1"),
        ((0,), (1, 0), TypeError, r"a head is named \(0,\); expected a tuple"),
        ((0, 0.0), (1, 0), TypeError, "head is 0.0, a float"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(first, second, error, says, tiny, monkeypatch):
    monkeypatch.setattr(circuits, "ov_circuit", None)  # nothing is computed
    with pytest.raises(error, match=says):
        compose(tiny, first, second)


def test_another_path_is_refused(tiny):
    with pytest.raises(ValueError, match="through='key'; expected one of"):
        compose(tiny, (0, 0), (1, 0), through="key")


@pytest.mark.parametrize("circuit", [qk_circuit, ov_circuit])
@pytest.mark.parametrize("head", [2, -1])
def test_a_head_that_is_not_there_is_refused(circuit, head, tiny):
    with pytest.raises(ValueError, match=f"head {head} of 2: expected 0 to 1. Choose one that is"):
        circuit(tiny.layers[0], head)


def test_matrices_of_zeros_have_no_composition():
    ones, zeros = np.ones((5, 5)), np.zeros((5, 5))
    for matrices, name in (((zeros, ones), "first"), ((ones, zeros), "second")):
        with pytest.raises(ValueError, match=f"^{name} is all zeros; expected a norm above 0"):
            composition(*matrices)


# --- on the example ---


def test_in_the_example_each_name_written_by_head_0_0_is_matched_by_two_heads(example):
    names = example.E[encode(NAMES)[1:]]
    W_OV = ov_circuit(example.layers[0], 0)
    found = {}
    for head in range(4):
        table = match_scores(names, qk_circuit(example.layers[1], head), W_OV)
        found[head] = int((table.argmax(axis=1) == np.arange(len(names))).sum())
    assert found[0] == found[3] == len(names) > max(found[1], found[2])


def test_in_the_example_the_strongest_composition_through_keys_is_that_pairs(example):
    scores = {(a, b): compose(example, (0, a), (1, b)) for a, b in np.ndindex(4, 4)}
    assert sorted(scores, key=scores.get)[-2:] == [(0, 3), (0, 0)]
