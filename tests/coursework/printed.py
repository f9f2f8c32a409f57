"""What the book, its library and an assignment's own notebook print, tried as an answer."""

import ast
import contextlib
import importlib
import inspect
import io
import pkgutil
import resource
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import tutorial_lib
from coursework.grader.assignment import read_notebook, value_or_none
from coursework.grader.judge import points, results
from tests.chapters.pages import NAMES, code_cells, tags, written
from tests.patience import Late, limited
from tests.practice.rooms import MISTAKES, asked, wrong

POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
DEFINED = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef
MOST_MIB = 3072  # of addresses, beyond those in use: the sizes of one task explode in another
REPLY_MIB = 32


@cache
def of_library():
    """Return {name: function} of all public functions of `tutorial_lib`, found by walking it."""
    found = {}
    for module in pkgutil.walk_packages(tutorial_lib.__path__, "tutorial_lib."):
        try:
            space = vars(importlib.import_module(module.name))
        except ModuleNotFoundError as error:
            if error.name.startswith("tutorial_lib"):
                raise
            continue  # torch, triton or matplotlib is not installed
        found |= {
            f"{module.name}.{name}": value
            for name, value in space.items()
            if inspect.isfunction(value) and value.__module__ == module.name and name[0] != "_"
        }
    return found


@cache
def of_chapters():
    """Return {name: function} of all functions that chapters and reviews define in their cells."""
    return {
        f"{page}, cell {cell.id}: {name}": function
        for page in NAMES
        for cell, name, function in _defined(written(page), {})
    }


@cache
def of_checks():
    """Return {name: function} of what checks know: the right functions, and the edits of them."""
    found = {}
    for name, mistakes in MISTAKES.items():
        found[f"check_{name}: right"] = asked(name)[0]
        found |= {f"check_{name}: {m.name}": wrong(name, m) for m in mistakes}
    return found


def of_assignment(name, space):
    """Return {name: function} of what an assignment's notebook defines outside its solutions.

    Parameters
    ----------
    space : becomes the global names of these functions; the solution's are among them
    """
    defined = list(_defined(read_notebook(name), space))
    return {
        f"the assignment, cell {cell.id}: {function}": value
        for cell, function, value in defined
        if "solution" not in tags(cell)
    }


def _defined(notebook, space):
    """Yield (cell, name, function); of other statements only imports and constants are run."""
    for cell in code_cells(notebook):
        for statement in ast.parse(cell.source).body:
            if isinstance(statement, DEFINED) or _is_constant(statement):
                with contextlib.suppress(Exception):
                    exec(compile(ast.Module([statement], []), cell.id, "exec"), space)
                    if isinstance(statement, ast.FunctionDef):
                        yield cell, statement.name, space[statement.name]


def _is_constant(statement):
    if not isinstance(statement, ast.Assign):
        return False
    with contextlib.suppress(ValueError):
        ast.literal_eval(statement.value)
        return True
    return False


def ways(function, names):
    """Return the natural ways to call a function with a task's arguments.

    As they come, the first few of them, or those whose names it knows; an option of a known name
    is given and left out.

    Parameters
    ----------
    names : of the task's parameters

    Returns
    -------
    ways : pairs of a number k and {option: place}: `function(*arguments[:k], option=…)`
    """
    parameters = inspect.signature(function).parameters.values()
    own = [p for p in parameters if p.kind in POSITIONAL]
    least = sum(p.default is p.empty for p in own)
    most = len(names) if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(own)
    options = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    forced = {p.name for p in options if p.default is p.empty}
    known = {p.name: names.index(p.name) for p in options if p.name in names}
    by_name = {p.name: names.index(p.name) for p in own if p.name in names}
    found = []
    if forced <= known.keys():
        given = [known, {}] if known and not forced else [known]
        found = [(k, o) for k in range(max(1, least), min(most, len(names)) + 1) for o in given]
        needed = {p.name for p in own if p.default is p.empty}
        if needed <= by_name.keys() and list(by_name.values()) != list(range(len(by_name))):
            found.append((0, by_name | known))
    return found


def earned(function, way, tests, *, seconds, torch=False):
    """Return the points that a function gets when it is handed in for a task's tests.

    A function that is late in one test is taken to be late in all that follow. What a known mistake
    keeps is among the points.

    Parameters
    ----------
    way : one of `ways`
    tests : the smallest first
    seconds : limit of one call
    torch : whether arguments are tensors
    """
    replies = []
    with contextlib.suppress(Late):
        for test in tests:
            if test.task.is_test:
                verdicts = _within(seconds, value_or_none, (function, test.case), {"torch": torch})
                replies.append(("value", verdicts))
                continue
            arguments = [_given(argument, torch) for argument in test.case.arguments]
            replies.append(_reply(function, way, arguments, seconds))
    replies += [("not run", None)] * (len(tests) - len(replies))
    return points({"results": results(tests, replies)})


def size(test):
    """Return how many numbers a hidden test has."""
    return sum(map(np.size, (*test.case.arguments, test.expected)))


def _given(argument, torch):
    """Return an argument as the sandbox gives it; arrays are shared, so none may be changed."""
    if not isinstance(argument, np.ndarray):
        return argument
    if torch:
        import torch

        return torch.from_numpy(argument.copy())
    view = argument.view()
    view.setflags(write=False)
    return view


def _reply(function, way, arguments, seconds):
    """Return (kind, value) as the sandbox replies."""
    first, options = way
    given = arguments[:first], {name: arguments[place] for name, place in options.items()}
    try:
        value = _within(seconds, function, *given)
        value = np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
    except (Exception, SystemExit) as error:
        return "raised", type(error).__name__
    if value.dtype.kind not in "biufc":
        return "no array", None
    return ("too large", None) if value.nbytes > REPLY_MIB * 2**20 else ("value", value)


def _within(seconds, function, arguments, options):
    """Call a function, and end it when it takes too long."""
    with limited(seconds), np.errstate(all="ignore"):
        return function(*arguments, **options)


@contextlib.contextmanager
def kept_small():
    """Bound the memory of this process and keep it quiet while functions get what is not theirs."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MOST_MIB * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
