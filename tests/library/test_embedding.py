"""ids → X: a row for the word, plus a row for its position."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import embed, sinusoidal_positions


@pytest.fixture
def ids(batch, sizes):
    """(..., T), some ids more than once."""
    return np.random.default_rng(0).integers(0, 9, (*batch, sizes.T))


@pytest.fixture
def E(sizes, normal):
    """(9, d_model)."""
    return normal(20, 9, sizes.d_model)


@pytest.fixture
def P(sizes, normal):
    """More positions than tokens: (8, d_model)."""
    return normal(21, 8, sizes.d_model)


def test_rows_of_both_tables_are_added(ids, E, P, assert_close):
    assert_close(embed(ids, E, P), oracle.embed(ids, E, P))


def test_without_positions_a_row_is_that_of_its_token(ids, E, assert_close):
    assert_close(embed(ids, E), oracle.embed(ids, E))


def test_a_table_with_exactly_as_many_positions_as_tokens_suffices(ids, E, P, sizes, assert_close):
    assert_close(embed(ids, E, P[: sizes.T]), oracle.embed(ids, E, P))


def test_lookup_is_a_one_hot_product(ids, E):
    np.testing.assert_array_equal(embed(ids, E), np.eye(len(E))[ids] @ E)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_ids_of_any_integer_type_look_up_the_same_rows(ids, E, P, kind):
    np.testing.assert_array_equal(embed(ids.astype(kind), E, P), embed(ids, E, P))


def test_result_is_no_view_of_the_table(ids, E):
    assert not np.shares_memory(embed(ids, E), E)


@pytest.mark.parametrize("base", [10_000.0, 100.0, 7, np.float32(0.5)])
def test_positions_are_sines_and_cosines(sizes, base, assert_close):
    expected = oracle.sinusoidal_positions(sizes.T, sizes.d_model, base)
    assert_close(sinusoidal_positions(sizes.T, sizes.d_model, base=base), expected)


def test_default_base_is_the_papers(sizes, assert_close):
    expected = oracle.sinusoidal_positions(sizes.S, sizes.d_model)
    assert_close(sinusoidal_positions(sizes.S, sizes.d_model), expected)


def test_dot_product_of_two_positions_depends_only_on_their_distance():
    P = sinusoidal_positions(40, 12)
    products = P @ P.T
    for distance in (0, 1, 5, 17):
        diagonal = np.diag(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-12)
