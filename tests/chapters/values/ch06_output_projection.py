"""What chapter 06 says of its layers, computed from what its cells print."""

from fractions import Fraction

from tests.chapters.named import printed_under
from tutorial_lib.practice import inputs

PAGE = "06_output_projection"


def row_over_column():
    """The product with the row is so many times as large as that with the column, and positive."""
    row = printed_under(PAGE, "row 0 of concat times row 0 of sampled")
    return row / -printed_under(PAGE, "row 0 of concat times column 0")


def rows_of_W_O_in_the_checks():
    """The W_O of the checks has H · d_v rows."""
    return inputs.H * inputs.D_V


def every_case_is_off_by_a_quarter():
    """The best sum of two heads misses the *and* by a quarter in all four cases."""
    wanted, found = printed_under(PAGE, "and")
    return all(abs(wanted - found) == Fraction(1, 4))
