"""Right answers of chapter 22, written in other ways."""

import numpy as np


def prune_by_recursion(heads, loss, removed=()):
    left = [head for head in heads if head not in removed]
    if not left:
        return [], []
    best = min(left, key=lambda head: loss([*removed, head]))
    order, losses = prune_by_recursion(heads, loss, (*removed, best))
    return [best, *order], [loss([*removed, best]), *losses]


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
    ("prune_greedily", "recursion", prune_by_recursion),
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
