"""The bug hunt: functions that look right and have one known mistake, and tests that are scored.

    suspect = hunt.suspects(level=2, last_chapter=8)[2]
    suspect.show()
    suspect.try_input(scores=np.array([[0.0, 800.0]]))  # or suspect.try_property("finite")
    suspect.name_line(3)
    hunt.score_test(test, "softmax")

The mistakes are those that the checks of the chapters name. Right and wrong functions are called on
the same inputs and compared by their values alone.
"""

import ast
import difflib
import inspect
import random
import re
import textwrap
from collections import Counter
from dataclasses import replace
from functools import cache, cached_property

import numpy as np

from tutorial_lib import checks
from tutorial_lib.practice.account import difference_text, lay_out, print_text, remedy
from tutorial_lib.practice.calls import Answers, Case, call, fault, same, type_text, variables_of
from tutorial_lib.practice.mistake import Edit, apply_edits, functions_called, pieces_of, replaced
from tutorial_lib.records import SITE

LEVELS = {
    1: "random numbers in these sizes show it",
    2: "some inputs show it, and others do not",
    3: "only an input with a mask, padding or a batch axis shows it",
    4: "only training shows it: outputs are right, and a gradient is wrong",
}
NARROW = ("mask", "padding", "batch")  # words of a case of level 3
ASIDE = re.compile(r"(Built|Introduced) in chapter \d+\.|\n\n(\w+\n--|Source:|>>>).*", re.DOTALL)
SMALL = 12  # entries of an array that a hint prints
ROOMS = tuple(f"ch{n:02}" for n in (*range(1, 9), *range(14, 23)))  # they need NumPy alone
KEYS = {"ids": -1, "scores": -1, "K_T": -1, "K": -2, "V": -2, "X": -2}  # input: axis of its keys
SHARED = ("E", "P", "W", "W_O", "b", "frequencies", "mask", "positions", "sink", "wavelengths")


class HuntError(ValueError):
    """An input, a line or a test that cannot be judged; says how to give one."""


