"""Time the rewrites of chapter 07 beside torch, and beside the rate of NumPy's own products.

Forward, causal, float32, one thread. Before it is timed every form is compared in float64 with a
loop over heads, or with the tiled layer where a table of scores takes gigabytes. Writes
src/tutorial_lib/data/results/numpy_attention.json.
"""

import math
import time
from functools import partial
from unittest import mock

import numpy as np
import torch

from experiments import measuring, torch_attention
from experiments.measuring import Size, inputs
from experiments.torch_attention import MinimalSelfAttention, bare
from tutorial_lib import (
    attend_in_blocks,
    causal_mask,
    concat_heads,
    scaled_dot_product_attention,
    softmax,
    split_heads,
    tiled,
    tiled_multi_head_attention,
)

SEED = measuring.SEED
FULL = torch_attention.FULL
QUICK = {"tiny": (Size(2, 24, 12, 3), 2)}
SMALL = ("tiled", "torch SDPA")  # beginnings of forms without a table of scores
FUSED = "torch SDPA, fused QKV"


def by_loop(X, params):
    """One head after the other."""
    mask, heads = causal_mask(X.shape[-2]), []
    for W_Q, W_K, W_V in zip(params.W_Q, params.W_K, params.W_V, strict=True):
        Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # (..., T, d)
        heads.append(scaled_dot_product_attention(Q, K, V, mask=mask))
    return np.concatenate(heads, axis=-1) @ params.W_O


