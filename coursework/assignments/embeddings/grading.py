"""Packed sentences: several of them in one row, each with places of its own."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _starts(sequence):
    starts = np.ones(sequence.shape, dtype=bool)
    starts[..., 1:] = sequence[..., 1:] != sequence[..., :-1]
    return starts


def _places(starts):
    t = np.arange(starts.shape[-1])
    return t - np.maximum.accumulate(np.where(starts, t, 0), axis=-1)


def _embed(ids, sequence, E, P, places):
    return (E[ids] + P[places]) * (sequence >= 0)[..., None]


def places_of_the_row(ids, sequence, E, P):
    return _embed(ids, sequence, E, P, np.arange(ids.shape[-1]))


def number_for_place(ids, sequence, E, P):
    return _embed(ids, sequence, E, P, sequence % len(P))


def counted_from_one(ids, sequence, E, P):
    return _embed(ids, sequence, E, P, _places(_starts(sequence)) + 1)


def one_token_early(ids, sequence, E, P):
    starts = np.zeros(sequence.shape, dtype=bool)
    starts[..., :-1] = sequence[..., 1:] != sequence[..., :-1]
    return _embed(ids, sequence, E, P, _places(starts))


def only_where_it_grows(ids, sequence, E, P):
    starts = np.zeros(sequence.shape, dtype=bool)
    starts[..., 1:] = sequence[..., 1:] > sequence[..., :-1]
    return _embed(ids, sequence, E, P, _places(starts))


def rows_run_on(ids, sequence, E, P):
    places = _places(_starts(sequence.reshape(-1))).reshape(sequence.shape)
    return _embed(ids, sequence, E, P, places)


def first_row_for_all(ids, sequence, E, P):
    first = sequence.reshape(-1, sequence.shape[-1])[0]
    return _embed(ids, sequence, E, P, _places(_starts(first)))


def padding_stays(ids, sequence, E, P):
    return E[ids] + P[_places(_starts(sequence))]


def padding_keeps_its_place(ids, sequence, E, P):
    return E[ids] * (sequence >= 0)[..., None] + P[_places(_starts(sequence))]


MISTAKES = (
    Mistake(
        "places_of_the_row",
        "the places run on through the whole row, from one sentence into the next",
        "The first token of every sentence has place 0.",
        places_of_the_row,
    ),
    Mistake(
        "number_for_place",
        "P is looked up with the number of the sentence",
        "The numbers only tell sentences apart. Look P up with a token's place in its sentence.",
        number_for_place,
    ),
    Mistake(
        "counted_from_one",
        "the first token of a sentence gets row 1 of P",
        "Count places from 0, as chapter 01 does.",
        counted_from_one,
    ),
    Mistake(
        "one_token_early",
        "the last token of a sentence already gets the place where the next one begins",
        "Comparing neighbours gives T - 1 answers. Each belongs to the later of its two tokens.",
        one_token_early,
    ),
    Mistake(
        "only_where_it_grows",
        "a new sentence is seen only where the number grows",
        "The numbers come in any order: ask whether neighbours differ, not which is larger.",
        only_where_it_grows,
    ),
    Mistake(
        "rows_run_on",
        "the rows of a batch run on into one another where the same number ends one and begins the "
        "next",
        "Count along the last axis alone; every row begins at place 0.",
        rows_run_on,
    ),
    Mistake(
        "first_row_for_all",
        "every row of a batch gets the places of the first row",
        "Each row is packed in its own way: the places have the shape of `sequence`.",
        first_row_for_all,
    ),
    Mistake(
        "padding_stays",
        "the rows of padding are not 0",
        "Where `sequence` is -1 no token stands: that row of X is 0.",
        padding_stays,
    ),
    Mistake(
        "padding_keeps_its_place",
        "padding loses its word but keeps its row of P",
        "Set the whole row to 0 after both rows are added.",
        padding_keeps_its_place,
    ),
)


def cases(rng):
    """Sentences of chosen lengths; what they say is drawn, and so are the tables."""

    def row(lengths, numbers, T):
        numbers = np.append(numbers, -1).astype(int)
        return np.repeat(numbers, [*lengths, T - sum(lengths)])

    def tables(sequence, places, *, words=17, d_model=6):
        ids = rng.integers(words, size=sequence.shape)
        E, P = rng.standard_normal((words, d_model)), rng.standard_normal((places, d_model))
        return ids, sequence, E, P

    plain = row([3, 2, 4], [0, 1, 2], 9)
    mixed = row([4, 1, 3], [7, 9, 0], 10)
    own = [row([3, 4], [5, 2], 8), row([2, 2, 3], [0, 3, 1], 8), row([5, 3], [4, 6], 8)]
    alike = [row([3, 4], [1, 2], 7), row([2, 5], [2, 1], 7), row([4, 3], [1, 0], 7)]
    third = [row([2, 3, 1], [8, 3, 5], 7), row([], [], 7), row([1, 1, 2], [6, 0, 2], 7)]
    tight = [row([3, 3, 2, 1], [4, 3, 2, 1], 11), row([1, 3, 3, 2], [0, 5, 2, 9], 11)]
    return [
        Case("one row, sentences numbered from 0", tables(plain, 11), 2),
        Case("one row, numbers in any order, padding", tables(mixed, 12, d_model=5), 2),
        Case("a batch, each row packed in its own way", tables(np.stack(own), 10), 2),
        Case("rows that share their numbers", tables(np.stack(alike), 12), 1),
        Case("two batch axes, a row of padding", tables(np.stack([third, alike]), 9), 2),
        Case("P shorter than the row", tables(np.stack(tight), 3, d_model=4), 1),
    ]


ASSIGNMENT = Assignment((Task("embed_packed", cases, MISTAKES),))
