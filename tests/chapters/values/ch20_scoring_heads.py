"""What chapter 20 says of where heads look, computed from the scores of five seeds."""

import numpy as np

from tutorial_lib.records import record


def _seeds():
    return record("scored_heads")["heads"]["two layers"]["seeds"]


def nearest_head_is_in_layer_1_in_all_five():
    """In all five seeds, the head with the smallest mean distance is in layer 1."""
    return all(_is_in_layer_1(np.argmin(seed["distance"])) for seed in _seeds())


def farthest_head_is_in_layer_1_in_three():
    """In three of five seeds, the head with the largest mean distance is in layer 1."""
    return sum(_is_in_layer_1(np.argmax(seed["distance"])) for seed in _seeds()) == 3


def _is_in_layer_1(head):
    return head > 3  # of eight heads, the first four are in layer 0


def three_or_four_heads_beat_the_fixed_offset():
    """In each seed, three or four heads have more weight than the baseline in some task."""
    return {_n_heads_that_look(seed["weight"]) for seed in _seeds()} == {3, 4}


def _n_heads_that_look(weights):
    baseline = record("scored_heads")["baseline"]
    tasks = [task for task in baseline if task != "bracket"]
    needed = np.array([[baseline[task]["accuracy"] + 0.01] for task in tasks])
    looks = np.array([weights[task] for task in tasks]) > needed  # (tasks, 8 heads)
    return int(looks.any(axis=0).sum())
