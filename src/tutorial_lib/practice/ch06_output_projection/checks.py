"""Checks for chapter 06."""

import numpy as np

from tutorial_lib import multihead, projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal

MISTAKES, cases_of = read_room(__file__)


def _layer_inputs(n_heads, d_k, *batch):
    sizes = {"d_model": D_MODEL, "n_heads": n_heads, "d_k": d_k, "d_v": D_V}
    params = projection.init_params(np.random.default_rng(1), **sizes)
    return {"X": 2 * normal(12, *batch, T, D_MODEL), "params": params}


def _layer_cases(context_label, context_length):
    """Return the cases of the layer, with contexts of a length; `context_label` labels them."""
    inputs, shown = _layer_inputs(H, D_K, B), masks()
    other = {"context": normal(13, B, context_length, D_MODEL)}
    padded = {**other, "mask": shown["padding of each sentence"][..., -context_length:]}
    return (
        ("no mask", inputs),
        *((label, inputs, {"mask": mask[..., -T:]}) for label, mask in shown.items()),
        (context_label, inputs, other),
        (f"{context_label}, with padding", inputs, padded),
        ("one sentence, 2 wide heads", _layer_inputs(2, WIDE)),
    )


@cases_of(multihead.trace)
def check_trace():
    yield from _layer_cases("a context of another length", S)


@cases_of(multihead.multi_head_attention)
def check_multi_head_attention():
    """Check `multi_head_attention(X, params, *, context=None, mask=None)`. Prints an account.

    Contexts are as long as X, so that keys from X give a result; `check_trace` has other lengths.
    """
    yield from _layer_cases("a context as long as X", T)


def _head_contributions(heads, W_O):
    """Return the fraction of each row of Y that comes from each head, measured along Y."""
    H, d_v = heads.shape[-3], heads.shape[-1]
    contributions = heads @ W_O.reshape(H, d_v, -1)  # (..., H, T, d_model)
    Y = contributions.sum(axis=-3, keepdims=True)
    return (contributions * Y).sum(axis=-1) / (Y * Y).sum(axis=-1)


@cases_of(_head_contributions)
def check_head_contributions():
    W_O, wide = normal(30, H * D_V, D_MODEL), normal(46, 7 * D_K, D_MODEL)
    silent = normal(31, H, T, D_V)
    silent[1] = 0
    yield "3 heads", {"heads": normal(32, H, T, D_V), "W_O": W_O}
    yield "a batch, 7 heads", {"heads": normal(33, B, 7, T, D_K), "W_O": wide}
    yield "a head whose output is 0", {"heads": silent, "W_O": W_O}


def _layer_parameters(d_model, heads, d_k, kv_heads):
    queries_and_out = 2 * d_model * heads * d_k
    return queries_and_out + 2 * d_model * kv_heads * d_k


@cases_of(_layer_parameters)
def check_layer_parameters():
    yield "a KV head for each head", (17, 3, 4, 3)
    yield "heads wider than d_model", (13, 5, 7, 1)
    yield "2 KV heads for 6 heads", (19, 6, 5, 2)


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
    wide, batch = _layer_inputs(2, WIDE), _layer_inputs(H, D_K, B)
    params, X = batch["params"], np.round(4 * batch["X"][1]) / 4
    sharp = projection.Params(1000 * params.W_Q, params.W_K, params.W_V, params.W_O)
    return (
        ("one sentence under a causal mask", {**wide, "mask": causal}),
        ("a batch, with a mask for each sentence and head", {**batch, "mask": own}),
        ("a fully masked row", {"X": X, "params": params, "mask": padded}),
        ("scores in the thousands", {"X": X, "params": sharp, "mask": causal}),
    )


@cases_of(_my_layer)
def check_my_layer():
    yield from my_layer_cases()
