"""Wide rows ↔ heads."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import concat_heads, split_heads


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 12])
def test_head_h_holds_the_h_th_piece_of_each_row(X, n_heads, assert_close):
    assert_close(split_heads(X, n_heads), oracle.split_heads(X, n_heads))


def test_heads_lie_side_by_side_head_0_first(V, assert_close):
    assert_close(concat_heads(V), oracle.concat_heads(V))


@pytest.mark.parametrize("n_heads", [1, 2, 3, 12])
def test_concat_undoes_split(X, n_heads):
    np.testing.assert_array_equal(concat_heads(split_heads(X, n_heads)), X)


def test_split_undoes_concat(V, sizes):
    np.testing.assert_array_equal(split_heads(concat_heads(V), sizes.H), V)


def test_a_row_of_a_head_comes_from_the_same_token(X, sizes):
    changed = X.copy()
    changed[..., 3, :] += 1
    moved = split_heads(changed, sizes.H) != split_heads(X, sizes.H)
    assert moved[..., 3, :].all()
    assert not moved[..., [0, 1, 2, 4], :].any()


def test_rows_in_another_memory_order_split_alike(sizes, normal):
    X = np.asfortranarray(normal(0, sizes.T, sizes.d_model))
    np.testing.assert_array_equal(split_heads(X, 3), split_heads(X.copy(order="C"), 3))
    heads = np.asfortranarray(normal(0, sizes.H, sizes.T, sizes.d_v))
    np.testing.assert_array_equal(concat_heads(heads), concat_heads(heads.copy(order="C")))


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8])
def test_type_of_the_numbers_stays(X, kind):
    whole = np.round(10 + X).astype(kind)
    assert split_heads(whole, 3).dtype == concat_heads(split_heads(whole, 3)).dtype == kind
