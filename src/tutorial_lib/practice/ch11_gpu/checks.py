"""Checks for chapter 11."""

import statistics
from functools import partial

import numpy as np

from tutorial_lib.counting import attention_bytes, attention_flop
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_V, B, H, T, normal, qkv

MISTAKES, cases_of = read_room(__file__)


def _qkv(dtype, seed, *lead, **rows):
    return {name: array.astype(dtype) for name, array in qkv(seed, *lead, **rows).items()}


@cases_of(attention_flop)
def check_attention_flop():
    yield "one head", qkv(70)
    yield "a batch", qkv(76, B, H)


@cases_of(attention_bytes)
def check_attention_bytes():
    yield "fused", _qkv(np.float32, 70, H), {"fused": True}
    yield "step by step", _qkv(np.float32, 70, H), {"fused": False}
    yield "a batch in float16", _qkv(np.float16, 73, B, H), {"fused": False}
    yield "float64, fused", qkv(76, B, H), {"fused": True}


class _SimulatedGPU:
    """A GPU; `launch` is a call whose first two runs take long, as it has to be compiled."""

    def __init__(self, *durations, warm_up_durations=(900, 400)):
        self.clock, self.done_at = 0, 0
        self.units = iter((*warm_up_durations, *durations))

    def launch(self):
        """Launch the next piece of work, and return before it is done."""
        self.clock += 1
        self.done_at = max(self.clock, self.done_at) + next(self.units)

    def synchronize(self):
        """Wait until all is done."""
        self.clock = max(self.clock, self.done_at)


def _median_time(gpu, call, repeats, warm_up):
    for _ in range(warm_up):
        call()
    spent = []
    for _ in range(repeats):
        gpu.synchronize()
        start = gpu.clock
        call()
        gpu.synchronize()
        spent.append(gpu.clock - start)
    return statistics.median(spent)


@cases_of(_median_time)
def check_median_time():
    devices = {
        "one repeat": (_SimulatedGPU(40), 1, 2),
        "three calls of warm-up": (_SimulatedGPU(70, 40, 47, 42, 61, 44), 5, 3),
        "one of four repeats was disturbed": (_SimulatedGPU(35, 50, 40, 44, 300), 4, 3),
    }
    yield from (
        (label, {"gpu": gpu, "call": gpu.launch, "repeats": repeats, "warm_up": warm_up})
        for label, (gpu, repeats, warm_up) in devices.items()
    )


def _least_times(Q, K, V, peak, bandwidth):
    compute = attention_flop(Q, K, V) / peak
    moved = [attention_bytes(Q, K, V, fused=fused) for fused in (False, True)]
    return tuple(max(compute, size / bandwidth) for size in moved)


@cases_of(_least_times)
def check_least_times():
    long = _qkv(np.float16, 70, H, rows=(48, 50))
    one = _qkv(np.float16, 73, B, H, rows=(1, 50))
    yield "memory is the limit of both", {**one, "peak": 8e6, "bandwidth": 4e3}
    yield "memory is the limit of one", {**long, "peak": 2e6, "bandwidth": 1e5}
    yield (
        "arithmetic is the limit of both",
        {**qkv(76, B, H), "peak": 1e4, "bandwidth": 1e6},
    )


def _within_rounding(result, exact, eps):
    limit = 4 * eps * np.abs(exact).max()
    return bool((np.abs(result - exact) <= limit).all())


def _round_entries(exact, eps):
    """Change each entry by half of eps of itself, up and down in turn."""
    return exact * (1 + eps / 2 * (-1) ** np.arange(exact.size).reshape(exact.shape))


def _with_error(exact, eps, index, error):
    """Round all entries but one, and give that one an error, in eps of the largest entry."""
    result = _round_entries(exact, eps)
    result[index] = exact[index] + error * eps * np.abs(exact).max()
    return result


def _rounding_cases():
    """Return label -> (result, exact, eps): results that rounding explains, and others."""
    exact, half = normal(70, B, T, D_V), 2.0**-7
    rounded, off = _round_entries(exact, half), partial(_with_error, exact, half)
    near = off(np.abs(exact) == np.abs(exact).max(), 3.75)
    almost_0, small = exact.copy(), exact.copy()
    almost_0[0, 0, 0] = 1e-6
    small[0, 1] *= 1e-3
    return {
        "rounded to eight bits": (rounded, exact, half),
        "almost at the limit": (near, exact, half),
        "the largest is negative": (-near[::-1], -exact[::-1], half),
        "just beyond the limit": (off((1, 2, 3), 4.25), exact, half),
        "one entry too large": (off((1, 2, 3), 40), exact, half),
        "an entry that is almost 0": (_with_error(almost_0, half, (0, 0, 0), 0.5), almost_0, half),
        "a row of small numbers": (small + rounded - exact, small, half),
        "large numbers": (1e4 * rounded, 1e4 * exact, half),
        "small numbers, one too small": (1e-4 * off((0, 4, 1), -40), 1e-4 * exact, half),
        "too wrong for float32": (rounded, exact, 2.0**-23),
        "NaN": (off((1, 0, 2), np.nan), exact, half),
        "infinity": (off((0, 3, 5), np.inf), exact, half),
    }


@cases_of(_within_rounding)
def check_within_rounding():
    yield from _rounding_cases().items()
