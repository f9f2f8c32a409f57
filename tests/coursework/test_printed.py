"""Nothing that is printed is an answer, and no shortcut is: each earns a fifth at most.

Functions are found by walking the library, the chapters and the assignments, so those of a new
chapter are tried by themselves. They are judged without a sandbox; one of each kind goes into it.
"""

import inspect
import math
import re
import tracemalloc
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest

from coursework.grader import assignment
from coursework.grader.assignment import read_notebook, set_exam
from coursework.grader.batch import as_bytes, points, set_bench
from coursework.grader.judge import LOST
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS
from tests.chapters.pages import NAMES, written
from tests.chapters.twins import keepers
from tests.coursework.printed import (
    earned,
    kept_small,
    of_assignment,
    of_chapters,
    of_checks,
    of_library,
    size,
    ways,
)
from tests.sampling import every

ASSIGNMENTS = assignment.assignment_names()
QUICK = {"seconds": 0.1, "share": 0.5}  # all cases, and all of the time, in `make test-all`
MOST = 0.2  # of the points of a function, for what it has of the chapter's
PATIENT = 60  # seconds: the limit for what must come back, under any load
UNLIKELY = tuple(name.removesuffix(".py") for name in assignment.NOT_OFFERED)


@dataclass(frozen=True)
class Subject:
    """An assignment, made ready for trials.

    Parameters
    ----------
    exam : with the hidden cases of one seed
    space : the global names of its notebook, solutions among them
    own : what the notebook prints outside its solutions
    """

    exam: assignment.Exam
    space: dict
    own: dict

    def tests(self, function):
        """The hidden tests of a function, the smallest first."""
        tests = [test for test in self.exam.tests if test.task.function == function]
        return sorted(tests, key=size)

    def names(self, function):
        """The names of a function's parameters."""
        return list(inspect.signature(self.space[function]).parameters)


@cache
def subject(name):
    """Return an assignment's subject."""
    space = {"__name__": f"printed_{name}"}
    own = of_assignment(name, space)
    return Subject(set_exam(name, 1), space, own)


def answers(name, printed, *, seconds, share=1.0):
    """List what earns more than a fifth under a graded name: (what, graded name, points).

    Parameters
    ----------
    printed : {what: function}
    seconds : limit of one call
    share : of the cases, the smallest first
    """
    given, found = subject(name), []
    torch = given.exam.assignment.torch
    with kept_small():
        for function in given.exam.functions:
            tests, names = given.tests(function), given.names(function)
            most = MOST * sum(test.case.points for test in tests)
            tests = tests[: math.ceil(share * len(tests))]
            for what, candidate in printed.items():
                got = [
                    earned(candidate, way, tests, seconds=seconds, torch=torch)
                    for way in ways(candidate, names)
                ]
                if max(got, default=0) > most:
                    found.append((what, function, max(got)))
    return found


@cache
def keepers_of_all():
    """Return the names of the keepers of all chapters."""
    return [keeper for page in NAMES for keeper in keepers(written(page))]


@pytest.fixture(autouse=True)
def measuring_ends():
    """Chapters print functions that measure memory; on strange input they fail before they end."""
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", every(4, ASSIGNMENTS))
def test_nothing_that_is_printed_earns_more_than_a_fifth_under_a_graded_name(name):
    again = set(keepers_of_all()) | set(UNLIKELY)  # a keeper is its twin without the checks
    others = {w: f for w, f in of_library().items() if again.isdisjoint(w.split("."))}
    printed = others | of_chapters() | of_checks() | subject(name).own
    assert answers(name, printed, **QUICK) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_it_earns_no_more_with_all_of_its_time_nor_does_what_checks_and_draws(name):
    seconds = TORCH_SECONDS if subject(name).exam.assignment.torch else SECONDS
    printed = of_library() | of_chapters() | of_checks() | subject(name).own
    assert answers(name, printed, seconds=seconds) == []


def test_all_that_is_printed_is_tried():
    named = {what.split(": ")[-1] for what in of_chapters()}
    assert len(keepers_of_all()) > 30
    assert {"check_softmax: right", "check_softmax: overflow"} <= set(of_checks())
    assert set(keepers_of_all()) <= named & {what.split(".")[-1] for what in of_library()}
    for name in ASSIGNMENTS:
        stubs = {what.split(": ")[-1] for what in subject(name).own}
        assert stubs >= set(subject(name).exam.functions)


@pytest.mark.parametrize("name", every(4, ASSIGNMENTS))
def test_a_copy_of_the_solution_would_be_found(name):
    given = subject(name)
    copies = {f"a copy of {f}": given.space[f] for f in given.exam.functions}
    found = {(what, f, got) for what, f, got in answers(name, copies, seconds=60)}
    for f in given.exam.functions:
        assert (f"a copy of {f}", f, sum(t.case.points for t in given.tests(f))) in found


def shortcuts():
    """Return the shortcuts of `shortcuts.txt`: {key: (lines on it, its source)}."""
    text = Path(__file__).with_name("shortcuts.txt").read_text("utf-8")
    blocks = (block.partition("\n---\n") for block in re.split(r"(?m)^=== ", text)[1:])
    return {head.splitlines()[0]: (head.splitlines()[1:], source) for head, _, source in blocks}


SHORTCUTS = shortcuts()


def trial(key):
    """Return a shortcut as parameters; one that waits for a limit is long."""
    (name, earned, said, *more), source = SHORTCUTS[key]
    is_long = [pytest.mark.long] * (LOST[0] in said or "patient" in more)
    said, limit = said.removeprefix("loses").strip(), PATIENT if "patient" in more else SECONDS
    earned = int(earned.removeprefix("earns "))
    return pytest.param(name, source, earned, said, limit, id=key, marks=is_long)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(("name", "source", "earned", "said", "limit"), [*map(trial, SHORTCUTS)])
def test_in_the_sandbox_a_shortcut_earns_what_it_should(
    tmp_path, name, source, earned, said, limit
):
    notebook = read_notebook(name)
    notebook.cells.append(nbformat.v4.new_code_cell(source))
    record = set_bench(subject(name).exam, tmp_path, seconds=limit).grade(as_bytes(notebook))
    lost = [r["said"] for r in record["results"] if not r["earned"]]
    assert (points(record), record["problem"]) == (earned, "")
    assert bool(lost) == (earned < subject(name).exam.out_of)
    assert any(said in clause for clause in lost or [said]), lost


@pytest.mark.parametrize("shortcut", ["complex step", "autograd"])
def test_a_shortcut_is_right_where_it_can_be_paid_for(shortcut):
    space = dict(subject("gradients").space)
    for each in ("complex step", shortcut):  # the first has the way forward, too
        exec(SHORTCUTS[each][1], space)
    rng = np.random.default_rng(0)
    Q, K, scale = rng.standard_normal((3, 5, 4)), rng.standard_normal((3, 6, 4)), np.ones(3)
    arguments = Q, K, scale, space["weights_of"](Q, K, scale), rng.standard_normal((3, 5, 6))
    right = subject("gradients").space["query_gradients"](*arguments)
    np.testing.assert_allclose(space["query_gradients"](*arguments), right, rtol=1e-4, atol=1e-8)
