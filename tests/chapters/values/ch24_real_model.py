"""What chapter 24 says of the real model, computed from its results file."""

from tutorial_lib.models.real.model import SIZE
from tutorial_lib.records import record


def megabytes_of_the_file():
    """The size of the model's file, rounded."""
    return round(SIZE / 1e6)


def texts_with_a_second_spike():
    """Count the texts in which another token's entry 507 is near half of the first token's."""
    sinks = record("real_sinks")
    pairs = zip(sinks["spike"]["texts"], sinks["others"]["texts"], strict=True)
    return sum(0.4 < other / first < 0.6 for first, other in pairs)
