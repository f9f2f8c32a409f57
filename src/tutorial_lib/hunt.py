"""The bug hunt: functions that look right and have one known mistake, and tests that are scored.

    suspect = hunt.suspects(level=2)[7]
    suspect.show()
    suspect.try_input(scores=np.array([[0.0, 800.0]]))
    suspect.name_line(3)
    hunt.score_test(test, "softmax")

The mistakes are those that the checks of the chapters name. Right and wrong functions are called on
the same inputs and compared by their values alone.
"""

import ast
import difflib
import inspect
import random
import textwrap
from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np

from tutorial_lib import checks
from tutorial_lib.practice.account import Task, difference_text, lay_out, print_text, remedy
from tutorial_lib.practice.calls import Answers, Case, call, fault, same, variables_of
from tutorial_lib.practice.mistake import Mistake, functions_called, pieces_of, replaced

LEVELS = {
    1: "every ordinary input shows it",
    2: "some inputs show it, and others do not",
    3: "only an input with a mask, padding, a batch axis or a cache shows it",
}
NARROW = ("mask", "padding", "batch", "cache", "chunk", "piece")  # words of a case of level 3
FROM = "tutorial_lib.practice.ch0"  # rooms 01 to 08 and these need NumPy alone
OFFERED = ("ch14", "ch15", "ch16", "ch17", "ch18")


class HuntError(ValueError):
    """An input, a line or a test that cannot be judged; says how to give one."""


class Suspect(NamedTuple):
    """A function with one mistake in it.

    Parameters
    ----------
    task : what the check of the right function asks
    mistake : the one that it has
    """

    task: Task
    mistake: Mistake

    @property
    def level(self):
        """The key of LEVELS that says which cases of the check show the mistake."""
        shown = _failing_case_labels(self.mistake.of(self.task.right), self.task)
        if len(shown) == len(self.task.cases):
            return 1
        return 3 if all(any(word in label for word in NARROW) for label in shown) else 2

    def purpose(self):
        """Say what the function takes and returns, by the first case of its check."""
        case, right = self.task.cases[0], inspect.unwrap(self.task.right)
        takes = ", ".join(f"{n} {_shape_text(v)}" for n, v in case.arguments.items())
        text = (inspect.getdoc(right) or "").partition("\n")[0]
        gives = call(self.task.right, case).value
        said = f"{self.task.name}({takes}) returns {_shape_text(gives)}."
        return f"{text} {said}" if text else said

    def numbered_lines(self):
        """Return the numbered lines of the function, and the numbers of the wrong ones."""
        lines = _source_lines(self.task.right, self.mistake.edits)
        numbered = "\n".join(f"{number:2}  {line}" for number, line in enumerate(lines, 1))
        return numbered, _changed_lines(
            _source_lines(self.task.right, self.mistake.edits, ()), lines
        )

    def show(self):
        """Print what the function should do, and its lines with their numbers."""
        print_text(f"{self.purpose()}\n\n{self.numbered_lines()[0]}")
        takes = ", ".join(inspect.signature(self.task.right).parameters)
        print_text(f"\nIt has one mistake. On which input does it show? It takes {takes}.")

    def try_input(self, **given):
        """Call the right function and this one on an input, and say whether they differ.

        Raises
        ------
        HuntError : names that are no arguments, or an input that the right function refuses
        """
        case = self._case(given)
        right, wrong = call(self.task.right, case), call(self.mistake.of(self.task.right), case)
        if right.error:
            raise HuntError(f"The right function refuses this input: {right.error}.")
        seen = wrong.error or fault(wrong.value, right.value)
        if not seen and not same(wrong.value, right.value):
            seen = difference_text(wrong.value, right.value)
        if seen:
            print_text(lay_out(f"✓ This input shows it: {seen}", "Which line is it?"))
        else:
            print_text(lay_out("○ Both give the same on this input", self._hint()))

    def _hint(self):
        shown = _failing_case_labels(self.mistake.of(self.task.right), self.task)
        if self.level == 1:
            return "A hint: take several rows, heads and tokens, and no two lengths alike"
        return f"A hint: the check of the chapter sees it on “{shown[0]}”"

    def _case(self, given):
        takes = inspect.signature(self.task.right).parameters
        if unknown := sorted(set(given) - set(takes)):
            raise HuntError(
                f"{self.task.name} has no argument {', '.join(unknown)}; give "
                f"{', '.join(takes)} by name."
            )
        lacking = [n for n in takes if takes[n].default is takes[n].empty and n not in given]
        if lacking:
            you_set = ", ".join(given) or "none of its arguments"
            raise HuntError(f"Set {', '.join(lacking)} as well; you set {you_set}.")
        options = {n for n in given if takes[n].kind is inspect.Parameter.KEYWORD_ONLY}
        ordered = {name: given[name] for name in takes if name in set(given) - options}
        return Case("yours", ordered, {name: given[name] for name in options})

    def name_line(self, number):
        """Say whether a line, as `show` numbers them, is the wrong one, and what is wrong.

        Raises
        ------
        HuntError : a number of no line
        """
        lines, wrong = self.numbered_lines()
        if not 1 <= number <= len(lines.splitlines()):
            raise HuntError(f"There is no line {number}: the last is {len(lines.splitlines())}.")
        if number in wrong:
            said = f"✓ {self.task.name}: {self.mistake.says}"
            print_text(lay_out(said, *remedy(self.mistake)))
        else:
            print_text(f"○ Line {number} is as it should be.")


