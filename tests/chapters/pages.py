"""The notebooks are pages of two kinds, chapters and reviews; what all pages of a kind have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What a page of one kind has.

    Parameters
    ----------
    headings : those of level 2, in order
    tasks : the one below which readers write code
    predictions, puzzles, questions : how many its bank holds and its notebook shows
    """

    headings: tuple
    tasks: str
    predictions: int
    puzzles: int
    questions: int


CHAPTER = Kind(
    (
        *("Goal", "Idea", "Build", "Check", "Look"),
        *("Myth and measurement", "Exercises", "Quiz", "Recap"),
    ),
    tasks="Exercises",
    predictions=3,
    puzzles=1,
    questions=5,
)
REVIEW = Kind(
    ("Goal", "What you can do now", "Quiz", "The task", "Recap"),
    tasks="The task",
    predictions=0,
    puzzles=0,
    questions=16,
)
REVIEWS = {  # each with the chapters that it closes
    "review_part_1": (
        *("01_embeddings", "02_queries_keys_values", "03_attention_weights", "04_heads"),
        *("05_concatenation", "06_output_projection", "07_vectorised", "08_gradients"),
    ),
}


def kind_of(name):
    """Return the kind of a page, such as "03_attention_weights" or "review_part_1"."""
    return REVIEW if name in REVIEWS else CHAPTER
