"""The benchmark of one product against several: all are one projection, and one layer."""

import numpy as np
import pytest
import torch

from experiments import measuring
from experiments import packed_projection as benchmark
from tutorial_lib import causal_mask, trace
from tutorial_lib.records import record

TINY = measuring.Size(2, 5, 12, 3)
ROW = {"ms", "times_one"}


@pytest.fixture
def layer():
    """X and Params of a tiny size in float64, and what NumPy makes of them."""
    X, params = measuring.inputs(TINY)
    return X, params, trace(X, params, mask=causal_mask(TINY.T))


@pytest.mark.parametrize("way", [benchmark.ONE, benchmark.THREE, benchmark.EACH])
def test_every_way_makes_the_queries_keys_and_values_of_numpy(way, layer):
    X, params, record = layer
    found = torch.cat(benchmark.ways(torch.from_numpy(X), params)["projections"][way](), dim=-1)
    wide = np.concatenate(
        [np.swapaxes(A, 1, 2).reshape(2, 5, 12) for A in (record.Q, record.K, record.V)], axis=-1
    )
    np.testing.assert_allclose(found, wide, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("way", [benchmark.ONE, benchmark.THREE])
def test_the_layer_around_each_is_the_layer(way, layer):
    X, params, record = layer
    [Y] = benchmark.ways(torch.from_numpy(X), params)["layer"][way]()
    np.testing.assert_allclose(Y, record.Y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("wrong", [1e-4, np.nan])
def test_another_product_is_refused(wrong):
    right = torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="another product"):
        benchmark.require_same(lambda: (right + wrong,), right)


@pytest.mark.long
def test_the_whole_script_gives_every_way_its_numbers(capsys, monkeypatch):
    monkeypatch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
    monkeypatch.setattr(measuring, "prepare", lambda: None)
    benchmark.main(["--quick"])
    said = capsys.readouterr().out
    for word in (benchmark.ONE, benchmark.THREE, benchmark.EACH, *benchmark.PARTS, "torch_blas"):
        assert word in said


def test_the_record_has_every_way_at_every_size():
    sizes = record("packed_projection")["sizes"]
    assert list(sizes) == [*measuring.SIZES, "token"]
    for measured in sizes.values():
        assert set(measured["layer"]) == {benchmark.ONE, benchmark.THREE}
        assert set(measured["projections"]) == {benchmark.ONE, benchmark.THREE, benchmark.EACH}
        for part in benchmark.PARTS:
            assert all(set(row) == ROW for row in measured[part].values())
            assert set(measured[part][benchmark.ONE]["times_one"].values()) == {1.0}
