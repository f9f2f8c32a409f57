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


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_memory_order_does_not_matter_and_the_type_of_the_numbers_stays(X, V, dtype):
    for head_function, array in ((lambda rows: split_heads(rows, 3), X), (concat_heads, V)):
        rounded_array = np.round(10 + array).astype(dtype)
        expected = head_function(rounded_array)
        assert expected.dtype == dtype
        np.testing.assert_array_equal(head_function(np.asfortranarray(rounded_array)), expected)
