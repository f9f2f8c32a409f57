"""Right answers of chapter 24 in other ways, and edits that make it too narrow."""

import numpy as np


def numbers_one_by_one(scale, minimum, nibbles):
    numbers = []
    for a, b, block in zip(scale, minimum, nibbles.tolist(), strict=True):
        numbers += [b + a * (byte % 16) for byte in block]
        numbers += [b + a * (byte // 16) for byte in block]
    return np.array(numbers)


def window_of_triangles(T, width):
    seen = np.tri(T, dtype=bool)
    seen[:, 1:] &= ~np.tri(T, k=1 - width, dtype=bool)[:, 1:]
    return seen


def row_by_where(feed, source, target):
    chosen = np.arange(feed.shape[-2])[:, None] == target
    return np.where(chosen, feed[..., source : source + 1, :], feed)


VARIANTS = [
    ("dequantise", "one by one", numbers_one_by_one),
    ("first_and_last", "triangles", window_of_triangles),
    ("copy_row", "where", row_by_where),
]


NARROW = [
    (
        "swiglu",
        "exp of a large gate",
        "gate / (1 + np.exp(-gate))",
        "gate * np.exp(gate) / (1 + np.exp(gate))",
    ),
    (
        "dequantise",
        "only the first block",
        "minimum[:, None] + scale[:, None]",
        "minimum[0] + scale[0]",
    ),
    ("copy_row", "writes into its input", "feed.copy()", "feed"),
    ("copy_row", "only row 0", "feed[..., source, :]", "feed[..., 0, :]"),
]
