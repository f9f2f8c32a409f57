"""Checks for chapter 07."""

import numpy as np

from tutorial_lib import attention, multihead, projection, tiled
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, normal

MISTAKES, cases_of = read_room(__file__)


def _block_inputs(n_queries, S, *batch):
    shapes = (*batch, n_queries, D_K), (*batch, D_K, S), (*batch, S, D_V)
    return {name: normal(60 + n, *shapes[n]) for n, name in enumerate(("Q", "K_T", "V"))}


@cases_of(tiled.attend_block)
def check_attend_block():
    tile = _block_inputs(T, S, H)
    large = {**tile, "Q": 400 * tile["Q"]}
    yield "5 queries, 7 keys", tile
    yield "a causal block", tile, {"causal": True}
    yield "one head, as many keys as queries", _block_inputs(T, T), {"causal": True}
    yield "scores in the thousands", large, {"causal": True}
    yield "a batch", _block_inputs(T, S, B, H), {"causal": True}


@cases_of(tiled.attend_in_blocks)
def check_attend_in_blocks():
    tile = _block_inputs(10, 10, H)
    yield "blocks of 4 for 10 tokens", tile, {"causal": True, "block": 4}
    yield "not causal", tile, {"causal": False, "block": 4}
    yield "one block for all", tile, {"causal": True, "block": 128}
    yield "blocks of 1", tile, {"causal": True, "block": 1}
    yield "420 tokens at once", _block_inputs(420, 420, H), {"causal": True, "block": 420}


def _tiled_multi_head_attention(X, params, *, causal=False, block=128):
    mask = attention.causal_mask(X.shape[-2]) if causal else None
    return multihead.multi_head_attention(X, params, mask=mask).astype(X.dtype)


def _params(d_k):
    sizes = {"d_model": D_MODEL, "n_heads": H, "d_k": d_k, "d_v": D_V}
    return projection.init_params(np.random.default_rng(3), **sizes)


@cases_of(_tiled_multi_head_attention)
def check_tiled_multi_head_attention():
    X, params = 2 * normal(63, B, S, D_MODEL), _params(D_K)
    single = projection.Params(*(W.astype(np.float32) for W in vars(params).values()))
    causal = {"causal": True, "block": 5}
    yield "a batch", {"X": X, "params": params}
    yield "causal, blocks of 5", {"X": X, "params": params}, causal
    yield "one sequence, blocks of 2", {"X": X[0], "params": params}, {**causal, "block": 2}
    yield "wider heads", {"X": X, "params": _params(WIDE)}, causal
    yield "two batch axes", {"X": normal(64, WIDE, B, S, D_MODEL), "params": params}, causal
    yield "single precision", {"X": X.astype(np.float32), "params": single}, causal


def _score_across_heads(Q, K):
    """Multiply the queries of each head g by the keys of every head h: (..., g, h, T, S)."""
    return np.einsum("...gtd,...hsd->...ghts", Q, K)


@cases_of(_score_across_heads)
def check_score_across_heads():
    yield "3 heads", {"Q": normal(65, H, T, D_K), "K": normal(66, H, S, D_K)}
    yield "a batch", {"Q": normal(67, B, H, T, D_K), "K": normal(68, B, H, S, D_K)}


def _window_masks(T, widths):
    """Let the queries of each head attend to as many of the last keys as its width says."""
    back = np.arange(T)[:, None] - np.arange(T)
    return (back >= 0) & (back < widths[:, None, None])


@cases_of(_window_masks)
def check_window_masks():
    yield "three heads", {"T": T, "widths": np.array([2, 1, 4])}
    yield "two heads, one that sees all", {"T": S, "widths": np.array([3, 9])}


def _weighted_norms(weights, V):
    return weights * np.linalg.norm(V, axis=-1)[..., None, :]


@cases_of(_weighted_norms)
def check_weighted_norms():
    weights = attention.softmax(normal(69, B, H, T, S))
    V = normal(70, B, H, S, D_V)
    yield "3 heads", {"weights": weights[0], "V": V[0]}
    yield "a batch", {"weights": weights, "V": V}
