"""Checks for chapter 06."""

import math

import numpy as np

from tutorial_lib import attention, multihead, projection
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, B, Case, H, S, T, against, normal
from tutorial_lib.practice.ch06_output_projection.mistakes import MISTAKES

check = against(MISTAKES)


def _params():
    return projection.init_params(
        np.random.default_rng(1), d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=D_V
    )


def _layer_cases():
    inputs = {"X": 2 * normal(12, B, T, D_MODEL), "params": _params()}
    context = normal(13, B, S, D_MODEL)
    hidden = attention.causal_mask(T, S) & (np.arange(T) != 2)[:, None]  # query 2 sees nothing
    return (
        Case("no mask", inputs),
        Case("a causal mask", inputs, {"mask": attention.causal_mask(T)}),
        Case("a context of another length", inputs, {"context": context}),
        Case("a row with nothing to look at", inputs, {"context": context, "mask": hidden}),
        Case("a mask for each head", inputs, {"mask": _mask_for_each_head()}),
        Case("one sentence", {**inputs, "X": 2 * normal(45, T, D_MODEL)}),
    )


def _mask_for_each_head():
    """Let the heads see all, the past, and the last two words of the past: (H, T, T)."""
    past = attention.causal_mask(T)
    return np.stack([np.ones((T, T), dtype=bool), past, past & ~np.tri(T, k=-2, dtype=bool)])


def check_trace(function):
    """Check `trace(X, params, *, context=None, mask=None)`, all arrays of it. Prints an account."""
    check("trace", function, multihead.trace, _layer_cases())


def check_multi_head_attention(function):
    """Check `multi_head_attention(X, params, *, context=None, mask=None)`. Prints an account."""
    check("multi_head_attention", function, multihead.multi_head_attention, _layer_cases())


def _head_shares(heads, W_O):
    shares = heads @ W_O.reshape(heads.shape[-3], heads.shape[-1], -1)  # (..., H, T, d_model)
    Y = shares.sum(axis=-3, keepdims=True)
    return (shares * Y).sum(axis=-1) / (Y * Y).sum(axis=-1)


def check_head_shares(function):
    """Check `head_shares(heads, W_O)`: (..., H, T, d_v) → (..., H, T), exercise of chapter 06."""
    W_O = normal(30, H * D_V, D_MODEL)
    silent = normal(31, H, T, D_V)
    silent[1] = 0
    cases = (
        Case("3 heads", {"heads": normal(32, H, T, D_V), "W_O": W_O}),
        Case("a batch", {"heads": normal(33, B, H, T, D_V), "W_O": W_O}),
        Case("a head that says nothing", {"heads": silent, "W_O": W_O}),
    )
    check("head_shares", function, _head_shares, cases)


def _length_factor(W):
    return math.sqrt((W * W).sum() / len(W))


def check_length_factor(function):
    """Check `length_factor(W)`, exercise of chapter 06."""
    cases = (
        Case("more columns than rows", {"W": normal(34, D_MODEL, H * D_V)}),
        Case("more rows than columns", {"W": 0.1 * normal(35, H * D_V, D_MODEL)}),
        Case("entries around 1", {"W": 1 + normal(36, D_MODEL, D_K)}),
    )
    check("length_factor", function, _length_factor, cases)


def _layer_parameters(d_model, heads, d_k, kv_heads):
    return d_model * d_k * (2 * heads + 2 * kv_heads)


def check_layer_parameters(function):
    """Check `layer_parameters(d_model, heads, d_k, kv_heads)`, exercise of chapter 06."""
    sizes = {
        "a key head for each head": (12, 3, 4, 3),
        "heads wider than d_model": (12, 5, 7, 5),
        "2 key heads for 6 heads": (18, 6, 4, 2),
    }
    names = ("d_model", "heads", "d_k", "kv_heads")
    cases = tuple(
        Case(label, dict(zip(names, values, strict=True))) for label, values in sizes.items()
    )
    check("layer_parameters", function, _layer_parameters, cases)