@cache
def tasks():
    """Return what the checks of chapters with NumPy alone ask of arrays and numbers, by name."""
    found = {}
    for name in dir(checks):
        check = getattr(checks, name)
        offered = check.__module__.startswith((FROM, *(FROM[:-3] + room for room in OFFERED)))
        if offered and hasattr(check, "task") and ".ch09" not in check.__module__:
            task = check.task()
            plain = (np.ndarray, bool, int, float)
            if all(isinstance(v, plain) for case in task.cases for v in case.inputs.values()):
                found[task.name] = task
    return found


@cache
def suspects(level=None, *, last_chapter=18):
    """Return the suspects of chapters up to one, of one level or of all, in a mixed order.

    Functions whose purpose is said in a sentence come first.
    """
    found = [Suspect(task, mistake) for task in tasks().values() for mistake in task.mistakes]
    found = [suspect for suspect in found if suspect.mistake.edits]
    random.Random(17).shuffle(found)
    found.sort(key=lambda suspect: not inspect.getdoc(inspect.unwrap(suspect.task.right)))
    found = [suspect for suspect in found if chapter_of(suspect.task.name) <= last_chapter]
    return tuple(suspect for suspect in found if level is None or suspect.level == level)


def chapter_of(name):
    """Return the number of the chapter that checks a function."""
    return int(getattr(checks, f"check_{name}").__module__.partition(".ch")[2][:2])


def score_test(test, name):
    """Run a reader's test on the right function and on every known wrong one, and print a score.

    Parameters
    ----------
    test : function of a function; it rejects by raising an error or by returning False
    name : of a function in `tasks()`

    Returns
    -------
    caught, known : numbers of wrong functions

    Raises
    ------
    HuntError : an unknown name
    """
    if name not in tasks():
        raise HuntError(f"{name!r} is none of the functions: {', '.join(tasks())}.")
    task = tasks()[name]
    wrong = [mistake.of(task.right) for mistake in task.mistakes]
    for style, right in _right_styles(task).items():
        if why := _rejection(test, right):
            print_text(lay_out(f"✗ It rejects a right function, {style}: {why}"))
            return 0, len(wrong)
    missed = [function for function in wrong if not _rejection(test, function)]
    caught = len(wrong) - len(missed)
    print_text(f"{'✓' if not missed else '○'} It catches {caught} of {len(wrong)} known mistakes.")
    shown = Counter("; ".join(_failing_case_labels(function, task)) for function in missed)
    for labels, count in shown.items():
        print_text(lay_out(f"○ It lets {count} through that would show on: {labels}"))
    return caught, len(wrong)


def show_suspect(level, number, **others):
    """Print the suspect of a form: a level, and a number of any size."""
    _suspect(level, number, **others).show()


def try_text(level, number, code, **others):
    """Try the input that a form's code sets, in variables with the names of the arguments."""
    suspect = _suspect(level, number, **others)
    takes = inspect.signature(suspect.task.right).parameters
    scope = inspect.unwrap(suspect.task.right).__globals__
    known = {n: v for n, v in scope.items() if n not in takes}
    suspect.try_input(
        **{n: v for n, v in variables_of(code, HuntError, known).items() if n in takes}
    )