class Suspect:
    """A function with one mistake in it; once an input or a property has shown it, `shown` is True.

    `misses` counts what did not show it, and each miss brings a further hint.

    Parameters
    ----------
    task : Task, what the check of the right function asks
    mistake : Mistake, the one that it has
    """

    def __init__(self, task, mistake):
        self.task, self.mistake, self.shown, self.misses = task, mistake, False, 0

    @cached_property
    def level(self):
        """The key of LEVELS that says which inputs show the mistake."""
        right, wrong = self.task.right, self.mistake.of(self.task.right)
        if chapter_of(self.task.name) == "08_gradients":
            pairs = ((call(wrong, case), call(right, case).value) for case in self.task.cases)
            return 1 if all(o.error or fault(o.value, expected) for o, expected in pairs) else 4
        if Answers(wrong, right, _ordinary_cases(self.task)).wrong:
            return 1
        return 3 if all(map(_is_narrow, _failing_cases(wrong, self.task))) else 2

    def purpose(self):
        """Say what the function is for, and what it takes and returns in the first case."""
        text = ASIDE.sub("", inspect.getdoc(inspect.unwrap(self.task.right)))
        gives = _shape_text(call(self.task.right, self.task.cases[0]).value)
        takes = _inputs_text(self.task.cases[0])
        return f"{' '.join(text.split())} {self.task.name}({takes}) returns {gives}."

    def numbered_lines(self):
        """Return the numbered lines of the function, and the numbers of the wrong ones.

        Wrong are those of the smallest repair.
        """
        lines = _source_lines(self.task.right, self.mistake.edits)
        right = _source_lines(self.task.right, self.mistake.edits, ())
        numbered = "\n".join(f"{number:2}  {line}" for number, line in enumerate(lines, 1))
        spans = [change[2:] for change in self._smallest_repair(right, lines)]
        return numbered, _numbers_of(spans, lines)

    def _smallest_repair(self, right, lines):
        """Return the changes that have to be taken back: to take back all others is not enough."""
        changes = _changes(right, lines)
        others = {change: [other for other in changes if other != change] for change in changes}
        return [c for c, rest in others.items() if not self._is_repaired(right, lines, rest)]

    def _is_repaired(self, right, lines, changes):
        """Whether the function is right in all cases once some of its changes are taken back."""
        repaired = list(lines)
        for a, b, c, d in reversed(changes):
            repaired[c:d] = right[a:b]
        function = _function_of(self.task.right, "\n".join(repaired))
        return not _failing_cases(function, self.task)

    def show(self):
        """Print what the function should do, and its lines with their numbers."""
        print_text(f"{lay_out(self.purpose())}\n\n{self.numbered_lines()[0]}\n")
        print_text("It has one mistake. On which input does it show?")
        if names := properties_of(self.task):
            print_text(lay_out(f"The right function has these properties: {'; '.join(names)}"))

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
        if wrong.error or not same(wrong.value, right.value):
            self.shown, pair = True, (wrong.value, right.value)
            seen = wrong.error or fault(*pair) or difference_text(*pair)
            print_text(lay_out(f"✓ This input shows it: {seen}"))
        else:
            self._print_miss("Both give the same on this input")

    def try_property(self, name):
        """Say in which case this function lacks one of the `properties_of` its task, if it does."""
        if name not in (names := properties_of(self.task)):
            known = " or ".join([*map(repr, names), "an input"])
            raise HuntError(f"{name!r} is no property of a right {self.task.name}; try {known}.")
        right, wrong = self.task.right, self.mistake.of(self.task.right)
        seen = {case.label: _breach(name, wrong, case, right) for case in self.task.cases}
        if label := next(filter(seen.get, seen), ""):
            self.shown = True
            print_text(lay_out(f"✓ It fails “{name}” in the case “{label}”: {seen[label]}"))
        else:
            self._print_miss(f"“{name}” holds in all {len(seen)} cases of the chapter's check")

    def check_found(self, evidence, line):
        """Judge a dict of arguments or the name of a property, and then a line; None: not yet."""
        if evidence is None:
            print_text(f"○ {self.task.name}: not done yet (no input and no property).")
        else:
            self.try_property(evidence) if isinstance(evidence, str) else self.try_input(**evidence)
            self.name_line(line)

    def _print_miss(self, said):
        """Print what did not show the mistake, with another hint after each of the first misses."""
        self.misses += not self.shown
        shown = _failing_cases(self.mistake.of(self.task.right), self.task)
        least = min(shown, key=lambda case: sum(map(np.size, case.inputs.values())))
        sizes, entries = _inputs_text(least), _inputs_text(least, _entries_text)
        usual = "take random numbers in several rows, heads and tokens, with no two lengths equal"
        hints = [usual if self.level == 1 else f"it shows with {sizes}: {least.label}"]
        hints += [f"it shows with {entries}"] * (self.level == 1 or entries != sizes)
        hints += [f"the repair begins in {self._place_text()}"]
        hint = [] if self.shown else hints[self.misses - 1 : self.misses]
        print_text(lay_out(f"○ {said}", *(f"A hint: {text}" for text in hint)))

    def _place_text(self):
        """Say where in the body of the function the repair begins."""
        text, wrong = self.numbered_lines()
        lines = [line[4:] for line in text.splitlines()]
        body = [n for n, line in enumerate(lines, 1) if line and (n in wrong or line[:4] != "def ")]
        if len(body) < 4:
            return f"one of the {len(body)} lines of the body" if len(body) > 1 else "the only line"
        before = sum(number < min(wrong) for number in body)
        return f"the {'first' if 2 * before < len(body) else 'second'} half of the body"

    def _case(self, given):
        takes = inspect.signature(self.task.right).parameters
        if unknown := sorted(set(given) - set(takes)):
            asked = f"give {', '.join(takes)} by name"
            raise HuntError(f"{self.task.name} has no argument {', '.join(unknown)}; {asked}.")
        if lacking := [n for n in takes if takes[n].default is takes[n].empty and n not in given]:
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
        if not isinstance(number, int) or not 1 <= number <= len(lines.splitlines()):
            raise HuntError(f"There is no line {number}: the last is {len(lines.splitlines())}.")
        if not self.shown:
            print_text("○ First show it by an input or by a property; then name the line.")
        elif number in wrong:
            name, end = self.task.name, remedy(self.mistake)
            chapter = f"It is explained in {SITE}notebooks/{chapter_of(name)}.html"
            *most, last = map(str, sorted(wrong))
            several = [f"In our repair lines {', '.join(most)} and {last} change together"] * bool(
                most
            )
            print_text(lay_out(f"✓ {name}: {self.mistake.says}", *several, *end, chapter))
        else:
            print_text(f"○ Line {number} is as it should be.")


