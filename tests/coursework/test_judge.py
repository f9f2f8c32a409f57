"""A value earns by its numbers, and words come only from what the grader knows."""

import inspect
import re

import numpy as np
import pytest

from coursework.grader import sandbox
from coursework.grader.assignment import Case, HiddenTest, Mistake, Task, set_exam
from coursework.grader.judge import (
    LET_THROUGH,
    LOST,
    MOST_S,
    NUMBERS,
    RAISED,
    REFUSED,
    RIGHT,
    SAID,
    _shapes,
    grade,
    judge,
    points,
    read_account,
    results,
    scored,
)
from coursework.grader.kinds import NUMBERS as KINDS
from coursework.grader.kinds import TOO_FALSE, TOO_TRUE, UPSIDE_DOWN
from coursework.grader.sandbox import ENDED, Lost
from tests.capacity import bits, outcomes

EXPECTED = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def twice(x):
    return 2 * x


def a_test(expected):
    mistake = Mistake("doubled", "it doubles", "Do not.", twice)
    task = Task("f", lambda rng: [], (mistake,), axes=("row", ""))
    return HiddenTest(task, Case("a case", (expected,)), expected, np.negative)


def late(value):
    raise Lost("it did not come back within 5 seconds")


def ended(value):
    raise Lost(ENDED)


def raised(word):
    """Return a way in which a function raises what it likes."""
    return lambda value: ("raised", word)


WAYS = {  # in which a right value is replied to
    "right": lambda value: ("value", value),
    "none": lambda value: ("nothing", None),
    "exhausted": lambda value: ("raised", "MemoryError 1 1"),
    "late": late,
    "ended": ended,
}


class Trying:
    """A stand-in for a sandbox of a right hand-in whose cells or calls go wrong in a way.

    Parameters
    ----------
    exam : Exam
    opened : gets each of these, with the cells that it has left out
    account : for each opening what it says of the cells
    lost : for each opening the number of the cell that ends it, 0 where none does
    ways : of WAYS, or what is raised, for each call; the last for all others
    """

    used_s = 1.0

    def __init__(self, exam, opened, *ways, account=(), lost=()):
        self.right = {id(test.case.arguments): test.expected for test in exam.tests}
        self.opened, self.ways, self.account = opened, ways or ("right",), account
        self.lost, self.calls = dict(enumerate(lost)).get(len(opened), 0), 0
        opened.append(self)

    def load(self, functions, content, *, handed_out, left_out):
        """Note what was left out, and end where it is to end."""
        self.left_out = [*left_out]
        if self.lost != 0:
            lost = Lost(ENDED)
            lost.cell = self.lost or 0
            raise lost
        return self.account[len(self.opened) - 1] if self.account else {}

    def call(self, function, arguments):
        """Reply."""
        self.calls += 1
        done = sum(each.calls for each in self.opened)
        way = self.ways[min(done, len(self.ways)) - 1]
        return WAYS.get(way, raised(way))(self.right[id(arguments)])

    def close(self):
        """End."""


def graded(*ways, name="heads", **how):
    """The record of such a hand-in, and the sandboxes that it took."""
    exam, opened = set_exam(name, 1), []
    return grade(exam, b"", lambda: Trying(exam, opened, *ways, **how)), opened


@pytest.mark.parametrize(
    ("ways", "calls", "earned"),
    [
        (["right"], [7], 10),
        (["none"], [7], 0),
        (["late", "right"], [1, 6], 8),
        (["exhausted", "right"], [1, 6], 8),
        (["ended", "right"], [1, 6], 8),
        (["right", "ended", "right"], [2, 6], 10),
        (["right", "ended", "ended", "right"], [2, 1, 5], 8),
    ],
)
def test_a_call_that_ends_its_sandbox_loses_its_test_alone(ways, calls, earned):
    record, opened = graded(*ways)
    assert ([each.calls for each in opened], points(record)) == (calls, earned)


@pytest.mark.parametrize(
    ("lost", "left_out", "earned"),
    [([7], [7], 10), ([7, 8, 9], [7, 8, 9], 10), ([7, 8, 9, 2], [7, 8, 9], 0), ([None], [], 0)],
)
def test_a_cell_that_ends_the_process_is_left_out_and_that_is_told(lost, left_out, earned):
    record, opened = graded(lost=lost)
    assert (opened[-1].left_out, points(record)) == (left_out, earned)
    if earned:
        said = [f"Code cell {number} was left out: {ENDED}" for number in left_out]
        assert record["remarks"] == [[line, ""] for line in said]
    else:
        assert record["problem"] == f"Its cells were run, and {ENDED}."


