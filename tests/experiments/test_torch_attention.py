"""The benchmark of PyTorch's layers: all are one layer, and none that fails is dropped."""

import json
import sys

import numpy as np
import pytest
import torch

from experiments import measuring
from experiments import torch_attention as benchmark
from tutorial_lib import causal_mask, multi_head_attention, multi_head_attention_backward, trace

pytestmark = pytest.mark.usefixtures("no_compiler")

TINY = measuring.Size(2, 150, 12, 4)  # more tokens than a block of FlexAttention, even heads
WAYS = (benchmark.FORWARD, benchmark.BACKWARD)
NUMBERS = {"ms", "times_bare", "times_ours", "peak_mib", "error"}


@pytest.fixture
def no_transformers(monkeypatch):
    """A machine without the package, whatever this one has and has imported."""
    for name in ("transformers", "transformers.models.gpt2.modeling_gpt2"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def layer():
    """X and Params of a tiny size in float64, and the gradient of a loss by Y."""
    X, params = measuring.inputs(TINY)
    return X, params, np.random.default_rng(2).standard_normal(X.shape)


@pytest.mark.parametrize("name", benchmark.FORMS)
def test_every_form_is_the_layer_in_float64(name, layer):
    X, params, _ = layer
    form = benchmark.FORMS[name](torch.from_numpy(X), params)
    with torch.inference_mode():
        Y = form.run(torch.from_numpy(X)).numpy()
    expected = multi_head_attention(X, params, mask=causal_mask(TINY.T))
    np.testing.assert_allclose(Y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted({*benchmark.FORMS} - {benchmark.FAST, benchmark.FLEX}))
def test_every_form_has_the_gradient_of_the_layer(name, layer):
    X, params, dY = layer
    given = torch.tensor(X, requires_grad=True)
    form = benchmark.FORMS[name](given, params)
    record = trace(X, params, mask=causal_mask(TINY.T))
    expected = multi_head_attention_backward(record, dY).dX
    found = benchmark.gradient(form, given, torch.from_numpy(dY))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert given.grad is None, "nothing adds up from call to call"


def test_what_is_compared_with_is_numpy_forward_and_back(layer):
    X, params, dY = layer
    record = trace(X, params, mask=causal_mask(TINY.T))
    expected = benchmark.reference_results(X, params, dY)
    np.testing.assert_allclose(expected[benchmark.FORWARD], record.Y, rtol=1e-10, atol=1e-12)
    dX = multi_head_attention_backward(record, dY).dX
    np.testing.assert_allclose(expected[benchmark.BACKWARD], dX, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("fast_path", "bias"), [(True, True), (False, True), (False, False)])
def test_nn_multihead_attention_takes_the_path_it_is_named_for(fast_path, bias, layer):
    X, params = torch.from_numpy(layer[0]), layer[1]
    form, allowed = benchmark.torch_module(X, params, fast_path=fast_path, bias=bias), []
    form.module.register_forward_pre_hook(
        lambda *_: allowed.append(torch.backends.mha.get_fastpath_enabled())
    )
    with torch.inference_mode(), torch.profiler.profile() as profile:
        form.run(X)
    called = {event.key for event in profile.key_averages()}
    assert allowed == [fast_path]
    assert ("aten::_native_multi_head_attention" in called) == fast_path
    assert ("aten::scaled_dot_product_attention" in called) != fast_path
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.long
@pytest.mark.usefixtures("no_transformers")
def test_the_whole_script_gives_every_form_its_numbers_or_a_reason(monkeypatch):
    monkeypatch.setattr(measuring, "write", lambda *_: pytest.fail("it wrote"))
    monkeypatch.setattr(measuring, "limit_threads", lambda: None)
    measured = json.loads(json.dumps(measuring.run("torch_attention", quick=True)))["sizes"]["tiny"]
    for way in WAYS:
        assert list(measured[way]) == list(benchmark.FORMS)
        for row in measured[way].values():
            assert set(row) == NUMBERS or (set(row) == {"left_out"} and row["left_out"])
    forward, backward = (measured[way] for way in WAYS)
    [absent] = [name for name in benchmark.FORMS if "transformers" in name]
    assert "transformers" in forward[absent]["left_out"]
    assert "transformers" in backward[absent]["left_out"]
    assert "alone" in backward[benchmark.FAST]["left_out"]
    assert "backward" in backward[benchmark.FLEX]["left_out"]


def test_ratios_are_taken_within_rounds_over_the_bare_module_and_over_ours(monkeypatch):
    times_ms = {
        benchmark.OURS: np.array([2.0, 30.0, 400.0]),
        benchmark.BARE: np.array([1.0, 10.0, 100.0]),
    }
    monkeypatch.setattr(measuring, "time_in_rounds", lambda calls, **options: times_ms)
    ones = torch.ones(3)
    rows, reasons = benchmark.benchmark_pass(
        dict.fromkeys(times_ms, lambda: ones), ones.numpy(), 3, ""
    )
    assert not reasons
    assert rows[benchmark.OURS]["times_bare"] == {"median": 3.0, "low": 2.5, "high": 3.5}
    assert rows[benchmark.BARE]["times_ours"]["median"] == 0.3333
    assert rows[benchmark.BARE]["times_bare"]["median"] == 1.0


@pytest.mark.parametrize("wrong", [1e-4, np.nan])
def test_a_wrong_layer_is_not_timed_and_says_why(wrong):
    right, timed = torch.ones(3), []
    calls = {benchmark.OURS: lambda: right, benchmark.BARE: lambda: right}
    calls |= {"wrong": lambda: timed.append(1) or right + wrong, "broken": lambda: 1 / 0}
    rows, reasons = benchmark.benchmark_pass(calls, right.numpy(), 2, "")
    assert set(rows) == {benchmark.OURS, benchmark.BARE}
    assert len(timed) == 1, "called once, to be compared"
    assert "not the same layer" in reasons["wrong"]
    assert reasons["broken"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("name", [benchmark.OURS, benchmark.BARE])
def test_nothing_is_measured_without_ours_and_the_bare_module(name):
    right = torch.ones(3)
    calls = {benchmark.OURS: lambda: right, benchmark.BARE: lambda: right}
    with pytest.raises(ValueError, match=f"nothing to compare with: .*{name}"):
        benchmark.benchmark_pass(calls | {name: lambda: right + 1}, right.numpy(), 2, "")


def test_a_reason_is_the_first_cause_in_a_line_without_the_advice():
    def fails():
        try:
            raise OSError("no compiler:\n  none\n\nSet VERBOSE=1")
        except OSError as cause:
            raise RuntimeError("wrapped") from cause

    given, reasons = measuring.call_each({"a": fails, "b": lambda: 3})
    assert (given, reasons) == ({"b": 3}, {"a": "OSError: no compiler: none"})
