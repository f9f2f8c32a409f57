"""Right answers of chapter 15 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.grouped import GroupedParams


def by_repeated_keys(Q, K, V, *, mask=None):
    copies = Q.shape[-3] // K.shape[-3]
    K, V = (np.repeat(array, copies, axis=-3) for array in (K, V))
    return tl.scaled_dot_product_attention(Q, K, V, mask=mask)


def pooled_by_a_matrix(params, n_kv_heads):
    members = params.n_heads // n_kv_heads
    mean = np.kron(np.eye(n_kv_heads), np.full((1, members), 1 / members))
    W_K, W_V = (np.tensordot(mean, W, axes=1) for W in (params.W_K, params.W_V))
    return GroupedParams(params.W_Q, W_K, W_V, params.W_O)


def keys_are_computed(Q, C, latent, *, mask=None):
    K, V = (tl.project_heads(C, W) for W in (latent.W_UK, latent.W_UV))
    return tl.scaled_dot_product_attention(Q, K, V, mask=mask)


def layers_by_contexts(X, layers, sources, *, mask=None):
    inputs = [X]
    for params, source in zip(layers, sources, strict=True):
        owner = layers[source]
        mixed = tl.Params(params.W_Q, owner.W_K, owner.W_V, params.W_O)
        Y = tl.multi_head_attention(inputs[-1], mixed, context=inputs[source], mask=mask)
        inputs.append(inputs[-1] + Y)
    return inputs[-1]


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
    ("grouped_attention", "repeated keys", by_repeated_keys),
    ("group_params", "a matrix of means", pooled_by_a_matrix),
    ("absorbed_attention", "keys are computed", keys_are_computed),
    ("cross_layer_attention", "contexts", layers_by_contexts),
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
