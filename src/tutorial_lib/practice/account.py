"""Compare a reader's function with the library's on a few cases, and put the result into words.

A function may return tensors of torch where the library's returns arrays.
"""

import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import numpy as np

from tutorial_lib.practice.calls import Answers, Case, fault, first_difference, same, type_text
from tutorial_lib.practice.diagnosis import (
    explain_difference,
    is_random,
    rounding_error,
    shape_difference_text,
    wrong_values,
)
from tutorial_lib.practice.mistake import read_mistakes
from tutorial_lib.records import SITE

WIDTH = 78  # columns of an account; a page shows 85
PLAIN = {"✓": "[right]", "✗": "[wrong]", "○": "[open]", "√": "root of ", "…": "...", "ᵀ": ".T"}
ROUNDED = (
    "it is right to {} digits, and 10 are asked: is something of it float32, or is a small "
    "constant (eps) another one? Compute in float64"
)


class Task(NamedTuple):
    """What a check asks: the right function, the cases on which others are compared, mistakes."""

    name: str
    right: Callable
    cases: tuple
    mistakes: tuple


def difference_text(value, expected):
    """Show the first row that differs, with as many decimals as tell the two apart."""
    name, value, expected = first_difference(value, expected)
    value, expected = np.atleast_1d(value), np.atleast_1d(expected)
    index = next(i for i in np.ndindex(value.shape[:-1]) if not same(value[i], expected[i]))
    place = f"row [{', '.join(str(i) for i in index)}] is" if index else "it is"
    row, right = value[index], expected[index]
    first = next(i for i in range(len(row)) if not same(row[i], right[i]))
    for decimals in (3, 6, 9, 12):
        given, wanted = _format_row(row, first, decimals), _format_row(right, first, decimals)
        if given != wanted:
            break
    return f"{f'in {name}, ' if name else ''}{place} {given} and should be {wanted}"


def _format_row(row, first, decimals):
    """Print six entries: those from the start, or from the first wrong one if it lies behind."""
    start = 0 if first < 6 else first
    texts = [_format_entry(entry, decimals) for entry in row[start : start + 6].tolist()]
    return ", ".join(["…"] * (start > 0) + texts + ["…"] * (start + 6 < len(row)))


def _format_entry(entry, decimals):
    if not isinstance(entry, float):
        return str(entry)
    if abs(entry) >= 1e15:
        return f"{entry:.{decimals}e}"
    return f"{round(entry, decimals) + 0.0:.{decimals}f}"


