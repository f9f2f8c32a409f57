"""Right answers of chapter 10 in other ways, and too narrow ones. Tensors by their own methods."""

import math

import numpy as np

from tutorial_lib import causal_mask


def softmax_of_exponentials(scores, *, mask=None):
    shown = scores if mask is None else scores.where(mask, -math.inf)
    exps = (shown - shown.amax(-1, keepdim=True).clamp(min=-1e300)).exp()
    return exps / exps.sum(-1, keepdim=True).clamp(min=1e-300)


def heads_step_by_step(Q, K, V, *, mask=None, dropout=0.0):
    return softmax_of_exponentials(Q @ K.mT / Q.shape[-1] ** 0.5, mask=mask) @ V


def causal_by_positions(mask, is_causal, Q, K):
    if not is_causal:
        return mask
    T, S = Q.shape[-2], K.shape[-2]
    causal = Q.new_tensor(np.arange(S) <= np.arange(S - T, S)[:, None]).bool()
    return causal if mask is None else mask.logical_and(causal)


def rows_by_axis_1(scores, *, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(1, keepdim=True)
    return scores.masked_fill(~mask & some, -math.inf).softmax(-1).where(some, 0.0)


def narrow_heads(width):
    def heads(Q, K, V, *, mask=None, dropout=0.0):
        return heads_step_by_step(Q * (Q.shape[-1] / width(Q, V)) ** 0.5, K, V, mask=mask)

    return heads


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


def causal_leaks(layer, X, mask):
    return leaks_of(slice(None))(layer, X, mask) & ~causal_mask(len(X))


VARIANTS = [
    ("masked_softmax", "exponentials over their sum", softmax_of_exponentials),
    ("fused_attention", "step by step", heads_step_by_step),
    ("may_look", "by positions", causal_by_positions),
    ("for_torch_layer", "masks repeated", repeated_masks),
    ("packed_mask", "by loops", packed_by_loops),
    ("leaking_pairs", "other numbers", leaks_of(slice(None))),
]

NARROW = [
    ("masked_softmax", "masked rows by axis 1", rows_by_axis_1),
    ("fused_attention", "values as wide as keys", narrow_heads(lambda Q, V: V.shape[-1])),
    ("leaking_pairs", "the first token left out", leaks_of(slice(1, None))),
    ("leaking_pairs", "the first two tokens left out", leaks_of(slice(2, None))),
    ("leaking_pairs", "only the last token", leaks_of(slice(-1, None))),
    ("leaking_pairs", "only the first two rows", leaks_of(slice(None), rows=slice(2))),
    ("leaking_pairs", "the first two rows left out", leaks_of(slice(None), rows=slice(2, None))),
    ("leaking_pairs", "only causal masks", causal_leaks),
    ("leaking_pairs", "to six digits", leaks_of(slice(None), limit=1e-6)),
]