@cache
def tasks():
    """Return what the checks of chapters with NumPy alone ask of documented functions, by name."""
    found = {}
    for name in dir(checks):
        check = getattr(checks, name)
        if hasattr(check, "task") and check.__module__.split(".")[2].startswith(ROOMS):
            task = check.task()
            plain = (np.ndarray, bool, int, float)
            values = [value for case in task.cases for value in case.inputs.values()]
            given = [x for v in values for x in (v if isinstance(v, tuple) else (v,))]
            if inspect.getdoc(task.right) and all(isinstance(value, plain) for value in given):
                found[task.name] = task
    return found


@cache
def suspects(level=None, *, last_chapter=22):
    """Return the suspects of chapters up to one, of one level or of all, in a mixed order."""
    names = [name for name in tasks() if int(chapter_of(name)[:2]) <= last_chapter]
    found = [Suspect(tasks()[name], m) for name in names for m in tasks()[name].mistakes if m.edits]
    random.Random(17).shuffle(found)
    return tuple(suspect for suspect in found if level is None or suspect.level == level)


def suspect(name, number):
    """Return the suspect that has the mistake of a number, from 1, of a function."""
    return Suspect(tasks()[name], tasks()[name].mistakes[number - 1])


def properties_of(task):
    """Return the properties that a right function has in all its cases, and a wrong one lacks."""
    wrong = [mistake.of(task.right) for mistake in task.mistakes]

    def breaches(name, function):
        return (_breach(name, function, case, task.right) for case in task.cases)

    held = [n for n in PROPERTIES if all(seen == "" for seen in breaches(n, task.right))]
    return [n for n in held if any(any(breaches(n, function)) for function in wrong)]


def chapter_of(name):
    """Return the chapter that checks a function, such as "03_attention_weights"."""
    return getattr(checks, f"check_{name}").__module__.split(".")[2].removeprefix("ch")


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
    HuntError : an unknown name, or a test that returns anything else
    """
    if name not in tasks():
        raise HuntError(f"{name!r} is none of the functions: {', '.join(tasks())}.")
    task = tasks()[name]
    wrong = [mistake.of(task.right) for mistake in task.mistakes]
    for style, right in _right_styles(task).items():
        if why := _rejection(test, right):
            tell = "Allow for rounding, as np.allclose does and ==, <= and >= do not"
            is_compared = why.startswith(("it returns", "AssertionError"))
            tells = [tell] * ("digits" in style and is_compared)
            print_text(lay_out(f"✗ It rejects a right function, {style}: {why}", *tells))
            return 0, len(wrong)
    missed = [function for function in wrong if not _rejection(test, function)]
    caught = len(wrong) - len(missed)
    print_text(f"{'✓' if not missed else '○'} It catches {caught} of {len(wrong)} known mistakes.")
    shown = Counter(tuple(c.label for c in _failing_cases(f, task)) for f in missed)
    for labels, count in shown.items():
        more = [f"… and {len(labels) - 3} more"] * (len(labels) > 3)
        listed = "; ".join([*labels[:3], *more])
        print_text(lay_out(f"○ It lets {count} through that would show on: {listed}"))
    return caught, len(wrong)


def show_suspect(level, number, **others):
    """Print the suspect of a form: a level, and a number of any size."""
    _suspect(level, number, **others).show()


def claim_text(level, number, claim, **others):
    """Try the property of a form."""
    _suspect(level, number, **others).try_property(claim)


def try_text(level, number, code, **others):
    """Try the input that a form's code sets, in variables with the names of the arguments."""
    suspect = _suspect(level, number, **others)
    takes = inspect.signature(suspect.task.right).parameters
    scope = inspect.unwrap(suspect.task.right).__globals__
    known = {n: v for n, v in scope.items() if n not in takes}
    given = {n: v for n, v in variables_of(code, HuntError, known).items() if n in takes}
    suspect.try_input(**given)


