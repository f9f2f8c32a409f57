"""Measure attention on a GPU: how near each way to compute it comes to what the GPU can do.

Every backend of F.scaled_dot_product_attention, one allowed at a time, which proves that it ran;
FlexAttention; the scores held whole; our Triton kernel. Work is counted as in FlashAttention's
papers, forward 4*B*H*T*S*d_k flop, half of it when causal, backward 2.5 times that, and compared
with a large product of matrices in the same precision. Before it is timed one head of the result,
or its gradients, are compared with float64.

Cases run from the most to the least important until the minutes are spent; one that fails stands in
the record with the reason. Writes src/tutorial_lib/data/results/gpu_attention.json. With --quick
the same code runs at small sizes, on a CPU too, and writes nothing.
"""

import math
import time
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
from experiments.torch_attention import is_causal_pair
from tutorial_lib.pytorch import best_device, describe_device, peak_mib, time_ms
from tutorial_lib.pytorch.flash import flash_attention, which_flash

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
FORWARD, BACKWARD = "forward", "forward + backward"
MOST_ERROR = {"bf16": 0.05, "fp16": 0.01, "fp32": 0.01}  # of the largest number
FLEX, OURS = "FlexAttention", "ours, Triton"
WINDOWS, MOST_CALLS = 5, 200  # of a case; calls in a window
SEED = 0
PREPARED = False  # the CPU compares with all its threads


class Plan(NamedTuple):
    """What to measure; in each list the most important comes first."""

    tokens: int = 16384  # B*T
    width: int = 2048  # H*d_k
    lengths: tuple = (16384, 4096, 1024, 32768, 8192, 2048, 512)  # T; B is 1 where T > tokens
    widths: tuple = (128, 64)  # d_k
    dtypes: tuple = tuple(DTYPES)
    side: int = 8192  # of the square matrices of the product
    window_ms: float = 20.0  # that calls are timed together, so that asking for them costs nothing
    minutes: float = 5.0  # after which no case begins


FULL = Plan()
QUICK = Plan(16, 32, lengths=(16,), widths=(16,), dtypes=("bf16",), side=64, window_ms=0.1)


class Case(NamedTuple):
    """A form of attention, forward or back too, of B sequences of T tokens and H heads."""

    form: str
    way: str
    B: int
    H: int
    T: int
    d_k: int
    dtype: str
    causal: bool

    @property
    def flop(self):
        """Scoring and mixing, causally half of the square; the way back takes 2.5 times as much."""
        forward = 4 * self.B * self.H * self.T**2 * self.d_k // (2 if self.causal else 1)
        return forward * (3.5 if self.way == BACKWARD else 1)


def sdpa(case, device, *, backend=None):
    """PyTorch's fused attention with one backend allowed, or with its own choice."""

    def attend(Q, K, V):
        with sdpa_kernel(backend) if backend else nullcontext():
            return F.scaled_dot_product_attention(Q, K, V, is_causal=case.causal)

    return attend


def flex(case, device):
    """FlexAttention, compiled for these shapes."""
    torch.compiler.reset()  # or after some shapes nothing more would be compiled
    mask = None
    if case.causal:
        mask = create_block_mask(is_causal_pair, None, None, case.T, case.T, device=device)
    return partial(torch.compile(flex_attention, fullgraph=True, dynamic=False), block_mask=mask)


def triton_kernel(case, device):
    """Our kernel; its twin in NumPy is no measure of a device."""
    runs = which_flash(device)
    if "twin" in runs:
        raise RuntimeError(runs)
    return partial(flash_attention, is_causal=case.causal)


FORMS = {
    "SDPA": sdpa,
    "flash": partial(sdpa, backend=SDPBackend.FLASH_ATTENTION),
    "cuDNN": partial(sdpa, backend=SDPBackend.CUDNN_ATTENTION),
    "mem-efficient": partial(sdpa, backend=SDPBackend.EFFICIENT_ATTENTION),
    "math": partial(sdpa, backend=SDPBackend.MATH),
    OURS: triton_kernel,
    "naive": lambda case, device: partial(as_written, is_causal=case.causal),
    FLEX: flex,
}


