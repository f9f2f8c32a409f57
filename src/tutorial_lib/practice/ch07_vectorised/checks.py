"""Checks for chapter 07."""

import numpy as np

from tutorial_lib import attention, multihead, projection, tiled
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, normal

MISTAKES, check = room(__file__)


def _tile(rows, S, *lead):
    shapes = (*lead, rows, D_K), (*lead, D_K, S), (*lead, S, D_V)
    return {name: normal(60 + n, *shapes[n]) for n, name in enumerate(("Q", "K_T", "V"))}


def check_attend_block(function):
    """Check `attend_block(Q, K_T, V, *, causal=False)`: → (..., rows, d_v). Prints an account."""
    tile = _tile(T, S, H)
    large = {**tile, "Q": 400 * tile["Q"]}
    cases = (
        Case("5 queries, 7 keys", tile),
        Case("a causal block", tile, {"causal": True}),
        Case("one head, as many keys as queries", _tile(T, T), {"causal": True}),
        Case("scores in the thousands", large, {"causal": True}),
        Case("a batch", _tile(T, S, B, H), {"causal": True}),
    )
    check("attend_block", function, tiled.attend_block, cases)


def check_attend_in_blocks(function):
    """Check `attend_in_blocks(Q, K_T, V, *, causal, block)`: → (H, T, d_v). Prints an account."""
    tile = _tile(10, 10, H)
    cases = (
        Case("blocks of 4 for 10 tokens", tile, {"causal": True, "block": 4}),
        Case("not causal", tile, {"causal": False, "block": 4}),
        Case("one block for all", tile, {"causal": True, "block": 128}),
        Case("blocks of 1", tile, {"causal": True, "block": 1}),
        Case("420 tokens at once", _tile(420, 420, H), {"causal": True, "block": 420}),
    )
    check("attend_in_blocks", function, tiled.attend_in_blocks, cases)


def _tiled_multi_head_attention(X, params, *, causal=False, block=128):
    mask = attention.causal_mask(X.shape[-2]) if causal else None
    return multihead.multi_head_attention(X, params, mask=mask).astype(X.dtype)


def _tiled_params(d_k):
    sizes = {"d_model": D_MODEL, "n_heads": H, "d_k": d_k, "d_v": D_V}
    return projection.init_params(np.random.default_rng(3), **sizes)


def check_tiled_multi_head_attention(function):
    """Check `tiled_multi_head_attention(X, params, *, causal=False, block=128)`, of chapter 07."""
    X, params = 2 * normal(63, B, S, D_MODEL), _tiled_params(D_K)
    single = projection.Params(*(W.astype(np.float32) for W in vars(params).values()))
    causal = {"causal": True, "block": 5}
    cases = (
        Case("a batch", {"X": X, "params": params}),
        Case("causal, blocks of 5", {"X": X, "params": params}, causal),
        Case("one sequence, blocks of 2", {"X": X[0], "params": params}, {**causal, "block": 2}),
        Case("wider heads", {"X": X, "params": _tiled_params(WIDE)}, causal),
        Case("two batch axes", {"X": normal(64, WIDE, B, S, D_MODEL), "params": params}, causal),
        Case("single precision", {"X": X.astype(np.float32), "params": single}, causal),
    )
    reference = _tiled_multi_head_attention
    check("tiled_multi_head_attention", function, reference, cases)


def _score_across_heads(Q, K):
    return np.einsum("...gtd,...hsd->...ghts", Q, K)


def check_score_across_heads(function):
    """Check `score_across_heads(Q, K)`: → (..., H, H, T, S), exercise of chapter 07."""
    cases = (
        Case("3 heads", {"Q": normal(65, H, T, D_K), "K": normal(66, H, S, D_K)}),
        Case("a batch", {"Q": normal(67, B, H, T, D_K), "K": normal(68, B, H, S, D_K)}),
    )
    check("score_across_heads", function, _score_across_heads, cases)


def _window_masks(T, widths):
    back = np.arange(T)[:, None] - np.arange(T)
    return (back >= 0) & (back < widths[:, None, None])


def check_window_masks(function):
    """Check `window_masks(T, widths)`: → (H, T, T) booleans, exercise of chapter 07."""
    cases = (
        Case("three heads", {"T": T, "widths": np.array([2, 1, 4])}),
        Case("two heads, one that sees all", {"T": S, "widths": np.array([3, 9])}),
    )
    check("window_masks", function, _window_masks, cases)


def _weighted_norms(weights, V):
    return weights * np.linalg.norm(V, axis=-1)[..., None, :]


def check_weighted_norms(function):
    """Check `weighted_norms(weights, V)`: → (..., H, T, S), exercise of chapter 07."""
    weights = attention.softmax(normal(69, B, H, T, S))
    V = normal(70, B, H, S, D_V)
    cases = (
        Case("3 heads", {"weights": weights[0], "V": V[0]}),
        Case("a batch", {"weights": weights, "V": V}),
    )
    check("weighted_norms", function, _weighted_norms, cases)
