"""Right answers of chapter 07 in other ways, and too narrow ones."""

import math

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch02_queries_keys_values import project_wide
from tests.practice.variants.ch03_attention_weights import (
    attention_scaled_before,
    softmax_by_logarithm,
)


def block_by_rows(Q, K_T, V, *, causal=False):
    rows, S = Q.shape[-2], K_T.shape[-1]
    stops = [S - rows + t + 1 if causal else S for t in range(rows)]
    parts = [
        softmax_by_logarithm(Q[..., t : t + 1, :] @ K_T[..., :stop]) @ V[..., :stop, :]
        for t, stop in enumerate(stops)
    ]
    return np.concatenate(parts, axis=-2)


def block_by_masking(Q, K_T, V, *, causal=False):
    mask = tl.causal_mask(Q.shape[-2], K_T.shape[-1]) if causal else None
    Q = Q * math.sqrt(Q.shape[-1])
    return attention_scaled_before(Q, np.swapaxes(K_T, -1, -2), V, mask=mask)


def block_with_a_column_of_ones(Q, K_T, V, *, causal=False):
    scores = np.einsum("...td,...ds->...ts", Q, K_T)
    if causal:
        scores[..., ~tl.causal_mask(*scores.shape[-2:])] = -1e30
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    both = exponentials @ np.concatenate([V, np.ones_like(V[..., :1])], axis=-1)
    return both[..., :-1] / both[..., -1:]


def blocks_head_by_head(Q, K_T, V, *, causal, block):
    heads = []
    for q, k_T, v in zip(Q, K_T, V, strict=True):
        tiles = [slice(start, start + block) for start in range(0, len(q), block)]
        parts = [
            block_by_masking(
                q[rows],
                k_T[:, : rows.stop if causal else None],
                v[: rows.stop if causal else None],
                causal=causal,
            )
            for rows in tiles
        ]
        heads.append(np.concatenate(parts))
    return np.stack(heads)


def tiled_for_the_whole_batch(X, params, *, causal=False, block=128):
    Q, K, V = (project_wide(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, T = Q / np.asarray(params.d_k**0.5, dtype=X.dtype), X.shape[-2]
    parts = []
    for start in range(0, T, block):
        stop = min(start + block, T) if causal else T
        tile = Q[..., start : start + block, :], np.swapaxes(K, -1, -2)[..., :stop]
        parts.append(block_by_rows(*tile, V[..., :stop, :], causal=causal))
    return tl.concat_heads(np.concatenate(parts, axis=-2)) @ params.W_O


def across_heads_by_loop(Q, K):
    pairs = [
        [Q[..., g, :, :] @ np.swapaxes(K[..., h, :, :], -1, -2) for h in range(K.shape[-3])]
        for g in range(Q.shape[-3])
    ]
    return np.stack([np.stack(row, axis=-3) for row in pairs], axis=-4)


def window_masks_by_loop(T, widths):
    masks = np.zeros((len(widths), T, T), dtype=bool)
    for h, width in enumerate(widths):
        for t in range(T):
            masks[h, t, max(0, t - width + 1) : t + 1] = True
    return masks


def norms_by_loop(weights, V):
    norms = np.zeros(weights.shape)
    for index in np.ndindex(weights.shape):
        *lead, h, _, s = index
        norms[index] = weights[index] * math.hypot(*V[(*lead, h, s)])
    return norms


VARIANTS = [
    ("attend_block", "row by row", block_by_rows),
    ("attend_block", "a mask of all keys", block_by_masking),
    ("attend_block", "sums from a column of ones", block_with_a_column_of_ones),
    ("attend_in_blocks", "head by head", blocks_head_by_head),
    (
        "attend_in_blocks",
        "without blocks",
        lambda Q, K_T, V, causal, block: block_by_masking(Q, K_T, V, causal=causal),
    ),
    ("tiled_multi_head_attention", "the whole batch at once", tiled_for_the_whole_batch),
    ("score_across_heads", "loop", across_heads_by_loop),
    (
        "score_across_heads",
        "matmul",
        lambda Q, K: Q[..., :, None, :, :] @ np.swapaxes(K, -1, -2)[..., None, :, :, :],
    ),
    ("window_masks", "loop", window_masks_by_loop),
    (
        "window_masks",
        "two triangles",
        lambda T, widths: np.stack(
            [np.tril(np.triu(np.ones((T, T), bool), 1 - w)) for w in widths]
        ),
    ),
    ("weighted_norms", "loop", norms_by_loop),
    (
        "weighted_norms",
        "einsum",
        lambda weights, V: np.einsum(
            "...ts,...s->...ts", weights, np.sqrt(np.einsum("...d,...d->...", V, V))
        ),
    ),
]


NARROW = [
    (
        "attend_block",
        "heads alone, no batch",
        lambda Q, K_T, V, causal=False: (
            block_by_rows(Q, K_T, V, causal=causal) if Q.ndim < 4 else V[..., : Q.shape[-2], :]
        ),
    ),
    (
        "tiled_multi_head_attention",
        "a batch alone",
        lambda X, params, causal=False, block=128: np.stack(
            [tiled_for_the_whole_batch(x, params, causal=causal, block=block) for x in X]
        ),
    ),
    ("score_across_heads", "without a batch", lambda Q, K: np.einsum("gtd,hsd->ghts", Q, K)),
    (
        "weighted_norms",
        "without a batch",
        lambda weights, V: weights * np.linalg.norm(V, axis=2)[:, None, :],
    ),
]
