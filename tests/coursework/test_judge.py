"""A value earns by its numbers, and words come only from what the grader knows."""

import inspect
import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from coursework.grader import sandbox
from coursework.grader.assignment import Case, HiddenTest, Mistake, Task, set_exam
from coursework.grader.judge import (
    KNOWN,
    LOST,
    MOST_S,
    NUMBERS,
    RAISED,
    SAID,
    bits,
    grade,
    judge,
    lost_by_time,
    outcomes,
    points,
    read_account,
)
from coursework.grader.kinds import TOO_FALSE, TOO_TRUE, UPSIDE_DOWN
from coursework.grader.sandbox import ENDED, WAITING, Lost

EXPECTED = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def twice(x):
    return 2 * x


def a_test(expected):
    mistake = Mistake("doubled", "it doubles", "Do not.", twice)
    task = Task("f", lambda rng: [], (mistake,))
    return HiddenTest(task, Case("a case", (expected,)), expected, np.negative)


class Breaking:
    """A stand-in for a sandbox that breaks in its second call, and where it is opened again."""

    def __init__(self, opened):
        self.calls, self.closed, self.opened, self.used_s = 0, False, opened, 1.0
        opened.append(self)

    def load(self, functions, content, **how):
        """Load once, but for the first."""
        if len(self.opened) > 1:
            raise Lost("it did not come back within 20 seconds")
        return {}

    def call(self, function, arguments):
        """Return nothing, then break."""
        assert len(self.opened) == 1, "its cells have not come back"
        self.calls += 1
        if self.calls > 1:
            raise Lost(ENDED)
        return "nothing", None

    def close(self):
        """End."""
        self.closed = True


def test_a_sandbox_whose_cells_did_not_come_back_is_not_called():
    opened = []
    record = grade(set_exam("heads", 1), b"", lambda: Breaking(opened))
    said = [result["said"] for result in record["results"]]
    assert said[:2] == [SAID["nothing"], ENDED]
    assert set(said[2:]) == {SAID["not run"]}
    assert all(each.closed for each in opened)


def late(value):
    raise Lost("it did not come back within 5 seconds")


WAYS = {  # in which a right value is replied to
    "right": lambda value: ("value", value),
    "wrong": lambda value: ("value", 0 * value),
    "none": lambda value: ("nothing", None),
    "late": late,
    "none or wrong": lambda value: ("value", 0 * value) if value.ndim > 3 else ("nothing", None),
}


class Trying:
    """A stand-in for a sandbox that replies in one way after every cell, and in one after some.

    Parameters
    ----------
    exam : Exam
    tried : gets a word for each time that cells are run
    account : what it says of them
    ways : of WAYS, by these words
    """

    used_s = 1.0

    def __init__(self, exam, tried, account, **ways):
        self.right = {id(test.case.arguments): test.expected for test in exam.tests}
        self.tried, self.account, self.ways = tried, account, ways

    def load(self, functions, content, *, every, handed_out):
        """Note what was run."""
        self.tried.append("every" if every else "some")
        if self.ways.get(self.tried[-1]) == "not loaded":
            late(None)
        return self.account

    def call(self, function, arguments):
        """Reply."""
        return WAYS[self.ways.get(self.tried[-1], "right")](self.right[id(arguments)])

    def close(self):
        """End."""


@pytest.mark.parametrize(
    ("every", "some", "account", "runs", "earned"),
    [
        ("right", "wrong", {}, ["every"], 10),
        ("wrong", "right", {}, ["every"], 0),
        ("none", "right", {}, ["every", "some"], 10),
        ("none", "right", {"whole": True}, ["every"], 0),
        ("none or wrong", "right", {}, ["every", "some"], 6),
        ("not loaded", "right", {}, ["every", "some"], 10),
        ("not loaded", "right", {"unreadable": "json"}, ["every", "some"], 0),
        ("none", "none", {}, ["every", "some"], 0),
        ("late", "right", {}, ["every"] * 6, 0),
    ],
)
def test_what_got_no_answer_is_asked_again(every, some, account, runs, earned):
    exam, tried, ways = set_exam("heads", 1), [], {"every": every, "some": some}
    record = grade(exam, b"", lambda: Trying(exam, tried, account, **ways))
    assert (tried, points(record)) == (runs, earned)


