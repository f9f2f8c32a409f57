"""Right answers of chapter 14 in other ways, and edits that make it too narrow."""

import numpy as np

from tutorial_lib.counting import cache_bytes


def users_by_bytes(free, tokens, model, bits):
    names = {"n_layers": "layers", "n_kv_heads": "kv_heads", "d_k": "d_k", "d_v": "d_v"}
    shape = {name: model[field] for name, field in names.items()}
    return int(free // (tokens * cache_bytes(**shape, itemsize=bits / 8)))


def positions_by_padding(is_token, T):
    pad = (~is_token).sum(axis=-1, keepdims=True)
    S = is_token.shape[-1]
    return np.clip(np.arange(S - T, S) - pad, 0, None)


VARIANTS = [
    ("buffer_mask", "tri", lambda length, T, capacity: np.tri(T, capacity, length, dtype=bool)),
    ("users_that_fit", "bytes per token", users_by_bytes),
    ("positions_of_new", "columns less padding", positions_by_padding),
]


NARROW = [
    ("buffer_mask", "only one token", "length + np.arange(T)", "length + 0 * np.arange(T)"),
    ("users_that_fit", "keys as wide as values", 'model["d_v"]', 'model["d_k"]'),
    (
        "users_that_fit",
        "users less than half of whom do not fit",
        "free * 8 // (tokens * entries * bits)",
        "round(free * 8 / (tokens * entries * bits))",
    ),
    ("positions_of_new", "no padding", "np.cumsum(is_token", "np.cumsum(is_token | True"),
]
