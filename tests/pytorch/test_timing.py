"""The stopwatch waits for the device, keeps the repeats apart from the warm-up, and sees memory."""

import contextlib
import gc
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tutorial_lib.pytorch import device as devices
from tutorial_lib.pytorch.timing import MIB, Measurement, measure, peak_mib, time_in_rounds, time_ms


class SimulatedGPU:
    """A GPU and its clock: work is done later, and only waiting makes time go by."""

    def __init__(self):
        self.now, self.done_at, self.waits, self.calls = 0.0, 0.0, 0, 0
        self.held = self.peak = 50 * MIB

    def work(self, seconds, mib=0):
        """Launch so many seconds of work that holds so many MiB, and return at once."""
        self.calls += 1
        self.done_at = max(self.done_at, self.now) + seconds
        self.peak = max(self.peak, self.held + mib * MIB)

    def synchronize(self, device=None):
        self.waits += 1
        self.now = max(self.now, self.done_at)

    def forget(self, device):
        self.peak = self.held


@pytest.fixture
def gpu(monkeypatch):
    gpu = SimulatedGPU()
    clock = SimpleNamespace(perf_counter=lambda: gpu.now)
    monkeypatch.setattr("tutorial_lib.pytorch.timing.time", clock)
    monkeypatch.setattr(devices, "available_devices", lambda: ["cuda:0", "mps", "cpu"])
    functions = {
        "synchronize": gpu.synchronize,
        "memory_allocated": lambda device: gpu.held,
        "max_memory_allocated": lambda device: gpu.peak,
        "reset_peak_memory_stats": gpu.forget,
    }
    for name, function in functions.items():
        monkeypatch.setattr(torch.cuda, name, function)
    monkeypatch.setattr(torch.mps, "synchronize", gpu.synchronize)
    return gpu


def test_the_stopwatch_waits_for_the_device(gpu):
    measurement = measure(lambda: gpu.work(0.03), device="cuda:0", repeats=3, warm_up=1)
    assert (measurement.low_ms, measurement.median_ms, measurement.high_ms) == pytest.approx(
        [30] * 3
    )
    times_ms = time_in_rounds({"a": lambda: gpu.work(0.02)}, device="cuda:0", rounds=2)["a"]
    assert times_ms == pytest.approx([20, 20])


@pytest.mark.parametrize(("device", "n_waits"), [("cuda:0", 1), ("mps", 1), ("cpu", 0)])
def test_the_device_is_waited_for_before_and_after_each_call(gpu, device, n_waits):
    wait_counts = []
    gpu.work(0.2)  # earlier work is not counted
    elapsed_ms = time_ms(lambda: wait_counts.append(gpu.waits) or gpu.work(0.02), device=device)
    assert (wait_counts, gpu.waits) == ([n_waits], 2 * n_waits)
    assert elapsed_ms == pytest.approx(20 * n_waits)


@pytest.mark.parametrize(("device", "calls"), [("mps", 2 + 5), ("cpu", 2 + 5 + 1)])
def test_quartiles_are_of_the_repeats_and_memory_takes_one_call_where_it_is_known(
    monkeypatch, gpu, device, calls
):
    seconds = iter([9e3, 9e3, 5.0, 1.0, 2.0, 4.0, 3.0])
    clock = SimpleNamespace(perf_counter=lambda: gpu.done_at)
    monkeypatch.setattr("tutorial_lib.pytorch.timing.time", clock)
    measurement = measure(lambda: gpu.work(next(seconds, 0.0)), device=device, repeats=5, warm_up=2)
    assert measurement == Measurement(3e3, 2e3, 4e3, 5, 0.0 if device == "cpu" else None)
    assert gpu.calls == calls


def test_a_measurement_is_one_line():
    measurement = Measurement(1.23456, 1.1, 1.5, 21, 48.0)
    assert repr(measurement) == "1.235 ms (quartiles 1.1 to 1.5 of 21 repeats), peak memory 48 MiB"
    assert repr(Measurement(1.0, 1.0, 1.0, 1, None)).endswith("peak memory unknown")


