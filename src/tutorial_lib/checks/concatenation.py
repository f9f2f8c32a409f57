"""Checks for chapter 05."""

from tutorial_lib import heads
from tutorial_lib.checks.account import D_V, B, Case, H, T, check, normal


def check_concat_heads(function):
    """Check `concat_heads(heads)`: (..., H, T, d_v) → (..., T, H*d_v). Prints an account."""
    cases = (
        Case("3 heads", {"heads": normal(10, H, T, D_V)}),
        Case("a batch", {"heads": normal(11, B, H, T, D_V)}),
    )
    check("concat_heads", function, heads.concat_heads, cases)
