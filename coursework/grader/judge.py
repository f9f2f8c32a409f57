"""What a hand-in earns: each test alone, the value by its numbers, the words by what is known.

Of a call is shown one clause of a short list: text or digits of its own could carry hidden inputs
out, and `tests/capacity.py` counts what the clauses can. What cells raise before the first call is
shown, as the student's words; what they raise later is not, since by then a clock or a cache could
hold inputs.
"""

import math
import re
import sys
from itertools import permutations

import numpy as np

from coursework.grader.assignment import student_code_cells
from coursework.grader.inert import plain
from coursework.grader.kinds import kind_of_difference
from coursework.grader.sandbox import ENDED, Lost

RAISED = (  # what students' code does raise; of any other exception the name could be a message
    *("AssertionError", "AttributeError", "AxisError", "FloatingPointError", "ImportError"),
    *("IndexError", "KeyError", "LinAlgError", "MemoryError", "ModuleNotFoundError", "NameError"),
    *("OverflowError", "RecursionError", "RuntimeError", "ShapeError", "StopIteration"),
    *("SystemError", "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError"),
)
WITHHELD = "NotImplementedError"
EXHAUSTED = ("MemoryError", "SystemError")  # what follows may fail, too
MOST_REMARKS = 20
MOST_CELLS = 9999
LAST_PLACE = 99  # of cells and of lines that a report names
MOST_LEFT_OUT = 3  # cells that end the process or never end
MOST_S = 120  # for all tests, as sandboxes count it; behind it none begins
UNREADABLE = {
    "json": "Not graded: it is not a notebook, its JSON cannot be read.",
    "cells": "Not graded: it is not a notebook, it has no list of cells.",
    "many": f"Not graded: it has more than {MOST_CELLS} code cells.",
    "kernel": "Not graded: its kernel is for a language other than Python.",
}
REMARKS = {
    "syntax": "cannot be read as Python, so it did not run",
    "newer": "was run with a newer Python, and is graded with {}.{}".format(*sys.version_info),
    "raised": "raised an error",
    "package": "imports a package that the grader does not offer",
    "again": "has the definition that counts, the last of several that were run",
    "magic": "has a command or a magic that does nothing here",
}
LEFT_OUT = "Code cell {} was left out: {}"
SAID = {
    "missing": "missing",
    "not run": "not run: the hand-in had used up its time",
    "nothing": "not done yet: it returns None",
    "no array": "it returned something that is not an array of numbers; one whose dtype is object "
    "becomes one with .astype(float)",
    "several": "it returned a tuple or a list of several things, and one array was asked for",
    "too large": "it returned more than 32 MiB",
}
LOST = (  # how the clauses of `Lost` begin
    "it did not come back within",
    ENDED,
    "it wrote into the grader's channel",
    "it sent more than",
    "it sent something that is not an array of numbers",
)
RIGHT = "right"
ERROR = "it raised "
FALSE = "it returned False"
LET_THROUGH = "it accepts an implementation that has a mistake"
REFUSED = "it rejects a right implementation"
COMPLEX = "it returned complex numbers"
NUMBERS = "it returned numbers where True and False were asked for"
NOT_FINITE = "it holds NaN or infinity"
DIGITS = ("first", "second", "third", "fourth", "fifth")
MOST_AXES = 8


def grade(exam, content, open_sandbox):
    """Run the cells of a hand-in once, then call its functions; return a record, a dict for JSON.

    It has the `problem` of the whole, `remarks` on cells and `results` of each test.
    A call that ends or exhausts its sandbox loses its test, and the others are asked in a new one.
    If the machine fails, which is a SandboxError, nothing is known of the hand-in.

    `exam` : Exam
    `content` : the bytes of its notebook
    `open_sandbox` : function that starts a fresh `Sandbox`
    """
    caller = _Caller(exam, content, open_sandbox)
    try:
        return caller.record(caller.replies())
    finally:
        caller.close()


def points(record):
    """Return the points of a record."""
    return sum(result["earned"] + result["kept"] for result in record["results"])


