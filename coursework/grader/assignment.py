"""What an assignment asks, what is right, and which hidden cases and mistakes it knows.

An assignment is a folder of `assignments/`, named after its topic: `assignment.ipynb`, which
students get without its `solution` cells, `grading.py`, which holds `ASSIGNMENT`, and
`mistakes.txt`, with known mistakes as edits of the solution.
"""

import ast
import compileall
import copy
import hashlib
import importlib.util
import linecache
import shutil
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import nbformat
import numpy as np

import tutorial_lib
from coursework.grader import GraderError
from tutorial_lib.practice.mistake import Mistake, read_mistakes

FOLDER = Path(__file__).resolve().parents[1] / "assignments"
NOT_OFFERED = ("checks.py", "data", "elements", "figures", "practice")


class AssignmentError(GraderError):
    """An assignment does not exist, or contradicts itself."""


@dataclass(frozen=True)
class Implementation:
    """What a student's test is tried on: a right function, or one that has a mistake.

    It runs in the grader's own process, so it refuses arrays that would take much time or memory.
    """

    name: str  # of a right one its style, as a report says it
    source: str  # of one function, which needs no other name than `np`

    @cached_property
    def function(self):
        """The function."""
        space = {"np": np}
        exec(self.source, space)
        return list(space.values())[-1]


@dataclass(frozen=True)
class Case:
    """One hidden call and what it is worth."""

    label: str  # what sets the case apart, in words that give no value of it away
    arguments: tuple  # arrays and numbers, in the order of the parameters; or implementations
    points: int = 1  # for a right value
    idea: bool = False  # whether it asks what is new in the assignment


@dataclass(frozen=True)
class Task:
    """One function that students write."""

    function: str  # its name
    # makes the hidden cases from a random generator
    cases: Callable[[np.random.Generator], list[Case]]
    mistakes: tuple[Mistake, ...] = ()  # edits of the solution, which stand in `mistakes.txt`
    rtol: float = 1e-7  # how close a value is right
    atol: float = 1e-10  # and with this
    # what the chapter has already, as it would be handed in unchanged; takes the arguments
    chapter: Callable | None = None
    # nouns for the last axes of the result, such as ("head", "query", ""), of which reports
    # say which parts are right; "": say nothing of this axis
    axes: tuple[str, ...] = ()
    is_test: bool = False  # whether it should accept the right implementations of a case alone


@dataclass(frozen=True)
class Assignment:
    """The tasks of a notebook."""

    tasks: tuple[Task, ...]  # in the order of the notebook
    # functions of `tutorial_lib` that raise in the sandbox, since they would be the answer
    withheld: tuple[str, ...] = ()
    torch: bool = False  # whether hand-ins may import torch; arguments then are tensors


@dataclass(frozen=True)
class HiddenTest:
    """A case with what only the grader knows."""

    task: Task  # the task that it belongs to
    case: Case  # the hidden call
    expected: np.ndarray  # the right value
    right: Callable  # the task's right function
    torch: bool = False  # whether it takes tensors
    # tells it from one that could be judged in another way; its points count for nothing
    digest: str = ""

    @cached_property
    def wrong(self):
        """For each mistake of the task its value, None where it raises.

        Computed when a value is not right: with all mistakes, a long case takes seconds.
        """
        functions = [mistake.of(self.right) for mistake in self.task.mistakes]
        return tuple(value_or_none(f, self.case, torch=self.torch) for f in functions)


@dataclass(frozen=True)
class Exam:
    """An assignment with the hidden cases of one seed."""

    name: str
    seed: int
    assignment: Assignment
    tests: tuple[HiddenTest, ...]
    digest: str

    @property
    def functions(self):
        """The names of the functions that students write."""
        return [task.function for task in self.assignment.tasks]

    @property
    def out_of(self):
        """The points of a perfect hand-in."""
        return sum(test.case.points for test in self.tests)


