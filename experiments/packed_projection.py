"""Time one product with the packed matrix beside three products, and beside one for each head.

X is (B, T, d). One product makes queries, keys and values of all heads at once, with a matrix of
3d columns; three products make them one kind at a time; 3H products one head at a time. The
multiply-adds are the same. Float32, in inference, one thread. Before it is timed a way is compared
with the products in float64. Writes src/tutorial_lib/data/results/packed_projection.json.
"""

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from experiments import measuring
from experiments.measuring import SIZES, Size, fused_weights, inputs

SEED = measuring.SEED
ONE, THREE, EACH = "one product", "three products", "one for each head"
FULL = {"gpt2": (SIZES["gpt2"], 31)}
QUICK = {"tiny": (Size(2, 5, 12, 3), 2)}


def project_packed(X, packed):
    """Return Q, K and V, each (B, T, d): a product, cut in three."""
    return F.linear(X, packed).chunk(3, dim=-1)


def by_matrices(X, matrices):
    """Return what each matrix, (out, in), makes of X."""
    return tuple(F.linear(X, W) for W in matrices)


def ways(X, params):
    """Return {way: call} for X and Params of one precision; every call gives a tuple."""
    wide, _ = (W.T.contiguous() for W in fused_weights(params))
    three = [W.clone() for W in wide.chunk(3)]
    each = [W.clone() for W in wide.chunk(3 * params.n_heads)]
    makers = {THREE: three, EACH: each}
    return {ONE: partial(project_packed, X, wide)} | {
        n: partial(by_matrices, X, W) for n, W in makers.items()
    }


def measure_size(name, size, rounds):
    """Check and time every way at one size."""
    X, params = inputs(size)
    expected = torch.cat(ways(torch.from_numpy(X), params)[ONE](), dim=-1).numpy()
    calls = ways(torch.from_numpy(X.astype(np.float32)), measuring.in_float32(params))
    for call in calls.values():
        measuring.error_of(torch.cat(call(), dim=-1), expected, wrong="another product")
    times_ms = measuring.time_in_rounds(calls, rounds=rounds, title=name)
    return size._asdict() | {"projections": measuring.table_of(times_ms, times_one=times_ms[ONE])}


def main(sizes, record):
    """Measure every size."""
    with torch.inference_mode():
        measuring.measure_sizes(sizes, record, measure_size)
