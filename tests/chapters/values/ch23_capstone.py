"""What chapter 23 says of the right layers that it trains, computed from the results file."""

from tutorial_lib.records import record

AFTER_384_STEPS = 3  # the point of each curve


def surnames_right_with_a_window_of_16():
    """With a window of 16 keys, each seed is right on a fraction of the surnames between these."""
    return _surnames_right("window of 16")


def surnames_right_with_plain_layers():
    """With plain layers, each seed is right on a fraction of the surnames between these two."""
    return _surnames_right("plain")


def plain_layers_are_above_the_entropy_by():
    """After 384 steps, each plain model is this many nats, between the two, above the entropy."""
    return _above_the_entropy("plain")


def rotated_layers_are_above_the_entropy_by():
    """After 384 steps, each rotated model is this many nats, between the two, above the entropy."""
    return _above_the_entropy("rotated")


def _surnames_right(kind):
    right = [run["accuracy"]["surname"] for run in _runs(kind)]
    return [round(min(right), 2), round(max(right), 2)]


def _above_the_entropy(kind):
    above = [run["excess_loss"][AFTER_384_STEPS] for run in _runs(kind)]
    return [min(above), max(above)]


def _runs(kind):
    return record("capstone")["right"][kind]["runs"]