def test_behind_the_first_call_no_other_cells_are_run():
    record, opened = graded("ended", lost=[0, 7])
    assert [each.calls for each in opened] == [1, 0]
    assert {result["said"] for result in record["results"]} == {ENDED}


def test_words_of_a_hand_in_are_of_its_first_load_alone():
    """A later one could have read inputs from a clock or a cache."""
    accounts = [{"missing": ["layer"], "defined": [f"name_{i}"]} for i in range(9)]
    record, opened = graded("ended", name="whole_layer", account=accounts)
    told = next(r["said"] for r in record["results"] if r["function"] == "layer")
    assert len(opened) > 1
    assert told == "there is no function `layer`; found: `name_0`"


class TryingTests(Trying):
    """A stand-in for a sandbox in which a student's test, the first of `ways`, is called."""

    def call(self, function, arguments):
        """Call the test as the worker would."""
        self.calls += 1
        try:
            value = self.ways[0](*arguments)
        except AssertionError:
            return "raised", "AssertionError 1 1"
        return ("nothing", None) if value is None else ("value", np.asarray(value))


def fails(implementation):
    """A test that has an error itself."""
    raise AssertionError


TESTING = set_exam("testing_attention", 1)
TESTS = {  # a student's test, its points, what is said of the first it loses, the known mistake
    "right": (TESTING.tests[0].right, 10, RIGHT, ""),
    "no verdict": (lambda f: None, 0, LET_THROUGH, "accepts_all"),
    "an array": (lambda f: np.zeros(3), 0, LET_THROUGH, "accepts_all"),
    "False": (lambda f: False, 0, REFUSED, "rejects_all"),
    "an error": (fails, 0, f"{REFUSED}, ", "rejects_all"),
}


@pytest.mark.parametrize(("student", "earned", "said", "mistake"), TESTS.values(), ids=TESTS)
def test_a_students_test_earns_what_it_rejects_if_it_accepts_all_that_is_right(
    student, earned, said, mistake
):
    opened = []
    record = grade(TESTING, b"", lambda: TryingTests(TESTING, opened, student))
    tried = {each for test in TESTING.tests for each in test.case.arguments}
    assert [each.calls for each in opened] == [1] * len(tried)  # each by itself, and once
    assert points(record) == earned
    assert all(result["said"].startswith(said) for result in record["results"])
    assert {r["mistake"] for r in record["results"]} == {mistake}


def test_a_mistake_of_a_test_is_not_named_where_another_verdict_is_right():
    """Of two tests that let the same through, one may see more elsewhere."""
    tests = TESTING.tests
    wrong = [test.wrong[[m.name for m in test.task.mistakes].index("no_mask")] for test in tests]
    found = results(tests, [("verdicts", [not v for v in each]) for each in wrong])
    assert {r["mistake"] for r in found if not r["earned"]} == {"no_mask"}
    lost = next(i for i, r in enumerate(found) if not r["earned"])
    better = [*wrong[:lost], tests[lost].expected, *wrong[lost + 1 :]]
    found = results(tests, [("verdicts", [not v for v in each]) for each in better])
    assert {r["mistake"] for r in found} == {""}


PLACES = {
    "KeyError 3 99": "KeyError in line 99 of code cell 3",
    **dict.fromkeys(("KeyError 3 100", "KeyError 4 1", "KeyError 3 0", "KeyError 0 3"), "KeyError"),
    "KeyError 1 1000": "an exception of its own",
    "KeyError 3 1 in line 12345 of code cell 7": "an exception of its own",
    "KeyError": "an exception of its own",
    "": "an exception of its own",
}


@pytest.mark.parametrize(("word", "said"), PLACES.items())
def test_a_place_that_there_cannot_be_is_not_told(word, said):
    record, _ = graded(word, account=[{"cells": 3}])
    assert record["results"][0]["said"] == f"it raised {said}"
    assert not [r for r in record["results"][1:] if "line" in r["said"]]


def test_behind_two_minutes_of_tests_none_begins(monkeypatch):
    monkeypatch.setattr(
        Trying, "used_s", property(lambda self: 500 + self.calls * (MOST_S / 2 + 1))
    )
    record, _ = graded("right")
    assert [r["said"] for r in record["results"]] == ["right"] * 2 + [SAID["not run"]] * 5