class _Caller:
    """Calls functions of a hand-in; where a call ends or exhausts the sandbox, opens a new one."""

    def __init__(self, exam, content, open_sandbox):
        self.exam, self.content, self.open_sandbox = exam, content, open_sandbox
        self.sandbox, self.used = None, False
        self.begun_s = self.ended_s = 0.0  # when tests began; what closed sandboxes have used
        self.words, self.left_out = {}, {}  # of the first run of the cells; cells that ended one
        self.verdicts = {}  # of a student's test: its reply for each implementation

    def replies(self):
        """Call all hidden cases."""
        found, unasked = [], ("not run", None)
        for test in self.exam.tests:
            if self.used_s - self.begun_s > MOST_S:
                break
            if not self.ready():  # its cells may have come back the first time alone
                if not self.problem.startswith(LOST[0]):  # which is no matter of time
                    unasked = "lost", self.problem
                break
            found.append(self.reply(test))
        return found + [unasked] * (len(self.exam.tests) - len(found))

    def record(self, replies):
        """Return the record of what all cases have come to, and of what functions there are."""
        if not self.words:
            unasked = results(self.exam.tests, [("lost", "not run")] * len(self.exam.tests))
            return {"problem": self.problem, "remarks": [], "results": unasked}
        found = results(self.exam.tests, _located(self.exam, replies, self.words["cells"]))
        untold = dict.fromkeys(self.exam.functions, self.words["defined"])
        for result in [result for result in found if result["said"] == "missing"]:
            names = [f"`{name}`" for name in untold.pop(result["function"], ())[:10]]
            other = f"; found: {', '.join(names)}" if names else ""
            result["said"] = f"there is no function `{result['function']}`{other}"
        left_out = [[LEFT_OUT.format(number, why), ""] for number, why in self.left_out.items()]
        return {"problem": "", "remarks": [*left_out, *self.words["remarks"]], "results": found}

    @property
    def used_s(self):
        """Return the time that all its sandboxes have counted."""
        return self.ended_s + (self.sandbox.used_s if self.sandbox else 0.0)

    def ready(self):
        """Have a sandbox in which the cells were run, and return whether they could be."""
        if self.sandbox is not None:
            return True
        self.account = self.load()
        self.problem = self.account["problem"]
        if self.problem:
            self.close()
        elif not self.words:
            self.words, self.begun_s = self.account, self.used_s
        return not self.problem

    def load(self):
        """Run the cells; return the account of it. One that ends its sandbox is left out.

        That is so before the first call alone: behind it, all calls have the same cells.
        """
        functions = self.exam.functions
        how = {"handed_out": student_code_cells(self.exam.name), "left_out": self.left_out}
        while True:
            self.sandbox = self.open_sandbox()
            try:
                return read_account(self.sandbox.load(functions, self.content, **how), functions)
            except Lost as lost:
                if self.words or not lost.cell or len(self.left_out) == MOST_LEFT_OUT:
                    problem = f"Its cells were run, and {lost}." if not self.words else str(lost)
                    return read_account({}, functions) | {"problem": problem}
                self.left_out[lost.cell] = str(lost)
                self.close()

    def reply(self, test):
        """Call a case; again in a new sandbox where an earlier call may have broken this one."""
        if test.task.is_test:
            return self._try_implementations(test)
        used, call = self.used, (test.task.function, test.case.arguments)
        reply = self._call(*call)
        if reply == ("lost", ENDED) and used and self.ready():
            return self._call(*call)
        return reply

    def _try_implementations(self, test):
        """Reply with why a student's test rejects each implementation, "" where it does not.

        Each has its own sandbox: a test that saw several would find the right ones, which agree.
        """
        whys = []
        for each in test.case.arguments:
            key = test.task.function, each
            if key not in self.verdicts and self.ready():
                self.verdicts[key] = self._call(key[0], (each.function,))
                self.close()
            kind, value = self.verdicts.get(key, ("lost", self.problem))
            if kind in ("lost", "missing"):
                return kind, value
            is_false = kind == "value" and value.tolist() is False
            whys.append(_raised(value.partition(" ")[0]) if kind == "raised" else FALSE * is_false)
        return "verdicts", whys

    def _call(self, name, arguments):
        if name in self.account["missing"]:
            return "missing", None
        self.used = True
        try:
            kind, value = self.sandbox.call(name, arguments)
        except Lost as lost:
            kind, value = "lost", str(lost)
        if kind == "lost" or (kind == "raised" and value.startswith(EXHAUSTED)):
            self.close()
        return kind, value

    def close(self):
        """End the sandbox."""
        if self.sandbox is not None:
            self.ended_s += self.sandbox.used_s
            self.sandbox.close()
        self.sandbox, self.used = None, False


