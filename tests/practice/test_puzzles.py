"""A Parsons problem has one solution: no other order of its lines, and no bug among them, is right.

Every program is run, by the functions of `puzzles.py`, and compared with the library.
"""

from itertools import permutations

import numpy as np
import pytest

from tests.chapters.pages import listed
from tests.elements.sample_bank import sample_bank
from tests.practice import puzzles
from tests.practice.rooms import NAMES
from tutorial_lib import records
from tutorial_lib.records import page_of_room

PROBLEMS = {room: records.question_bank(page_of_room(room))["parsons"] for room in NAMES}
PROBLEMS = {room: problem for room, problem in PROBLEMS.items() if problem}


def is_right(judge, lines):
    """Whether a program does what is asked; one that fails does not."""
    try:
        return bool(judge("\n".join(lines)))
    except Exception:
        return False


def bare(lines):
    """The lines of a program without their comments."""
    return [line.partition("  #")[0] for line in lines]


def others(problem):
    """Every other order of the lines, and the solution with a bug in place of any line."""
    lines, bugs = problem["lines"], [bug["line"] for bug in problem["distractors"]]
    bugged = [[*lines[:i], bug, *lines[i + 1 :]] for i in range(len(lines)) for bug in bugs]
    programs = {tuple(bare(program)) for program in [*permutations(lines), *bugged]}
    return sorted(programs - {tuple(bare(lines))})


def complaints(problem, judge):
    """What is wrong with a Parsons problem, a sentence each."""
    if not is_right(judge, bare(problem["lines"])):
        yield "its solution does not do what the task asks: correct its lines"
    for program in others(problem):
        if is_right(judge, program):
            told = " | ".join(program)
            yield f"another program is right too: {told}: change a line, or say so in the task"


@pytest.mark.parametrize("room", PROBLEMS)
def test_solution_is_right_and_no_other_program_of_its_lines(room):
    judge = getattr(puzzles, room, None)
    assert judge, f"tests/practice/puzzles.py has no {room}: write what judges its puzzle."
    told = list(complaints(PROBLEMS[room], judge))
    assert not told, f"Parsons problem of {room}:{listed(told, page_of_room(room))}"


def softmax_of_far_rows(program):
    """Weights of rows that lie a thousand apart: two keys each, with scores one apart."""
    scores = np.array([[1000.0, 999.0], [-1, -2]])
    weights = puzzles.run(program, np=np)["softmax"](scores)
    return puzzles.same(weights, np.exp([[0, -1], [0, -1]]) / (1 + np.exp(-1)))


def test_puzzle_of_the_sample_has_one_solution():
    assert list(complaints(sample_bank()["parsons"], softmax_of_far_rows)) == []


def wrong_line(problem):
    problem["lines"][2] = "    powers = np.exp(scores)"


def right_bug(problem):
    problem["distractors"][0]["line"] = "    top = scores.max(axis=1, keepdims=True)"


def two_orders(problem):
    problem["lines"].insert(1, "    scores = scores.copy()")
    problem["lines"][2] = "    top = np.array([[1000.0], [-1]])"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (wrong_line, "its solution does not do what the task asks"),
        (right_bug, "another program is right too: def softmax(scores): |     top = scores.max(ax"),
        (two_orders, "|     top = np.array([[1000.0], [-1]]) |     scores = scores.copy() |"),
    ],
)
def test_puzzle_with_a_wrong_solution_or_two_is_told(change, complaint):
    problem = sample_bank()["parsons"]
    change(problem)
    assert any(complaint in told for told in complaints(problem, softmax_of_far_rows))


def test_a_program_without_an_end_is_not_right():
    def judge(program):
        return puzzles.run(program)["done"]

    assert is_right(judge, ["done = True", "for _ in range(9):", "    pass"])
    assert not is_right(judge, ["done = True", "while done:", "    pass"])
