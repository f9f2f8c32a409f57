"""Time our layer in PyTorch beside what others offer for the same work.

Causal, float32, one thread, the same weights in all; forward in inference, and forward + backward
to the gradients of X and of every weight. Before it is timed a layer is compared with float64: its
output with NumPy's tiled layer, its gradient of X with autograd. One that is absent, fails or
disagrees stands in the record with the reason.

FlexAttention and torch.compile need a C++ compiler: g++, clang++, or what CXX names. transformers
is one of the test packages. Writes src/tutorial_lib/data/results/torch_attention.json.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from experiments import measuring
from experiments.measuring import SIZES, Size, fused_weights, in_float32, inputs
from tutorial_lib import tiled_multi_head_attention
from tutorial_lib.pytorch import MultiHeadAttention

SEED = [measuring.SEED, 1]  # of the inputs, of the gradient of a loss by Y
ROUNDS = {"book": 31, "gpt2": 9, "long": 5}
FULL = {name: (size, ROUNDS[name]) for name, size in SIZES.items()}
QUICK = {"tiny": (Size(2, 24, 12, 4), 2)}
OURS, BARE = "ours", "bare SDPA"
FAST, FLEX = "nn.MultiheadAttention, fast path", "FlexAttention"
FORWARD, BACKWARD = "forward", "forward + backward"


class Form(NamedTuple):
    """A way to compute the layer: Y = run(X) with the weights of the module."""

    run: Callable
    module: nn.Module


class MinimalSelfAttention(nn.Module):
    """What is left of the layer without checks and options: two products around SDPA."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, X):
        """Return Y, (B, T, d_model)."""
        B, T, d_model = X.shape
        packed = self.qkv_proj(X).view(B, T, 3, self.n_heads, -1)
        Q, K, V = packed.permute(2, 0, 3, 1, 4).unbind(0)
        return self.out_proj(self.attend(Q, K, V).transpose(1, 2).reshape(B, T, d_model))

    def attend(self, Q, K, V):
        """Return the heads, (B, H, T, d_k)."""
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


class FlexLayer(MinimalSelfAttention):
    """The same around FlexAttention, which leaves out the blocks above the diagonal."""

    def __init__(self, d_model, n_heads, T):
        super().__init__(d_model, n_heads)
        self.mask = create_block_mask(is_causal_pair, None, None, T, T, device="cpu")

    def attend(self, Q, K, V):
        """Return the heads, (B, H, T, d_k)."""
        return flex_attention(Q, K, V, block_mask=self.mask)


def is_causal_pair(b, h, query, key):
    """Say which keys a query may look at."""
    return query >= key


def load_params(module, params, names=("qkv_proj.weight", "out_proj.weight")):
    """Copy Params into a module's two weights, (out, in) as nn.Linear stores them."""
    module = module.to(torch.from_numpy(params.W_O).dtype).eval()
    with torch.no_grad():
        for name, W in zip(names, fused_weights(params), strict=True):
            module.get_parameter(name).copy_(W.T)
    return module


def our_module(X, params):
    """Our module, the fused path."""
    module = load_params(MultiHeadAttention(params.d_model, params.n_heads), params)
    return Form(partial(module, is_causal=True), module)


def bare(X, params, *, kind=MinimalSelfAttention):
    """The least that PyTorch needs."""
    module = load_params(kind(params.d_model, params.n_heads), params)
    return Form(module, module)


def torch_module(X, params, *, fast_path, bias):
    """nn.MultiheadAttention without returned weights; its fast path needs biases, here zeros."""
    module = nn.MultiheadAttention(
        params.d_model, params.n_heads, bias=bias, batch_first=True, dtype=X.dtype
    )
    load_params(module, params, ("in_proj_weight", "out_proj.weight"))
    hidden = torch.ones(X.shape[-2], X.shape[-2], dtype=torch.bool).triu(1)  # True = may not look
    options = {"attn_mask": hidden, "is_causal": True, "need_weights": False}

    def run(X):
        torch.backends.mha.set_fastpath_enabled(fast_path)
        try:
            return module(X, X, X, **options)[0]
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    return Form(run, module)


def flex(X, params):
    """FlexAttention between two products, compiled as a whole."""
    module = load_params(FlexLayer(params.d_model, params.n_heads, X.shape[-2]), params)
    return Form(compiled(module), module)


