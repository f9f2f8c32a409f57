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


@pytest.mark.parametrize("n_positions", [None, 5, 8])
def test_rows_of_both_tables_are_added(ids, E, n_positions, normal, assert_close):
    P = None if n_positions is None else normal(21, n_positions, E.shape[1])
    assert_close(embed(ids, E, P), oracle.embed(ids, E, P))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_ids_of_any_integer_type_look_up_the_same_rows_and_no_view_of_them(ids, E, dtype):
    X = embed(ids.astype(dtype), E)
    np.testing.assert_array_equal(X, E[ids])
    assert not np.shares_memory(X, E)


@pytest.mark.parametrize("base", [{}, {"base": 100.0}, {"base": 7}, {"base": np.float32(0.5)}])
def test_positions_are_sines_and_cosines(sizes, base, assert_close):
    expected = oracle.sinusoidal_positions(sizes.T, sizes.d_model, **base)
    assert_close(sinusoidal_positions(sizes.T, sizes.d_model, **base), expected)


def test_dot_product_of_two_positions_depends_only_on_their_distance():
    P = sinusoidal_positions(40, 12)
    products = P @ P.T
    for distance in (0, 1, 5, 17):
        diagonal = np.diag(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-12)
