"""The benchmark of one product against several: all are one projection, and one layer."""

import numpy as np
import pytest
import torch

from experiments import measuring
from experiments import packed_projection as benchmark
from tutorial_lib import causal_mask, trace

TINY = measuring.Size(2, 5, 12, 3)


@pytest.fixture
def layer():
    """X and Params of a tiny size in float64, and what NumPy makes of them."""
    X, params = measuring.inputs(TINY)
    return X, params, trace(X, params, mask=causal_mask(TINY.T))


@pytest.mark.parametrize("way", [benchmark.ONE, benchmark.THREE, benchmark.EACH])
def test_every_way_makes_the_queries_keys_and_values_of_numpy(way, layer):
    X, params, record = layer
    found = torch.cat(benchmark.ways(torch.from_numpy(X), params)[way](), dim=-1)
    wide = np.concatenate(
        [np.swapaxes(A, 1, 2).reshape(2, 5, 12) for A in (record.Q, record.K, record.V)], axis=-1
    )
    np.testing.assert_allclose(found, wide, rtol=1e-10, atol=1e-12)
