"""Right answers of chapter 15 in other ways, and edits that make it too narrow."""

import numpy as np

from tutorial_lib.variants.grouped import GroupedParams


def untiled_by_sorting(params):
    order = np.argsort(np.arange(params.n_heads) % params.n_kv_heads, kind="stable")
    W_O = params.W_O.reshape(params.n_heads, -1, params.d_model)[order]
    W_O = W_O.reshape(-1, params.d_model)
    return GroupedParams(params.W_Q[order], params.W_K, params.W_V, W_O)


def output_head_by_head(latent):
    parts = np.split(latent.W_O, latent.n_heads)
    return np.concatenate([up @ part for up, part in zip(latent.W_UV, parts, strict=True)])


def bytes_layer_by_layer(*, n_layers, n_heads, rank, rope_dim, itemsize):
    return sum(itemsize * rank + itemsize * rope_dim for _ in range(n_layers))


VARIANTS = [
    ("from_tiled", "a stable sort", untiled_by_sorting),
    ("absorbed_output", "head by head", output_head_by_head),
    ("latent_cache_bytes", "layer by layer", bytes_layer_by_layer),
]


NARROW = [
    ("grouped_attention", "the first of a batch only", "rows =", "assert Q.ndim < 4\nrows ="),
    ("grouped_attention", "the batch of the keys", "rows =", "batch = K.shape[:-3]\nrows ="),
    ("grouped_attention", "no mask", "mask=mask", "mask=None"),
    ("group_params", "pairs only", "(n_kv_heads, -1,", "(-1, 2,"),
    ("cross_layer_attention", "all borrow from layer 0", "cached[source]", "cached[0]"),
    ("latent_cache_bytes", "one latent only", "(rank + rope_dim)", "(40 + 6)"),
]
