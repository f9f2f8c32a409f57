"""The mask of drafts that form a tree, after texts that are padded on the left."""

import numpy as np
import torch

from coursework.grader.assignment import Assignment, Case, Task


def tree(rng, N, *, least, most):
    """Return the parents of a tree of N tokens, with two first tokens or more and a fork.

    least, most : how many ancestors a token has that has the most
    """
    while True:
        parents, ancestors = [], []
        for n in range(N):
            parents.append(rng.integers(-1, n))
            ancestors.append(1 + ancestors[parents[n]] if parents[n] >= 0 else 0)
        inner = [parent for parent in parents if parent >= 0]
        forks = len(set(inner)) < len(inner) < N - 1
        if forks and least <= max(ancestors) <= most:
            return parents


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    A draft that is all forks shows no grandparent, one of first tokens alone no tree, and one of a
    single token no rows beside its own; a text of P tokens has no padding.
    """

    def trees(B, N, *, least=1, most=1):
        return np.array([tree(rng, N, least=least, most=most) for _ in range(B)])

    def first(B, N):
        return np.full((B, N), -1)

    def lengths(B, P):
        some = rng.integers(1, P + 1, size=B)
        some[:2] = rng.permutation(P - 1)[:2] + 1  # two that differ, and some padding
        return rng.permutation(some)

    empty = rng.permutation([0, 2, 4])
    chain = np.tile(np.arange(6) - 1, (2, 1))
    return [
        Case("a fork", (trees(1, 6), np.full(1, 4), 4), 2, idea=True),
        Case("ancestors far up", (trees(1, 8, least=3, most=7), np.full(1, 3), 3), 2, idea=True),
        Case("padding", (first(3, 4), lengths(3, 6), 6), 2),
        Case("a sequence without text among others", (first(3, 1), empty, 4)),
        Case("a tree for each sequence", (trees(3, 7), np.full(3, 2), 2)),
        Case("drafts without a fork", (chain, np.full(2, 5), 5)),
        Case("all together", (trees(4, 9, least=3, most=8), lengths(4, 7), 7)),
    ]


def chapter(parents, lengths, P):
    """Return the padding mask and the causal mask of chapter 10, for the last tokens of a text."""
    B, N = parents.shape
    real = torch.cat([torch.arange(P) >= P - lengths[:, None], torch.ones(B, N).bool()], dim=-1)
    return real[:, None, None] & torch.ones(N, P + N).bool().tril(P)


AXES = "sequence", "", "query", "key"
ASSIGNMENT = Assignment((Task("tree_mask", cases, chapter=chapter, axes=AXES),), torch=True)
