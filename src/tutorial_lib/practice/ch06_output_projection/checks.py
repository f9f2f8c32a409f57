"""Checks for chapter 06."""

import numpy as np

from tutorial_lib import multihead, projection
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal

MISTAKES, check = room(__file__)


def _inputs(n_heads, d_k, *lead):
    sizes = {"d_model": D_MODEL, "n_heads": n_heads, "d_k": d_k, "d_v": D_V}
    params = projection.init_params(np.random.default_rng(1), **sizes)
    return {"X": 2 * normal(12, *lead, T, D_MODEL), "params": params}


def _layer_cases(context, length):
    """Return the cases of the layer, with contexts of a length; `context` labels them."""
    inputs, shown = _inputs(H, D_K, B), masks()
    other = {"context": normal(13, B, length, D_MODEL)}
    padded = {**other, "mask": shown["padding of each sentence"][..., -length:]}
    return (
        Case("no mask", inputs),
        *(Case(label, inputs, {"mask": mask[..., -T:]}) for label, mask in shown.items()),
        Case(context, inputs, other),
        Case(f"{context}, with padding", inputs, padded),
        Case("one sentence, 2 wide heads", _inputs(2, WIDE)),
    )


def check_trace(function):
    """Check `trace(X, params, *, context=None, mask=None)`, all arrays of it. Prints an account."""
    cases = _layer_cases("a context of another length", S)
    check("trace", function, multihead.trace, cases)


def check_multi_head_attention(function):
    """Check `multi_head_attention(X, params, *, context=None, mask=None)`. Prints an account.

    Contexts are as long as X, so that keys from X give a result; `check_trace` has other lengths.
    """
    cases = _layer_cases("a context as long as X", T)
    check("multi_head_attention", function, multihead.multi_head_attention, cases)


def _head_contributions(heads, W_O):
    H, d_v = heads.shape[-3], heads.shape[-1]
    contributions = heads @ W_O.reshape(H, d_v, -1)  # (..., H, T, d_model)
    Y = contributions.sum(axis=-3, keepdims=True)
    return (contributions * Y).sum(axis=-1) / (Y * Y).sum(axis=-1)


def check_head_contributions(function):
    """Check `head_contributions(heads, W_O)` → (..., H, T), exercise of chapter 06."""
    W_O, wide = normal(30, H * D_V, D_MODEL), normal(46, 7 * D_K, D_MODEL)
    silent = normal(31, H, T, D_V)
    silent[1] = 0
    cases = (
        Case("3 heads", {"heads": normal(32, H, T, D_V), "W_O": W_O}),
        Case("a batch, 7 heads", {"heads": normal(33, B, 7, T, D_K), "W_O": wide}),
        Case("a head whose output is 0", {"heads": silent, "W_O": W_O}),
    )
    check("head_contributions", function, _head_contributions, cases)


def _layer_parameters(d_model, heads, d_k, kv_heads):
    queries_and_out = 2 * d_model * heads * d_k
    return queries_and_out + 2 * d_model * kv_heads * d_k


def check_layer_parameters(function):
    """Check `layer_parameters(d_model, heads, d_k, kv_heads)`, exercise of chapter 06."""
    sizes = {
        "a KV head for each head": (17, 3, 4, 3),
        "heads wider than d_model": (13, 5, 7, 1),
        "2 KV heads for 6 heads": (19, 6, 5, 2),
    }
    names = ("d_model", "heads", "d_k", "kv_heads")
    cases = tuple(
        Case(label, dict(zip(names, values, strict=True))) for label, values in sizes.items()
    )
    check("layer_parameters", function, _layer_parameters, cases)


def _my_layer(X, params, mask):
    return multihead.multi_head_attention(X, params, mask=mask)


def my_layer_cases():
    """Return the cases of a layer from nothing, from what a first version does to what it lacks.

    X holds multiples of 1/4, so that it is the same in single precision, and the large scores
    leave no two keys close.
    """
    own = masks()["a mask for each sentence and head"][..., :T]
    causal = np.tri(T, dtype=bool)
    padded = causal & (np.arange(T) > 0)  # token 0 is padding, so it sees no key
    wide, batch = _inputs(2, WIDE), _inputs(H, D_K, B)
    params, X = batch["params"], np.round(4 * batch["X"][1]) / 4
    sharp = projection.Params(1000 * params.W_Q, params.W_K, params.W_V, params.W_O)
    return (
        Case("one sentence under a causal mask", {**wide, "mask": causal}),
        Case("a batch, with a mask for each sentence and head", {**batch, "mask": own}),
        Case("a fully masked row", {"X": X, "params": params, "mask": padded}),
        Case("scores in the thousands", {"X": X, "params": sharp, "mask": causal}),
    )


def check_my_layer(function):
    """Check `my_layer(X, params, mask)`, the blank cell of chapter 06. Prints an account."""
    check("my_layer", function, _my_layer, my_layer_cases())
