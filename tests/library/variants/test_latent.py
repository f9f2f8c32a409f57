"""One latent in place of keys and values: against loops, and in the limit."""

import numpy as np
import pytest

from tests import oracle
from tests.library.test_errors import array
from tutorial_lib import Params, ShapeError, causal_mask, project_heads, running_example, trace
from tutorial_lib.variants.latent import LatentParams, absorbed_attention, latent_params

H, T, S, D_MODEL, D_K, D_V, RANK = 3, 5, 6, 12, 4, 7, 8
SHAPES = (H, D_MODEL, D_K), (D_MODEL, RANK), (H, RANK, D_K), (H, RANK, D_V), (H * D_V, D_MODEL)


@pytest.fixture
def latent(normal):
    """LatentParams of rank 8."""
    return LatentParams(*(normal(30 + n, *shape) for n, shape in enumerate(SHAPES)))


def latent_layer(X, latent, mask=None):
    """The layer with keys and values of its latent, which are never computed."""
    Q, C = project_heads(X, latent.W_Q), X @ latent.W_D
    heads = absorbed_attention(Q, C, latent, mask=mask)
    return oracle.project_out(oracle.concat_heads(heads), latent.W_O)


@pytest.mark.parametrize("mask_name", ["none", "causal"])
def test_a_latent_of_full_rank_is_the_layer(params, normal, mask_name, make_mask, assert_close):
    X, mask = normal(9, 2, T, D_MODEL), make_mask(mask_name, (2,), T)
    identity_latent = LatentParams(params.W_Q, np.eye(D_MODEL), params.W_K, params.W_V, params.W_O)
    for latent in (latent_params(params, D_MODEL), identity_latent):
        assert_close(latent_layer(X, latent, mask), oracle.mha(X, params, mask=mask))


LIMITS = {"Latent (MLA)": test_a_latent_of_full_rank_is_the_layer}


def test_eight_numbers_per_token_give_back_dogs_that_bark(assert_close):
    example = running_example()
    params, d_model = example.params, example.params.d_model
    layer_trace = trace(example.X, params, mask=example.mask)
    joint_matrix = np.concatenate([*params.W_K, *params.W_V], axis=-1)
    assert joint_matrix.shape == (8, 16)
    assert np.linalg.matrix_rank(joint_matrix) == d_model
    identity_latent = LatentParams(params.W_Q, np.eye(d_model), params.W_K, params.W_V, params.W_O)
    heads = absorbed_attention(layer_trace.Q, example.X, identity_latent, mask=example.mask)
    assert_close(heads, layer_trace.heads)


@pytest.mark.parametrize(
    ("batch", "latent_batch"), [((), ()), ((2,), (2,)), ((3, 2), (3, 2)), ((2,), ())]
)
def test_absorbed_equals_loops_that_compute_keys_and_values(
    normal, latent, batch, latent_batch, assert_close
):
    Q, C = normal(1, *batch, H, T, D_K), normal(2, *latent_batch, S, RANK)
    repeated_C = np.broadcast_to(C, (*batch, S, RANK))
    partial_mask, no_keys = oracle.drawn_masks((*batch, H, T, S))
    for mask in (None, causal_mask(T, S), partial_mask, no_keys, partial_mask[..., :1, :, :]):
        expected = oracle.latent_attention(Q, repeated_C, latent.W_UK, latent.W_UV, mask)
        assert_close(absorbed_attention(Q, C, latent, mask=mask), expected)


def test_absorbed_is_attention_with_one_head_whose_key_is_its_value(normal, latent, assert_close):
    Q, C = normal(1, H, T, D_K), normal(2, S, RANK)
    absorbed_Q = np.stack([Q[h] @ latent.W_UK[h].T for h in range(H)]) * (RANK / D_K) ** 0.5
    mixed_rows = oracle.grouped_attention(absorbed_Q, C[None], C[None])
    expected = np.stack([mixed_rows[h] @ latent.W_UV[h] for h in range(H)])
    assert_close(absorbed_attention(Q, C, latent), expected)


@pytest.mark.parametrize("rank", [1, 2, 5, 11])
def test_no_latent_of_that_rank_is_nearer_to_the_keys_and_values(params, rank):
    expanded = latent_params(params, rank).expanded()
    joint_matrix, truncated_matrix = (
        np.concatenate([*layer.W_K, *layer.W_V], axis=-1) for layer in (params, expanded)
    )
    assert np.linalg.matrix_rank(truncated_matrix) == rank
    sigma = (
        np.linalg.eigvalsh(joint_matrix @ joint_matrix.T)[::-1] ** 0.5
    )  # singular values, without the SVD
    loss = np.linalg.norm(joint_matrix - truncated_matrix)
    assert loss == pytest.approx(np.linalg.norm(sigma[rank:]), rel=1e-9)


def test_expanded_params_compute_the_same(latent, normal, assert_close):
    X = normal(9, 2, T, D_MODEL)
    assert_close(latent_layer(X, latent), oracle.mha(X, latent.expanded()))
    sizes = {"H": H, "d_model": D_MODEL, "d_k": D_K, "d_v": D_V, "rank": RANK, "H*d_v": H * D_V}
    assert latent.sizes == sizes


def test_narrow_heads_bound_the_rank(params, normal):
    shapes = (2, 12, 3), (2, 12, 3), (2, 12, 2), (4, 12)
    narrow_params = Params(*(normal(n, *shape) for n, shape in enumerate(shapes)))
    full_params = latent_params(narrow_params, 10).expanded()
    np.testing.assert_allclose(full_params.W_K, narrow_params.W_K, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(full_params.W_V, narrow_params.W_V, rtol=1e-10, atol=1e-12)
    for layer, rank, sides in ((narrow_params, 11, "12 x 10"), (params, 13, "12 x 33")):
        with pytest.raises(ValueError, match=f"^rank={rank}; expected .*: {sides}. Give a lower"):
            latent_params(layer, rank)


@pytest.mark.parametrize(
    ("Q", "C", "message"),
    [((2, 5, 4), (6, 8), "H=3"), ((3, 5, 8), (6, 8), "d_k=4"), ((3, 5, 4), (6, 7), "rank=8")],
)
def test_arrays_that_do_not_fit_the_latent_are_refused_before_any_arithmetic(Q, C, message):
    latent = LatentParams(*(array(*shape) for shape in SHAPES))
    with pytest.raises(ShapeError, match=f"with {message}"):
        absorbed_attention(array(*Q), array(*C), latent)


def test_a_latent_that_is_nan_is_refused_by_its_row_of_scores(normal, latent):
    C = np.where(np.arange(S * RANK).reshape(S, RANK) == 10, np.nan, 1)
    with pytest.raises(ValueError, match=r"the largest score of row \(0, 0\) is nan"):
        absorbed_attention(normal(1, H, T, D_K), C, latent)