def reply(value, expected=EXPECTED):
    return judge(a_test(expected), "value", np.asarray(value))


TIMES = "each number is the right one times one and the same factor"
FIRST, NONE = "it differs in the first of 7 digits", "no row is right"
SOME = "some of its rows are right, and others are not"
OWN = "each row is right but for a factor of its own"
SHAPE = "its shape is {}; expected (2, 3)"
OTHER = "a different one, of ndim {}"
TALL = np.arange(1.0, 17).reshape(8, 2)
SMALL = EXPECTED * [[1e3], [1e-6]]
MASK = np.tri(3, dtype=bool)
WEIGHTS = np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]])
SINGLE = "it is right to 5 of 7 digits: is a float32 or an ε in it?"
Q, K = np.random.default_rng(0).standard_normal((2, 9, 40))
Q32, K32 = Q.astype(np.float32), K.astype(np.float32)
WORDS = [  # a value, what is said of it, and what is right where it is not EXPECTED
    (EXPECTED, RIGHT),
    (EXPECTED * (1 + 1e-9), RIGHT),
    (EXPECTED * 1.00003, "it differs in the fifth of 7 digits"),
    (EXPECTED.T, SHAPE.format("(3, 2)")),
    (EXPECTED[0], SHAPE.format("(3,)")),
    (EXPECTED.ravel(), SHAPE.format("(6,)")),
    (np.zeros((2, 7)), SHAPE.format(OTHER.format(2))),
    (np.zeros([1] * 20), SHAPE.format("a different one, of more than 8 axes")),
    (np.zeros((0, 1610131033)), SHAPE.format(OTHER.format(2))),
    (EXPECTED + np.array([0, 40.123, 0]), NONE),
    (EXPECTED * [[1.05, 1.04, 1.05], [3, 4, 3]], FIRST),
    (EXPECTED * [1.04123, 1, 1], "it differs in the second of 7 digits"),
    (EXPECTED + 0.002, "it differs in the fourth of 7 digits"),
    (EXPECTED * 1.000003, SINGLE),
    ((Q32 @ K32.T).astype(float), SINGLE, Q @ K.T),
    (EXPECTED + 40.123, "each number is off by one and the same amount"),
    (EXPECTED * 1.04123, TIMES),
    (-1e-3 * EXPECTED, TIMES),
    (-1e307 * EXPECTED, TIMES),
    (EXPECTED[::-1], "the order along one of its axes is reversed"),
    (EXPECTED.T.reshape(2, 3), "the right numbers are in a different order"),
    (np.where(EXPECTED == 6, np.nan, EXPECTED), "it holds NaN or infinity"),
    (EXPECTED + np.inf, "it holds NaN or infinity"),
    (EXPECTED + 0j, "it returned complex numbers"),
    # A row is right by its own scale, and one of zeros shows nothing.
    (EXPECTED * [[1], [3]], "row 0 is right, row 1 is not"),
    (EXPECTED * [[3], [1]], "row 1 is right, row 0 is not"),
    (EXPECTED * [[2], [3]], OWN),
    (SMALL * [[2, 1, 1], [2, 1, 1]], NONE, SMALL),
    (SMALL * [[2, 2, 2], [5, 3, 3]], NONE, SMALL),
    (SMALL * [[3, 3, 3], [4, 3, 3]], NONE, SMALL),
    (EXPECTED * [[0, 0, 0], [9, 1, 1]], FIRST, EXPECTED * [[0], [1]]),
    (EXPECTED * [[9e-14, 1e-14, 1e-14], [3, 3, 3]], TIMES, EXPECTED * [[1e-14], [1]]),
    (EXPECTED.T * [[2], [1], [3]], "row 1 is right, rows 0 and 2 are not", EXPECTED.T),
    (EXPECTED.T * [[2], [0], [3]], OWN, EXPECTED.T * [[1], [0], [1]]),
    (TALL * ([[1]] * 6 + [[3], [1]]), "rows 0 to 5 are right, row 6 is not", TALL),
    (TALL * ([[3]] + [[1]] * 5 + [[3], [1]]), "row 7 is right, row 6 is not", TALL),
    (TALL * ([[3]] + [[1]] * 6 + [[3]]), SOME, TALL),
    (TALL * -np.linspace(1, 3, 8)[:, None], "each number has the opposite sign", TALL),
    (0 * TALL, "no row is right", TALL),
    (MASK, RIGHT, MASK),
    (MASK.astype(float), "it returned numbers where True and False were asked for", MASK),
    (MASK.T, UPSIDE_DOWN, MASK),
    (~MASK, "True and False are exchanged in it", MASK),
    (np.tri(3, k=1), f"{TOO_TRUE}; row 2 is right, rows 0 and 1 are not", MASK),
    (np.tri(3, k=-1, dtype=bool), TOO_FALSE, MASK),
    (WEIGHTS.T, "two of its axes have changed places", WEIGHTS),
    (WEIGHTS**2 / (WEIGHTS**2).sum(axis=0), "its columns sum to 1, where its rows should", WEIGHTS),
    (WEIGHTS**2, "its rows do not sum to 1, as they should", WEIGHTS),
]


