"""One latent in place of keys and values: against loops, and in the limit."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from tests import oracle
from tests.library.test_errors import array
from tutorial_lib import (
    Params,
    ShapeError,
    causal_mask,
    project_heads,
    running_example,
    trace,
)
from tutorial_lib.variants.latent import LatentParams, absorbed_attention, latent_params

H, T, S, D_MODEL, D_K, D_V, RANK = 3, 5, 6, 12, 4, 7, 8
BATCHES = [(), (2,), (9, 2)]


@pytest.fixture
def latent(normal):
    """LatentParams of rank 8."""
    shapes = (H, D_MODEL, D_K), (D_MODEL, RANK), (H, RANK, D_K), (H, RANK, D_V), (H * D_V, D_MODEL)
    return LatentParams(*(normal(30 + n, *shape) for n, shape in enumerate(shapes)))


def latent_layer(X, latent, mask=None):
    """The layer with keys and values of its latent, which are never computed."""
    Q, C = project_heads(X, latent.W_Q), X @ latent.W_D
    heads = absorbed_attention(Q, C, latent, mask=mask)
    return oracle.project_out(oracle.concat_heads(heads), latent.W_O)


@pytest.mark.parametrize("kind", ["none", "causal"])
def test_a_latent_of_full_rank_is_the_layer(params, normal, kind, make_mask, assert_close):
    X, mask = normal(9, 2, T, D_MODEL), make_mask(kind, (2,), T)
    assert_close(
        latent_layer(X, latent_params(params, D_MODEL), mask), oracle.mha(X, params, mask=mask)
    )


LIMITS = {"Latent (MLA)": test_a_latent_of_full_rank_is_the_layer}


def test_x_itself_is_a_latent_of_any_layer(params, normal, assert_close):
    X = normal(9, 2, T, D_MODEL)
    itself = LatentParams(params.W_Q, np.eye(D_MODEL), params.W_K, params.W_V, params.W_O)
    assert_close(latent_layer(X, itself), oracle.mha(X, params))


def test_eight_numbers_per_token_give_back_dogs_that_bark(assert_close):
    example = running_example()
    params, d_model = example.params, example.params.d_model
    whole = trace(example.X, params, mask=example.mask)
    joint = np.concatenate([*params.W_K, *params.W_V], axis=-1)
    assert joint.shape == (8, 16)
    assert np.linalg.matrix_rank(joint) == d_model
    itself = LatentParams(params.W_Q, np.eye(d_model), params.W_K, params.W_V, params.W_O)
    heads = absorbed_attention(whole.Q, example.X, itself, mask=example.mask)
    assert_close(heads, whole.heads)


@pytest.mark.parametrize("batch", BATCHES)
def test_absorbed_equals_loops_that_compute_keys_and_values(normal, latent, batch, assert_close):
    Q, C = normal(1, *batch, H, T, D_K), normal(2, *batch, S, RANK)
    some, empty = oracle.drawn_masks((*batch, H, T, S))
    for mask in (None, causal_mask(T, S), some, empty, some[..., :1, :, :]):
        expected = oracle.latent_attention(Q, C, latent.W_UK, latent.W_UV, mask)
        assert_close(absorbed_attention(Q, C, latent, mask=mask), expected)


def test_absorbed_is_attention_with_one_head_whose_key_is_its_value(normal, latent, assert_close):
    Q, C = normal(1, H, T, D_K), normal(2, S, RANK)
    absorbed_Q = np.stack([Q[h] @ latent.W_UK[h].T for h in range(H)]) * (RANK / D_K) ** 0.5
    mixed = oracle.grouped_attention(absorbed_Q, C[None], C[None])
    expected = np.stack([mixed[h] @ latent.W_UV[h] for h in range(H)])
    assert_close(absorbed_attention(Q, C, latent), expected)


def test_a_batch_of_queries_may_share_one_context(normal, latent, assert_close):
    Q, C = normal(1, 2, H, T, D_K), normal(2, S, RANK)
    expected = oracle.latent_attention(Q, np.stack([C, C]), latent.W_UK, latent.W_UV)
    assert_close(absorbed_attention(Q, C, latent), expected)


@pytest.mark.parametrize("rank", [1, 2, 5, 11])
def test_no_latent_of_that_rank_is_nearer_to_the_keys_and_values(params, rank):
    expanded = latent_params(params, rank).expanded()
    joint, truncated = (
        np.concatenate([*which.W_K, *which.W_V], axis=-1) for which in (params, expanded)
    )
    assert np.linalg.matrix_rank(truncated) == rank
    sizes = np.linalg.eigvalsh(joint @ joint.T)[::-1] ** 0.5  # singular values, without the SVD
    lost = np.linalg.norm(joint - truncated)
    assert lost == pytest.approx(np.linalg.norm(sizes[rank:]), rel=1e-9)


def test_expanded_params_compute_the_same(latent, normal, assert_close):
    X = normal(9, 2, T, D_MODEL)
    assert_close(latent_layer(X, latent), oracle.mha(X, latent.expanded()))


def test_narrow_heads_bound_the_rank(normal):
    shapes = (2, 12, 3), (2, 12, 3), (2, 12, 2), (4, 12)
    narrow = Params(*(normal(n, *shape) for n, shape in enumerate(shapes)))
    full = latent_params(narrow, 10).expanded()
    np.testing.assert_allclose(full.W_K, narrow.W_K, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(full.W_V, narrow.W_V, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="rank=11; expected 1 to 10"):
        latent_params(narrow, 11)


def test_latent_params_know_their_sizes(latent):
    known = [getattr(latent, size) for size in ("n_heads", "d_model", "d_k", "d_v", "rank")]
    assert known == [H, D_MODEL, D_K, D_V, RANK]
    with pytest.raises(dataclasses.FrozenInstanceError):
        latent.W_D = latent.W_O


@pytest.mark.parametrize(
    ("rank", "error", "says"),
    [
        (13, ValueError, "rank=13; expected 1 to 12, since [W_K | W_V] of all heads is 12 x 33"),
    ],
)
def test_a_rank_that_cannot_be_is_refused(params, rank, error, says):
    with pytest.raises(error) as caught:
        latent_params(params, rank)
    assert says in str(caught.value)


def test_a_latent_that_is_nan_is_told_by_its_row_of_scores(normal, latent):
    C = normal(2, S, RANK).copy()
    C[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"the largest score of row \(0, 0\) is nan"):
        absorbed_attention(normal(1, H, T, D_K), C, latent)


def test_a_latent_has_no_latent(latent):
    with pytest.raises(TypeError, match="LatentParams; expected Params"):
        latent_params(latent, 4)


def record(d_model=12, rank=8, H=3, d_k=4, d_v=7, **bad):
    """LatentParams of arrays that refuse arithmetic, one length or number of which may be wrong."""
    arrays = array(3, 12, 4), array(d_model, 8), array(H, rank, d_k), array(3, 8, 7, **bad)
    return LatentParams(*arrays, array(3 * d_v, 12))


def attend(*, Q=(3, 5, 4), C=(6, 8), mask=None, **bad):
    """Attention of arrays that refuse arithmetic to latents, one of whose shapes may be wrong."""
    return absorbed_attention(array(*Q), array(*C, **bad), record(), mask=mask)


REFUSED = {
    "a latent of a different layer": (lambda: record(d_model=9), "W_D has shape (9, 8)"),
    "a different rank": (lambda: record(rank=6), "W_UK has shape (3, 6, 4)"),
    "keys of other heads": (lambda: record(H=2), "W_UK has shape (2, 8, 4)"),
    "keys of a different width": (lambda: record(d_k=5), "W_UK has shape (3, 8, 5)"),
    "values wider than W_O": (lambda: record(d_v=5), "W_O has shape (15, 12)"),
    "a value that is NaN": (lambda: record(bad=np.nan, at=(1, 2, 3)), "W_UV is nan at position (1"),
    "queries of other heads": (lambda: attend(Q=(2, 5, 4)), "with H=3"),
    "queries of a different width": (lambda: attend(Q=(3, 5, 8)), "with d_k=4"),
    "latents of a different width": (lambda: attend(C=(6, 7)), "with rank=8"),
    "a different batch": (lambda: attend(Q=(2, 3, 5, 4), C=(9, 6, 8)), "Q has (2,), C has (9,)"),
    "a mask of a different length": (
        lambda: attend(mask=np.ones((5, 7), dtype=bool)),
        "mask has shape (5, 7)",
    ),
    "latents of narrow integers": (lambda: attend(dtype=np.int8), "C is an array of int8"),
    "no record": (
        lambda: absorbed_attention(array(3, 5, 4), array(6, 8), SimpleNamespace()),
        "expected LatentParams. Compute them with latent_params(params, rank)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_words_before_any_arithmetic(name):
    call, says = REFUSED[name]
    with pytest.raises((ShapeError, ValueError, TypeError)) as caught:
        call()
    assert says in str(caught.value)
