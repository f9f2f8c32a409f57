"""Packed sentences: several of them in one row, each with positions of its own."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sentences of chosen lengths; their words and the tables are random. Sizes all differ."""

    def row(lengths, numbers, T):
        numbers = np.append(numbers, -1).astype(int)
        return np.repeat(numbers, [*lengths, T - sum(lengths)])

    def tables(sequence, positions, *, words=17, d_model=5):
        ids = rng.integers(words, size=sequence.shape)
        E, P = rng.standard_normal((words, d_model)), rng.standard_normal((positions, d_model))
        return ids, sequence, E, P

    plain = row([3, 2, 4], [0, 1, 2], 9)
    mixed = row([4, 1, 3], [7, 9, 0], 10)
    own = [row([3, 4], [5, 2], 8), row([2, 2, 3], [0, 3, 1], 8), row([8], [4], 8)]
    alike = [row([3, 4], [1, 2], 7), row([2, 5], [2, 1], 7), row([4, 3], [1, 0], 7)]
    third = [row([2, 3, 1], [8, 3, 5], 7), row([], [], 7), row([1, 1, 2], [6, 0, 2], 7)]
    tight = [row([3, 3, 2, 1], [4, 3, 2, 1], 11), row([1, 3, 3, 2], [0, 5, 2, 9], 11)]
    return [
        Case("one row, sentences numbered from 0", tables(plain, 11), 2),
        Case("one row, numbers in any order, padding", tables(mixed, 12), 2),
        Case("a batch, each row packed in its own way", tables(np.stack(own), 10), 2),
        Case("rows that share their numbers", tables(np.stack(alike), 12), 1),
        Case("two batch axes, a row of padding", tables(np.stack([third, alike]), 11), 2),
        Case("P shorter than the row", tables(np.stack(tight), 3, d_model=7), 1),
    ]


ASSIGNMENT = Assignment((Task("embed_packed", cases),))
