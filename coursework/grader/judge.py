"""What a hand-in earns: each test alone, the value by its numbers, the words by what is known.

Of a call are shown shapes, two digits of the largest difference and names of exceptions that Python
or NumPy has: text of its own could carry hidden inputs out. What cells raise before the first call
is shown, as the student's words.
"""

import builtins
import re
import time
from dataclasses import asdict, dataclass

import numpy as np

from coursework.grader.sandbox import Lost

RAISED = {name for name in dir(builtins) if isinstance(getattr(builtins, name), type)}
RAISED |= {"LinAlgError", "AxisError", "ShapeError"}
EXHAUSTED = (("raised", "MemoryError"), ("raised", "SystemError"))  # what follows may fail, too
MOST_REMARKS = 20
MOST_S = 120  # for one hand-in, however many of its tests never come back
UNREADABLE = {
    "json": "Not graded: it is not a notebook, its JSON cannot be read.",
    "kernel": "Not graded: its kernel is for another language than Python.",
}
REMARKS = {
    "magic": "has lines for IPython alone; they were left out",
    "syntax": "is not Python, so it did not run",
    "raised": "raised an error",
}
SAID = {
    "missing": "missing",
    "not run": "not run: the hand-in had used up its time, or could not be read",
    "nothing": "not done yet: it returns None",
    "no array": "it returned something that is not an array of numbers",
    "too large": "it returned more than 32 MiB",
}


@dataclass(frozen=True)
class Result:
    """What one test earned.

    Parameters
    ----------
    function, label : the test
    points, earned : what it is worth, and what it got
    said : one clause for the report
    mistake : name of the known mistake that gives the same value, or ""
    """

    function: str
    label: str
    points: int
    earned: int
    said: str
    mistake: str = ""


def grade(exam, content, open_sandbox):
    """Grade a hand-in.

    Parameters
    ----------
    exam : Exam
    content : the bytes of its notebook
    open_sandbox : function that starts a fresh `Sandbox`

    Returns
    -------
    record : dict for JSON: `problem` of the whole, `remarks` on cells, `results` of each test

    Raises
    ------
    SandboxError : the machine fails; nothing is known of the hand-in then
    """
    account, replies = _ask(exam, content, open_sandbox)
    replies += [("not run", None)] * (len(exam.tests) - len(replies))
    return {
        "problem": account["problem"],
        "remarks": account["remarks"],
        "results": [asdict(result) for result in _results(exam, replies, account["defined"])],
    }


def _ask(exam, content, open_sandbox):
    """Call every hidden case; where a call ends or exhausts the sandbox, the next has a new one."""
    account, replies, sandbox, end = None, [], None, time.monotonic() + MOST_S
    try:
        for test in exam.tests:
            if time.monotonic() > end:
                break
            if sandbox is None:
                sandbox = open_sandbox()
                loaded = _load(sandbox, exam.functions, content)
                account = account or loaded
                if loaded["problem"]:
                    break
            try:
                replies.append(_call(sandbox, test, account["missing"]))
            except Lost as lost:
                replies.append(("lost", str(lost)))
            if replies[-1][0] == "lost" or replies[-1] in EXHAUSTED:
                sandbox.close()
                sandbox = None
    finally:
        if sandbox is not None:
            sandbox.close()
    return account, replies


def _load(sandbox, functions, content):
    try:
        return read_account(sandbox.load(functions, content), functions)
    except Lost as lost:
        return read_account({}, functions) | {"problem": f"Its cells were run, and {lost}."}


def _call(sandbox, test, missing):
    name = test.task.function
    return ("missing", None) if name in missing else sandbox.call(name, test.case.arguments)


def plain(text):
    """Make text of a student harmless: one line, no control characters, 200 characters."""
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in str(text)))[:200]


