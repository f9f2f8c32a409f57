"""Measure attention on a GPU: how near each way to compute it comes to what the GPU can do.

Every backend of F.scaled_dot_product_attention, one allowed at a time, which proves that it ran;
FlexAttention; the scores held whole; our Triton kernel. Work is counted as in FlashAttention's
papers, forward 4*B*H*T*S*d_k flop, half of it when causal, backward 2.5 times that, and compared
with a large product of matrices in the same precision; decoding, one query a sequence, is compared
with a large copy. Before it is timed a result is compared with float64 on the CPU: some rows of two
heads, and the gradients that those rows alone would send back.

Cases run from the most to the least important until the minutes are spent; those that are left are
named in the record, and one that fails stands there with the reason. Writes
src/tutorial_lib/data/results/<device>.json. With --quick the same code runs at small sizes, on a
CPU too, and writes nothing.
"""

import gc
import math
import re
import time
import warnings
from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from experiments import measuring
from experiments.decode import as_written
from experiments.torch_attention import look_back
from tutorial_lib.pytorch import best_device, describe_device, peak_mib, time_ms, to_float64
from tutorial_lib.pytorch.flash import flash_attention, which_flash

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
FORWARD, BACKWARD, DECODE = "forward", "forward + backward", "decode"
MOST_ERROR = {"bf16": 0.05, "fp16": 0.01, "fp32": 0.01}  # of the largest number
FLEX, OURS = "FlexAttention", "ours, Triton"
PICKED = ([0, -1], [0, -1])  # the first head of the first sequence, the last of the last
WINDOWS, MOST_CALLS = 5, 200  # of a case
SHARE = 0.9  # of the minutes after which no case begins
SEED = 0
PREPARED = False  # the CPU compares with all its threads


class Plan(NamedTuple):
    """What to measure; in each list the most important comes first."""

    tokens: int = 16384  # B*T
    width: int = 2048  # H*d_k
    lengths: tuple = (16384, 4096, 1024, 32768, 8192, 2048, 512)  # T; B is 1 where T > tokens
    widths: tuple = (128, 64)  # d_k
    dtypes: tuple = tuple(DTYPES)
    decodes: tuple = ((1, 32768), (16, 8192), (64, 8192))  # (B, S)
    sides: tuple = (4096, 8192, 16384)  # of square matrices
    copy_mib: int = 4096
    window_ms: float = 20.0  # that calls are timed together, so that asking for them costs nothing
    minutes: float = 5.5  # how long it may take


FULL = Plan()
QUICK = Plan(
    tokens=16,
    width=32,
    lengths=(16,),
    widths=(16,),
    dtypes=("bf16",),
    decodes=((1, 24),),
    sides=(64, 128),
    copy_mib=1,
    window_ms=0.1,
    minutes=math.inf,
)


class Problem(NamedTuple):
    """B sequences of T queries and S keys for H heads of width d_k."""

    B: int
    H: int
    T: int
    S: int
    d_k: int
    dtype: str
    causal: bool

    @property
    def flop(self):
        """Scoring and mixing, forward; causally half of the square."""
        return 4 * self.B * self.H * self.T * self.S * self.d_k // (2 if self.causal else 1)

    @property
    def cache_bytes(self):
        """The keys and values, which decoding reads once."""
        return 2 * self.B * self.H * self.S * self.d_k * DTYPES[self.dtype].itemsize


class Case(NamedTuple):
    """A form of attention, what it is asked for, and on what."""

    form: str
    way: str
    problem: Problem

    def __str__(self):
        return ", ".join(map(str, (self.form, self.way, *self.problem)))


def sdpa(problem, device, *, backend=None):
    """PyTorch's fused attention with one backend allowed, or with its own choice."""

    def attend(Q, K, V):
        with sdpa_kernel(backend) if backend else nullcontext():
            return F.scaled_dot_product_attention(Q, K, V, is_causal=problem.causal)

    return attend


def flex(problem, device):
    """FlexAttention, compiled for these shapes."""
    torch.compiler.reset()  # or after some shapes nothing more would be compiled
    mask = None
    if problem.causal:
        mask = create_block_mask(look_back, None, None, problem.T, problem.S, device=device)
    return partial(torch.compile(flex_attention, fullgraph=True, dynamic=False), block_mask=mask)


def triton_kernel(problem, device):
    """Our kernel; its twin in NumPy is no measure of a device."""
    runs = which_flash(device)
    if "twin" in runs:
        raise RuntimeError(runs)
    return partial(flash_attention, is_causal=problem.causal)