def lay_out(*sentences):
    """Lay sentences out for a page: each on a line of its own, indented where it goes on.

    An address gets no full stop behind it, and stays whole where it is wider than the page.
    """
    ended = [text if text[-1] in ".…?" or SITE in text else f"{text}." for text in sentences]
    page = textwrap.TextWrapper(
        WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(page.fill(text) for text in [ended[0], *(f"  {text}" for text in ended[1:])])


def remedy(mistake):
    """Return the sentences that end the account of a mistake: how to mend it, where it shows."""
    page = f"Elsewhere it shows like this: {SITE}book/symptoms.html#symptom-{mistake.symptom}"
    return (mistake.mend, page) if mistake.symptom else (mistake.mend,)


def feedback_on_function(name, function, reference, cases, mistakes=()):
    """Call, compare, and put the result into words that begin with ✓, ✗ or ○.

    Parameters
    ----------
    name : of the function that is checked
    function, reference : the reader's and the right one
    cases : sequence of Case
    mistakes : sequence of Mistake
    """
    if not callable(function):
        return f"✗ {name}: got {type_text(function)}; give the function itself, not a result."
    answers = Answers(function, reference, tuple(cases))
    if all(outcome.value is None and not outcome.error for outcome in answers.outcomes):
        return f"○ {name}: not done yet (it returns None)."
    if not answers.wrong:
        labels = textwrap.fill("; ".join(case.label for case in cases) + ".", WIDTH - 2)
        return f"✓ {name}: right on\n" + textwrap.indent(labels, "  ")
    difference, *rest = _failure_feedback(name, answers, mistakes)
    before = "; ".join(case.label for case in cases[: answers.wrong[0]])
    return lay_out(difference, *([f"Right so far: {before}"] if before else []), *rest)


def _failure_feedback(name, answers, mistakes):
    """Name the mistake that gives every value; else the first difference, and its kind.

    Returns
    -------
    sentences : list of text; the first begins with ✗
    """
    first = answers.wrong[0]
    outcome, right = answers.outcomes[first], answers.expected_values[first]
    error = outcome.error or fault(outcome.value, right)
    seen = error or difference_text(outcome.value, right)
    seen, like = f"{answers.cases[first].label}: {seen}", None
    for mistake in mistakes:
        fits = answers.matches_of(mistake.of(answers.reference))
        if all(fits) and any(not answers.outcomes[i].error for i in answers.wrong):
            return [f"✗ {name}: {mistake.says}", *([] if error else [seen]), *remedy(mistake)]
        like = like or (mistake if fits[first] else None)
    if error:
        shape = "" if outcome.error else shape_difference_text(outcome.value, right)
        return [f"✗ {name}: {seen}{f' ({shape})' if shape else ''}"]
    if error := rounding_error(answers):
        digits = int(-math.log10(error))
        return [f"✗ {name}: {ROUNDED.format(digits)}"]
    kind = _difference_kind_text(answers)
    if not kind and like:
        kind = f"In this case it looks like this: {like.says}"
    return [f"✗ {name}: {seen}", *([kind] if kind else [])]


def _difference_kind_text(answers):
    """Say in one sentence what kind of difference there is; "" where it is none that is known."""
    if is_random(answers):
        again = "A second call with the same input gives another result: is dropout, or another"
        return f"{again} random draw, still on?"
    claim = explain_difference(wrong_values(answers))
    return "" if claim is None else claim.told_of(len(answers.wrong))


def print_text(text):
    """Print a text; on a console that lacks some of its signs, in signs that it has."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for sign, plain in PLAIN.items():
            text = text.replace(sign, plain)
        text = text.encode(encoding, errors="replace").decode(encoding)
    print(text)


def read_room(path):
    """Return the mistakes of a room, and the decorator of its checks.

    Parameters
    ----------
    path : of the room's `checks.py`, beside its `mistakes.txt`

    Returns
    -------
    mistakes : dict, a tuple of Mistake for each function
    cases_of : decorator for `check_name`, whose argument is the right function, or where it is
        imported from, such as "tutorial_lib.pytorch.mha.may_look". The decorated one yields a
        label, arguments and options of each case, by name or in order; what stands in its place
        takes the reader's function, and says so if it has no docstring
    """
    mistakes = read_mistakes(Path(path).with_name("mistakes.txt"))
    return mistakes, partial(partial, _check_of_cases, mistakes)


def _check_of_cases(mistakes, reference, yield_cases):
    """Return a check of one function, with the name and the docstring of what yields its cases."""
    name = yield_cases.__name__.removeprefix("check_")

    def task():
        right = resolve_name(reference) if isinstance(reference, str) else reference
        cases = tuple(_case_from_row(row, right) for row in yield_cases())
        return Task(name, right, cases, mistakes[name])

    def check_function(function):
        asked = task()
        print_text(feedback_on_function(name, function, asked.right, asked.cases, asked.mistakes))

    check_function.task = task
    for attribute in ("__name__", "__qualname__", "__module__"):
        setattr(check_function, attribute, getattr(yield_cases, attribute))
    check_function.__doc__ = yield_cases.__doc__ or _check_docstring(name, reference)
    return check_function


def _check_docstring(name, reference):
    """Say what a check takes, and in which shapes, by the right function's signature."""
    signature = inspect.signature(reference)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    call = f"{name}{signature.replace(parameters=bare, return_annotation=signature.empty)}"
    axes = reference.contract.axes.items() if hasattr(reference, "contract") else ()
    shapes = ", ".join(f"{argument} {spec}" for argument, spec in axes)
    return f"Check `{call}`{': ' if shapes else ''}{shapes}. Prints an account."


def _case_from_row(row, reference):
    """Return the Case of a label, arguments and options; a tuple has the right function's names."""
    label, arguments, *options = row
    if isinstance(arguments, tuple):
        arguments = dict(zip(inspect.signature(reference).parameters, arguments, strict=False))
    return Case(label, arguments, *options)