def name_text(level, number, line, **others):
    """Say whether the line that a form gives is the wrong one."""
    if not line.strip().isdigit():
        raise HuntError(f"The line is {line!r}; give its number.")
    _suspect(level, number, **others).name_line(int(line))


def score_text(name, code):
    """Score the test that a form's code defines, a function with the name test."""
    print_text(lay_out(f"f: {Suspect(tasks()[name], None).purpose()}"))
    test = variables_of(code, HuntError).get("test")
    if not callable(test):
        raise HuntError("There is no function test. Write: def test(f): and what must hold of f.")
    score_test(test, name)


def _suspect(level, number, chapters="22", **others):
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
    if said is not None and not isinstance(said, bool | np.bool_):
        end = "; np.all(…) turns an array into one" if isinstance(said, np.ndarray) else ""
        raise HuntError(f"Your test returns {type_text(said)}; expected True, False or None{end}.")
    return "" if said is None or said else "it returns False"


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


def _failing_cases(function, task):
    wrong = Answers(function, task.right, task.cases).wrong
    return [task.cases[index] for index in wrong]


def _is_narrow(case):
    """Whether a case has a mask, padding or a batch axis."""
    is_masked = any(case.options.get(name, False) is not False for name in ("mask", "causal"))
    return is_masked or any(word in case.label for word in NARROW)


def _ordinary_cases(task):
    """Return the first case with random entries, unpadded and without what may be left out.

    Entries that cannot be just any numbers stay as they are. No case: the options are needed.
    """
    first, rng, takes = task.cases[0], np.random.default_rng(17), inspect.signature(task.right)
    needed = {n: v for n, v in first.options.items() if takes.parameters[n].default is takes.empty}
    plain, entries = dict(first.arguments), {}
    for name, array in _arrays(first, first.arguments).items():
        if name == "is_token":
            plain[name] = np.ones_like(array)
        elif name in ("ids", "target"):
            plain[name] = np.maximum(array, first.inputs.get("pad_id", -1) + 1)
        elif array.dtype.kind == "f":
            entries[name] = rng.normal(size=array.shape).astype(array.dtype)
    cases = [replace(first, arguments=plain | new, options=needed) for new in (entries, {})]
    return tuple(case for case in cases if not call(task.right, case).error)[:1]


def _result(function, case, changed=()):
    """Return what a function gives in a case with some inputs changed or added."""
    options = dict(changed)
    arguments = {name: options.pop(name, value) for name, value in case.arguments.items()}
    outcome = call(function, replace(case, arguments=arguments, options=case.options | options))
    if outcome.error:
        raise HuntError(outcome.error)
    return outcome.value


def _arrays(case, names):
    return {n: v for n, v in case.inputs.items() if n in names and isinstance(v, np.ndarray)}


def _rows_sum_to_1(function, case):
    weights, axis = _result(function, case), case.inputs.get("axis", -1)
    visible = np.broadcast_to(case.inputs.get("mask", True), weights.shape).any(axis=axis)
    return weights.sum(axis=axis), 1.0 * visible


def _no_leak(function, case):
    takes, given = inspect.signature(function).parameters, case.inputs
    if any(name in takes and not np.any(given.get(name, False)) for name in ("mask", "causal")):
        return None
    before = _result(function, case)
    rows, S = np.arange(before.shape[-2]), before.shape[-1]
    if "T" in given:  # the result is a mask
        return before & ~np.tri(len(rows), S, S - len(rows), dtype=bool), before & False
    changed = {name: value.copy() for name, value in _arrays(case, KEYS).items()}
    for name, value in changed.items():
        last = np.moveaxis(value, KEYS[name], 0)[-1:]
        last[...] = value.max() - last
    hidden = ~given["mask"][..., -1] if "mask" in given else rows < rows[-1]
    return np.where(hidden[..., None], _result(function, case, changed), before), before


def _last_query_by_itself(function, case):
    given, takes = case.inputs, inspect.signature(function).parameters
    changed = {n: v[..., -1:, :] for n, v in _arrays(case, ("Q", "scores", "mask")).items()}
    if T := given.get("T"):
        changed = {"T": 1, "S": given.get("S", T), "length": given.get("length", 0) + T - 1}
    last = np.take(_result(function, case), [-1], axis=-1 if "is_token" in given else -2)
    return _result(function, case, {n: v for n, v in changed.items() if n in takes}), last


