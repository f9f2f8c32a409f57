"""Small HTML elements that give the same bytes every time.

A cell shows a quiz with `quiz("03_attention_weights")`, and so a prediction and a Parsons problem:
their questions stand in the chapter's bank. `inspector` and `gallery` take attention weights,
and `playground` takes nothing.
"""

from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.exhibits.playground.element import draw_playground
from tutorial_lib.elements.maps import gallery, inspector
from tutorial_lib.elements.markup import draw_parsons, draw_prediction, draw_quiz
from tutorial_lib.example import running_example

__all__ = ["gallery", "inspector", "parsons", "playground", "prediction", "quiz"]


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


def prediction(chapter, number):
    """Ask for a prediction before the cell whose output would give it away.

    Parameters
    ----------
    chapter : its name, such as "03_attention_weights"
    number : counted from 1

    Raises
    ------
    ValueError : no such chapter or number, or a malformed bank
    """
    return draw_prediction(load_bank(chapter), chapter, number)


def parsons(chapter):
    """Show a chapter's Parsons problem: lines of code to put in order, some of them bugs.

    Parameters
    ----------
    chapter : its name, such as "03_attention_weights"

    Raises
    ------
    ValueError : no such chapter, none in its bank, or a malformed bank
    """
    return draw_parsons(load_bank(chapter), chapter)


def playground():
    """Show the running example with every array of the layer, to be edited and asked.

    A change of X, a learned matrix, the mask or the scale changes all numbers after it. Choosing
    a number shows the row and the column that made it, and the sum.
    """
    return draw_playground(running_example())