def assignment_names():
    """Return the names of all assignments."""
    return sorted(path.parent.name for path in FOLDER.glob("*/grading.py"))


def assignment_folder(name):
    """Return the folder of an assignment; AssignmentError: there is none of this name."""
    if name not in assignment_names():
        raise AssignmentError(
            f"there is no assignment {name!r}. Choose one of: {', '.join(assignment_names())}."
        )
    return FOLDER / name


def read_notebook(name):
    """Return an assignment's notebook, solutions and all."""
    return nbformat.read(assignment_folder(name) / "assignment.ipynb", as_version=4)


def is_solution(cell):
    """Whether a cell of a notebook is kept from students."""
    return "solution" in cell.metadata.get("tags", [])


def without_solutions(notebook):
    """Return a copy of a notebook without its `solution` cells, the others numbered anew."""
    notebook = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if not is_solution(cell)]
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    for count, cell in enumerate(code, start=1):
        for numbered in (cell, *cell.outputs):
            if numbered.get("execution_count") is not None:
                numbered.execution_count = count
    return notebook


@cache
def student_code_cells(name):
    """Return the sources of the code cells that students are given."""
    cells = without_solutions(read_notebook(name)).cells
    return [cell.source.strip() for cell in cells if cell.cell_type == "code"]


def read_assignment(name):
    """Return what an assignment's `grading.py` defines, with the mistakes of the file beside it.

    AssignmentError: no such assignment; its file raises, or defines none.
    """
    path = assignment_folder(name) / "grading.py"
    spec = importlib.util.spec_from_file_location(f"grading_{name}", path)
    module = importlib.util.module_from_spec(spec)
    beside, file = path.with_name("mistakes.txt"), str(path)
    try:
        exec(spec.loader.source_to_code(path.read_bytes(), file), vars(module))  # no .pyc
        given = module.ASSIGNMENT
        written = read_mistakes(beside) if beside.exists() else {}
        if unknown := set(written) - {task.function for task in given.tasks}:
            names = ", ".join(sorted(unknown))
            raise AssignmentError(f"{beside.name} has mistakes of {names}, no task")
    except Exception as error:
        raise AssignmentError(f"{path}{_error_line(error, file)}: correct this first") from error
    tasks = (replace(task, mistakes=written.get(task.function, ())) for task in given.tasks)
    return replace(given, tasks=tuple(tasks))


def _error_line(error, file):
    """Return the line of one of our files that raised an error, and which error."""
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if step.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else (lines or [0])[-1]
    why = getattr(error, "msg", None) or error
    return f"{f', line {line}' if line else ''}: {type(error).__name__}: {why}"


def _solution_functions(name, tasks):
    """Return the right functions, from the notebook's solution cells; their source can be read."""
    path = assignment_folder(name) / "assignment.ipynb"
    space, file = {"__name__": f"solution_{name}"}, f"<solution of {name}>"
    try:
        source = solution_source(name, [task.function for task in tasks])
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        exec(compile(source, file, "exec"), space)
    except Exception as error:
        raise AssignmentError(f"{path}, a solution{_error_line(error, '')}") from error
    if missing := [task.function for task in tasks if task.function not in space]:
        raise AssignmentError(
            f"{path}: no cell with the tag `solution` defines {', '.join(missing)}, which "
            "grading.py names: give both one name"
        )
    for task in tasks:
        for mistake in task.mistakes:
            try:
                mistake.of(space[task.function])
            except (SyntaxError, ValueError) as error:
                raise AssignmentError(f"{name}, mistake {mistake.name}: {error}") from error
    return space