def test_words_of_a_hand_in_are_of_its_first_load_alone():
    """A later one could have read inputs from a clock or a cache."""
    exam, tried = set_exam("whole_layer", 1), []
    missing = exam.functions[-1]

    class Naming(Trying):
        def load(self, functions, content, **how):
            super().load(functions, content, **how)
            return {"missing": [missing], "defined": [f"name_{len(self.tried)}"]}

    for patient, found in ((True, "; found: `name_1`"), (False, "")):
        tried.clear()
        record = grade(exam, b"", lambda: Naming(exam, tried, {}), patient=patient)
        told = next(r["said"] for r in record["results"] if r["function"] == missing)
        assert (points(record) > 0, told) == (True, f"there is no function `{missing}`{found}")


def test_a_hand_in_that_is_repeated_ends_with_the_first_test_that_time_takes():
    exam, calls = set_exam("heads", 1), []

    class Slow(Trying):
        def call(self, function, arguments):
            calls.append(function)
            raise Lost("it did not come back within 5 seconds")

    for patient, number in ((True, len(exam.tests)), (False, 1)):
        calls.clear()
        open_slow = partial(Slow, exam, [], {"whole": True})
        assert lost_by_time(grade(exam, b"", open_slow, patient=patient))
        assert len(calls) == number


def clock(monkeypatch):
    """A list with the time by the clock, which a test puts forward."""
    now = [0]
    monkeypatch.setattr("coursework.grader.judge.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.mark.parametrize(("used_s", "repeated"), [(0.1, False), (100.0, True)])
def test_a_hand_in_that_only_waits_is_not_repeated(monkeypatch, used_s, repeated):
    """Each test takes half of the time by the clock that all of a try may take."""
    exam, tried, now = set_exam("heads", 1), [], clock(monkeypatch)

    class Waiting(Trying):
        def call(self, function, arguments):
            now[0] += MOST_S * WAITING / 2
            return "nothing", None

    Waiting.used_s = used_s
    record = grade(exam, b"", lambda: Waiting(exam, tried, {}))
    assert record["results"][-1]["said"] == SAID["not run"]
    assert (tried, now[0], lost_by_time(record)) == (
        ["every", "some"],
        3 * MOST_S * WAITING,
        repeated,
    )


def test_a_right_hand_in_has_its_points_where_others_keep_the_machine_busy(monkeypatch):
    exam, tried, now = set_exam("heads", 1), [], clock(monkeypatch)

    class Busy(Trying):
        def call(self, function, arguments):
            now[0] += MOST_S / 2
            return super().call(function, arguments)

    record = grade(exam, b"", lambda: Busy(exam, tried, {}))
    assert now[0] > MOST_S
    assert points(record) == exam.out_of


def test_cells_that_come_back_only_once_are_no_matter_of_time():
    """Those that write replies of their own are read, or not, by a race."""
    exam, tried = set_exam("heads", 1), []
    forged = "it wrote into the grader's channel"

    class Forging(Trying):
        def load(self, functions, content, **how):
            if tried:
                raise Lost(forged)
            return super().load(functions, content, **how)

        def call(self, function, arguments):
            raise Lost(forged)

    record = grade(exam, b"", lambda: Forging(exam, tried, {"whole": True}))
    assert {result["said"] for result in record["results"]} == {forged}


def reply(value, expected=EXPECTED):
    return judge(a_test(expected), "value", np.asarray(value))


def test_right_value_is_right_within_rounding():
    assert reply(EXPECTED)[0]
    assert reply(EXPECTED * (1 + 1e-9))[0]
    assert not reply(EXPECTED * (1 + 1e-5))[0]


def test_known_mistake_is_named():
    assert reply(2 * EXPECTED) == (False, KNOWN, ["doubled"])


TIMES = "each number is the right one times one and the same"
OTHER = "its shape is a different one, of ndim {}; expected (2,\N{NO-BREAK SPACE}3)"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (EXPECTED.T, "its shape is (3,\N{NO-BREAK SPACE}2); expected (2,\N{NO-BREAK SPACE}3)"),
        (EXPECTED[0], "its shape is (3,); expected (2,\N{NO-BREAK SPACE}3)"),
        (EXPECTED.ravel(), "its shape is (6,); expected (2,\N{NO-BREAK SPACE}3)"),
        (np.zeros((2, 7)), OTHER.format(2)),
        (np.zeros([1] * 20), OTHER.replace("ndim {}", "more than 8 axes")),
        (np.zeros((0, 1610131033)), OTHER.format(2)),
        (EXPECTED + np.array([0, 40.123, 0]), "it differs in the first of 7 digits"),
        (EXPECTED * [1.04123, 1, 1], "it differs in the second of 7 digits"),
        (EXPECTED + 40.123, "each number is off by one and the same amount"),
        (EXPECTED * 1.04123, f"{TIMES} factor"),
        (-1e-3 * EXPECTED, f"{TIMES} factor"),
        (EXPECTED[::-1], "the order along one of its axes is reversed"),
        (EXPECTED.T.reshape(2, 3), "the right numbers are in a different order"),
        (EXPECTED * [[1], [3]], "result[..., :1, :] is right, and the rest is not"),
        (EXPECTED * [[3], [1]], "result[..., 1:, :] is right, and the rest is not"),
        (EXPECTED * [[2], [3]], "each row is right but for a factor of its own"),
        (EXPECTED + 0.002, "it differs in the fourth of 7 digits"),
        (EXPECTED * 1.00003, "it differs in the fifth of 7 digits"),
        (EXPECTED * 1.000003, "it is right to 5 of 7 digits: is something float32?"),
        (-1e307 * EXPECTED, f"{TIMES} factor"),
        (np.where(EXPECTED == 6, np.nan, EXPECTED), "it holds NaN or infinity"),
        (EXPECTED + np.inf, "it holds NaN or infinity"),
        (EXPECTED + 0j, "it returned complex numbers"),
    ],
)
def test_wrong_value_is_told_in_words(value, said):
    assert reply(value) == (False, said, [])