def by_broadcasting(X, params):
    """All heads at once, a new array at every step: how textbooks write it."""
    W_QKV = params.W_Q, params.W_K, params.W_V
    Q, K, V = (X[..., None, :, :] @ W for W in W_QKV)  # (..., H, T, d)
    scores = Q @ np.swapaxes(K, -1, -2) / math.sqrt(params.d_k)
    scores = np.where(causal_mask(X.shape[-2]), scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return concat_heads(weights @ V) @ params.W_O


def by_einsum(X, params):
    """The sums as index notation writes them."""
    einsum = partial(np.einsum, optimize=True)
    W_QKV = params.W_Q, params.W_K, params.W_V
    Q, K, V = (einsum("...tm,hmd->...htd", X, W) for W in W_QKV)
    scores = einsum("...htd,...hsd->...hts", Q, K) / math.sqrt(params.d_k)
    weights = softmax(np.where(causal_mask(X.shape[-2]), scores, -np.inf))
    W_O = params.W_O.reshape(params.n_heads, params.d_v, -1)  # (H, d_v, d_model)
    return einsum("...hts,...hsv,hvm->...tm", weights, V, W_O)


def in_place(X, params):
    """One wide product, and one array of scores that every step rewrites."""
    H, cuts = params.n_heads, np.cumsum([params.d_k, params.d_k]) * params.n_heads
    W_Q = params.W_Q / math.sqrt(params.d_k)
    matrices = W_Q, params.W_K, params.W_V
    wide = np.concatenate([concat_heads(W) for W in matrices], axis=-1)
    Q, K, V = (split_heads(part, H) for part in np.split(X @ wide, cuts, axis=-1))
    scores = Q @ np.swapaxes(K, -1, -2)
    np.copyto(scores, -np.inf, where=~causal_mask(X.shape[-2]))
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return concat_heads(scores @ V) @ params.W_O


NUMPY = {
    "loop over heads": by_loop,
    "broadcasting": by_broadcasting,
    "einsum": by_einsum,
    "in place": in_place,
    **{
        f"tiled, blocks of {block}": partial(tiled_multi_head_attention, causal=True, block=block)
        for block in (64, 128, 256)
    },
}


class StepByStep(MinimalSelfAttention):
    """The same in torch, a new tensor at every step."""

    def attend(self, Q, K, V):
        """Return the heads, (B, H, T, d_k)."""
        scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        return weights @ V


TORCH = {FUSED: bare, "torch, step by step": partial(bare, kind=StepByStep)}


def forms_timed_at_size(name):
    """Return the names of the forms that are timed at a size: at the long one, those that fit."""
    return [form for form in (*NUMPY, *TORCH) if name != "long" or form.startswith(SMALL)]


def calls(X, params, names):
    """Return forms as functions without arguments: {name: call}."""
    tensor = torch.from_numpy(X)
    found = {name: partial(form, X, params) for name, form in NUMPY.items()}
    found |= {name: partial(make(tensor, params).run, tensor) for name, make in TORCH.items()}
    return {name: found[name] for name in names}


def reference_output(name, X, params):
    """Return the layer's output in float64."""
    reference = partial(tiled_multi_head_attention, causal=True) if name == "long" else by_loop
    return reference(X, params)


def errors(forms, expected):
    """Return the error of each form; none may be large."""
    return {n: measuring.error_of(f(), expected, wrong=f"{n} is not it") for n, f in forms.items()}


def measure_size(name, size, rounds):
    """Check, time and weigh every form at one size."""
    forms = calls(*measuring.single_inputs(size), forms_timed_at_size(name))
    found = errors(forms, reference_output(name, *inputs(size)))
    times_ms = measuring.time_in_rounds(
        forms | {"gemm": measuring.gemm()}, rounds=rounds, title=name
    )
    limit = measuring.limit_ms(size.flop, times_ms["gemm"])
    ratios = {"times_limit": limit, "times_sdpa": times_ms[FUSED]}
    table = measuring.table_of({form: times_ms[form] for form in forms}, **ratios)
    for form, call in forms.items():
        peak_mib = measuring.PEAK_MIB["NumPy" if form in NUMPY else "torch"](call)
        table[form] |= {"peak_mib": peak_mib, "error": found[form]}
    rate = measuring.summary(measuring.GEMM_FLOP / times_ms["gemm"] / 1e6)
    return {**size._asdict(), "flop": size.flop, "gemm_gflop_per_s": rate, "forms": table}


class Stopwatch:
    """Adds up the milliseconds between its calls, under the name of the step that has ended."""

    def __init__(self):
        self.ms, self.last = {}, time.perf_counter()

    def __call__(self, step, value=None):
        """Book the time since the last call on a step, and hand its value on."""
        spent = 1e3 * (time.perf_counter() - self.last)
        self.ms[step] = self.ms.get(step, 0.0) + spent
        self.last = time.perf_counter()
        return value


def watch_broadcasting(X, params, watch):
    """The steps of `by_broadcasting`."""
    W_QKV = params.W_Q, params.W_K, params.W_V
    Q, K, V = watch("project, in and out", [X[..., None, :, :] @ W for W in W_QKV])
    scores = watch("score", Q @ np.swapaxes(K, -1, -2))
    scores = watch("scale", scores / math.sqrt(params.d_k))
    scores = watch("mask", np.where(causal_mask(X.shape[-2]), scores, -np.inf))
    top = watch("maximum", scores.max(axis=-1, keepdims=True))
    scores = watch("subtract", scores - top)
    powers = watch("exponential", np.exp(scores))
    total = watch("sum", powers.sum(axis=-1, keepdims=True))
    weights = watch("divide", powers / total)
    mixed = watch("mix", weights @ V)
    return watch("project, in and out", concat_heads(mixed) @ params.W_O)


def watch_in_place(X, params, watch):
    """The steps of `in_place`."""
    H, cuts = params.n_heads, np.cumsum([params.d_k, params.d_k]) * params.n_heads
    W_Q = params.W_Q / math.sqrt(params.d_k)
    wide = np.concatenate([concat_heads(W) for W in (W_Q, params.W_K, params.W_V)], axis=-1)
    Q, K, V = (split_heads(part, H) for part in np.split(X @ wide, cuts, axis=-1))
    watch("project, in and out")
    scores = watch("score", Q @ np.swapaxes(K, -1, -2))
    watch("mask", np.copyto(scores, -np.inf, where=~causal_mask(X.shape[-2])))
    top = watch("maximum", scores.max(axis=-1, keepdims=True))
    scores = watch("subtract", np.subtract(scores, top, out=scores))
    powers = watch("exponential", np.exp(scores, out=scores))
    total = watch("sum", powers.sum(axis=-1, keepdims=True))
    weights = watch("divide", np.divide(powers, total, out=powers))
    mixed = watch("mix", weights @ V)
    return watch("project, in and out", concat_heads(mixed) @ params.W_O)


def watch_block(Q, K_T, V, *, causal, watch):
    """The steps of `attend_block`, and before them the loop that calls it."""
    watch("loop and copy")
    scores, rows = watch("score", Q @ K_T), Q.shape[-2]
    if causal:
        watch("mask", np.copyto(scores[..., -rows:], -np.inf, where=~causal_mask(rows)))
    top = watch("maximum", scores.max(axis=-1, keepdims=True))
    scores = watch("subtract", np.subtract(scores, top, out=scores))
    powers = watch("exponential", np.exp(scores, out=scores))
    total = watch("sum", powers @ np.ones((scores.shape[-1], 1), dtype=V.dtype))
    mixed = watch("mix", powers @ V)
    return watch("divide", mixed / total)


def watch_tiled(X, params, watch):
    """The steps of `tiled_multi_head_attention`."""

    def watch_blocks(Q, K_T, V, **options):
        watch("project, in and out")
        return watch("loop and copy", attend_in_blocks(Q, K_T, V, **options))

    watched = {"attend_block": partial(watch_block, watch=watch), "attend_in_blocks": watch_blocks}
    with mock.patch.multiple(tiled, **watched):
        Y = tiled_multi_head_attention(X, params, causal=True)
    return watch("project, in and out", Y)


WATCHED = {"broadcasting": watch_broadcasting, "in place": watch_in_place, "tiled": watch_tiled}


def measure_pieces(size, rounds):
    """Return the milliseconds of each step of three forms: {form: {step: median}}."""
    X, params = measuring.single_inputs(size)
    runs = {name: [] for name in WATCHED}

    def run(name):
        watch = Stopwatch()
        WATCHED[name](X, params, watch)
        runs[name].append(watch.ms)

    forms = {name: partial(run, name) for name in WATCHED}
    measuring.time_in_rounds(forms, rounds=rounds, title="piece by piece")
    timed = {name: run[1::2] for name, run in runs.items()}  # every other one is untimed
    return {
        name: measuring.medians({step: [one[step] for one in ms] for step in ms[0]})
        for name, ms in timed.items()
    }


def measure_products(size, rounds):
    """Time the same projection as one wide product, as three, and as three for each head."""
    X, params = measuring.single_inputs(size)
    X = X.reshape(-1, size.d)
    three = [concat_heads(W) for W in (params.W_Q, params.W_K, params.W_V)]
    one = np.concatenate(three, axis=-1)
    heads = [W for stack in (params.W_Q, params.W_K, params.W_V) for W in stack]
    forms = {
        "1 wide product": lambda: X @ one,
        "3 wide products": lambda: [X @ W for W in three],
        f"{len(heads)} small products": lambda: [X @ W for W in heads],
    }
    return measuring.medians(measuring.time_in_rounds(forms, rounds=rounds, title="products"))


def measure_layouts(size, rounds):
    """Time the blocks on heads stored one after the other, and on views of (T, H, d)."""
    X, params = measuring.single_inputs(size)
    wide = [X[0] @ concat_heads(W) for W in (params.W_Q, params.W_K, params.W_V)]
    views = [split_heads(rows, params.n_heads) for rows in wide]  # (H, T, d)

    def attend(Q, K, V):
        return attend_in_blocks(Q, np.swapaxes(K, -1, -2), V, causal=True, block=128)

    stored = [np.ascontiguousarray(heads) for heads in views]
    forms = {
        "(T, H, d), seen as (H, T, d)": partial(attend, *views),
        "(H, T, d)": partial(attend, *stored),
        "(H, T, d), with the copying": lambda: attend(*map(np.ascontiguousarray, views)),
    }
    return measuring.medians(measuring.time_in_rounds(forms, rounds=rounds, title="layouts"))


def main(sizes, record):
    """Measure every size, and the rest at one of them."""
    with torch.inference_mode():
        measuring.measure_sizes(sizes, record, measure_size)
    size, rounds = sizes["tiny" if sizes is QUICK else "gpt2"]
    record |= {
        "pieces_ms": measure_pieces(size, rounds),
        "products_ms": measure_products(size, 3 * rounds),
        "layouts_ms": measure_layouts(size, 3 * rounds),
    }