def solution_source(name, functions):
    """Return the source of an assignment's solution: the functions and what they need.

    These are functions of its `solution` cells, each below those that it calls, and imports.
    """
    imports, solved = [], []
    for cell in read_notebook(name).cells:
        body = ast.parse(cell.source).body if cell.cell_type == "code" else ()
        imports += [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
        solved += [s for s in body if isinstance(s, ast.FunctionDef) and is_solution(cell)]
    wanted, chosen = {*functions}, []
    for statement in reversed(imports + solved):
        aliases = getattr(statement, "names", ())
        bound = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        if wanted & (bound or {statement.name}):
            wanted |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            chosen.insert(0, statement)
    return "\n\n\n".join(map(ast.unparse, chosen)) + "\n"


def accepts(test, implementation):
    """Whether a test accepts an implementation: it raises no error and does not return False."""
    try:
        return np.asarray(test(implementation.function)).tolist() is not False
    except Exception:
        return False


def _call_on_copies(function, case, *, torch):
    """Call a function of ours on copies of a case's arguments, or a test on implementations."""
    arguments = copy.deepcopy(case.arguments)
    if torch:
        import torch

        tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
        value = function(*tensors)
        return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
    with np.errstate(all="ignore"):
        if isinstance(arguments[0], Implementation):
            return np.array([accepts(function, each) for each in arguments])
        return np.asarray(function(*arguments))


def value_or_none(function, case, *, torch):
    """Return the value of a function of ours for a case; None: it raises."""
    try:
        return _call_on_copies(function, case, torch=torch)
    except Exception:
        return None


def set_exam(name, seed):
    """Make the hidden cases of a seed, with their right values.

    AssignmentError: no such assignment; a right value holds what is not a finite number.
    """
    assignment = read_assignment(name)
    torch, right, tests = assignment.torch, _solution_functions(name, assignment.tasks), []
    for task in assignment.tasks:
        source = solution_source(name, [task.function])
        rng = np.random.default_rng([seed, zlib.crc32(f"{name} {task.function}".encode())])
        for case in task.cases(rng):
            expected = _call_on_copies(right[task.function], case, torch=torch)
            if expected.dtype.kind not in "biufc" or not np.isfinite(expected).all():
                raise AssignmentError(f"{name}, {case.label}: the right value is not finite")
            digest = _digest(assignment, task, case, source)
            tests.append(HiddenTest(task, case, expected, right[task.function], torch, digest))
    told = [(t.digest, t.case.label, t.case.points, t.case.idea) for t in tests]
    told += [(m.name, m.keeps) for task in assignment.tasks for m in task.mistakes]
    return Exam(name, seed, assignment, tuple(tests), _sha256(told))


def _digest(assignment, task, case, source):
    """Return what a test's result depends on, besides the hand-in and the limits."""
    arrays = [a if isinstance(a, np.ndarray) else repr(a) for a in case.arguments]
    inputs = [(a.dtype.str, a.shape, a.tobytes()) if hasattr(a, "shape") else a for a in arrays]
    mistakes = [(m.name, m.edits) for m in task.mistakes]
    judged = task.function, task.rtol, task.atol, task.axes, mistakes, source
    return _sha256([inputs, judged, assignment.withheld, assignment.torch])


def _sha256(facts):
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def offer_library(folder, assignment):
    """Copy `tutorial_lib` into a folder: without checks and practice, the withheld emptied."""
    source = Path(tutorial_lib.__file__).parent
    target = Path(folder) / "tutorial_lib"
    left_out = shutil.ignore_patterns("__pycache__", *NOT_OFFERED)
    shutil.copytree(source, target, ignore=left_out)
    found = set()
    for path in target.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in assignment.withheld:
                said = f"{node.name} is withheld in this assignment: write it yourself"
                node.body = ast.parse(f"raise NotImplementedError({said!r})").body
                found.add(node.name)
        path.write_text(ast.unparse(tree), encoding="utf-8")
    if missing := set(assignment.withheld) - found:
        raise AssignmentError(f"tutorial_lib has no {', '.join(sorted(missing))} to withhold")
    compileall.compile_dir(target, quiet=1)  # a sandbox cannot keep byte code
    for path in [Path(folder), *Path(folder).rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
