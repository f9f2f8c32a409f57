"""Right answers of chapter 14 in other ways, and too narrow ones."""

import numpy as np

from tutorial_lib.counting import cache_bytes


def users_by_bytes(free, tokens, model, bits):
    names = {"n_layers": "layers", "n_kv_heads": "kv_heads", "d_k": "d_k", "d_v": "d_v"}
    shape = {name: model[field] for name, field in names.items()}
    return int(free // (tokens * cache_bytes(**shape, itemsize=bits / 8)))


def users_of_equal_widths(free, tokens, model, bits):
    return free * 8 // (tokens * bits * 2 * model["layers"] * model["kv_heads"] * model["d_k"])


def positions_by_padding(is_token, T):
    pad = (~is_token).sum(axis=-1, keepdims=True)
    S = is_token.shape[-1]
    return np.clip(np.arange(S - T, S) - pad, 0, None)


def users_rounded(free, tokens, model, bits):
    entries = model["layers"] * model["kv_heads"] * (model["d_k"] + model["d_v"])
    return round(free * 8 / (tokens * entries * bits))


def positions_with_a_point(is_token, T):
    return 1.0 * positions_by_padding(is_token, T)


VARIANTS = [
    ("buffer_mask", "tri", lambda length, T, capacity: np.tri(T, capacity, length, dtype=bool)),
    ("users_that_fit", "bytes per token", users_by_bytes),
    ("positions_of_new", "columns less padding", positions_by_padding),
]


NARROW = [
    (
        "buffer_mask",
        "only one token",
        lambda length, T, capacity: np.broadcast_to(np.arange(capacity) <= length, (T, capacity)),
    ),
    ("users_that_fit", "keys as wide as values", users_of_equal_widths),
    ("users_that_fit", "users less than half of whom do not fit", users_rounded),
    ("positions_of_new", "no use as indices", positions_with_a_point),
    (
        "positions_of_new",
        "no padding",
        lambda is_token, T: np.arange(is_token.shape[-1])[None, -T:] + 0 * is_token[:, -T:],
    ),
]
