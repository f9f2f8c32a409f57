"""The benchmark of chapter 07: all forms are one layer, and the chapter shows what is timed."""

import ast
import inspect
import json
import math
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from experiments import measuring
from experiments import numpy_attention as benchmark
from tutorial_lib import causal_mask, init_params, multi_head_attention
from tutorial_lib.records import record

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "07_vectorised.ipynb"
RESULTS = record("numpy_attention")
REWRITES = ("by_loop", "by_broadcasting", "by_einsum", "in_place")
TINY = benchmark.Size(2, 300, 12, 3)  # more tokens than two blocks of 128


@pytest.fixture(scope="module")
def layer():
    """X and Params whose lengths all differ, with an axis of length 1 to be stretched wrongly."""
    params = init_params(np.random.default_rng(0), d_model=12, n_heads=3, d_k=4, d_v=7)
    return np.random.default_rng(1).standard_normal((2, 200, 12)), params


@pytest.mark.parametrize("name", benchmark.NUMPY)
def test_every_form_in_numpy_is_the_layer_to_twelve_digits(name, layer):
    X, params = layer
    expected = multi_head_attention(X, params, mask=causal_mask(200))
    np.testing.assert_allclose(benchmark.NUMPY[name](X, params), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", benchmark.NUMPY)
def test_every_form_in_numpy_keeps_single_precision_and_its_inputs(name, layer):
    X, params = layer
    X, params = X.astype(np.float32), measuring.in_float32(params)
    before = [X.copy(), *(W.copy() for W in vars(params).values())]
    assert benchmark.NUMPY[name](X, params).dtype == np.float32
    for old, new in zip(before, [X, *vars(params).values()], strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", benchmark.TORCH)
def test_every_form_in_torch_is_the_layer(name):
    expected = benchmark.by_loop(*benchmark.inputs(TINY))
    with torch.inference_mode():
        Y = benchmark.calls(*measuring.single_inputs(TINY), [name])[name]()
    np.testing.assert_allclose(Y, expected, atol=1e-5)


@pytest.mark.parametrize("name", benchmark.WATCHED)
def test_the_stopwatch_runs_beside_the_same_arithmetic(name, monkeypatch):
    seconds = count()  # a clock that goes on at each look
    monkeypatch.setattr(benchmark, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    X, params = benchmark.inputs(TINY)
    watch = benchmark.Stopwatch()
    Y = benchmark.WATCHED[name](X, params, watch)
    np.testing.assert_allclose(Y, benchmark.by_loop(X, params), rtol=1e-12, atol=1e-12)
    assert {"project, in and out", "score", "exponential", "mix"} < set(watch.ms)
    assert all(spent >= 1e3 for spent in watch.ms.values())


def functions(source):
    """The functions at the top level of a source, without their docstrings, by name."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            node.body = node.body[1:] if ast.get_docstring(node) else node.body
            found[node.name] = ast.dump(node)
    return found


def test_the_chapter_shows_the_rewrites_that_are_timed():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    shown = {}
    for cell in cells:
        shown |= functions("".join(cell["source"]) if cell["cell_type"] == "code" else "")
    timed = functions(inspect.getsource(benchmark))
    for name in REWRITES:
        assert shown[name] == timed[name], name


# The measuring itself.


def test_the_limit_is_the_time_at_the_rate_of_the_product_in_the_same_round():
    product_ms = np.array([20.0, 40.0])
    assert measuring.limit_ms(3 * measuring.GEMM_FLOP, product_ms).tolist() == [60.0, 120.0]
    assert measuring.gemm()().shape == (measuring.GEMM_SIDE,) * 2


def test_peak_memory_is_that_of_the_call():
    X = np.ones(2**17)  # one MiB
    assert math.isclose(measuring.peak_mib(lambda: X + 1), 1, rel_tol=0.02)
    assert math.isclose(measuring.peak_mib(lambda: [X + 1, X + 2, X + 3]), 3, rel_tol=0.02)
    T = torch.ones(2**18)
    assert math.isclose(measuring.torch_peak_mib(lambda: T + 1), 1, rel_tol=0.02)
    assert math.isclose(measuring.torch_peak_mib(lambda: (T + 1) * (T + 2)), 3, rel_tol=0.02)


def test_peak_of_the_tiled_layer_is_below_48_mib_and_a_table_of_scores():
    tiled = "tiled, blocks of 128"
    assert RESULTS["sizes"]["gpt2"]["forms"][tiled]["peak_mib"] <= 48
    X, params = measuring.single_inputs(benchmark.Size(1, 512, 96, 4))
    table_mib = 4 * 512 * 512 * 4 / 2**20
    assert measuring.peak_mib(lambda: benchmark.NUMPY[tiled](X, params)) < table_mib
