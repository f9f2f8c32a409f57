"""A question with radio buttons, as quiz and prediction ask it."""

from html import escape

from tutorial_lib.elements.markup import (
    KEYS,
    REGION,
    RIGHT,
    WRONG,
    answer_box,
    button_row,
    inline,
)


def choice(mark, question, name, buttons):
    """Draw a question with its options and the reason for each."""
    source = question.get("from")
    note = f" <i>From chapter {escape(source[:2])}.</i>" if source else ""
    options, reasons = [], []
    for option in question["options"]:
        text = inline(option["text"])
        button = f'<input type="radio" name="{escape(name)}" {KEYS}>'
        options.append(f"<div><label>{button} <span>{text}</span></label>{REGION}</div>")
        verdict = RIGHT if option["correct"] else WRONG
        reasons.append((text, f"<dd>{verdict} {inline(option['why'])}{note}</dd>"))
    legend = f"<legend><b>{mark}</b> {inline(question['question'])}</legend>"
    row = [button_row(buttons), REGION, answer_box(reasons)]
    return "\n".join(["<fieldset>", legend, *options, *row, "</fieldset>"])


def plain_choice(mark, question):
    """Write a question and its options as text."""
    letters = zip("abcdefgh", question["options"], strict=False)
    options = (f"   {letter}) {option['text']}" for letter, option in letters)
    return "\n".join([f"{mark} {question['question']}", *options])
