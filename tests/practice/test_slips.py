"""No check takes a slip of one token for right, but where the slip gives the same values."""

import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from tests.patience import limited
from tests.practice.rooms import MISTAKES, asked, check_of
from tutorial_lib.practice.calls import call, same
from tutorial_lib.practice.slips import omission_mutants, one_token_mutants

PATIENCE_S = 3  # a slip may never end; one that takes longer is no right function
EQUAL = Path(__file__).with_name("equal_slips.txt")  # with the reason of each


def equal_slips(name):
    """The slips of a function that give the same values, as the file lists them."""
    lines = EQUAL.read_text(encoding="utf-8").splitlines()
    return {line.partition(": ")[2] for line in lines if line.startswith(f"{name}: ")}


def test_each_slip_that_gives_the_same_is_one_of_a_function_that_is_checked():
    lines = EQUAL.read_text(encoding="utf-8").splitlines()
    for name in {line.partition(": ")[0] for line in lines if re.match(r"\w+: `", line)}:
        check_of(name)


def is_right(function, cases, rights):
    """Whether a function gives the right value of every case, in time."""
    with limited(PATIENCE_S), patch.object(np, "empty", np.ones):  # no value left in memory
        outcomes = (call(function, case) for case in cases)
        return all(not o.error and same(o.value, r) for o, r in zip(outcomes, rights, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore")
def test_slip_of_one_token_is_rejected_or_gives_the_same(name):
    right, cases = asked(name)
    rights = [call(right, case).value for case in cases]
    known = equal_slips(name)
    accepted = {
        slip.says for slip in one_token_mutants(right) if is_right(slip.function, cases, rights)
    }
    told = f"{name}: close the hole by a case, or write why it gives the same into {EQUAL.name}"
    assert accepted == known, f"{told}: {accepted ^ known}"


def scaled(X, width, *, axis=-1, eps=1e-6):
    """Rows without their mean, over a root."""
    require_nothing(X)
    centred = X - X.mean(axis=axis, keepdims=True)
    return centred / np.sqrt(width + eps) if width > 0 else X


def require_nothing(X):
    """Stands for what a function requires, which slips leave alone."""


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (one_token_mutants, "`X.sum` in place of `X.mean` in `X.mean(axis=axis, keepdims=True)`"),
        (one_token_mutants, "`width >= 0` in place of `width > 0`"),
        (one_token_mutants, "`width - eps` in place of `width + eps` in `np.sqrt(width + eps)`"),
        (omission_mutants, "`width` in place of `width + eps` in `np.sqrt(width + eps)`"),
        (omission_mutants, "`X.mean(axis=axis)` in place of `X.mean(axis=axis, keepdims=True)`"),
        (omission_mutants, "`width` in place of `X` in `X.mean`"),
    ],
)
def test_a_slip_is_told_with_what_stands_around_it(made, says):
    found = [slip.says for slip in made(scaled)]
    assert any(text.startswith(says) for text in found), found
    assert not any("require" in text for text in found)