def _any_chunk_size(function, case):
    large = dict.fromkeys({"size", "block"} & case.inputs.keys(), 99)
    return _result(function, case, large), _result(function, case)


def _one_by_one(function, case):
    pairs = {n: (v, np.flip(v, -1)) for n, v in _arrays(case, case.inputs.keys() - SHARED).items()}
    alone = [_result(function, case, {n: pair[i] for n, pair in pairs.items()}) for i in (0, 1)]
    batch = {name: np.stack(pair) for name, pair in pairs.items()}
    return _result(function, case, batch), np.stack(alone)


PROPERTIES = {  # each returns (what the function gives, what it should give); None: not asked
    "rows sum to 1": _rows_sum_to_1,
    "finite": lambda f, case: ((finite := np.isfinite(_result(f, case))), finite | True),
    "no leak": _no_leak,
    "cached = uncached": _last_query_by_itself,
    "any chunk size": _any_chunk_size,
    "batch = one by one": _one_by_one,
}
TWO_WAYS = ("cached = uncached", "any chunk size", "batch = one by one")  # neither is the right one


def _breach(name, function, case, right):
    """Say how a function lacks a property in a case: "" it does not, None that cannot be asked."""
    try:
        pair = PROPERTIES[name](function, case)
    except HuntError as error:  # the function fails where the right one does not
        return str(error)
    except Exception:  # of the property, which takes results of the right shape
        return _shape_evidence(function, case, right) or None
    if pair is None or same(*pair):
        return ""
    said = fault(*pair) or difference_text(*pair)
    said = said.replace("and should be", "and, the other way,") if name in TWO_WAYS else said
    return _shape_evidence(function, case, right) or said


def _shape_evidence(function, case, right):
    other = fault(call(function, case).value, call(right, case).value)
    return f"{other}; that alone shows the bug" if other else ""


def _shape_text(value):
    """Return the shape of an array, a number itself, or the forms of several results."""
    if isinstance(value, np.ndarray):
        return f"{value.shape}"
    if isinstance(value, tuple) and not isinstance(value[0], int):
        return " and ".join(map(_shape_text, value))
    return f"= {value}"


def _entries_text(value):
    """Return the entries of a small array, or the shape of a larger one and its range."""
    if not isinstance(value, np.ndarray):
        return _shape_text(value)
    is_float = value.dtype.kind == "f"
    if value.size <= SMALL:
        return f"= {(np.round(value, 3) if is_float else value).tolist()}"
    return _shape_text(value) + f" from {value.min():.1f} to {value.max():.1f}" * is_float


def _inputs_text(case, text_of=_shape_text):
    return ", ".join(f"{name} {text_of(value)}" for name, value in case.inputs.items())


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


def _function_of(right, text):
    """Return a function whose source is given, and that of functions it calls, as it is shown."""
    right = inspect.unwrap(right)
    known, edits = functions_called(right) | {right.__name__.lstrip("_"): right}, []
    for part in ast.parse(text).body:
        function, new = known[part.name], ast.get_source_segment(text, part)
        old = textwrap.dedent(inspect.getsource(function))
        edits.append(Edit(part.name, old, new.replace(part.name, function.__name__, 1)))
    return apply_edits(right, edits)


def _changes(right, wrong):
    """Return what differs, as (start, end) of the right lines and (start, end) of the wrong ones.

    Lines in the place of as many others are one change each, so that each can be taken back alone.
    """
    changes = []
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "replace" and b - a == d - c:
            changes += [(a + i, a + i + 1, c + i, c + i + 1) for i in range(b - a)]
        elif kind != "equal":
            changes.append((a, b, c, d))
    by_place = [(n, n + 1) * 2 for n, other in enumerate(map(str.__ne__, right, wrong)) if other]
    is_exchange = len(right) == len(wrong) and len(by_place) <= len(changes)
    return by_place if is_exchange else changes


def _numbers_of(spans, lines):
    """Return the numbers of the lines of some spans; where all are gaps, of those beside them."""
    inside = {number for start, end in spans for number in range(start + 1, end + 1)}
    beside = {number for start, _ in spans for number in (start, start + 1)}
    found = inside or {n for n in beside if not lines[n - 1].startswith("def ")}
    return {number for number in found if lines[number - 1].strip()}
