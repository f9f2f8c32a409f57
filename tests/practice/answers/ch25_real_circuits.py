"""What computes the keys of chapter 25: from the record of the real model, and from small sums."""

from itertools import pairwise

import numpy as np

from tutorial_lib.records import record
from tutorial_lib.variants.grouped import GroupedParams


def _induction_score(without=None):
    """The mean induction score of head 17.4, as it is or without another head."""
    found = record("real_circuits")["induction"]
    if without is None:
        return found["scores"]["induction"]["mean"][17][4]
    return found["without"][without]["17.4"]["mean"]


def who_is_needed():
    """What is left of the induction score of 17.4 without each of three heads before it."""
    whole, names = _induction_score(), ("16.0", "11.1", "2.1")
    left = {name: _induction_score(name) / whole for name in names}
    needed = [name for name in names if left[name] < 0.1]
    kept = [name for name in names if left[name] > 0.9]
    assert len(needed) + len(kept) == len(names)
    return [
        max(abs(part - 2 / 3) for part in left.values()) < 0.2,
        needed == ["11.1"],
        needed == ["16.0"],
        len(kept) == len(names),
    ]


def how_many_heads_turn_the_verb():
    """How many heads were patched when most verbs turned; the search ends at all 270."""
    found = record("real_circuits")["number"]
    assert np.size(found["scan"]["effect"]) == 270
    tested = found["tested"]["We know that the … behind the … was"]
    assert tested["none"]["right"] > 0.9
    turning = [n for n, name in ((1, "26.0"), (3, "three")) if tested[name]["right"] < 0.25]
    needed = min(turning, default=270)
    # one, about ten, a third, nearly all
    return [low < needed < high for low, high in pairwise((0, 2, 30, 130, 271))]


def what_the_veto_adds():
    """What head 23.3 adds to the giver's logit, less the mean over all names, and its weight."""
    role = record("real_circuits")["name"]["roles"]["23.3"]
    assert role["to the giver"]["mean"] > 0.5
    added = role["adds to the giver"]["mean"]
    return [added > 0.5, added < -0.5, abs(added) <= 0.5]


def can_a_later_head_matter():
    """Whether the score of 17.4 changes without 22.1, and whether without an earlier head."""
    unchanged = _induction_score("22.1") == _induction_score()
    earlier_matters = _induction_score("16.0") < _induction_score() / 2
    return [
        not unchanged,
        not unchanged,
        unchanged and earlier_matters,
        unchanged and not earlier_matters,
    ]


def effects_in_a_chain():
    """The effects of two heads of which the later one hands on what the early one has written."""

    def difference(text, early=None, later=None):
        written = text if early is None else early
        return written if later is None else later

    own, other = 1, -1
    whole = difference(own) - difference(other)
    patched = difference(own, early=other), difference(own, later=other)
    return "{:g} and {:g}".format(*((difference(own) - part) / whole for part in patched))


def what_neighbours_share():
    """Which projections heads 3, 4 and 5 have in common, of nine heads on three KV heads."""
    shapes = (9, 12, 4), (3, 12, 4), (3, 12, 5), (9 * 5, 12)
    rng = np.random.default_rng(17)
    params = GroupedParams(*(rng.standard_normal(shape) for shape in shapes)).expanded()
    heads = [int(name.partition(".")[2]) for name in ("17.3", "17.4", "17.5")]
    matrices = {name: getattr(params, name)[heads] for name in ("W_Q", "W_K", "W_V")}
    same = [name for name, W in matrices.items() if not np.ptp(W, axis=0).any()]
    return [same == ["W_K", "W_V"], same == ["W_Q", "W_K", "W_V"], same == ["W_K"], not same]


def distance_of_replacements():
    """The mean distance of 0, and of their mean, from outputs of 5 and 7."""
    outputs = np.array([5, 7])
    return "{:g} and {:g}".format(
        *(np.abs(outputs - instead).mean() for instead in (0, outputs.mean()))
    )
