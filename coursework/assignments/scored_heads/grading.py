"""A rule that a head has to beat: chosen on some documents, and reported on others."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib.models.head_scores import best_offset, fixed_offset_score


def word_of(kinds, c, k):
    """Return where a rule points from each query of (n, T) kinds; −1 where it finds no word."""
    so_far = (kinds == c).cumsum(axis=1)
    number = so_far - k + 1  # of the word that is meant, from 1
    position = (so_far[:, None] == number[..., None]).argmax(axis=-1)
    return np.where(number > 0, position, -1)


def targets(kinds, queries, *shares):
    """Return targets: for each (c, k, number) so many of the queries are decided by that rule.

    kinds : of one text, (1, T); the first rule decides the queries that are left
    """
    target, done = word_of(kinds, *shares[0][:2]), 0
    for c, k, number in shares:
        some = queries[done : done + number]
        target[:, some] = word_of(kinds, c, k)[:, some]
        done += number
    return target


def mixture(rng, n=500, T=23, first=270, rules=((2, 4), (1, 3), (0, 2))):
    """Return all together: one rule is best before `first`, another after it, a third on all."""
    kinds = rng.integers(4, size=(n, T))  # the last is no kind of any rule
    early, late, third = found = [word_of(kinds, *rule) for rule in rules]
    own = np.where(np.arange(n)[:, None] < first, early, late)
    chance, anywhere = rng.random((n, T)), rng.integers(np.arange(T) + 1, size=(n, T))
    all_found = np.min(found, axis=0) >= 0
    parts = [all_found & (chance < 0.45), all_found & (chance < 0.75), chance < 0.5]
    return kinds, np.select(parts, [own, third, anywhere], -1), first, 3, 4


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Documents that are all alike leave open where a rule is chosen and where it is reported. The
    kind of the first word is always found, and a single rule needs no choice.
    """
    T = int(rng.integers(36, 41))

    def text(*start, others):
        return np.array([[*start, *rng.choice(others, T - len(start))]])  # (1, T)

    def queries(first=0):
        """Return queries in any order, but for the first, before which a kind may be missing."""
        return [*range(first), *first + rng.permutation(T - first)]

    def documents(kinds, early, late, n_kinds, furthest):
        target = np.concatenate([early.repeat(2, axis=0), late.repeat(4, axis=0)])
        return kinds.repeat(6, axis=0), target, 2, n_kinds, furthest

    x, y, z = rng.permutation(3)
    some, order = text(x, y, z, others=range(4)), queries(first=3)
    shares = ((x, 1, 15), (y, 1, 13), (z, 1, T)), ((x, 1, 15), (y, 1, T))
    chosen = [targets(some, order, *each) for each in shares]
    reported = [targets(some, order, (x, 1, T - n), (y, 1, T)) for n in (8, 14)]
    edge, far, only = text(3, 0, 1, 2, 4, others=range(6)), text(others=3), np.zeros((1, T), int)
    nearest = targets(edge, queries(first=5), (3, 1, 14), (4, 1, 16), (0, 1, T))
    third = targets(far, queries(), (1, 3, 20), (1, 1, 6), (1, 4, 6), (0, 1, T))
    back = targets(only, queries(), (0, 4, 13), (0, 5, 18), (0, 3, T))
    late = text(*[1] * rng.integers(5, 9), 0, others=2)  # its first word of kind 0 comes late
    few = targets(late, queries(), (0, 1, 20), (1, 1, T))
    few[:, rng.permutation(T)[:9]] = -1
    few[:, :5] = [[0, -1, 0, 1, -1]]
    return [
        Case("chosen on the first documents", documents(some, *chosen, 3, 2), 2, idea=True),
        Case("reported on the others", documents(some, *reported, 3, 2), 2, idea=True),
        Case("four kinds", documents(edge, nearest, nearest, 4, 2)),
        Case("words further back", documents(far, third, third, 2, 5)),
        Case("one kind for all words", documents(only, back, back, 1, 4)),
        Case("queries without a word", documents(late, few, few, 1, 1)),
        Case("all together", mixture(rng), 2),
    ]


def chapter(kinds, target, first, n_kinds, furthest):
    """Return the fixed offset of chapter 20 and its score, as if all words were of one kind."""
    offset = best_offset(target[:first])
    return np.array([0, offset + 1, fixed_offset_score(target[first:], offset)])


ASSIGNMENT = Assignment((Task("best_rule", cases, chapter=chapter, axes=("entry",)),))
