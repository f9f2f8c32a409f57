"""What the review of Part IV says of the trained model, computed from the results files."""

from tests.chapters.named import printed_under
from tutorial_lib.records import record


def pair_is_that_of_chapter_21():
    """The pair that the solution finds is the one that matches most names in the results file."""
    return [*printed_under("review_part_4", "pair")] == _seed_0()["pair"]


def two_heads_copy_every_surname():
    """Two heads of layer 1 copy all twelve surnames, one of them that of the pair."""
    copied = _seed_0()["copied"]["own"]
    return copied.count(12) == 2 and copied[_seed_0()["pair"][1]] == 12


def _seed_0():
    return record("induction")["models"]["two layers"][0]
