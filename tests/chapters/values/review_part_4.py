"""What the review of Part IV says of the trained model, computed from the results files."""

from tests.chapters.training_records import induction_seeds


def two_heads_copy_every_surname():
    """Two heads of layer 1 copy all twelve surnames, one of them that of the pair."""
    copied = induction_seeds()[0]["copied"]["own"]
    return copied.count(12) == 2 and copied[induction_seeds()[0]["pair"][1]] == 12
