"""The block: its norm and its MLP against plain loops, and the layer that it becomes without."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import multi_head_attention
from tutorial_lib.models import block as module
from tutorial_lib.models.block import block, mlp, rms_norm

D_FEED = 9


@pytest.fixture(scope="session")
def mlp_weights(normal, sizes):
    """W_1 and W_2, of a width that no other axis has."""
    return normal(30, sizes.d_model, D_FEED) / 3, normal(31, D_FEED, sizes.d_model) / 3


@pytest.mark.parametrize("factor", [1, 1e-3, 7.0, 1e6, 1e150])
def test_norm_divides_each_row_by_the_root_of_its_mean_square(X, factor, assert_close):
    assert_close(rms_norm(X), oracle.rms_norm(X))
    np.testing.assert_allclose(rms_norm(X * factor), rms_norm(X), rtol=1e-5)


def test_a_row_of_zeros_stays_at_zeros_beside_others():
    X = np.array([[0.0, 0.0, 0.0], [3.0, -3.0, 3.0]])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(rms_norm(X), [[0, 0, 0], [1, -1, 1]], rtol=1e-10)
        assert (rms_norm(X.astype(np.float32))[0] == 0).all()


@pytest.mark.parametrize("shape", [(0, 3), (0, 5, 12), (2, 0, 12)])
@pytest.mark.parametrize("dtype", [float, np.float32, np.int64])
def test_a_batch_of_no_rows_has_norms_of_none(shape, dtype):
    assert rms_norm(np.ones(shape, dtype)).shape == shape


def test_a_batch_of_no_sequences_passes_a_block_as_it_passes_the_layer(params, mlp_weights, sizes):
    X = np.ones((0, 5, sizes.d_model))
    assert multi_head_attention(X, params).shape == block(X, params, *mlp_weights).shape == X.shape


def test_whole_numbers_are_promoted_before_their_squares_are_shared_out():
    X = np.array([[1, 2, 3], [2**29, 0, 2**29]])
    np.testing.assert_allclose(rms_norm(X), oracle.rms_norm(X.astype(float)), rtol=1e-10)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones((2, 3), dtype=np.float16), TypeError, "array of float16; expected float32"),
        (np.array([[1.0, -1e154]]), ValueError, "largest number of X is 1e\\+154; expected less"),
        (np.full((1, 3), 2e19, np.float32), ValueError, "squares overflows float32. Make X small"),
        (np.array([[1, 2**32]]), ValueError, "squares overflows int64. Make X smaller"),
    ],
)
def test_rows_that_have_no_norm_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        rms_norm(X)


def test_the_largest_numbers_that_pass_have_a_norm():
    with np.errstate(all="raise"):
        np.testing.assert_allclose(rms_norm(np.full((1, 3), 7.7e153)), 1, rtol=1e-10)
        np.testing.assert_allclose(rms_norm(np.full((1, 3), 1.0e19, np.float32)), 1, rtol=1e-6)


def test_mlp_is_two_products_with_zeros_for_what_is_negative_between(X, mlp_weights, assert_close):
    assert ((X @ mlp_weights[0]) < 0).any()
    assert_close(mlp(X, *mlp_weights), oracle.mlp(X, *mlp_weights))


def test_block_adds_attention_then_the_mlp_each_of_the_normed(
    X, params, mlp_weights, square_mask, assert_close
):
    Y = block(X, params, *mlp_weights, mask=square_mask)
    assert_close(Y, oracle.block(X, params, mlp_weights, square_mask))


def test_a_block_refuses_what_overflows_before_it_computes(params, mlp_weights, monkeypatch):
    monkeypatch.setattr(module, "multi_head_attention", None)
    with pytest.raises(ValueError, match=r"largest number of X is 1e\+200"):
        block(np.full((5, 12), 1e200), params, *mlp_weights)
