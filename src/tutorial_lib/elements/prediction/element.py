"""The prediction: a choice or a number, asked before a cell shows it."""

from html import escape

from tutorial_lib.elements.banks import as_number, load_bank
from tutorial_lib.elements.choice import choice, plain_choice
from tutorial_lib.elements.markup import (
    KEYS,
    RIGHT,
    WRONG,
    Element,
    answer_box,
    button_row,
    inline,
    region,
    wrap,
)

_BUTTONS = ["Commit", "Show me"]


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


def draw_prediction(bank, chapter, number):
    """Draw one prediction of a bank that `check_bank` accepts.

    Raises
    ------
    ValueError : a number that the bank does not have
    """
    numbers = range(1, len(bank["predictions"]) + 1)
    if type(number) is not int or number not in numbers:
        raise ValueError(f"{chapter} has no prediction {number!r}. It has: {list(numbers)}.")
    question = bank["predictions"][number - 1]
    name = f"tl-{chapter}-prediction-{number}"
    if "options" in question:
        kind, html = "predict-choice", choice("Predict.", question, f"{name}-1", _BUTTONS)
        text = plain_choice("Predict.", question)
    else:
        kind, html = "predict-number", _number("Predict.", question, f"{name}-1")
        text = f"Predict. {question['question']}\n   a number: …"
    return Element(wrap(kind, name, f"Prediction {number}", [html, region()]), text)


def _number(mark, question, name):
    """A question with a field for a number, and the reason for each number that it knows."""
    answer, tolerance = question["answer"], as_number(question["tolerance"])
    known = [(answer, RIGHT, question["why"])]
    known += [(near["value"], WRONG, near["why"]) for near in question["near"]]
    reasons = []
    for value, verdict, why in known:
        number = as_number(value)
        within = tolerance + 1e-9 * max(1.0, abs(number))  # a float is not quite its decimals
        data = f'data-value="{number!r}" data-within="{within!r}"'
        reasons.append((escape(str(value)), f"<dd {data}>{verdict} {inline(why)}</dd>"))
    other = f'<b class="tl-wrong">✗ It is {escape(str(answer))}.</b>'
    reasons.append(("another number", f"<dd>{other} {inline(question['why'])}</dd>"))
    field = f'<input id="{escape(name)}" type="text" autocomplete="off" spellcheck="false" {KEYS}>'
    label = f'<label for="{escape(name)}"><b>{mark}</b> {inline(question["question"])}</label>'
    return "\n".join(
        ["<div>", label, field, button_row(_BUTTONS), region(), answer_box(reasons), "</div>"]
    )
