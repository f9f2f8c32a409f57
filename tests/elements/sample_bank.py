"""Banks that keep every rule, of a chapter and of a review, for tests to draw, click and break."""

import copy

from tests.chapters.pages import FIRST_REVIEW
from tools.chapters import page

CHAPTER = "03_attention_weights"
REVIEW = FIRST_REVIEW


def option(text, why, correct=False):
    """One option of a question."""
    return {"text": text, "correct": correct, "why": why}


def question(text, *options, source=None):
    """One question of a quiz."""
    read = "Round 1: all of it"
    return {"question": text, "from": source, "read": read, "options": list(options)}


_BANK = {
    "predictions": [
        {
            "question": "Two heads, three queries, three keys. What is the shape of `scores`?",
            "options": [
                option("`(3, 3)`", "That is the table of one head; the head axis stays in front."),
                option("`(2, 3, 3)`", "One table for *each* of the two heads.", True),
                option("`(2, 3, 4)`", "The product sums over the features, so their axis is gone."),
            ],
        },
        {
            "question": "The scores of *bark* are ln 2, −ln 2 and 0. What does *dogs* get?",
            "answer": "4/7",
            "tolerance": 0.005,
            "why": "2 of 2 + ½ + 1.",
            "near": [{"value": 0.665, "why": "You raised *e* instead of 2."}],
        },
        {
            "question": "How many parameters do four full heads have?",
            "answer": 3072,
            "tolerance": 0,
            "why": "4 heads of 3 matrices.",
            "near": [{"value": 768, "why": "That is one head's share."}],
        },
    ],
    "quiz": [
        question(
            "Along which axis does the softmax run?",
            option("the keys, its last", "Each query shares out its attention.", True),
            option("the queries", "Then columns would sum to 1."),
            option("the heads, which compete", "Each head has its own rows."),
        ),
        question(
            "What does `W_Q[0]` hold?",
            option("row 0 of X, a token", "W_Q is learned and knows no token."),
            option("one head's queries", "Queries are `X @ W_Q[0]`, one step later."),
            option("one head's matrix", "The head axis comes first in `W_Q`.", True),
            source="02_queries_keys_values",
        ),
        question(
            "Which rows of P depend on the token?",
            option("none", "P has a row for a place, whatever stands there.", True),
            option("all of them, by its id", "The id picks a row of E, not of P."),
            option("the even ones", "Even and odd columns are sine and cosine."),
            source="01_embeddings",
        ),
        question(
            "Why is the maximum subtracted first?",
            option("so that rows sum to 1", "The division does that."),
            option("so that exp cannot overflow", "The weights stay as they were.", True),
            option("to sharpen the weights", "A shift changes no weight."),
        ),
        question(
            "What does a row of the mask without a True give?",
            option("nan, and a warning", "That is what 0/0 gives elsewhere."),
            option("a mean of all the values", "It would leak what nobody may see."),
            option("zeros", "There is nothing to mix.", True),
        ),
    ],
    "parsons": {
        "task": "A softmax over the keys. Put the lines in order; two do not belong.",
        "lines": [
            "def softmax(scores):",
            "    top = scores.max(axis=-1, keepdims=True)",
            "    powers = np.exp(scores - top)",
            "    return powers / powers.sum(axis=-1, keepdims=True)",
        ],
        "distractors": [
            {"line": "    top = scores.max()", "why": "A row far below this maximum becomes 0/0."},
            {"line": "    return powers / powers.sum()", "why": "Then only the *whole* sums to 1."},
        ],
    },
}


def sample_bank():
    """A fresh copy, to be changed at will."""
    return copy.deepcopy(_BANK)


def sample_review():
    """A fresh bank of a review: two questions from each of its chapters, taking turns."""
    quiz = []
    for i, chapter in enumerate(page(REVIEW).closes * 2):
        options = [option(f"place {n}", f"No, it is not place {n}.") for n in range(4)]
        options[i % 4] = option("here", f"Yes, it is place {i % 4}.", True)
        options[(i + 1) % 4]["text"] = "at" if i % 3 else "somewhere else"
        quiz.append(question(f"Question {i}?", *options, source=chapter))
    return {"predictions": [], "quiz": quiz, "parsons": None}
