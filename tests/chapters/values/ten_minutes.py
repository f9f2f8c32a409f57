"""What the page of twenty minutes says of its length and of a trained model."""

import numpy as np

from tests.chapters.named import read
from tools.minutes import A_WORD, count_words
from tutorial_lib.records import record


def head_that_finds_the_subject():
    """The head that attends to a subject with a nearer noun, and carries its number."""
    scored = record("scored_heads")["heads"]["two layers"]
    [head] = {int(np.argmax(scored["seeds"][0][kind]["attractor"])) for kind in ("weight", "patch")}
    return scored["names"][head]


def reading_takes_ten_minutes():
    """By the rule of the Goals, the words of the page take ten minutes, to the minute."""
    return round(A_WORD * count_words(read("book/ten_minutes.md"))) == 10