@pytest.mark.parametrize(("value", "said", "expected"), [(*row, EXPECTED)[:3] for row in WORDS])
def test_what_is_said_of_a_value(value, said, expected):
    told, fits = reply(value, expected)
    assert (told.replace("\N{NO-BREAK SPACE}", " "), fits) == (said, ())


def test_known_mistake_fits():
    assert reply(2 * EXPECTED) == (TIMES, ("doubled",))


def test_no_more_digits_are_told_than_are_asked_for():
    task = Task("f", lambda rng: [], (), rtol=1e-3)
    test = HiddenTest(task, Case("a case", ()), EXPECTED, np.negative)
    said = [judge(test, "value", EXPECTED * (1 + 2 * 10.0**-n))[0] for n in range(5)]
    assert said[-2:] == ["it differs in the third of 3 digits", RIGHT]


LOSSES = {  # values in four tests, by factors; points for the first three; what is named and kept
    "all lost": ([2, 2, 2, 2], (2, 3, 5), "doubled", 6),
    "one right": ([1, 2, 2, 2], (2, 3, 5), "doubled", 4),
    "more right than it keeps": ([2, 2, 1, 1], (2, 1, 7), "doubled", 0),
    "one lost in another way": ([2, 3, 1, 1], (2, 3, 5), "", 0),
    "void where it is another": ([2, 3, 1, 2], (2, 0, 5), "doubled", 1),
    "no more than all but the idea": ([2, 2, 2, 2], (2, 0, 1), "doubled", 3),
    "an error beside": ([2, None, 1, 1], (2, 2, 1), "", 0),
    "right": ([1, 1, 1, 1], (2, 3, 5), "", 0),
}


@pytest.mark.parametrize(("factors", "worth", "name", "kept"), LOSSES.values(), ids=LOSSES)
def test_a_mistake_that_explains_all_that_is_lost_keeps_its_share(factors, worth, name, kept):
    mistake = Mistake("doubled", "it doubles", "Do not.", twice, keeps=6)
    task = Task("f", lambda rng: [], (mistake,))
    cases = [Case(f"case {i}", (EXPECTED,), n) for i, n in enumerate(worth)]
    cases.append(Case("the idea", (EXPECTED,), 4, idea=True))
    tests = [HiddenTest(task, case, EXPECTED, np.negative) for case in cases]
    replies = [("value", EXPECTED * f) if f else ("raised", "KeyError") for f in factors]
    found = results(tests, replies)
    lost = {r["mistake"] for r in found if r["points"] and r["said"] != "right"}
    assert lost <= {name}
    assert sum(r["kept"] for r in found) == kept
    earned = sum(n for f, n in zip(factors, (*worth, 4), strict=True) if f == 1)
    assert points({"results": found}) == earned + kept
    assert scored(found, tests) == found


def test_a_mistake_that_raises_explains_an_error_but_not_errors_alone():
    def narrow(x):
        return 2 * x if len(x) < 3 else x[:, 9]

    task = Task("f", lambda rng: [], (Mistake("narrow", "", "", narrow, keeps=1),))
    arrays = EXPECTED, EXPECTED.T
    tests = [HiddenTest(task, Case("", (a,), 2), a, np.negative) for a in arrays]
    error = "raised", "IndexError"
    assert points({"results": results(tests, [("value", 2 * EXPECTED), error])}) == 1
    assert points({"results": results(tests[1:], [error])}) == 0


@pytest.mark.parametrize(("name", "said"), [("ValueError", "ValueError"), ("Q_was_1", "an exc")])
def test_only_known_exceptions_are_named(name, said):
    words, _ = judge(a_test(EXPECTED), "raised", name)
    assert words.startswith(f"it raised {said}")