def read_account(raw, functions):
    """Take from a sandbox's account of a hand-in what has the right form, and nothing else.

    Returns
    -------
    account : dict with `problem` (text or ""), `remarks` ((our words, the student's) pairs),
        `missing`, `defined`
    """
    raw = raw if isinstance(raw, dict) else {}

    def texts(name):
        found = raw.get(name)
        return [plain(t) for t in found if isinstance(t, str)] if isinstance(found, list) else []

    remarks = raw.get("remarks") if isinstance(raw.get("remarks"), list) else []
    remarks = [r for r in remarks if isinstance(r, list) and len(r) == 3 and isinstance(r[0], int)]
    unreadable = raw.get("unreadable")
    return {
        "problem": UNREADABLE.get(unreadable, "") if isinstance(unreadable, str) else "",
        "remarks": [
            [f"Cell {number} {REMARKS[kind]}", plain(detail)]
            for number, kind, detail in remarks[:MOST_REMARKS]
            if isinstance(kind, str) and kind in REMARKS
        ],
        "missing": [name for name in texts("missing") if name in functions],
        "defined": [name for name in texts("defined") if name.isidentifier()],
    }


def _results(exam, replies, defined):
    """Turn replies into results; of several fitting mistakes name the one that fits most tests."""
    judged = [judge(test, *reply) for test, reply in zip(exam.tests, replies, strict=True)]
    fits = {}
    for test, (_, _, mistakes) in zip(exam.tests, judged, strict=True):
        for name in mistakes:
            key = (test.task.function, name)
            fits[key] = fits.get(key, 0) + 1
    results = []
    for test, (right, said, mistakes) in zip(exam.tests, judged, strict=True):
        function = test.task.function
        if said == "missing":
            said = _missing(function, defined)
        best = max(mistakes, key=lambda name: fits[function, name], default="")
        earned = test.case.points if right else 0
        results.append(Result(function, test.case.label, test.case.points, earned, said, best))
    return results


def _missing(function, defined):
    found = ", ".join(f"`{name}`" for name in defined[:10] if name != function)
    return f"there is no function `{function}`" + (f"; found: {found}" if found else "")


def judge(test, kind, value):
    """Say what one reply is worth.

    Returns
    -------
    right : bool
    said : a clause
    mistakes : names of the known mistakes that give this value
    """
    if kind == "value":
        return _judge_value(test, value)
    if kind == "raised" and value == "NotImplementedError":
        return False, f"it raised {value}, as do functions that are withheld here", []
    if kind == "raised":
        return False, f"it raised {value if value in RAISED else 'an exception of its own'}", []
    return False, value if kind == "lost" else SAID[kind], []


def _judge_value(test, value):
    task, expected = test.task, test.expected
    if value.dtype.kind == "c" and expected.dtype.kind != "c":
        return False, "it returned complex numbers", []
    if _same(value, expected, task):
        if expected.dtype.kind == "b" and value.dtype.kind != "b":
            return False, "it returned numbers where True and False were asked for", []
        return True, "right", []
    mistakes = [
        mistake.name
        for mistake, wrong in zip(task.mistakes, test.wrong, strict=True)
        if wrong is not None and _same(value, wrong, task) and not _same(wrong, expected, task)
    ]
    return False, _difference(value, expected, _lengths(test)), mistakes


def _same(value, other, task):
    if value.shape != other.shape:
        return False
    kind = complex if "c" in (value.dtype.kind, other.dtype.kind) else float
    pair = value.astype(kind), other.astype(kind)
    return np.allclose(*pair, rtol=task.rtol, atol=task.atol, equal_nan=True)


def _difference(value, expected, known):
    if value.shape != expected.shape:
        return f"its shape is {_shape(value, known)}; expected {_shape(expected, known)}"
    if not np.isfinite(value).all():
        return "it holds NaN or infinity"
    largest = np.abs(value.astype(float) - expected.astype(float)).max()
    return f"the largest difference is {float(f'{largest:.2g}'):g}"


def _lengths(test):
    """Return the lengths that an honest result may have: of the arrays, and their products."""
    arrays = [test.expected, *map(np.asarray, test.case.arguments)]
    known = {n for array in arrays for n in array.shape} | {1}
    known |= {int(n) for n in test.case.arguments if isinstance(n, int)}
    return known | {a * b for a in known for b in known}


def _shape(array, known):
    """Return a shape, but of lengths without a reason nothing: they could tell a hidden number."""
    if array.ndim > 8 or not known.issuperset(array.shape):
        return "another one"
    return str(tuple(int(n) for n in array.shape)).replace(" ", "\N{NO-BREAK SPACE}")
