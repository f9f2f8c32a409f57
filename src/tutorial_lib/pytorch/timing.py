"""How long a call takes and what it holds: warmed up, waited for, repeated."""

import gc
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tutorial_lib.contract import checked, require, require_instance
from tutorial_lib.pytorch.device import find_device

MIB = 2**20


@dataclass(frozen=True)
class Measurement:
    """The times of one call, repeated, and its peak memory (chapter 11)."""

    median_ms: float  # half of the repeats took longer
    low_ms: float  # the quartiles: half of the repeats lie between them
    high_ms: float
    repeats: int  # how often the call was timed
    peak_mib: float | None  # the most it held at once, see the function; None where unknown

    def __repr__(self):
        peak_text = "unknown" if self.peak_mib is None else f"{self.peak_mib:.4g} MiB"
        spread = f"quartiles {self.low_ms:.4g} to {self.high_ms:.4g} of {self.repeats} repeats"
        return f"{self.median_ms:.4g} ms ({spread}), peak memory {peak_text}"


def _synchronize(device):  # until all launched work is done; on the CPU it always is
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@checked
def time_ms(call: callable, *, device: object) -> float:
    """Time one call, from an idle device to an idle device, without Python's garbage collector.

    Introduced in chapter 11. By the CPU's clock: on a GPU the time includes that of the launch, and
    below some 50 µs little else. The call computes on the device; ValueError if on another.
    """
    device, had_collector = find_device(device), gc.isenabled()
    _synchronize(device)
    gc.disable()
    try:
        start_s = time.perf_counter()
        output = call()
        _synchronize(device)
        elapsed_ms = 1e3 * (time.perf_counter() - start_s)
    finally:
        if had_collector:
            gc.enable()
    # A copy on the CPU has waited by itself; a tensor of another GPU may not be computed yet.
    if isinstance(output, torch.Tensor) and output.device.type != "cpu":
        require(
            (output.device.type, output.device.index or 0) == (device.type, device.index or 0),
            ValueError,
            f"device is {device} and the call computes on {output.device}, which was not "
            f"waited for; expected one device. Give the device of the inputs: device=X.device.",
        )
    return elapsed_ms


@checked
def measure(
    call: callable, *, device: object, repeats: "length" = 21, warm_up: "length" = 3
) -> Measurement:
    """Run a call until it is warm, time it again and again, and look at its memory once.

    Introduced in chapter 11. What a first call costs, such as compiling, is left out: the call, as
    of `time_ms`, runs `warm_up` times, is timed `repeats` times, and then runs for its memory.
    """
    times_ms = [time_ms(call, device=device) for _ in range(warm_up + repeats)][warm_up:]
    low_ms, median_ms, high_ms = np.percentile(times_ms, [25, 50, 75]).tolist()
    return Measurement(median_ms, low_ms, high_ms, repeats, peak_mib(call, device=device))


@checked
def time_in_rounds(
    calls: dict, *, device: object, rounds: "length" = 21, say: object = None
) -> dict:
    """Time every call once per round, each round in a new order, so that all get the same noise.

    Introduced in chapter 11. Right before it is timed a call runs once untimed, so that each finds
    the caches as it left them and not as a different call did. Calls are by name, as of `time_ms`,
    and so are the times in ms, (rounds,): entries of one round belong together, so ratios of two
    calls are taken entry by entry. `say` is called before each call with how far the run is.
    """
    for name, call in calls.items():
        require_instance(f"calls[{name!r}]", call, callable)
    call_names, rng = list(calls), np.random.default_rng(0)
    times_ms = {name: np.empty(rounds) for name in call_names}
    for round_number in range(rounds):
        gc.collect()
        for call_index in rng.permutation(len(call_names)):
            name = call_names[call_index]
            if say:
                say(f"round {round_number + 1} of {rounds}, {name}")
            calls[name]()
            times_ms[name][round_number] = time_ms(calls[name], device=device)
    return times_ms


@checked
def peak_mib(call: callable, *, device: object) -> float:
    """Return the most that a call's tensors hold at once: its result, but not its inputs.

    Introduced in chapter 11. None on MPS, which does not count it. Arguments as `time_ms`.
    """
    device = find_device(device)
    gc.collect()
    if device.type != "cuda":
        return _peak_bytes_on_cpu(call) / MIB if device.type == "cpu" else None
    call()  # or the workspace that the first product allocates would count
    torch.cuda.synchronize(device)
    held_bytes = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    torch.cuda.synchronize(device)
    return (torch.cuda.max_memory_allocated(device) - held_bytes) / MIB


def _peak_bytes_on_cpu(call):
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler says that it starts and stops
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        call()
    with tempfile.TemporaryDirectory() as trace_folder:
        trace_path = Path(trace_folder) / "trace.json"
        profile.export_chrome_trace(str(trace_path))
        events = json.loads(trace_path.read_text(encoding="utf-8"))["traceEvents"]
    steps = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]")
    return max(np.cumsum([n_bytes for _, n_bytes in steps]).max(initial=0), 0)