def cases_of(plan):
    """List every case, the most important first; FlexAttention, which compiles, comes last."""
    axes = plan.dtypes, plan.widths, (True, False), (FORWARD, BACKWARD), plan.lengths, FORMS
    found = [
        Case(form, way, max(1, plan.tokens // T), plan.width // d_k, T, d_k, dtype, causal)
        for dtype, d_k, causal, way, T, form in product(*axes)
    ]
    return sorted(found, key=lambda case: case.form == FLEX)


@lru_cache(maxsize=1)
def tensors(shape, dtype, device):
    """Return random Q, K, V and the gradient of a loss by the heads."""
    generator = torch.Generator(device).manual_seed(SEED)
    made = torch.randn(4, *shape, generator=generator, device=device)
    return tuple(made.to(DTYPES[dtype]))


def operands(case, device):
    """Return Q, K and V, with a graph to come where the case goes back, and the gradient."""
    Q, K, V, dheads = tensors((case.B, case.H, case.T, case.d_k), case.dtype, device)
    back = case.way == BACKWARD
    return *(A.detach().requires_grad_(back) for A in (Q, K, V)), dheads


def run(case, attend, device):
    """Return the heads of a case, or where it goes back the gradients of Q, K and V."""
    Q, K, V, dheads = operands(case, device)
    if case.way != BACKWARD:
        return (attend(Q, K, V),)
    return torch.autograd.grad(attend(Q, K, V), (Q, K, V), dheads)


@lru_cache(maxsize=1)
def reference_results(case, device):
    """Return the same of the first head of the last sequence, in float64; the form is ignored."""
    *QKV, dheads = (A[-1, 0].detach().double() for A in operands(case, device))
    Q, K, V = (A.requires_grad_() for A in QKV)
    scores = Q @ K.mT / math.sqrt(case.d_k)
    if case.causal:
        later = torch.ones(case.T, case.T, dtype=torch.bool, device=device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    heads = scores.softmax(dim=-1) @ V
    if case.way != BACKWARD:
        return (heads.detach(),)
    return torch.autograd.grad(heads, (Q, K, V), dheads)


def error_of(case, attend, device):
    """Return the largest difference from float64, as a share of the largest number.

    Raises
    ------
    ValueError : more than a result of this precision can be off
    """
    expected = reference_results(case._replace(form=""), device)
    pairs = zip(run(case, attend, device), expected, strict=True)
    errors = [
        float((A[-1, 0].double() - right).abs().max() / right.abs().max()) for A, right in pairs
    ]
    if not all(error <= MOST_ERROR[case.dtype] for error in errors):
        raise ValueError(f"errors {errors}: this is not attention")
    return max(errors)


def time_calls(call, device, window_ms):
    """Time a call among its like, without waiting in between; return the summary of windows."""
    call()
    calls = max(1, min(MOST_CALLS, round(window_ms / time_ms(call, device=device))))

    def window():
        for _ in range(calls):
            result = call()
        return result

    return measuring.summary([time_ms(window, device=device) / calls for _ in range(WINDOWS)])


def measure_product(plan, device):
    """Measure the rate of a product of square matrices: {dtype: TFLOP/s}."""
    rates = {}
    for dtype in plan.dtypes:
        A, B = torch.randn(2, plan.side, plan.side, device=device, dtype=DTYPES[dtype])
        spent = time_calls(partial(torch.matmul, A, B), device, 2 * plan.window_ms)
        rates[dtype] = measuring.short(2 * plan.side**3 / spent["median"] / 1e9)
    return rates


def measure_case(case, plan, device, limits):
    """Check, time and weigh one case; return its row."""
    attend = FORMS[case.form](case, device)
    error = error_of(case, attend, device)

    def call():
        return run(case, attend, device)[0]

    spent = time_calls(call, device, plan.window_ms)
    rate = case.flop / spent["median"] / 1e9
    return {
        "ms": spent,
        "tflops": measuring.short(rate),
        "percent_of_gemm": measuring.short(100 * rate / limits[case.dtype]),
        "peak_mib": measuring.short(peak_mib(call, device=device)),
        "error": float(f"{error:.1e}"),
    }


def row_of(case, plan, device, limits):
    """Return the row of a case, or why there is none."""
    given, reasons = measuring.call_each({case: partial(measure_case, case, plan, device, limits)})
    if case in reasons and device.type == "cuda":
        torch.cuda.empty_cache()
    return case._asdict() | given.get(case, {"left_out": reasons.get(case)})


def machine():
    """Say where the run is made: device, CUDA, and what our kernel is run by."""
    device, cuda = best_device(), torch.version.cuda
    return {"device": describe_device(device), "cuda": cuda, "ours": which_flash(device)}


def main(plan, record):
    """Measure everything that the minutes allow."""
    started, device, cases = time.monotonic(), best_device(), cases_of(plan)
    if device.type != "cuda" and plan is FULL:
        raise SystemExit(f"the device is {device}; expected a CUDA device. Without one: --quick.")
    limits = measure_product(plan, device)
    record |= {"plan": plan._asdict(), "gemm_tflops": limits, "cases": []}
    for number, case in enumerate(cases, start=1):
        if time.monotonic() - started > 60 * plan.minutes:
            break
        record["cases"].append(row_of(case, plan, device, limits))
        print(f"{number:5} of {len(cases)}  {record['cases'][-1]}", flush=True)
    record["dropped"] = len(cases) - len(record["cases"])
