"""The check for the task of Part IV's review."""

import numpy as np

from tutorial_lib.practice.account import Case, against
from tutorial_lib.practice.review_part_4.mistakes import MISTAKES, circuit_of
from tutorial_lib.practice.review_part_4.planted import draw_pairs, planted_model

check = against(MISTAKES)

PLANTED = {  # the order of the heads in each layer; the two 0s are the pair
    "three heads below four": ([1, 0, 2], [3, 1, 0, 2]),
    "four heads below three": ([0, 2, 3, 1], [1, 0, 3]),
    "heads of one number": ([2, 1, 0], [1, 3, 0, 2]),
}


def check_find_circuit(function):
    """Check `find_circuit(model, ids, other)` → (pair, lost, moved), the task of the review.

    Prints an account.
    """
    cases = []
    for seed, (label, orders) in enumerate(PLANTED.items(), start=90):
        ids, other = draw_pairs(np.random.default_rng(seed), 12)
        arguments = {"model": planted_model(seed, orders), "ids": ids, "other": other}
        cases.append(Case(label, arguments))
    check("find_circuit", function, circuit_of(), tuple(cases))
