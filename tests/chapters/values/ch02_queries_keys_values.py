"""What chapter 02 says of its tables, its overlaps and its counts of parameters."""

from fractions import Fraction

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib.records import facts

PAGE = "02_queries_keys_values"


def every_word_fits_itself_best():
    """In X times its transpose, the largest entry of each row is on the diagonal."""
    fits = printed_under(PAGE, "X @ X.T")
    return np.array_equal(fits.argmax(axis=-1), np.arange(len(fits)))


def the_subspaces_overlap_by_half():
    """The overlap of the two heads is within 0.05 of a half, for queries and for keys."""
    overlaps = printed_under(PAGE, "overlap of head 0 and head 1")[:2].astype(float)
    return np.allclose(overlaps, 0.5, rtol=0, atol=0.05)


def every_column_of_head_0_is_seen_by_head_1():
    """Each column of head 0 has a dot product other than 0 with some column of head 1."""
    return printed_under(PAGE, "columns of head 0, times those of head 1").any(axis=-1).all()


def width_of_a_head_over_width_of_the_model():
    """In the base Transformer a head has this fraction of the model's width."""
    base = facts("models")["models"][0]
    return Fraction(base["d_k"], base["d_model"])


def counts_that_are_equal():
    """So many of the layers that are counted have the same number of parameters."""
    _, times = np.unique(printed_under(PAGE, "parameters"), return_counts=True)
    return max(times)
