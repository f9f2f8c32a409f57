"""A question with radio buttons, as quiz and prediction ask it."""

import re
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
    row = [button_row(buttons), REGION, answer_box(reasons, again=read_again(question))]
    return "\n".join(["<fieldset>", legend, *options, *row, "</fieldset>"])


def read_again(question):
    """Link to what a question of a quiz is about; a prediction stands where that is."""
    heading, source = question.get("read"), question.get("from")
    if heading is None:
        return ""
    where = f"chapter {source[:2]}, {heading}" if source else heading
    page = f"{source}.ipynb" if source else ""
    anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
    return f'<div>Read again: <a href="{escape(page)}#{anchor}">{escape(where)}</a></div>\n'


def plain_choice(mark, question):
    """Write a question and its options as text."""
    letters = zip("abcdefgh", question["options"], strict=False)
    options = (f"   {letter}) {option['text']}" for letter, option in letters)
    return "\n".join([f"{mark} {question['question']}", *options])
