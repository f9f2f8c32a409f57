"""What the first page says of a trained model, from the scores of its heads."""

import numpy as np

from tutorial_lib.records import record


def head_that_finds_the_subject():
    """The head that attends to a subject with a nearer noun, and carries its number."""
    scored = record("scored_heads")["heads"]["two layers"]
    [head] = {int(np.argmax(scored["seeds"][0][kind]["attractor"])) for kind in ("weight", "patch")}
    return scored["names"][head]
