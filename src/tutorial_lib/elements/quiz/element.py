"""The quiz: the questions of a page, one below the other."""

from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.choice import choice, plain_choice
from tutorial_lib.elements.markup import REGION, Element, wrap


def quiz(chapter):
    """Show the questions that end a chapter, or those of a review.

    Parameters
    ----------
    chapter : name of the page, such as "03_attention_weights" or "review_part_1"

    Raises
    ------
    ValueError : no such page, or a malformed bank
    """
    return draw_quiz(load_bank(chapter), chapter)


def draw_quiz(bank, chapter):
    """Draw the quiz of a bank that `check_bank` accepts."""
    name = f"tl-{chapter}-quiz"
    html, text = [], ["Quiz"]
    for i, question in enumerate(bank["quiz"], start=1):
        html.append(choice(f"{i}.", question, f"{name}-{i}", ["Check"]))
        text.append(plain_choice(f"{i}.", question))
    page = wrap("quiz", name, "Quiz", [*html, REGION])
    return Element(page, "\n\n".join(text))
