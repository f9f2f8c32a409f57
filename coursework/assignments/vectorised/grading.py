"""Scores of distances: one product of the queries with a row for each distance, then a shift."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _back(Q):
    """Return how far back each key stands, (T, T): negative above the diagonal."""
    T = Q.shape[-2]
    return np.arange(T)[:, None] - np.arange(T)


def _picked(Q, R, distances):
    """Return, for each query, the products with the rows of some distances, (..., H, T, T)."""
    by_distance = Q @ np.swapaxes(R, -1, -2)  # (..., H, T, D)
    queries = np.arange(Q.shape[-2])[:, None]
    return by_distance[..., queries, np.clip(distances, 0, R.shape[-2] - 1)]


def _past(Q, table, above=0.0):
    return np.where(_back(Q) >= 0, table, above)


def farthest_first(Q, R):
    return _past(Q, _picked(Q, R[..., ::-1, :], _back(Q)))


def starts_at_one(Q, R):
    return _past(Q, _picked(Q, R, _back(Q) - 1))


def looks_ahead(Q, R):
    return np.where(_back(Q) <= 0, _picked(Q, R, -_back(Q)), 0.0)


def query_of_the_key(Q, R):
    by_distance = Q @ np.swapaxes(R, -1, -2)
    index = np.clip(_back(Q), 0, R.shape[-2] - 1)
    return _past(Q, by_distance[..., np.arange(Q.shape[-2]), index])


def above_not_zero(Q, R):
    return _picked(Q, R, _back(Q))


def mirrored(Q, R):
    return _picked(Q, R, np.abs(_back(Q)))


def minus_infinity(Q, R):
    return _past(Q, _picked(Q, R, _back(Q)), above=-np.inf)


def zero_beyond_the_rows(Q, R):
    near = _back(Q) < R.shape[-2]
    return np.where(near, _past(Q, _picked(Q, R, _back(Q))), 0.0)


def scaled(Q, R):
    return _past(Q, _picked(Q, R, _back(Q))) / np.sqrt(Q.shape[-1])


MISTAKES = (
    Mistake(
        "farthest_first",
        "the rows of R are read from the other end: the last one counts as distance 0",
        "Row 0 belongs to the token itself, row 1 to the one before it.",
        farthest_first,
    ),
    Mistake(
        "starts_at_one",
        "row 0 is used for distance 1, and every row after it is one too early",
        "Row 0 belongs to distance 0, the token itself; check what stands on the diagonal.",
        starts_at_one,
    ),
    Mistake(
        "looks_ahead",
        "the distance is s - t, so the numbers stand above the diagonal and zeros below it",
        "Rows of the result are queries: the distance back is t - s.",
        looks_ahead,
    ),
    Mistake(
        "query_of_the_key",
        "each entry uses the query of the token that is looked at",
        "Entry (t, s) uses query t; s says only how far back.",
        query_of_the_key,
    ),
    Mistake(
        "above_not_zero",
        "above the diagonal stand products with row 0 instead of zeros",
        "Clipping makes a negative distance 0; put zeros where s is larger than t.",
        above_not_zero,
    ),
    Mistake(
        "mirrored",
        "distances count both ways, so what stands above the diagonal is not 0",
        "Only keys up to the query itself have a distance here.",
        mirrored,
    ),
    Mistake(
        "minus_infinity",
        "above the diagonal stands -inf instead of 0",
        "This is a summand of the scores. The mask comes later and hides what it hides.",
        minus_infinity,
    ),
    Mistake(
        "zero_beyond_the_rows",
        "distances for which R has no row of their own get 0",
        "They share the last row of R.",
        zero_beyond_the_rows,
    ),
    Mistake(
        "scaled",
        "the products are divided by √d_k",
        "The division comes later, for both summands together.",
        scaled,
    ),
)


def cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, H, T, D, d_k):
        return rng.standard_normal((*batch, H, T, d_k)), rng.standard_normal((H, D, d_k))

    return [
        Case("more rows than distances", arrays(H=3, T=5, D=8, d_k=4), 3),
        Case("distances beyond the last row, a batch", arrays(2, H=3, T=7, D=4, d_k=5), 2),
        Case("two batch axes", arrays(4, 2, H=3, T=6, D=5, d_k=7), 1),
        Case("one head, a row for each distance", arrays(H=1, T=6, D=6, d_k=4), 1),
        Case("one row for all distances", arrays(H=2, T=4, D=1, d_k=3), 1),
        Case("one token", arrays(H=3, T=1, D=4, d_k=5), 1),
        Case("a long sequence of wide queries", arrays(H=1, T=700, D=9, d_k=640), 1),
    ]


ASSIGNMENT = Assignment((Task("relative_scores", cases, MISTAKES),))