def read_account(raw, functions):
    """Take from a sandbox's account of a hand-in what has the right form, and nothing else.

    That is a dict with `problem` (text or ""), `remarks` ((our words, the student's) pairs),
    `missing`, `defined` and `cells` (how many there are).
    """
    raw = raw if isinstance(raw, dict) else {}
    lists = (raw.get(name) for name in ("remarks", "missing", "defined"))
    remarks, missing, defined = (found if isinstance(found, list) else [] for found in lists)
    remarks = [r for r in remarks if isinstance(r, list) and len(r) == 3 and _is_count(r[0])]
    unreadable, cells = raw.get("unreadable"), raw.get("cells")
    names = [plain(name) for name in defined if isinstance(name, str)]
    return {
        "problem": UNREADABLE.get(unreadable, "") if isinstance(unreadable, str) else "",
        "remarks": [
            [f"Code cell {number} {REMARKS[kind]}", plain(detail)]
            for number, kind, detail in remarks[:MOST_REMARKS]
            if isinstance(kind, str) and kind in REMARKS
        ],
        "missing": [name for name in functions if name in missing],
        "defined": [name for name in names if name.isidentifier()],
        "cells": cells if _is_count(cells) else 0,
    }


def _is_count(number):
    return type(number) is int and 0 < number <= MOST_CELLS


def results(tests, replies):
    """Return the results of tests as a record has them.

    `replies` : (kind, value) of each test, as `judge` takes them
    """
    found = []
    for test, reply in zip(tests, replies, strict=True):
        said, fits = judge(test, *reply)
        found.append({"function": test.task.function, "said": said, "fits": fits})
    return scored(found, tests)


def scored(results, tests):
    """Return results with the labels and points of today.

    The first known mistake is named that explains every test that a function has lost, one of them
    by its value; of a student's test also each that is not lost: mistakes share many verdicts.
    Then the function has what its right tests earn, or what the mistake `keeps` if that is more,
    but no more than all tests are worth that do not ask the assignment's own idea. A void test,
    one without points, is left out of this.
    """
    found = []
    for result, test in zip(results, tests, strict=True):
        earned = test.case.points if result["said"] == RIGHT else 0
        now = {"label": test.case.label, "points": test.case.points, "earned": earned}
        found.append(result | now | {"mistake": "", "kept": 0})
    for task in {test.task.function: test.task for test in tests}.values():
        own = [r for r in found if r["function"] == task.function]
        lost = [r for r in own if r["earned"] < r["points"]]
        by_value = not all(r["said"].startswith(ERROR) for r in lost)  # of nothing: no mistake
        shown = [r for r in own if r["points"]] if task.is_test else lost
        named = (m for m in task.mistakes if by_value and all(m.name in r["fits"] for r in shown))
        if mistake := next(named, None):
            most = sum(t.case.points for t in tests if t.task is task and not t.case.idea)
            more = min(mistake.keeps, most) - sum(r["earned"] for r in own)
            for r in lost:
                r["mistake"] = mistake.name
            lost[0]["kept"] = max(0, more)
    return found


def _located(exam, replies, cells):
    """Tell of each function the place of the first error alone, and only one that there can be.

    The student's code chooses it, so every place that is told could tell a hidden number, too.
    """
    told, located = set(), []
    for test, (kind, value) in zip(exam.tests, replies, strict=True):
        if kind == "raised":
            found = re.fullmatch(r"(\w+) (\d{1,3}) (\d{1,3})", value, re.ASCII)
            value, *place = found.groups() if found else ("", 0, 0)
            cell, line = map(int, place)
            is_place = 0 < cell <= min(cells, LAST_PLACE) and 0 < line <= LAST_PLACE
            if is_place and test.task.function not in told:
                value += f" in line {line} of code cell {cell}"
            told.add(test.task.function)
        located.append((kind, value))
    return located


