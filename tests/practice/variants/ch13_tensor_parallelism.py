"""Right answers of chapter 13 in other ways, and edits that make it too narrow."""

import math

import numpy as np

import tutorial_lib as tl


def uneven_by_loop(params, rank, world_size):
    counts = [params.n_heads // world_size] * world_size
    for extra in range(params.n_heads % world_size):
        counts[extra] += 1
    heads = range(sum(counts[:rank]), sum(counts[: rank + 1]))
    W_Q, W_K, W_V = (np.stack([W[h] for h in heads]) for W in (params.W_Q, params.W_K, params.W_V))
    blocks = [params.W_O[h * params.d_v : (h + 1) * params.d_v] for h in heads]
    return tl.Params(W_Q, W_K, W_V, np.concatenate(blocks))


VARIANTS = [
    ("shard_unevenly", "head after head", uneven_by_loop),
    (
        "bytes_sent",
        "whole numbers, send after send",
        lambda shape, n_layers, world_size, itemsize: (
            n_layers
            * 2
            * 2
            * sum(math.prod(shape) // world_size * itemsize for _ in range(2 * (world_size - 1)))
        ),
    ),
    (
        "pairs_seen",
        "a column of a mask",
        lambda owner, n: (np.arange(n)[:, None] == owner) @ tl.causal_mask(len(owner)).sum(axis=1),
    ),
]


NARROW = [
    ("shard_unevenly", "one head left over", "first, n_own", "left = min(left, 1)\nfirst, n_own"),
    (
        "pairs_seen",
        "blocks or in turn",
        "seen =",
        "owner = np.sort(owner) if owner[0] == owner[1] else np.arange(len(owner)) % n\nseen =",
    ),
]
