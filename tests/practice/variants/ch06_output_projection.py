"""Right answers of chapter 06 in other ways, and too narrow ones."""

import dataclasses
import math

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch02_queries_keys_values import (
    project_by_einsum,
    project_by_stack,
    project_wide,
)
from tests.practice.variants.ch03_attention_weights import (
    attention_by_einsum,
    attention_scaled_before,
    weights_by_multiplying,
)


def layer_by_loop(X, params, *, context=None, mask=None):
    source = X if context is None else context
    blocks = np.split(params.W_O, params.n_heads)
    masks = [mask] * params.n_heads if mask is None or mask.ndim < 3 else np.moveaxis(mask, -3, 0)
    Y = np.zeros_like(X)
    for h, block in enumerate(blocks):
        Q, K, V = X @ params.W_Q[h], source @ params.W_K[h], source @ params.W_V[h]
        Y = Y + attention_by_einsum(Q, K, V, mask=masks[h]) @ block
    return Y


def layer_by_einsum(X, params, *, context=None, mask=None):
    source = X if context is None else context
    Q, K, V = (
        project_by_einsum(x, W)
        for x, W in ((X, params.W_Q), (source, params.W_K), (source, params.W_V))
    )
    heads = attention_scaled_before(Q, K, V, mask=mask)
    blocks = params.W_O.reshape(params.n_heads, params.d_v, -1)
    return np.einsum("...htv,hvm->...tm", heads, blocks)


def layer_by_sequence(X, params, *, context=None, mask=None):
    if X.ndim == 2:
        return tl.multi_head_attention(X, params, context=context, mask=mask)
    return layer_of_a_batch(X, params, context=context, mask=mask)


def layer_of_a_batch(X, params, *, context=None, mask=None):
    contexts = [None] * len(X) if context is None else context
    pairs = zip(X, contexts, strict=True)
    return np.stack([tl.multi_head_attention(x, params, context=c, mask=mask) for x, c in pairs])


def layer_without_mask_axes(X, params, *, context=None, mask=None):
    kept = mask if mask is None else mask[(0,) * (mask.ndim - 2)]
    return tl.multi_head_attention(X, params, context=context, mask=kept)


def trace_of_a_batch(X, params, *, context=None, mask=None):
    record = tl.trace(X, params, context=context, mask=mask)
    B, H, T, d_v = record.heads.shape
    concat = record.heads.swapaxes(1, 2).reshape(B, T, H * d_v)
    return dataclasses.replace(record, concat=concat)


def trace_without_mask_axes(X, params, *, context=None, mask=None):
    kept = mask if mask is None else mask[(0,) * (mask.ndim - 2)]
    return tl.trace(X, params, context=context, mask=kept)


def trace_by_einsum(X, params, *, context=None, mask=None):
    source = X if context is None else context
    Q = project_by_stack(X, params.W_Q)
    K, V = project_wide(source, params.W_K), project_by_stack(source, params.W_V)
    scores = np.einsum("...td,...sd->...ts", Q, K) * params.d_k**-0.5
    weights = weights_by_multiplying(scores, mask=mask)
    heads = np.einsum("...ts,...sv->...tv", weights, V)
    concat = np.concatenate(list(np.moveaxis(heads, -3, 0)), axis=-1)
    Y = layer_by_loop(X, params, context=context, mask=mask)
    return tl.Trace(params, X, context, Q, K, V, scores, weights, heads, concat, Y)


def shares_by_loop(heads, W_O):
    blocks = np.split(W_O, heads.shape[-3])
    parts = [heads[..., h, :, :] @ block for h, block in enumerate(blocks)]
    Y = sum(parts)
    return np.stack([np.einsum("...m,...m->...", part, Y) for part in parts], axis=-2) / (
        np.linalg.norm(Y, axis=-1)[..., None, :] ** 2
    )


def shares_by_einsum(heads, W_O):
    parts = np.einsum("...htv,hvm->...htm", heads, W_O.reshape(heads.shape[-3], -1, W_O.shape[1]))
    along = np.einsum("...htm,...gtm->...ht", parts, parts)
    return along / along.sum(axis=-2, keepdims=True)


VARIANTS = [
    ("multi_head_attention", "loop over heads", layer_by_loop),
    ("multi_head_attention", "einsum", layer_by_einsum),
    ("multi_head_attention", "sequence by sequence", layer_by_sequence),
    ("trace", "einsum", trace_by_einsum),
    ("head_shares", "loop over heads", shares_by_loop),
    ("head_shares", "each part with every part", shares_by_einsum),
    ("length_factor", "norm", lambda W: np.linalg.norm(W) / len(W) ** 0.5),
    ("length_factor", "trace", lambda W: np.sqrt(np.trace(W @ W.T) / W.shape[0])),
    (
        "length_factor",
        "lengths of rows",
        lambda W: math.sqrt(np.mean(np.linalg.norm(W, axis=1) ** 2)),
    ),
    ("layer_parameters", "matrix by matrix", lambda d, H, k, kv: 2 * d * H * k + 2 * d * kv * k),
    (
        "layer_parameters",
        "np.int64",
        lambda *sizes: np.int64(sizes[0] * sizes[2]) * 2 * sum(sizes[1::2]),
    ),
    ("layer_parameters", "float", lambda d, H, k, kv: 2.0 * d * k * (H + kv)),
]


NARROW = [
    ("multi_head_attention", "a batch alone", layer_of_a_batch),
    ("multi_head_attention", "one mask for all heads", layer_without_mask_axes),
    ("trace", "a batch alone", trace_of_a_batch),
    ("trace", "one mask for all heads", trace_without_mask_axes),
]
