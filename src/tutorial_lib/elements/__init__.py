"""Small HTML elements that give the same bytes every time.

A cell shows a quiz with `quiz("03_attention_weights")`, and so a prediction and a Parsons problem:
their questions stand in the chapter's bank. Each has a folder with its Python, its script and its
style; what knows the layer is in `exhibits`.
"""

from tutorial_lib.elements.parsons.element import parsons
from tutorial_lib.elements.prediction.element import prediction
from tutorial_lib.elements.quiz.element import quiz

__all__ = ["parsons", "prediction", "quiz"]
