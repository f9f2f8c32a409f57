"""What chapter 20 says of where heads look, computed from the scores of five seeds."""

import numpy as np

from tutorial_lib.records import record


def _seeds():
    return record("scored_heads")["heads"]["two layers"]["seeds"]


def nearest_head_is_in_layer_1_in_all_five():
    """In all five seeds, the head with the smallest mean distance is in layer 1."""
    return all(_is_in_layer_1(np.argmin(seed["distance"])) for seed in _seeds())


def farthest_head_is_in_layer_0_in_four():
    """In four of five seeds, the head with the largest mean distance is in layer 0."""
    return sum(not _is_in_layer_1(np.argmax(seed["distance"])) for seed in _seeds()) == 4


def _is_in_layer_1(head):
    return head > 3  # of eight heads, the first four are in layer 0


def head_of_layer_0_costs_more_in_four_of_five():
    """At attractor in four of five seeds, a head of layer 0 costs more than the patched one."""
    found = [(seed["form"]["attractor"], seed["patch"]["attractor"]) for seed in _seeds()]
    return sum(max(cost[:4]) > cost[np.argmax(patch)] for cost, patch in found) == 4


def three_or_four_heads_beat_the_fixed_offset():
    """In each seed, three or four heads have more weight than the baseline in some task."""
    return {_n_heads_that_look(seed["weight"]) for seed in _seeds()} == {3, 4}


def _n_heads_that_look(weights):
    return int(_looks(weights).any(axis=0).sum())


def _looks(weights):
    """Which pairs of a task and a head have more weight than the baseline: (tasks, 8)."""
    needed = np.array([[record("scored_heads")["baseline"][task]["accuracy"]] for task in _tasks()])
    return _by_task(weights) > needed + 0.01


def _tasks():
    return [task for task in record("scored_heads")["baseline"] if task != "bracket"]


def _by_task(scores):
    return np.array([scores[task] for task in _tasks()])


def _pairs(kind="form", limit=0.05):
    """For each seed, which pairs look, and which matter by this kind of loss."""
    return [(_looks(seed["weight"]), _by_task(seed[kind]) > limit) for seed in _seeds()]


def _pairs_by_both_counts():
    return _pairs(), _pairs("fall", 0.01)


def about_a_tenth_of_those_that_do_not_look_matter():
    """Of the pairs that do not look, a tenth matter by the loss of the form, in five seeds."""
    others = np.concatenate([matters[~looks] for looks, matters in _pairs()])
    return round(others.mean(), 1) == 0.1


def most_that_matter_look_in_three_half_in_seed_1_fewer_in_seed_2():
    """Whether the pairs that look are most of those that matter, by form and by accuracy."""
    return all(
        [np.sign((m & looks).sum() - (m & ~looks).sum()) for looks, m in pairs] == [1, 0, -1, 1, 1]
        for pairs in _pairs_by_both_counts()
    )


def most_that_matter_and_do_not_look_are_in_layer_0():
    """Of the pairs that matter and do not look, more than half are in layer 0, by both counts."""
    others = [matters & ~looks for pairs in _pairs_by_both_counts() for looks, matters in pairs]
    return all(pairs[:, :4].sum() > pairs.sum() / 2 for pairs in others)