FORMS = {
    "SDPA": sdpa,
    "flash": partial(sdpa, backend=SDPBackend.FLASH_ATTENTION),
    "cuDNN": partial(sdpa, backend=SDPBackend.CUDNN_ATTENTION),
    "mem-efficient": partial(sdpa, backend=SDPBackend.EFFICIENT_ATTENTION),
    "math": partial(sdpa, backend=SDPBackend.MATH),
    OURS: triton_kernel,
    "naive": lambda problem, device: partial(as_written, is_causal=problem.causal),
    FLEX: flex,
}


def cases_of(plan):
    """List every case, the most important first, and the forms of one problem side by side.

    FlexAttention comes last: compiling takes seconds for each shape.
    """
    dtype, d_k = plan.dtypes[0], plan.widths[0]
    found = [
        Case(form, DECODE, Problem(B, plan.width // d_k, 1, S, d_k, dtype, False))
        for (B, S), form in product(plan.decodes, FORMS)
    ]
    axes = plan.dtypes, plan.widths, (True, False), (FORWARD, BACKWARD), plan.lengths, FORMS
    for dtype, d_k, causal, way, T, form in product(*axes):
        B, H = max(1, plan.tokens // T), plan.width // d_k
        found.append(Case(form, way, Problem(B, H, T, T, d_k, dtype, causal)))
    return sorted(found, key=lambda case: case.form == FLEX)


@lru_cache(maxsize=1)
def tensors(problem, device):
    """Return random Q, K, V and the gradient of a loss by the heads."""
    B, H, T, S, d_k = problem[:5]
    draw = partial(torch.randn, generator=torch.Generator(device).manual_seed(SEED), device=device)
    made = (draw(B, H, length, d_k) for length in (T, S, S, T))
    return tuple(A.to(DTYPES[problem.dtype]) for A in made)


def rows_of(problem):
    """Return the queries whose results are compared."""
    return torch.linspace(0, problem.T - 1, min(64, problem.T)).long()


@lru_cache(maxsize=1)
def reference_results(problem, device):
    """Return some heads in float64, and by them the gradients of their Q and of all K and V."""
    rows = rows_of(problem)
    Q, K, V, dheads = (to_float64(A[PICKED]) for A in tensors(problem, device))
    Q, K, V = (A.requires_grad_() for A in (Q[:, rows], K, V))
    scores = Q @ K.mT / math.sqrt(problem.d_k)
    if problem.causal:
        scores = scores.masked_fill(torch.arange(problem.S) > rows[:, None], -math.inf)
    heads = scores.softmax(dim=-1) @ V
    return heads.detach(), *torch.autograd.grad(heads, (Q, K, V), dheads[:, rows])


def results_of(case, attend, device):
    """Return the same of a form: one tensor forward, four where it goes back too."""
    Q, K, V, dheads = operands(case, device)
    rows = rows_of(case.problem).to(device)
    heads = attend(Q, K, V)
    found = [heads[PICKED][:, rows]]
    if case.way == BACKWARD:
        alone, picked = torch.zeros_like(dheads), dheads[PICKED][:, rows]
        for b, h, sent in zip(*PICKED, picked, strict=True):
            alone[b, h, rows] = sent
        dQ, dK, dV = torch.autograd.grad(heads, (Q, K, V), alone)
        found += [dQ[PICKED][:, rows], dK[PICKED], dV[PICKED]]
    return found


def operands(case, device):
    """Return the problem's tensors, with a graph to come where the case goes back."""
    Q, K, V, dheads = tensors(case.problem, device)
    back = case.way == BACKWARD
    return *(A.detach().requires_grad_(back) for A in (Q, K, V)), dheads


def error_of(case, attend, device):
    """Return the largest difference from float64, as a share of the largest number.

    Raises
    ------
    ValueError : more than a result of this precision can be off
    """
    expected = reference_results(case.problem, device)
    errors = [
        float((to_float64(found) - exact).abs().max() / exact.abs().max())
        for found, exact in zip(results_of(case, attend, device), expected, strict=False)
    ]
    most = MOST_ERROR[case.problem.dtype]
    if not all(error <= most for error in errors):
        raise ValueError(f"errors {errors}; expected at most {most}: this is not attention")
    return max(errors)


def call_of(case, attend, device):
    """Return what is timed, as a function without arguments."""
    Q, K, V, dheads = operands(case, device)
    if case.way != BACKWARD:
        return lambda: attend(Q, K, V)
    return lambda: torch.autograd.grad(attend(Q, K, V), (Q, K, V), dheads)[0]


def time_calls(call, device, window_ms):
    """Time a call among its like, without waiting in between; return the summary of windows."""
    call()
    once_ms = time_ms(call, device=device)
    calls = max(1, min(MOST_CALLS, round(window_ms / once_ms)))

    def window():
        for _ in range(calls):
            result = call()
        return result

    return measuring.summary([time_ms(window, device=device) / calls for _ in range(WINDOWS)])


def measure_limits(plan, device):
    """Measure what the device can do: {"gemm_tflops": {dtype: rate}, "copy_gb_per_s": rate}.

    A product is of square matrices, of the best side; a copy counts the bytes that are read and
    those that are written.
    """
    rates = {dtype: [] for dtype in plan.dtypes}
    for dtype, side in product(plan.dtypes, plan.sides):
        A, B = torch.randn(2, side, side, device=device, dtype=DTYPES[dtype])
        spent = time_calls(partial(torch.matmul, A, B), device, 2 * plan.window_ms)
        rates[dtype].append(2 * side**3 / spent["median"] / 1e9)
    A = torch.randn(plan.copy_mib * measuring.MIB // 4, device=device)
    spent = time_calls(partial(torch.empty_like(A).copy_, A), device, plan.window_ms)
    best = {dtype: measuring.short(max(found)) for dtype, found in rates.items()}
    copied = measuring.short(2 * A.nbytes / spent["median"] / 1e6)
    return {"gemm_tflops": best, "copy_gb_per_s": copied}


def rates_of(case, ms, limits):
    """Return the rate of a case, and its share in percent of what the device can do."""
    if case.way == DECODE:
        rate, limit = case.problem.cache_bytes / ms / 1e6, limits["copy_gb_per_s"]
        names = "gb_per_s", "percent_of_copy"
    else:
        flop = case.problem.flop * (3.5 if case.way == BACKWARD else 1)
        rate, limit = flop / ms / 1e9, limits["gemm_tflops"][case.problem.dtype]
        names = "tflops", "percent_of_gemm"
    return dict(zip(names, map(measuring.short, (rate, 100 * rate / limit)), strict=True))


def measure_case(case, plan, device, limits):
    """Check, time and weigh one case; return its row."""
    attend = FORMS[case.form](case.problem, device)
    error = error_of(case, attend, device)
    call = call_of(case, attend, device)
    spent = time_calls(call, device, plan.window_ms)
    return {
        "ms": spent,
        **rates_of(case, spent["median"], limits),
        "peak_mib": measuring.short(peak_mib(call, device=device)),
        "error": float(f"{error:.1e}"),
    }


def row_of(case, plan, device, limits):
    """Return the row of a case, or why there is none, with what PyTorch warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        measure = partial(measure_case, case, plan, device, limits)
        given, reasons = measuring.attempt({case: measure})
    row = {"form": case.form, "way": case.way, **case.problem._asdict()}
    if case in given:
        return row | given[case]
    if device.type == "cuda":
        torch.cuda.empty_cache()
    said = dict.fromkeys(str(w.message).partition(" (Triggered")[0] for w in told)
    return row | {"left_out": " ".join([reasons[case], *said])[: measuring.MOST_CHARACTERS]}


def measure_cases(plan, device, limits, until):
    """Run the cases until a time of the clock; return the rows, and the names of the rest."""
    rows, cases = [], cases_of(plan)
    for number, case in enumerate(cases):
        if time.monotonic() > until:
            return rows, [str(case) for case in cases[number:]]
        rows.append(row_of(case, plan, device, limits))
        print(f"{number + 1:5} of {len(cases)}  {rows[-1]}", flush=True)
    return rows, []


def machine():
    """Say where the run is made: device, and what our kernel is run by."""
    device = best_device()
    return {"device": describe_device(device), "ours": which_flash(device)}


def versions():
    """Return the versions that the run is made with, those of CUDA among them."""
    cuda = {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    return measuring.versions() | cuda


def result_name():
    """Name the result for the device."""
    return re.sub(r"\W+", "_", torch.cuda.get_device_name(best_device()).lower())


def main(plan, record):
    """Measure everything that the minutes allow."""
    started, device = time.monotonic(), best_device()
    if device.type != "cuda" and plan is FULL:
        raise SystemExit(f"the device is {device}; expected a CUDA device. Without one: --quick.")
    record["plan"] = plan._asdict()
    limits = record["limits"] = measure_limits(plan, device)
    print(limits)
    until = started + 60 * SHARE * plan.minutes
    gc.freeze()  # or every look at memory walks all of PyTorch's objects
    record["cases"], record["dropped"] = measure_cases(plan, device, limits, until)
    gc.unfreeze()
    record["minutes"] = measuring.short((time.monotonic() - started) / 60)
    print(f"{len(record['dropped'])} cases dropped after {record['minutes']} minutes")
