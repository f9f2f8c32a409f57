"""Numbers as one writes them by hand, and pictures side by side."""

import pytest

from tutorial_lib.figures.svg import pretty


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "0"),
        (-0.5, "−0.5"),
        (0.001, "0.001"),
        (0.00099, "9.9·10⁻⁴"),
        (-0.0005, "−5·10⁻⁴"),
        (1e-6, "10⁻⁶"),
        (-2.5e-12, "−2.5·10⁻¹²"),
        (12345678, "12345678"),
        (1e8, "10⁸"),
        (123456789, "1.2345679·10⁸"),
        (0.000123456789, "1.2345679·10⁻⁴"),
        (1 / 3, "0.33333333"),
    ],
)
def test_numbers_below_a_thousandth_or_of_nine_digits_have_a_power_of_ten(number, written):
    assert pretty(number) == written


def test_fewer_digits_are_kept_where_they_are_asked_for():
    assert [pretty(n, 3) for n in (1 / 3, 2e4 / 3, 2e-4 / 3)] == ["0.333", "6.67·10³", "6.67·10⁻⁵"]