def name_text(level, number, line, **others):
    """Say whether the line that a form gives is the wrong one."""
    if not line.strip().isdigit():
        raise HuntError(f"The line is {line!r}; give its number.")
    _suspect(level, number, **others).name_line(int(line))


def score_text(name, code):
    """Score the test that a form's code defines, a function with the name test."""
    test = variables_of(code, HuntError).get("test")
    if not callable(test):
        raise HuntError("There is no function test. Write: def test(f): and what must hold of f.")
    if name in tasks():
        print_text(f"f: {Suspect(tasks()[name], None).purpose()}")
    score_test(test, name)


def _suspect(level, number, chapters="18", **others):
    if int(level) not in LEVELS:
        raise HuntError(f"There is no level {level}; give one of {', '.join(map(str, LEVELS))}.")
    if not number.strip().isdigit():
        raise HuntError(f"The number is {number!r}; give 0 or more.")
    found = suspects(int(level), last_chapter=int(chapters))
    return found[int(number) % len(found)]


def _rejection(test, function):
    """Say why a reader's test rejects a function; "" if it accepts it."""
    try:
        with np.errstate(all="ignore"):
            said = test(function)
    except Exception as error:  # of a reader's test: each error is a rejection
        return f"{type(error).__name__} {' '.join(str(error).split())[:200]}".strip()
    return "" if bool(said) or not isinstance(said, bool | np.bool_) else "it returns False"


def _right_styles(task):
    """Return right functions in other styles, by what is other about them."""

    def with_roundoff(*given, **options):
        value = task.right(*given, **options)
        is_float = isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f"
        inputs = [np.ravel(x) for x in (*given, *options.values()) if isinstance(x, np.ndarray)]
        if not is_float or np.isin(value, np.concatenate([*inputs, [0, 1]])).all():
            return value  # it computes nothing that could be rounded
        return value * (1 + 2e-15)

    def in_fortran_order(*given, **options):
        value = task.right(*given, **options)
        return np.asfortranarray(value) if isinstance(value, np.ndarray) else value

    return {
        "the library's own": task.right,
        "its last digits come from another order of operations": with_roundoff,
        "its array lies in memory in another order": in_fortran_order,
    }


def _failing_case_labels(function, task):
    wrong = Answers(function, task.right, task.cases).wrong
    return [task.cases[index].label for index in wrong]


def _shape_text(value):
    """Return the shape of an array, a number itself, or the forms of several results."""
    if isinstance(value, np.ndarray):
        return f"{value.shape}"
    if isinstance(value, tuple):
        return " and ".join(map(_shape_text, value))
    return f"= {value}" if isinstance(value, int | float) else type(value).__name__


def _source_lines(function, edits, changed=None):
    """Return the lines of a function and of those it calls that edits name, edited or not.

    Parameters
    ----------
    changed : the edits that are made; None: all
    """
    function = inspect.unwrap(function)
    name = function.__name__.lstrip("_")
    named = pieces_of(edits, name)
    made = pieces_of(edits if changed is None else changed, name)
    called = functions_called(function)
    parts = [function, *(called[other] for other in named if other != name)]
    texts = [_bare_source(part, made.get(part.__name__.lstrip("_"), ())) for part in parts]
    return "\n\n\n".join(texts).splitlines()


def _bare_source(function, pieces):
    """Return the edited source of a function without decorators, docstring and requirements."""
    source = replaced(textwrap.dedent(inspect.getsource(function)), pieces, function.__name__)
    lines, node = source.splitlines(), ast.parse(source).body[0]
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    gone = {
        number
        for part in body
        if isinstance(part, ast.Expr) and ast.unparse(part).startswith("require")
        for number in range(part.lineno, part.end_lineno + 1)
    }
    for argument in (part for part in ast.walk(node.args) if isinstance(part, ast.arg)):
        argument.annotation = None
    head = f"def {node.name.lstrip('_')}({ast.unparse(node.args)}):"
    first = body[0].lineno if body else node.end_lineno
    ends = [part.end_lineno for part in body if isinstance(part, ast.Return)] or [len(lines)]
    rest = [line for n, line in enumerate(lines, 1) if first <= n <= ends[0] and n not in gone]
    return "\n".join([head, "\n".join(rest).lstrip("\n")])


def _changed_lines(right, wrong):
    """Return the numbers of the lines of the wrong source that differ, or lie beside a gap."""
    found = set()
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            found |= set(range(start + 1, end + 1)) or {start, start + 1}
    return found
