"""X → Q, K, V, and the records of what is learned."""

import dataclasses

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, init_params, project_heads


@pytest.fixture
def sampled():
    """`init_params` from a seed."""
    return lambda seed=0, **sizes: init_params(np.random.default_rng(seed), **sizes)


def test_all_heads_at_once_equal_a_loop_over_heads(X, params, assert_close):
    assert_close(project_heads(X, params.W_V), oracle.project_heads(X, params.W_V))


def test_params_know_their_sizes_are_frozen_and_hold_the_arrays_themselves(params, sizes):
    param_sizes = params.n_heads, params.d_model, params.d_k, params.d_v
    assert param_sizes == (sizes.H, sizes.d_model, sizes.d_k, sizes.d_v)
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.W_Q = params.W_K
    assert Params(params.W_Q, params.W_K, params.W_V, params.W_O).W_O is params.W_O


@pytest.mark.parametrize(
    ("H", "width_options", "d_k", "d_v"),
    [
        (3, {}, 4, 4),  # the widths of a head split d_model
        (3, {"d_k": 5}, 5, 5),
        (3, {"d_v": 7}, 4, 7),
        (5, {"d_k": 2}, 2, 2),
        (5, {"d_k": 2, "d_v": 7}, 2, 7),
    ],
)
def test_sampled_params_have_the_widths_in_the_call(sampled, H, width_options, d_k, d_v):
    arrays = vars(sampled(d_model=12, n_heads=H, **width_options)).values()
    assert [W.shape for W in arrays] == [(H, 12, d_k), (H, 12, d_k), (H, 12, d_v), (H * d_v, 12)]
    assert {W.dtype for W in arrays} == {np.dtype(float)}


def test_same_seed_same_params_other_seed_other_params(sampled):
    first_params, same_params, seed_2 = (sampled(seed, d_model=12, n_heads=3) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first_params.W_O, same_params.W_O)
    assert not np.allclose(first_params.W_O, seed_2.W_O)


def test_each_entry_has_variance_one_over_the_rows_of_its_matrix(sampled):
    params = sampled(d_model=120, n_heads=8, d_k=60, d_v=90)
    for name, rows in {"W_Q": 120, "W_K": 120, "W_V": 120, "W_O": 720}.items():
        assert getattr(params, name).std() == pytest.approx(rows**-0.5, rel=0.01)
