"""Checks for chapter 15."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, B, Case, S, T, against, normal
from tutorial_lib.practice.ch15_fewer_keys.mistakes import MISTAKES
from tutorial_lib.projection import Params
from tutorial_lib.variants import grouped, latent
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.latent import LatentParams

check = against(MISTAKES)
H, G, RANK = 6, 2, 8


def _qkv(seed, *batch, H=H, G=G):
    shapes = (H, T, D_K), (G, S, D_K), (G, S, D_V)
    names = ("Q", "K", "V")
    return {
        name: normal(seed + n, *batch, *shape)
        for n, (name, shape) in enumerate(zip(names, shapes, strict=True))
    }


def _grouped(seed, *, H=H, G=G):
    shapes = (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(seed + n, *shape) for n, shape in enumerate(shapes)))


def _params(seed, *, H=H):
    return Params(*vars(_grouped(seed, H=H, G=H)).values())


def _latent(seed, *, H=3, rank=RANK):
    shapes = (H, D_MODEL, D_K), (D_MODEL, rank), (H, rank, D_K), (H, rank, D_V)
    arrays = (normal(seed + n, *shape) for n, shape in enumerate(shapes))
    return LatentParams(*arrays, normal(seed + 4, H * D_V, D_MODEL))


def check_grouped_attention(function):
    """Check `grouped_attention(Q, K, V, *, mask=None)`: 6 heads, 2 heads of keys, and others."""
    per_head = np.random.default_rng(7).random((H, T, S)) < 0.6
    cases = (
        Case("6 heads, 2 key heads", _qkv(1500)),
        Case("6 heads, 3 key heads, a causal mask", _qkv(1510, G=3), {"mask": causal_mask(T, S)}),
        Case("a batch, a mask per head", _qkv(1520, B), {"mask": per_head}),
        Case("a batch that meets one text", _qkv(1520) | {"Q": normal(1523, B, H, T, D_K)}),
    )
    check("grouped_attention", function, grouped.grouped_attention, cases)


def check_group_params(function):
    """Check `group_params(params, n_kv_heads)`: Params → GroupedParams."""
    cases = (
        Case("6 heads, 2 key heads", {"params": _params(1530), "n_kv_heads": 2}),
        Case("8 heads, 4 key heads", {"params": _params(1540, H=8), "n_kv_heads": 4}),
    )
    check("group_params", function, grouped.group_params, cases)


def check_absorbed_attention(function):
    """Check `absorbed_attention(Q, C, latent, *, mask=None)`."""
    causal = {"mask": causal_mask(T, S)}
    cases = (
        Case(
            "rank 8, a causal mask",
            {"Q": normal(1550, 3, T, D_K), "C": normal(1551, S, RANK), "latent": _latent(1552)},
            causal,
        ),
        Case(
            "rank 2, a batch, a causal mask",
            {
                "Q": normal(1560, B, 3, T, D_K),
                "C": normal(1561, B, S, 2),
                "latent": _latent(1562, rank=2),
            },
            causal,
        ),
    )
    check("absorbed_attention", function, latent.absorbed_attention, cases)


def check_attend_by_layer(function):
    """Check `attend_by_layer(X, layers, sources, *, mask=None)`."""
    layers = tuple(_params(seed, H=3) for seed in (1570, 1580, 1590, 1600))
    X, mask = normal(1575, B, T, D_MODEL), {"mask": causal_mask(T)}
    one = {"X": normal(1576, T, D_MODEL) / 4}
    cases = (
        Case(
            "four layers, two of which borrow",
            {"X": X / 4, "layers": layers, "sources": (0, 0, 2, 0)},
            mask,
        ),
        Case(
            "three layers, one borrows from layer 1",
            one | {"layers": layers[:3], "sources": (0, 1, 1)},
        ),
        Case("two layers, one of which borrows", one | {"layers": layers[:2], "sources": (0, 0)}),
    )
    check("attend_by_layer", function, grouped.attend_by_layer, cases)


def _from_tiled(params):
    n_heads, n_groups = params.n_heads, params.n_kv_heads
    order = np.arange(n_heads).reshape(-1, n_groups).T.ravel()  # group 0 first
    blocks = params.W_O.reshape(n_heads, params.d_v, params.d_model)
    W_O = blocks[order].reshape(params.W_O.shape)
    return GroupedParams(params.W_Q[order], params.W_K, params.W_V, W_O)


def check_from_tiled(function):
    """Check `from_tiled(params)`, exercise of chapter 15."""
    cases = (
        Case("6 heads, 2 key heads", {"params": _grouped(1610)}),
        Case("6 heads, 3 key heads", {"params": _grouped(1620, G=3)}),
    )
    check("from_tiled", function, _from_tiled, cases)


def _absorbed_output(latent):
    blocks = latent.W_O.reshape(latent.n_heads, latent.d_v, latent.d_model)
    return (latent.W_UV @ blocks).reshape(-1, latent.d_model)


def check_absorbed_output(function):
    """Check `absorbed_output(latent)`, exercise of chapter 15: (H*rank, d_model)."""
    cases = (
        Case("3 heads, rank 8", {"latent": _latent(1630)}),
        Case("2 heads, rank 5", {"latent": _latent(1640, H=2, rank=5)}),
    )
    check("absorbed_output", function, _absorbed_output, cases)


def _latent_cache_bytes(*, n_layers, n_heads, rank, turned, itemsize):
    return n_layers * (rank + turned) * itemsize


def check_latent_cache_bytes(function):
    """Check `latent_cache_bytes(*, n_layers, n_heads, rank, turned, itemsize)`."""
    small = {"n_layers": 3, "n_heads": 7, "rank": 40, "turned": 6, "itemsize": 4}
    cases = (
        Case("a small model", {}, small),
        Case(
            "16 bits, 27 layers",
            {},
            {"n_layers": 27, "n_heads": 16, "rank": 72, "turned": 10, "itemsize": 2},
        ),
    )
    check("latent_cache_bytes", function, _latent_cache_bytes, cases)