def judge(test, kind, value):
    """Return a clause on one reply, and the known mistakes that give this value, or raise too."""
    if kind == "verdicts":
        accepted = np.array([not why for why in value])
        return _verdict(test, value), _fits(test, lambda wrong: np.array_equal(accepted, wrong))
    if kind == "value":
        with np.errstate(all="ignore"):  # what a student sends says nothing on our terminal
            task, expected = test.task, test.expected
            if value.dtype.kind == "c" and expected.dtype.kind != "c":
                return COMPLEX, ()
            if _same(value, expected, task):
                return RIGHT, ()

            def is_same(wrong):
                same = wrong is not None and _same(value, wrong, task)
                return same and not _same(wrong, expected, task)

            return _difference(value, expected, task), _fits(test, is_same)
    if kind == "raised":
        return _raised(value), _fits(test, lambda wrong: wrong is None)
    return value if kind == "lost" else SAID[kind], ()


def _fits(test, is_same):
    pairs = zip(test.task.mistakes, test.wrong, strict=True)
    return tuple(mistake.name for mistake, wrong in pairs if is_same(wrong))


def _verdict(test, whys):
    """Say what is wrong with the verdicts of a student's test: a right one counts first."""
    for one, is_right, why in zip(test.case.arguments, test.expected, whys, strict=True):
        if is_right and why:
            return f"{REFUSED}, {one.name}: {why}"
    return RIGHT if sum(map(bool, whys)) == (~test.expected).sum() else LET_THROUGH


def _raised(value):
    name, where, _ = re.split(r"( in line \d+ of code cell \d+|$)", value, maxsplit=1)
    if name == WITHHELD:
        return f"{ERROR}{name}{where}, as do functions that are withheld here"
    return f"{ERROR}{name if name in RAISED else 'an exception of its own'}{where}"


def _same(value, other, task):
    if value.shape != other.shape or (other.dtype.kind == "b" and value.dtype.kind != "b"):
        return False
    pair = _of_one_kind(value, other)
    return np.allclose(*pair, rtol=task.rtol, atol=task.atol, equal_nan=True)


def _of_one_kind(value, other):
    kind = complex if "c" in (value.dtype.kind, other.dtype.kind) else float
    return value.astype(kind), other.astype(kind)


def _difference(value, expected, task):
    """Say in which way a value departs from the right one."""
    if value.shape != expected.shape:
        axes = _axes(value.ndim, expected.shape)
        return _shapes(expected.shape).get(value.shape, axes)
    if not np.isfinite(value).all():
        return NOT_FINITE
    if expected.dtype.kind == "b":
        same = value.dtype.kind != "b" and (value == expected).all()
        return NUMBERS if same else kind_of_difference(value.astype(bool), expected, task.axes)
    said = _digits(task)
    value, wanted = _of_one_kind(value, expected)
    sizes = np.abs(wanted)
    typical = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    largest = (np.abs(value - wanted) / (sizes + typical)).max()
    digits = sum(bool(largest <= 10.0**-n) for n in range(1, len(said)))
    few = 2 * digits < len(said)  # with more that are right it is a matter of rounding
    return (kind_of_difference(value, wanted, task.axes) if few else "") or said[digits]


def _digits(task):
    """Return what is said of a value with no right digit, with one, two and so on."""
    asked = max(1, round(-math.log10(max(task.rtol, 1e-15))))
    said = [f"it differs in the {nth} of {asked} digits" for nth in DIGITS]
    said.append(f"it is right to {len(DIGITS)} of {asked} digits: is a float32 or an ε in it?")
    return said[:asked]


def _shapes(shape):
    """Return a clause for each shape that an honest mistake gives instead of the right one.

    Two axes are swapped, or all reversed; one is missing, or one of length 1 too many; two are one.
    """
    places = range(len(shape))
    found = {shape[::-1], *((*shape[:i], *shape[i + 1 :]) for i in places)}
    found |= {(*shape[:i], 1, *shape[i:]) for i in (*places, len(shape))}
    for i, j in permutations(places, 2):
        swapped, merged = list(shape), list(shape)
        swapped[i], swapped[j] = shape[j], shape[i]
        merged[j] *= shape[i]
        del merged[i]
        found |= {tuple(swapped), tuple(merged)}
    told = _told(shape)
    return {other: f"its shape is {_told(other)}; expected {told}" for other in found - {shape}}


def _axes(n, shape):
    """Return what is said of another shape: a length could tell a hidden number."""
    ndim = f"ndim {n}" if n <= MOST_AXES else f"more than {MOST_AXES} axes"
    return f"its shape is a different one, of {ndim}; expected {_told(shape)}"


def _told(shape):
    return str(shape).replace(" ", "\N{NO-BREAK SPACE}")
