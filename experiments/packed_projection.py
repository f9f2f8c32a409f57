"""Time one product with the packed matrix beside three products, and beside one for each head.

X is (B, T, d). One product makes queries, keys and values of all heads at once, with a matrix of
3d columns; three products make them one kind at a time; 3H products one head at a time. The
multiply-adds are the same. Timed are the projections alone, and the layer around the first two:
SDPA, causal, and the projection out. Float32, forward, in inference, one thread. Before it is timed
a way is compared with the products in float64. Writes
src/tutorial_lib/data/results/packed_projection.json.
"""

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from experiments import measuring
from experiments.measuring import SIZES, Size, fused_weights, inputs

SEED = measuring.SEED
ONE, THREE, EACH = "one product", "three products", "one for each head"
PARTS = ("projections", "layer")
ONE_TOKEN = Size(1, 1, 768, 12)  # GPT-2 small writes one more token
ROUNDS = {"book": 101, "gpt2": 31, "long": 15, "token": 301}
FULL = {name: (size, ROUNDS[name]) for name, size in (SIZES | {"token": ONE_TOKEN}).items()}
QUICK = {"tiny": (Size(2, 5, 12, 3), 2)}


def by_one(X, packed):
    """Return Q, K and V, each (B, T, d): a product, cut in three."""
    return F.linear(X, packed).chunk(3, dim=-1)


def by_matrices(X, matrices):
    """Return what each matrix, (out, in), makes of X."""
    return tuple(F.linear(X, W) for W in matrices)


def attend(kinds, W_O, n_heads):
    """Return Y from Q, K and V, each (B, T, d): heads, SDPA, concat, projection out."""
    Q, K, V = (kind.unflatten(-1, (n_heads, -1)).transpose(1, 2) for kind in kinds)
    heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
    return F.linear(heads.transpose(1, 2).flatten(2), W_O)


def ways(X, params):
    """Return {part: {way: call}} for X and Params of one precision; every call gives a tuple."""
    wide, W_O = (W.T.contiguous() for W in fused_weights(params))
    three = [W.clone() for W in wide.chunk(3)]
    each = [W.clone() for W in wide.chunk(3 * params.n_heads)]
    makers = {ONE: partial(by_one, X, wide), THREE: partial(by_matrices, X, three)}

    def layer(make):
        return lambda: (attend(make(), W_O, params.n_heads),)

    return {
        "projections": makers | {EACH: partial(by_matrices, X, each)},
        "layer": {name: layer(make) for name, make in makers.items()},
    }


def measure_size(name, size, rounds):
    """Check and time every way at one size: {part: {way: row}}."""
    X, params = inputs(size)
    exact = ways(torch.from_numpy(X), params)
    calls = ways(torch.from_numpy(X.astype(np.float32)), measuring.single(params))
    found = dict(size._asdict())
    for part in PARTS:
        expected = torch.cat(exact[part][ONE](), dim=-1).numpy()
        for call in calls[part].values():
            measuring.error_of(torch.cat(call(), dim=-1), expected, wrong="another product")
        times_ms = measuring.time_in_rounds(calls[part], rounds=rounds, title=f"{name}, {part}")
        found[part] = measuring.table_of(times_ms, times_one=times_ms[ONE])
    return found


def main(sizes, record):
    """Measure every size, and print it."""
    with torch.inference_mode():
        measuring.measure_sizes(sizes, record, measure_size, PARTS)