def explicit(X, params):
    """Our module step by step, compiled as a whole."""
    module = load_params(MultiHeadAttention(params.d_model, params.n_heads), params)
    return Form(partial(compiled(module.explicit), is_causal=True), module)


def compiled(function):
    """Return the function compiled for the shapes of its first call."""
    return torch.compile(function, fullgraph=True, dynamic=False)


def gpt2(X, params):
    """The attention layer of GPT-2 in transformers, through SDPA; its biases are zeros."""
    library = importlib.import_module("transformers.models.gpt2.modeling_gpt2")
    config = library.GPT2Config(n_embd=params.d_model, n_head=params.n_heads)
    config.attn_pdrop = config.resid_pdrop = 0.0
    config._attn_implementation = "sdpa"  # the library sets it so when it loads a model
    module = library.GPT2Attention(config, layer_idx=0).to(X.dtype).eval()
    with torch.no_grad():
        for layer, W in zip((module.c_attn, module.c_proj), fused_weights(params), strict=True):
            layer.weight.copy_(W)
    return Form(lambda X: module(X)[0], module)


FORMS = {
    OURS: our_module,
    BARE: bare,
    FAST: partial(torch_module, fast_path=True, bias=True),
    "nn.MultiheadAttention": partial(torch_module, fast_path=False, bias=False),
    FLEX: flex,
    "ours step by step, compiled": explicit,
    "GPT-2 of transformers": gpt2,
}
WITHOUT_BACKWARD = {FAST: "PyTorch takes this path in inference alone"}


def gradient(form, X, dY):
    """Go forward and back to X and every weight; return the gradient of X."""
    return torch.autograd.grad(form.run(X), [X, *form.module.parameters()], dY)[0]


def reference_results(X, params, dY):
    """Return the output and the gradient of X in float64: {way: array}."""
    gradients = gradient(bare(X, params), torch.tensor(X, requires_grad=True), torch.tensor(dY))
    return {
        FORWARD: tiled_multi_head_attention(X, params, causal=True),
        BACKWARD: gradients.numpy(),
    }


def error_of(call, expected):
    """Return the error of a call; refuse one that is not the same layer."""
    return measuring.error_of(call().detach(), expected, wrong="not the same layer")


def benchmark_pass(calls, expected, rounds, title):
    """Check, time and weigh the calls of one way; return ({name: row}, {name: reason})."""
    errors, reasons = measuring.call_each(
        {name: partial(error_of, call, expected) for name, call in calls.items()}
    )
    if lost := {name: reasons[name] for name in (OURS, BARE) if name in reasons}:
        raise ValueError(f"nothing to compare with: {lost}")
    calls = {name: calls[name] for name in errors}
    times_ms = measuring.time_in_rounds(calls, rounds=rounds, title=title)
    rows = measuring.table_of(times_ms, times_bare=times_ms[BARE], times_ours=times_ms[OURS])
    for name, call in calls.items():
        rows[name] |= {"peak_mib": measuring.torch_peak_mib(call), "error": errors[name]}
    return rows, reasons


def measure_size(name, size, rounds):
    """Measure every form at one size, both ways: {way: {form: row, or why there is none}}."""
    torch.compiler.reset()  # or kernels for any shape would be made at the second size
    X, params = inputs(size)
    dY = np.random.default_rng(SEED[1]).standard_normal(X.shape)
    expected = reference_results(X, params, dY)
    X = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    dY, params = torch.tensor(dY, dtype=torch.float32), in_float32(params)
    forms, absent = measuring.call_each({n: partial(make, X, params) for n, make in FORMS.items()})
    ways = {
        FORWARD: {n: partial(form.run, X) for n, form in forms.items()},
        BACKWARD: {
            n: partial(gradient, form, X, dY)
            for n, form in forms.items()
            if n not in WITHOUT_BACKWARD
        },
    }
    found = {**size._asdict(), "flop": size.flop}
    for way, calls in ways.items():
        with torch.inference_mode(way == FORWARD):
            rows, reasons = benchmark_pass(calls, expected[way], rounds, f"{name}, {way}")
        reasons |= absent | (WITHOUT_BACKWARD if way == BACKWARD else {})
        left_out = {n: {"left_out": reason} for n, reason in reasons.items()}
        found[way] = {n: (rows | left_out)[n] for n in FORMS}
    return found


def main(sizes, record):
    """Measure every size."""
    measuring.measure_sizes(sizes, record, measure_size)
