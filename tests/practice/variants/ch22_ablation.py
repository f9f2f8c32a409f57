"""Right answers of chapter 22, written in other ways."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.models.copying import run
from tutorial_lib.multihead import trace


def _adapted(model, ids, change):
    """Run the model, adding to each layer's Y the change that `change` computes from its trace."""
    X = model.E[ids] + model.P[: ids.shape[-1]]
    for layer, params in enumerate(model.layers):
        record = trace(X, params, mask=causal_mask(ids.shape[-1]))
        rows = params.W_O.reshape(params.n_heads, params.d_v, -1)
        X = X + record.Y
        for head in range(params.n_heads):
            X = X + change(layer, head, record.heads[..., head, :, :]) @ rows[head]
    return X @ model.U


def ablate_by_differences(model, ids, heads, others, *, how="mean"):
    _, records = run(model, others)

    def change(layer, head, own):
        if (layer, head) not in heads:
            return 0 * own
        there = records[layer].heads[..., head, :, :]
        replacements = {"zero": 0, "mean": there.mean(axis=(0, 1)), "resample": there}
        return replacements[how] - own

    return _adapted(model, ids, change)


def gated_by_differences(model, ids, gates, outputs):
    def change(layer, head, own):
        if (layer, head) not in gates:
            return 0 * own
        return (1 - gates[layer, head]) * (outputs[layer, head] - own)

    return _adapted(model, ids, change)


def prune_by_recursion(heads, loss, removed=()):
    left = [head for head in heads if head not in removed]
    if not left:
        return [], []
    best = min(left, key=lambda head: loss([*removed, head]))
    order, losses = prune_by_recursion(heads, loss, (*removed, best))
    return [best, *order], [loss([*removed, best]), *losses]


def interval_by_sorting(values):
    low, *_, high = sorted(values)
    return low, high, 1 - 0.5 ** (len(values) - 1)


def prune_by_taking(heads, loss, most):
    left, removed = list(heads), []
    while left:
        losses = [loss([*removed, head]) for head in left]
        if min(losses) > most:
            break
        removed.append(left.pop(int(np.argmin(losses))))
    return left


def seeds_by_every_pair(first, second):
    gap = second.mean(axis=1) - first.mean(axis=1)[:, None]
    return bool((gap > 0).all() or (gap < 0).all())


def open_by_breakpoints(gates, n):
    """The clipped sum is linear between the shifts at which a gate reaches 0 or 1."""
    shifts = np.unique([*gates, *(gates - 1)])
    sums = np.array([np.clip(gates - shift, 0, 1).sum() for shift in shifts])
    shift = np.interp(n, sums[::-1], shifts[::-1])
    return np.clip(gates - shift, 0, 1)


VARIANTS = [
    ("ablate", "differences", ablate_by_differences),
    ("gated", "differences", gated_by_differences),
    ("prune_greedily", "recursion", prune_by_recursion),
    ("interval", "sorting", interval_by_sorting),
    ("prune_to", "taking", prune_by_taking),
    ("seeds_apart", "every pair", seeds_by_every_pair),
    ("with_n_open", "breakpoints", open_by_breakpoints),
]


NARROW = [
    ("ablate", "five heads by the mean", "others, how)", 'others, "mean")'),
    (
        "seeds_apart",
        "a tie is apart",
        "a.max() < b.min() or b.max() < a.min()",
        "a.max() <= b.min() or b.max() <= a.min()",
    ),
    (
        "seeds_apart",
        "documents, not seeds",
        "first.mean(axis=1), second.mean(axis=1)",
        "first.mean(axis=0), second.mean(axis=0)",
    ),
]
