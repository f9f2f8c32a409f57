"""Right answers of chapter 10 in other ways, and too narrow ones. Tensors by their own methods."""

import numpy as np


def repeated_masks(mask, n_heads):
    return np.repeat(~mask, n_heads // mask.shape[1], axis=1).reshape(-1, *mask.shape[2:])


def packed_by_loops(ids, end):
    ends = np.pad(ids == end, ((0, 0), (1, 0)))
    T = ids.shape[1]
    look = [
        [[s <= t and not row[s + 1 : t + 1].any() for s in range(T)] for t in range(T)]
        for row in ends
    ]
    return np.array(look)[:, None]


def leaks_of(tokens, *, rows=slice(None), limit=1e-9):
    """Change some tokens, and look at some rows."""

    def leaking_pairs(layer, X, mask):
        rng, before = np.random.default_rng(2), layer(X)
        leaks = np.zeros(mask.shape, dtype=bool)
        for s in np.arange(len(X))[tokens]:
            after = layer(np.where(np.arange(len(X))[:, None] == s, rng.uniform(size=X.shape), X))
            stayed = (np.abs(after - before) <= limit).all(axis=-1)
            leaks[rows, s] = ~(stayed | mask[:, s])[rows]
        return leaks

    return leaking_pairs


VARIANTS = [
    ("for_torch_layer", "masks repeated", repeated_masks),
    ("packed_mask", "by loops", packed_by_loops),
    ("leaking_pairs", "other numbers", leaks_of(slice(None))),
]


NARROW = [
    ("masked_softmax", "masked rows by axis 1", "mask.any(dim=-1", "mask.any(dim=1"),
    (
        "fused_attention",
        "values as wide as keys",
        "if mask is",
        "Q = Q * (Q.shape[-1] / V.shape[-1]) ** 0.5\nif mask is",
    ),
    ("leaking_pairs", "the first token left out", "range(len(X))", "range(1, len(X))"),
    ("leaking_pairs", "the first two tokens left out", "range(len(X))", "range(2, len(X))"),
    ("leaking_pairs", "only the last token", "range(len(X))", "range(len(X) - 1, len(X))"),
    (
        "leaking_pairs",
        "only the first two rows",
        "& ~mask",
        "& ~mask & (np.arange(len(X)) < 2)[:, None]",
    ),
    (
        "leaking_pairs",
        "the first two rows left out",
        "& ~mask",
        "& ~mask & (np.arange(len(X)) >= 2)[:, None]",
    ),
    ("leaking_pairs", "only causal masks", "& ~mask", "& ~mask & ~attention.causal_mask(len(X))"),
    ("leaking_pairs", "to six digits", "1e-9", "1e-6"),
]
