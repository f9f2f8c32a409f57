"""The benchmark of one more token: every form is one step, and none copies the cache."""

from functools import partial

import numpy as np
import pytest
import torch

from experiments import decode as benchmark
from experiments import measuring
from tests import oracle
from tests.rounding import rounding
from tests.sampling import every
from tutorial_lib import Params, causal_mask, project_heads
from tutorial_lib.records import record
from tutorial_lib.variants.latent import LatentParams

TINY = benchmark.QUICK
error_of = partial(measuring.error_of, wrong="not the same step")
FORMS = [
    (library, form, kind, make)
    for library, form, kind, make in benchmark.forms([*TINY.kv_heads, "MLA"])
]
NAMES = [f"{library}, {form}" for library, form, *_ in FORMS]
KINDS = [*TINY.kv_heads, "MLA"]


@pytest.fixture(scope="module")
def layers():
    """A layer of each kind with a full cache."""
    return benchmark.random_layers_by_kind(TINY, capacity=521, layers=1)


# What is timed.


def with_cache_of(layer, X):
    """The layer, its cache filled with what it makes of tokens in place of drawn numbers."""
    params = layer.params
    if isinstance(params, LatentParams):
        rows = [np.zeros((1, len(X), 0)), (X @ params.W_D)[None]]
    else:
        rows = [project_heads(X, W) for W in (params.W_K, params.W_V)]
    for buffer, new in zip(layer.cache.buffers, rows, strict=True):
        buffer[:, : len(X)] = new
    return layer


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_compared_with_is_the_last_row_of_the_layer(kind):
    layer = benchmark.sample_layer(np.random.default_rng(1), TINY, kind, capacity=9)
    X = benchmark.normal(np.random.default_rng(2), 8, TINY.d_model)
    found = benchmark.exact(with_cache_of(layer, X[:7]), 7, X[7:])
    params = layer.params if isinstance(layer.params, Params) else layer.params.expanded()
    params = Params(*(W.astype(float) for W in vars(params).values()))
    Y = oracle.mha(X.astype(float), params, mask=causal_mask(8))
    np.testing.assert_allclose(found, Y[7:], rtol=1e-5, atol=1e-6)  # keys are kept in float32


@pytest.mark.parametrize("T", [1, 256, 520])
@pytest.mark.parametrize(("library", "form", "kind", "make"), FORMS, ids=NAMES)
def test_every_form_is_the_step_of_its_layer(library, form, kind, make, T, layers):
    [layer] = layers[kind]
    X = benchmark.normal(np.random.default_rng(3), 1, TINY.d_model)
    token = benchmark.token_of(library, X)
    with torch.inference_mode():
        step = make(layer)
        found = [np.asarray(step(token, T)) for _ in range(2)]  # again on the same cache
    for rows in found:
        assert rows.dtype == np.float32
        assert error_of(rows, benchmark.exact(layer, T, X)) < 2e-6


# No step copies the cache.


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_returns_a_longer_view_of_the_same_room(kind, layers):
    [layer] = layers[kind]
    old, X = layer.at(300), benchmark.normal(np.random.default_rng(3), 1, TINY.d_model)
    _, new = benchmark.forms_of(kind)["NumPy", kind].args[0](X, layer.params, old)
    assert new.length == 301
    for before, after, buffer in zip(
        (old.K, old.V), (new.K, new.V), layer.cache.buffers, strict=True
    ):
        if buffer.size:
            assert np.shares_memory(before, after)
            assert np.shares_memory(after, buffer)


@pytest.mark.parametrize(("library", "form", "kind", "make"), every(3, FORMS), ids=NAMES)
def test_a_step_holds_less_than_a_copy_of_its_keys(library, form, kind, make):
    plan = TINY._replace(d_k=64, rank=250, rope_dim=6)  # else the scores weigh as much as the keys
    layer = benchmark.sample_layer(np.random.default_rng(5), plan, kind, capacity=4097)
    X = benchmark.normal(np.random.default_rng(6), 1, plan.d_model)
    with torch.inference_mode():
        row = benchmark.cost_of(library, make, layer, 4096, X)
    keys_mib = row["cache_mib"] / (1 if kind == "MLA" else 2)
    assert row["peak_mib"] < 0.75 * keys_mib
    assert row["cache_mib"] == measuring.short(4096 * layer.bytes_per_token / 2**20)


# What is counted.


def test_bytes_are_those_of_the_arrays_by_hand():
    plan, rng = benchmark.FULL._replace(d_model=5), np.random.default_rng(7)
    kept = {k: benchmark.sample_layer(rng, plan, k, capacity=3).bytes_per_token for k in KINDS}
    assert kept == {"MHA": 6144, "GQA": 1536, "MQA": 512, "MLA": 1152}
    assert kept["GQA"] == 2 * 3 * 64 * 4
    assert kept["MLA"] == (256 + 32) * 4
    layer = benchmark.sample_layer(rng, plan, "GQA", capacity=3)
    assert layer.weight_bytes == 4 * 5 * 64 * (12 + 3 + 3 + 12)
    assert layer.flop_per_token == 2 * 12 * (64 + 64), "a score and a share of a value, each head"
    assert benchmark.sample_layer(rng, plan, "MLA", capacity=3).flop_per_token == 2 * 12 * (
        288 + 288
    )


def test_the_line_and_its_slope_are_held_against_reading():
    [layer] = benchmark.random_layers_by_kind(TINY, capacity=3, layers=1)["GQA"]
    lengths, rate = (5, 300, 600), np.array([100.0, 400.0])  # bytes a ms, in two rounds
    a_token = layer.bytes_per_token / rate
    times_ms = np.array([7 + 1.5 * T * a_token for T in lengths])
    row = benchmark.row_of(lengths, times_ms, layer, rate)
    assert row["slope_times_limit"] == {"median": 1.5, "low": 1.5, "high": 1.5}
    assert row["start_ms"] == {"median": 7.0, "low": 7.0, "high": 7.0}
    assert row["us_per_thousand"] == measuring.summary(1e6 * 1.5 * a_token)
    limit_ms = (layer.weight_bytes + 300 * layer.bytes_per_token) / rate
    assert row["lengths"]["300"]["times_limit"] == measuring.summary(times_ms[1] / limit_ms)


# The record.


def test_differences_are_those_of_rounding_here_and_in_the_record():
    stored, again = record("decode")["differences"], benchmark.measure_differences()
    assert {k: [*rows] for k, rows in again.items()} == {k: [*rows] for k, rows in stored.items()}
    _, T, d, H = benchmark.SMALL
    for name, rows in again.items():
        assert all(row["rows"] == T for row in rows.values())
        for precision in ("float64", "float32"):
            most = rounding(d, d // H, T, d, size=5, dtype=precision)  # no entry is above 5
            for found, where in ((rows, "here"), (stored[name], "in the record")):
                largest = found[precision]["largest"]
                said = f"{name} in {precision}: {where} cached and whole rows differ by {largest}"
                assert largest <= most, f"{said}; rounding explains {most:.1g}"
