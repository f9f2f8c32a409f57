"""The mask of drafts that form a tree, after texts that are padded on the left."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Each random tree has two first tokens or more, a fork after one, and a grandparent."""

    def tree(N):
        while True:
            parents = np.array([rng.integers(-1, n) for n in range(N)])
            inner = parents[parents >= 0]
            deep = (parents[inner] >= 0).any()
            if deep and (parents < 0).sum() > 1 and len(set(inner)) < len(inner):
                return parents

    def trees(B, N):
        return np.stack([tree(N) for _ in range(B)])

    def lengths(B, P):
        some = rng.integers(1, P + 1, size=B)
        some[rng.integers(B)] = rng.integers(1, P)  # some padding
        return some

    empty = rng.permutation([0, *rng.integers(1, 4, size=2)])
    chain = np.tile(np.arange(5) - 1, (2, 1))
    return [
        Case("trees and lengths that differ", (trees(3, 7), lengths(3, 5), 5), 3),
        Case("no padding", (trees(5, 8), np.full(5, 3), 3), 1),
        Case("a sequence without text among others", (trees(3, 6), empty, 4), 2),
        Case("one sequence", (trees(1, 9), lengths(1, 6), 6), 1),
        Case("drafts without a fork", (chain, lengths(2, 7), 7), 1),
        Case("every token continues the text", (np.full((4, 3), -1), lengths(4, 5), 5), 1),
        Case("a draft of one token", (np.full((3, 1), -1), lengths(3, 4), 4), 1),
    ]


ASSIGNMENT = Assignment((Task("tree_mask", cases),), torch=True)
