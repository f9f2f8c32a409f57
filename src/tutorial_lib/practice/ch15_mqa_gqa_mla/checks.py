"""Checks for chapter 15."""

import numpy as np

from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal
from tutorial_lib.projection import Params
from tutorial_lib.variants import grouped, latent
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.latent import LatentParams

MISTAKES, cases_of = read_room(__file__)
RANK = 9


def _qkv(seed, *batch, H, G, d_k=D_K):
    shapes = {"Q": (H, T, d_k), "K": (G, S, d_k), "V": (G, S, D_V)}
    return {
        name: normal(seed + n, *batch, *shape) for n, (name, shape) in enumerate(shapes.items())
    }


def _grouped_params(seed, *, H, G, d_k=D_K):
    shapes = (H, D_MODEL, d_k), (G, D_MODEL, d_k), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(seed + n, *shape) / 4 for n, shape in enumerate(shapes)))


def _params(seed, *, H, d_k=D_K):
    return Params(*vars(_grouped_params(seed, H=H, G=H, d_k=d_k)).values())


def _latent_params(seed, *, H=H, rank=RANK, d_k=D_K):
    shapes = (H, D_MODEL, d_k), (D_MODEL, rank), (H, rank, d_k), (H, rank, D_V)
    arrays = (normal(seed + n, *shape) for n, shape in enumerate(shapes))
    return LatentParams(*arrays, normal(seed + 4, H * D_V, D_MODEL))


def _mask_cases(*, n_heads=H, n_keys=S):
    """Masks as people have them, for more heads, or for the last keys."""
    own = np.random.default_rng(7).random((B, n_heads, T, n_keys)) < 0.6
    own[..., 1] = True  # each query sees a key
    last = {label: mask[..., -n_keys:] for label, mask in masks(empty=False).items()}
    return last | {"a mask for each head": own[0], "a mask for each sentence and head": own}


@cases_of(grouped.grouped_attention)
def check_grouped_attention():
    inputs = _qkv(1500, B, H=18, G=3)
    yield "18 heads, 3 KV heads", inputs
    yield from ((label, inputs, {"mask": mask}) for label, mask in _mask_cases(n_heads=18).items())
    yield "6 heads, 2 KV heads, wider", _qkv(1510, H=6, G=2, d_k=WIDE)
    yield (
        "a batch that attends to one sequence",
        _qkv(1520, H=18, G=3) | {"Q": normal(1523, B, 18, T, D_K)},
    )


@cases_of(grouped.group_params)
def check_group_params():
    yield "6 heads, 2 KV heads", {"params": _params(1530, H=6), "n_kv_heads": 2}
    yield "10 heads, 5 KV heads", {"params": _params(1540, H=10), "n_kv_heads": 5}


@cases_of(latent.absorbed_attention)
def check_absorbed_attention():
    inputs = {"Q": normal(1550, B, H, T, D_K), "C": normal(1551, B, S, RANK)}
    inputs["latent"] = _latent_params(1552)
    wide = {"Q": normal(1560, H, T, WIDE), "C": normal(1561, S, 4)}
    wide["latent"] = _latent_params(1562, rank=4, d_k=WIDE)
    yield "rank 9", inputs
    yield from ((label, inputs, {"mask": mask}) for label, mask in masks(empty=False).items())
    yield "rank 4, wider heads, no batch axis", wide


@cases_of(grouped.cross_layer_attention)
def check_cross_layer_attention():
    layers = tuple(_params(seed, H=H, d_k=9) for seed in (1570, 1580, 1590, 1600))
    inputs = {"X": normal(1575, B, T, D_MODEL), "layers": layers, "sources": (0, 0, 2, 0)}
    wide = tuple(_params(seed, H=4, d_k=WIDE) for seed in (1610, 1620, 1630))
    one = {"X": normal(1576, T, D_MODEL)}
    yield from ((label, inputs, {"mask": mask}) for label, mask in _mask_cases(n_keys=T).items())
    yield "wider heads, one borrows from layer 1", one | {"layers": wide, "sources": (0, 1, 1)}
    yield "two layers, one of which borrows", one | {"layers": layers[:2], "sources": (0, 0)}


def _from_tiled(params):
    n_heads, n_groups = params.n_heads, params.n_kv_heads
    order = np.arange(n_heads).reshape(-1, n_groups).T.ravel()  # group 0 first
    blocks = params.W_O.reshape(n_heads, params.d_v, params.d_model)
    W_O = blocks[order].reshape(params.W_O.shape)
    return GroupedParams(params.W_Q[order], params.W_K, params.W_V, W_O)


@cases_of(_from_tiled)
def check_from_tiled():
    yield "6 heads, 2 KV heads", {"params": _grouped_params(1640, H=6, G=2)}
    yield "10 heads, 5 KV heads", {"params": _grouped_params(1650, H=10, G=5)}


def _absorbed_output(latent):
    blocks = latent.W_O.reshape(latent.n_heads, latent.d_v, latent.d_model)
    return (latent.W_UV @ blocks).reshape(-1, latent.d_model)


@cases_of(_absorbed_output)
def check_absorbed_output():
    yield "3 heads, rank 9", {"latent": _latent_params(1660)}
    yield "2 heads, rank 5", {"latent": _latent_params(1670, H=2, rank=5)}


def _latent_cache_bytes(*, n_layers, n_heads, rank, rope_dim, itemsize):
    return n_layers * (rank + rope_dim) * itemsize


@cases_of(_latent_cache_bytes)
def check_latent_cache_bytes():
    small = {"n_layers": 3, "n_heads": 7, "rank": 40, "rope_dim": 6, "itemsize": 4}
    yield "a small model", {}, small
    yield (
        "16 bits, 27 layers",
        {},
        {"n_layers": 27, "n_heads": 16, "rank": 72, "rope_dim": 10, "itemsize": 2},
    )
