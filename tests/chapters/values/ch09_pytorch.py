"""What chapter 09 says of starting values and of its measurements, computed."""

from fractions import Fraction

from tests.chapters.named import printed_under
from tutorial_lib.records import record


def _spreads_of_the_widest():
    """Return the standard deviations of the scores at the greatest width, one per rule."""
    return printed_under("09_pytorch", "standard deviation of the scores")[-1]


def packing_halves_the_spread():
    """Packed, Xavier's rule gives scores of half the spread."""
    return _spreads_of_the_widest()[1] == Fraction("0.5")


def the_rule_of_linear_gives_a_third_of_the_spread():
    """The own rule of `nn.Linear` gives scores of a third of the spread."""
    return _spreads_of_the_widest()[2] == Fraction("0.33")


def two_machines_were_measured():
    """The layers of PyTorch and of NumPy were timed on two machines."""
    machines = [record(name)["machine"] for name in ("packed_projection", "numpy_attention")]
    return machines[0]["numpy_blas"] != machines[1]["numpy_blas"]
