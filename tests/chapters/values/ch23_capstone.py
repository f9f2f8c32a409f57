"""What chapter 23 says of the right layers that it trains, computed from the results file."""

from itertools import combinations

from tutorial_lib.models.circuits import compose
from tutorial_lib.practice.ch23_capstone import claims
from tutorial_lib.records import record

AFTER_384_STEPS = 3  # the point of each curve


def surnames_right(kind):
    """With such layers, each seed is right on a fraction of the surnames between these two."""
    right = [run["accuracy"]["surname"] for run in _runs(kind)]
    return [round(min(right), 2), round(max(right), 2)]


def above_the_entropy(kind):
    """After 384 steps, each such model is this many nats, between the two, above the entropy."""
    above = [run["excess_loss"][AFTER_384_STEPS] for run in _runs(kind)]
    return [min(above), max(above)]


def _runs(kind):
    return record("capstone")["right"][kind]["runs"]


def head_that_claim_10_patches():
    """The head of layer 1 whose patching effect is the number of claim 10."""
    return _only(10, {f"1.{head}": _patching_effect(head) for head in range(4)})


def head_that_claim_11_composes():
    """The head of layer 0 whose largest composition with keys is the number of claim 11."""
    model, _ = claims.example_model()
    scores = {
        f"0.{head}": max(compose(model, (0, head), (1, later)) for later in range(4))
        for head in range(4)
    }
    return _only(11, scores)


def heads_that_claim_12_ablates():
    """The two heads of layer 1 whose joint fall, minus the single ones, is that of claim 12."""
    pairs = combinations(range(4), 2)
    beyond = {
        pair: claims._accuracy_drop(*pair) - sum(map(claims._accuracy_drop, pair)) for pair in pairs
    }
    return [f"1.{head}" for head in _only(12, beyond)]


def _patching_effect(head):
    changes, whole = claims._patching_changes(head)
    return changes.sum() / whole.sum()


def _only(number, found):
    """Return the only key whose value is the number of a claim."""
    (claim,) = (claim for claim in claims.CLAIMS if claim.number == number)
    (key,) = (key for key, value in found.items() if claims.is_close_enough(value, claim.value))
    return key
