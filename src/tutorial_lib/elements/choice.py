"""A question with radio buttons, as quiz and prediction ask it."""

import re
from html import escape

from tutorial_lib.elements.markup import (
    KEYS,
    RIGHT,
    WRONG,
    answer_box,
    button_row,
    inline,
    region,
    text_of,
)


def choice(mark, question, name, buttons, state=None):
    """Draw a question, its options and reasons; a state has texts of those picked and told."""
    state = state or {}
    source = question.get("from")
    note = f" <i>From chapter {escape(source[:2])}.</i>" if source else ""
    options, reasons = [], []
    for option in question["options"]:
        text = inline(option["text"])
        verdict = RIGHT if option["correct"] else WRONG
        reason = f"{verdict} {inline(option['why'])}{note}"
        picked, told = (state.get(key) == text_of(text) for key in ("picked", "told"))
        button = f'<input type="radio" name="{escape(name)}" {KEYS}{" checked" * picked}>'
        label = f"<label>{button} <span>{text}</span></label>"
        options.append(f"<div>{label}{region(reason * told)}</div>")
        reasons.append((text, f"<dd>{reason}</dd>"))
    legend = f"<legend><b>{mark}</b> {inline(question['question'])}</legend>"
    again = f"<div>Read again: {read_again(question)}</div>\n" if "read" in question else ""
    row = [button_row(buttons), region(), answer_box(reasons, again=again)]
    return "\n".join(["<fieldset>", legend, *options, *row, "</fieldset>"])


def read_again(question):
    """Link to what a question of a quiz is about."""
    heading, source = question["read"], question["from"]
    where = f"chapter {source[:2]}, {heading}" if source else heading
    page = f"{source}.ipynb" if source else ""
    anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
    return f'<a href="{escape(page)}#{anchor}">{escape(where)}</a>'


def plain_choice(mark, question):
    """Write a question and its options as text."""
    letters = zip("abcdefgh", question["options"], strict=False)
    options = (f"   {letter}) {option['text']}" for letter, option in letters)
    return "\n".join([f"{mark} {question['question']}", *options])