def hostile(rng):
    """A reply that chooses kind, shape and digits to say as much as it can."""
    names = [*RAISED, "NotImplementedError", "SystemExit", f"Q_was_{rng.random()}"]
    others = [("raised", str(rng.choice(names))), ("lost", str(rng.choice(LOST)))]
    others += [(kind, None) for kind in SAID]
    if rng.random() < 0.4:
        return others[rng.integers(len(others)) * (rng.random() < 0.7)]
    change = rng.choice([-1, 1], EXPECTED.shape) * 10.0 ** rng.uniform(-9, 3)
    shapes = [*_shapes(EXPECTED.shape), tuple(rng.integers(0, 4, rng.integers(1, 5)))]
    shape = shapes[rng.integers(len(shapes))]
    other = rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 300)
    ways = [EXPECTED * (1 + change)] * 9 + [EXPECTED[:, ::-1], EXPECTED[::-1, [1, 2, 0]]]
    ways += [EXPECTED * [[1.05, 1.04, 1.05], [3, 4, 3]]]
    ways += [EXPECTED + 9, EXPECTED * 3, EXPECTED + 0j, EXPECTED * np.inf, EXPECTED > 0]
    ways += [EXPECTED * [[1 + i // 3], [1 + i % 3]] for i in (1, 3, 5)]
    ways += [other, other, other, other > 0, np.zeros([1] * rng.integers(30))]
    return "value", ways[rng.integers(len(ways))]


@pytest.mark.parametrize("value", [np.longdouble("1e4000"), -1.7e308, 1.7e308 + 1.7e308j, -0.0])
def test_a_value_of_any_size_is_wrong_without_a_warning_on_the_terminal(value):
    assert reply(np.full(EXPECTED.shape, value), EXPECTED * 1e306)[0] != RIGHT


def test_no_reply_says_what_is_not_counted():
    rng, test = np.random.default_rng(0), a_test(EXPECTED)
    heard = {judge(test, *hostile(rng))[0] for _ in range(6_000)}
    never = [*dict(KINDS)], (0, 3, 6, 8, 9)  # EXPECTED: 6 numbers, no axes alike, no sums of 1
    assert outcomes(test) - heard == {NUMBERS, *(never[0][i] for i in never[1])}  # and is no mask
    assert heard <= outcomes(test)


def test_every_way_to_be_lost_is_counted():
    source = inspect.getsource(sandbox)
    said = re.findall(r'Lost\(\s*f?"([^"{]*)', source)
    assert len(said) >= len(LOST)
    assert {clause for clause in said if not clause.startswith(LOST)} == set()


@pytest.mark.parametrize("name", ["heads", "whole_layer"])
def test_a_whole_report_carries_less_than_seven_bits_a_test_and_fourteen_a_function(name):
    exam = set_exam(name, 1)
    least, most = 4 * len(exam.tests), 7 * len(exam.tests)
    assert least < bits(exam) - 13 * len(exam.functions) < most + len(exam.functions)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        3,
        [],
        {"remarks": 3, "missing": "f", "defined": [[]]},
        {"remarks": [[1], ["a", "b", "c"]]},
        {"remarks": [[n, "raised", ""] for n in (True, 0, -1, 10**9)], "cells": 10**9},
    ],
)
def test_an_account_of_no_form_says_nothing(raw):
    empty = {"problem": "", "remarks": [], "missing": [], "defined": [], "cells": 0}
    assert read_account(raw, ["f"]) == empty


def test_an_account_keeps_what_has_the_right_form():
    raw = {
        "remarks": [[3, "raised", "X:\n\x1b[31m" + "y" * 500], [1, "full points", ""]] * 90,
        "missing": ["f", "another"],
        "defined": ["g", "not a name", "<b>"],
    }
    account = read_account(raw, ["f"])
    assert account["missing"] == ["f"]
    assert account["defined"] == ["g"]
    assert len(account["remarks"]) == 10
    ours, theirs = account["remarks"][0]
    assert ours == "Code cell 3 raised an error"
    assert theirs.startswith("X: [31my")
    assert len(theirs) == 200


def test_an_account_cannot_speak_in_our_name():
    assert read_account({"unreadable": "full points were agreed by mail"}, [])["problem"] == ""
    assert "other than Python" in read_account({"unreadable": "kernel"}, [])["problem"]