FIRST, SOME = (
    "it differs in the first of 7 digits",
    "some of its rows are right, and others are not",
)
SMALL = EXPECTED * [[1e3], [1e-6]]


@pytest.mark.parametrize(
    ("factors", "expected", "said"),
    [
        ([[2, 1, 1], [2, 1, 1]], SMALL, FIRST),
        ([[2, 2, 2], [5, 3, 3]], SMALL, FIRST),
        ([[1, 1, 1], [9, 1, 1]], EXPECTED * [[0], [1]], FIRST),
        ([[9, 1, 1], [3, 3, 3]], EXPECTED * [[1e-14], [1]], f"{TIMES} factor"),
        ([[3, 3, 3], [4, 3, 3]], SMALL, FIRST),
        ([[2], [1], [3]], EXPECTED.T, SOME),
    ],
)
def test_a_row_is_right_by_its_own_scale_and_one_of_zeros_shows_nothing(factors, expected, said):
    assert reply(expected * factors, expected) == (False, said, [])


def test_float32_inside_is_guessed_from_the_digits_that_are_right():
    rng = np.random.default_rng(0)
    Q, K = rng.standard_normal((7, 40)), rng.standard_normal((9, 40))
    in_single = (Q.astype(np.float32) @ K.T.astype(np.float32)).astype(float)
    _, said, _ = reply(in_single, Q @ K.T)
    assert said.endswith("is something float32?")


def test_no_more_digits_are_told_than_are_asked_for():
    task = Task("f", lambda rng: [], (), rtol=1e-3)
    test = HiddenTest(task, Case("a case", ()), EXPECTED, np.negative)
    said = [judge(test, "value", EXPECTED * (1 + 2 * 10.0**-n))[1] for n in range(5)]
    assert said[-2:] == ["it differs in the third of 3 digits", "right"]


