"""Right answers of chapter 07 in other ways, and edits that make it too narrow."""

import math

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch02_queries_keys_values import project_wide
from tests.practice.variants.ch03_attention_weights import (
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


def tiled_for_the_whole_batch(X, params, *, causal=False, block=128):
    Q, K, V = (project_wide(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, T = Q / np.asarray(params.d_k**0.5, dtype=X.dtype), X.shape[-2]
    parts = []
    for start in range(0, T, block):
        stop = min(start + block, T) if causal else T
        tile = Q[..., start : start + block, :], np.swapaxes(K, -1, -2)[..., :stop]
        parts.append(block_by_rows(*tile, V[..., :stop, :], causal=causal))
    return tl.concat_heads(np.concatenate(parts, axis=-2)) @ params.W_O


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
    ("tiled_multi_head_attention", "the whole batch at once", tiled_for_the_whole_batch),
    (
        "score_across_heads",
        "matmul",
        lambda Q, K: Q[..., :, None, :, :] @ np.swapaxes(K, -1, -2)[..., None, :, :, :],
    ),
    ("window_masks", "loop", window_masks_by_loop),
    ("weighted_norms", "loop", norms_by_loop),
]


NARROW = [
    ("attend_block", "heads alone, no batch", "scores = Q", "assert Q.ndim < 4\nscores = Q"),
    ("tiled_multi_head_attention", "a batch alone", "return", "assert X.ndim == 3\nreturn"),
]
