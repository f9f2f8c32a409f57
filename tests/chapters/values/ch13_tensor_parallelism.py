"""What chapter 13 says of its sums over processes, computed."""

import numpy as np

from tests.chapters.named import printed_under, setting


def sevenths_and_thirteenths_make_ninety_firsts():
    """The largest denominators of the two partial sums of Y are 7 and 13, that of their sum 91."""
    rows = printed_under("13_tensor_parallelism", "Y for bark")
    return [max(entry.denominator for entry in row) for row in rows] == [7, 13, 91]


def a_rank_begins_with(rank):
    """The array that a process has before the first step of the drawn ring."""
    a, b = (setting("13_tensor_parallelism 13-04a", f"np.outer.{name}") for name in "ab")
    return np.outer(a, b)[rank]


def a_ring_sends_twice_n_minus_1_over_n_arrays():
    """Each of n processes in a ring sends 2(n − 1)/n arrays."""
    n = np.array([1, 2, 4, 12])
    sent = printed_under("13_tensor_parallelism", "sent by each, in arrays").astype(float)
    return np.allclose(sent, 2 * (n - 1) / n, atol=1e-4)


def first_entry_is_that_of_chapter_06():
    """The sum of the two partial sums is to the last digit what chapter 06 printed."""
    *_, total = printed_under("13_tensor_parallelism", "first entry of Y")
    expected = printed_under("06_output_projection", "row 0 of concat times row 0 of sampled")
    return total == expected
