"""The check for the task of Part III's review."""

import numpy as np

from tutorial_lib.practice.account import Case, against, normal
from tutorial_lib.practice.review_part_3.mistakes import MISTAKES, step_of
from tutorial_lib.variants.grouped import GroupedParams

check = against(MISTAKES)

H, G, D_MODEL, D_K, D_V = 6, 2, 12, 8, 10
WINDOW, T, B = 4, 5, 3


def _params():
    shapes = (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(60 + n, *shape) / 2 for n, shape in enumerate(shapes)))


def _kept(seed, *batch, place):
    """Draw what a step has kept: a key and a value for each token but one of a window."""
    S = min(place, WINDOW - 1)
    return normal(seed, *batch, G, S, D_K), normal(seed + 1, *batch, G, S, D_V), place


def check_step_by_card(function):
    """Check `step_by_card(X, params, card, kept)` → (Y, kept), the task of Part III's review.

    Prints an account.
    """
    params = _params()
    card = {"window": WINDOW, "rates": np.array([1.0, 0.4, 0.1]), "sink": normal(64, H)}
    sharp = GroupedParams(500 * params.W_Q, params.W_K, params.W_V, params.W_O)
    pad = np.array([2, 0, 1]).reshape(B, 1, 1)
    empty = np.zeros((B, G, 0, D_K)), np.zeros((B, G, 0, D_V)), -pad

    alone = card | {"window": 1}
    nothing = np.zeros((G, 0, D_K)), np.zeros((G, 0, D_V)), 6

    def case(label, X, kept, *, params=params, card=card):
        return Case(label, {"X": X, "params": params, "card": card, "kept": kept})

    cases = (
        case("a first piece", normal(65, T, D_MODEL), _kept(66, place=0)),
        case("one new token", normal(68, 1, D_MODEL), _kept(69, place=9)),
        case("a piece longer than the window", normal(71, T, D_MODEL), _kept(72, place=7)),
        case("a batch, padded", normal(74, B, T, D_MODEL), empty),
        case("scores in the thousands", normal(75, 3, D_MODEL), _kept(76, place=4), params=sharp),
        case("nothing in the window but itself", normal(78, 2, D_MODEL), nothing, card=alone),
    )
    check("step_by_card", function, step_of(), cases)