def test_true_and_false_are_asked_for_where_the_answer_is_a_mask():
    mask = np.tri(3, dtype=bool)
    assert reply(mask, mask)[0]
    said = "it returned numbers where True and False were asked for"
    assert reply(mask.astype(float), mask) == (False, said, [])
    assert reply(mask.T, mask) == (False, UPSIDE_DOWN, [])
    assert reply(~mask, mask) == (False, "True and False are exchanged in it", [])
    assert reply(np.tri(3, k=1), mask) == (False, TOO_TRUE, [])
    assert reply(np.tri(3, k=-1, dtype=bool), mask) == (False, TOO_FALSE, [])


def test_shares_that_do_not_sum_to_1_and_axes_of_one_length_are_told():
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]])
    assert reply(weights.T, weights)[1] == "two of its axes have changed places"
    assert reply(weights**2, weights)[1] == "its rows do not sum to 1, as they should"


@pytest.mark.parametrize(("name", "said"), [("ValueError", "ValueError"), ("Q_was_1", "an exc")])
def test_only_known_exceptions_are_named(name, said):
    right, words, _ = judge(None, "raised", name)
    assert not right
    assert words.startswith(f"it raised {said}")


def hostile(rng):
    """A reply that chooses kind, shape and digits to say as much as it can."""
    shapes = [
        *3 * [(2, 3)],
        (3, 2),
        (6,),
        (),
        *rng.integers(0, 4, (9, rng.integers(1, 5))).tolist(),
    ]
    value = rng.standard_normal(shapes[rng.integers(len(shapes))]) * 10.0 ** rng.integers(-12, 300)
    if value.shape == EXPECTED.shape and rng.random() < 0.9:
        change = rng.choice([-1, 1], EXPECTED.shape) * 10.0 ** rng.uniform(-9, 3)
        ways = EXPECTED * (1 + change), EXPECTED[:, ::-1], EXPECTED[::-1, [1, 2, 0]]
        kinds = (
            EXPECTED + 9,
            EXPECTED * 3,
            *(EXPECTED * [[1 + i // 3], [1 + i % 3]] for i in (1, 3, 5)),
        )
        value = [*ways, *ways[:1] * 9, *kinds][rng.integers(17)]
    long = np.zeros([1] * rng.integers(30))
    values = value, value.astype(complex), 2 * EXPECTED, value * np.inf, long, value > 0
    kinds = "nothing", "no array", "several", "too large", "missing", "not run"
    names = [*RAISED, "NotImplementedError", "SystemExit", f"Q_was_{rng.random()}"]
    lost = rng.choice(LOST)
    choices = [("value", v) for v in (*values, value, value) for _ in range(3)] + [
        (kind, None) for kind in kinds
    ]
    choices += [("raised", str(rng.choice(names)))] * 5 + [("lost", str(lost))] * 2
    return choices[rng.integers(len(choices))]


@pytest.mark.parametrize("value", [np.longdouble("1e4000"), -1.7e308, 1.7e308 + 1.7e308j, -0.0])
def test_a_value_of_any_size_is_wrong_without_a_warning_on_the_terminal(value):
    right, _, _ = reply(np.full(EXPECTED.shape, value), EXPECTED * 1e306)
    assert not right


def test_no_reply_says_what_is_not_counted():
    rng, test = np.random.default_rng(0), a_test(EXPECTED)
    heard = set()
    for _ in range(6_000):
        _, said, mistakes = judge(test, *hostile(rng))
        heard |= {(said, name) for name in mistakes or [""]}
    assert outcomes(test) - heard == {(NUMBERS, "")}  # EXPECTED is no mask
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
        {"python": 100},
    ],
)
def test_an_account_of_no_form_says_nothing(raw):
    empty = {"problem": "", "remarks": [], "missing": [], "defined": [], "in_text": []}
    empty |= {"cells": 0, "python": 0, "whole": False}
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
