"""Numbers as one writes them by hand."""

import pytest

from tutorial_lib.figures.svg import number_text


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0, 8, "0"),
        (-0.5, 8, "−0.5"),
        (0.001, 8, "0.001"),
        (0.00099, 8, "9.9·10⁻⁴"),
        (-0.0005, 8, "−5·10⁻⁴"),
        (1e-6, 8, "10⁻⁶"),
        (-2.5e-12, 8, "−2.5·10⁻¹²"),
        (12345678, 8, "12345678"),
        (1e8, 8, "10⁸"),
        (123456789, 8, "1.2345679·10⁸"),
        (0.000123456789, 8, "1.2345679·10⁻⁴"),
        (1 / 3, 8, "0.33333333"),
        (1 / 3, 3, "0.333"),
        (2e4 / 3, 3, "6.67·10³"),
        (2e-3 / 3, 3, "6.67·10⁻⁴"),
    ],
)
def test_numbers_below_a_thousandth_or_of_nine_digits_have_a_power_of_ten(number, digits, text):
    assert number_text(number, digits) == text
