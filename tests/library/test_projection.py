"""X → Q, K, V, and the records of what is learned."""

import dataclasses

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, init_params, project_heads


@pytest.fixture
def sample():
    """`init_params` from a seed."""
    return lambda seed=0, **sizes: init_params(np.random.default_rng(seed), **sizes)


@pytest.mark.parametrize("name", ["W_Q", "W_K", "W_V"])
def test_all_heads_at_once_equal_a_loop_over_heads(X, params, name, assert_close):
    W = getattr(params, name)
    assert_close(project_heads(X, W), oracle.project_heads(X, W))


def test_each_head_is_the_plain_product_with_its_matrix(X, params, assert_close):
    projected = project_heads(X, params.W_V)
    for h, W in enumerate(params.W_V):
        assert_close(projected[..., h, :, :], X @ W)


def test_slices_of_one_wide_matrix_equal_separate_matrices(X, params, sizes):
    wide = np.concatenate(list(params.W_Q), axis=1)  # (d_model, H*d_k)
    slices = np.stack(np.split(X @ wide, sizes.H, axis=-1), axis=-3)
    np.testing.assert_allclose(project_heads(X, params.W_Q), slices, rtol=1e-10, atol=1e-12)


def test_params_know_their_sizes(params, sizes):
    known = params.n_heads, params.d_model, params.d_k, params.d_v
    assert known == (sizes.H, sizes.d_model, sizes.d_k, sizes.d_v)


def test_params_are_frozen(params):
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.W_Q = params.W_K


def test_params_keep_the_arrays_they_were_given(params):
    again = Params(params.W_Q, params.W_K, params.W_V, params.W_O)
    assert again.W_O is params.W_O


def test_sampled_params_have_the_shapes_asked_for(sample):
    params = sample(d_model=12, n_heads=3, d_k=4, d_v=7)
    shapes = [getattr(params, f.name).shape for f in dataclasses.fields(params)]
    assert shapes == [(3, 12, 4), (3, 12, 4), (3, 12, 7), (21, 12)]
    assert all(getattr(params, f.name).dtype == np.float64 for f in dataclasses.fields(params))


def test_widths_of_a_head_split_d_model_unless_given(sample):
    split, keys, values = (sample(d_model=12, n_heads=3, **d) for d in ({}, {"d_k": 5}, {"d_v": 7}))
    assert (split.d_k, split.d_v) == (4, 4)
    assert (keys.d_k, keys.d_v) == (5, 5)
    assert (values.d_k, values.d_v) == (4, 7)


def test_heads_need_not_split_d_model_when_their_width_is_given(sample):
    assert sample(d_model=12, n_heads=5, d_k=2).W_O.shape == (10, 12)


def test_same_seed_same_params_other_seed_other_params(sample):
    one, same, other = (sample(seed, d_model=12, n_heads=3) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.W_O, same.W_O)
    assert not np.allclose(one.W_O, other.W_O)


def test_each_entry_has_variance_one_over_the_rows_of_its_matrix(sample):
    params = sample(d_model=120, n_heads=8, d_k=60, d_v=90)
    for name, rows in {"W_Q": 120, "W_K": 120, "W_V": 120, "W_O": 720}.items():
        assert getattr(params, name).std() == pytest.approx(rows**-0.5, rel=0.01)


def test_inputs_of_variance_1_give_queries_of_variance_1(sample):
    params = sample(d_model=120, n_heads=8, d_k=60)
    X = np.random.default_rng(3).standard_normal((200, 120))
    assert project_heads(X, params.W_Q).std() == pytest.approx(1, rel=0.02)