def test_garbage_is_not_collected_while_the_clock_runs():
    gc_states = []
    time_ms(lambda: gc_states.append(gc.isenabled()), device="cpu")
    assert (gc_states, gc.isenabled()) == ([False], True)
    with pytest.raises(ZeroDivisionError):
        time_ms(lambda: 1 / 0, device="cpu")
    assert gc.isenabled()
    gc.disable()
    try:
        time_ms(list, device="cpu")
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.long
def test_calls_of_a_round_belong_together_and_each_runs_once_untimed(gpu):
    call_log, said_lines = [], []
    call_seconds = {"a": 0.01, "b": 0.02, "c": 0.03}
    calls = {n: lambda n=n, s=s: call_log.append(n) or gpu.work(s) for n, s in call_seconds.items()}
    times_ms = time_in_rounds(calls, device="cuda:0", rounds=6, say=said_lines.append)
    for name, seconds in call_seconds.items():
        assert times_ms[name] == pytest.approx([1e3 * seconds] * 6)
    assert call_log[::2] == call_log[1::2], "untimed, then timed"
    rounds = np.reshape(call_log[::2], (6, 3)).tolist()
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1, "another order"
    assert said_lines[0] == f"round 1 of 6, {call_log[0]}"
    assert len(said_lines) == 18


def test_peak_memory_is_that_of_the_call():
    X = torch.ones(2**18)  # one MiB
    assert peak_mib(lambda: X + 1, device="cpu") == pytest.approx(1, rel=0.02)
    assert peak_mib(lambda: (X + 1) * (X + 2), device="cpu") == pytest.approx(3, rel=0.02)
    assert peak_mib(lambda: X.add_(1), device="cpu") == pytest.approx(0, abs=0.01)


def test_peak_memory_on_cuda_leaves_out_the_inputs_and_an_older_peak(gpu):
    gpu.work(0, mib=1000)
    assert peak_mib(lambda: gpu.work(0, mib=3), device="cuda:0") == 3
    assert peak_mib(lambda: gpu.work(0, mib=3), device="mps") is None


def test_peak_memory_on_cuda_is_read_while_the_device_is_idle(gpu):
    wait_counts = []
    peak_mib(lambda: wait_counts.append(gpu.waits), device="cuda:0")
    assert wait_counts == [0, 1], "once for warmth, then from an idle device"
    assert gpu.waits == 2, "and to an idle device"


@pytest.mark.parametrize(
    ("device", "computed_on", "fits"),
    [
        ("cuda:0", "cuda:0", True),
        ("cuda:0", "cpu", True),
        ("mps", "mps:0", True),
        ("cuda:0", "cuda:1", False),
        ("cuda:0", "meta", False),
        ("cpu", "meta", False),
    ],
)
def test_a_result_of_a_device_that_was_not_waited_for_is_refused(gpu, device, computed_on, fits):
    class Elsewhere(torch.Tensor):
        device = property(lambda self: torch.device(computed_on))

    message = f"device is {device} and the call computes on {computed_on}, which was not waited for"
    with contextlib.nullcontext() if fits else pytest.raises(ValueError, match=message):
        time_ms(lambda: torch.ones(1).as_subclass(Elsewhere), device=device)


def test_a_bad_call_or_device_is_refused_before_the_first_call():
    bad_calls = {"good": lambda: pytest.fail("it was called"), "bad": 3}
    with pytest.raises(ValueError, match="device is 'cuda:9'; expected a device of this"):
        measure(bad_calls["good"], device="cuda:9")
    with pytest.raises(TypeError, match=r"calls\['bad'\] is a int; expected a function"):
        time_in_rounds(bad_calls, device="cpu", rounds=1)


@pytest.mark.gpu
def test_a_real_gpu_is_waited_for():
    A = torch.randn(8192, 8192, device="cuda")
    measurement = measure(lambda: A @ A, device="cuda", repeats=5)
    start_s = time.perf_counter()
    A @ A
    launch_ms = 1e3 * (time.perf_counter() - start_s)
    torch.cuda.synchronize()
    assert launch_ms < measurement.median_ms / 3
    assert measurement.peak_mib == pytest.approx(256, rel=0.02)
