"""A rule that a head has to beat: chosen on some documents, and reported on others."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def _pointed(marked, k):
    """The position of the k-th last marked word up to each query; −1 where there is none."""
    so_far = marked.cumsum(axis=1)
    number = so_far - k + 1  # of the word that is meant, from 1
    position = (so_far[:, None] == number[..., None]).argmax(axis=-1)
    return np.where(number > 0, position, -1)


def cases(rng):
    """One rule is best on the documents before `first`, another on those after, a third on all.

    Sizes all differ. There are so many documents that the best is ahead by a fortieth of its hits,
    and mostly by a tenth.
    """

    def documents(first, later, *, T, n_kinds, furthest, rules):
        shape = first + later, T
        kinds = rng.integers(n_kinds + 1, size=shape)  # the last is no kind of any rule
        early, late, third = pointed = [_pointed(kinds == c, k) for c, k in rules]
        own = np.where(np.arange(first + later)[:, None] < first, early, late)
        chance, anywhere = rng.random(shape), rng.integers(np.arange(T) + 1, size=shape)
        found = np.min(pointed, axis=0) >= 0
        parts = [found & (chance < 0.45), found & (chance < 0.75), chance < 0.5]
        target = np.select(parts, [own, third, anywhere], -1)
        return kinds, target, first, n_kinds, furthest

    three = documents(310, 290, T=15, n_kinds=3, furthest=3, rules=[(1, 2), (0, 2), (2, 2)])
    far = documents(270, 230, T=23, n_kinds=2, furthest=5, rules=[(0, 3), (1, 4), (1, 2)])
    four = documents(330, 370, T=17, n_kinds=4, furthest=2, rules=[(3, 1), (1, 2), (2, 1)])
    one = documents(390, 410, T=14, n_kinds=1, furthest=4, rules=[(0, 2), (0, 4), (0, 3)])
    return [
        Case("three kinds", three, 3),
        Case("two kinds, words far back", far, 3),
        Case("four kinds, words nearby", four, 2),
        Case("one kind", one, 2),
    ]


ASSIGNMENT = Assignment((Task("best_rule", cases),))
