"""Named wrong implementations: the bugs people really ship, a module for each chapter.

`MISTAKES[name]` lists the wrong forms of the function `name`, each with the signature of the right
one, what a check says of it, and how to mend it. They are wrong on purpose; nothing imports them
but `checks` and the tests.
"""

from tutorial_lib.mistakes import (
    attention_weights,
    concatenation,
    embeddings,
    flash_attention,
    gpu,
    gradients,
    heads,
    many_devices,
    masks,
    output_projection,
    pytorch,
    queries_keys_values,
    review_part_1,
    vectorised,
)
from tutorial_lib.mistakes.mistake import Mistake

__all__ = ["MISTAKES", "Mistake"]

CHAPTERS = (
    embeddings,
    queries_keys_values,
    attention_weights,
    heads,
    concatenation,
    output_projection,
    vectorised,
    gradients,
    review_part_1,
    pytorch,
    masks,
    gpu,
    flash_attention,
    many_devices,
)
MISTAKES = {name: wrong for chapter in CHAPTERS for name, wrong in chapter.MISTAKES.items()}
