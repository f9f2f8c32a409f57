"""Write the notebook that students get, and show that an assignment is fit to be given out."""

import ast
import contextlib
import io
import math
import tempfile
from pathlib import Path

import nbformat
import numpy as np

from coursework.grader.assignment import (
    AssignmentError,
    read_assignment,
    read_notebook,
    solution_source,
    student_code_cells,
    value_or_none,
    without_solutions,
)
from coursework.grader.batch import as_bytes, points, prove, set_bench
from coursework.grader.judge import results
from coursework.grader.records import make_folder
from tools.chapters import page
from tutorial_lib.practice.mistake import pieces_of, replaced

LEAST, MOST, MOST_OF_CHAPTER = 4, 1, 2  # of ten points: for the idea, without it
CHAPTER = "the chapter's own function"
MOST_IDEAS = 2  # tests that ask what is new
HOW = """Write your code where this notebook says so, in as many cells as you like, and hand in \
this file. The grader runs all cells once, in the order in which you ran them. An error ends only \
its own cell, and a cell that takes too long is ended, too. Then the grader calls {functions} with \
{inputs}. Beside Python's own library it has {packages}, but no other package, no threads and no \
network; plots are not drawn, and a file is there only if a cell has written it. Save before you \
hand in, and do not rename a function. Warnings of NumPy cost nothing. If one mistake that the \
grader knows explains all that is lost, it may leave a share of the points."""
INPUTS = "inputs that you have not seen, and compares results to {digits} digits"
IMPLEMENTATIONS = "implementations that you have not seen, each after all cells were run anew"
TUTOR = Path(__file__).with_name("tutor.md").read_text(encoding="utf-8")  # for assistants


def student_version(chapter):
    """Return a chapter without its solutions; its link to Colab leads to `student/`."""
    notebook = without_solutions(nbformat.read(page(chapter).path, as_version=4))
    here, there = f"/blob/main/notebooks/{chapter}.ipynb", f"/blob/main/student/{chapter}.ipynb"
    notebook.cells[0].source = notebook.cells[0].source.replace(here, there)
    return notebook


def write_new(notebook, path):
    """Write a notebook where there is none yet: it could have somebody's work in it.

    Beside it stands what assistants are asked to do, which a teacher may have changed.
    """
    make_folder(path.parent, 0o777)
    asked = path.parent / "AGENTS.md"
    with contextlib.suppress(FileExistsError), asked.open("x", encoding="utf-8") as file:
        file.write(TUTOR)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(nbformat.writes(notebook) + "\n")
    except FileExistsError:
        raise FileExistsError(f"{path} is there already: move it away first") from None
    return path


def release(name, out):
    """Write an assignment without its solutions into a folder, its cells as if they were never run.

    Below its title stands how it is graded, which is the same in all of them.

    The grader runs cells in the order of their counts, and tells on which Python they ran, so these
    have to be the student's own. Return the notebook's path.
    """
    notebook = without_solutions(read_notebook(name))
    for cell in notebook.cells:
        for numbered in (cell, *cell.get("outputs", [])):
            if "execution_count" in numbered:
                numbered.execution_count = None
    notebook.metadata.language_info = {"name": "python"}
    title, _, more = notebook.cells[0].source.partition("\n")
    given = read_assignment(name)
    inputs = IMPLEMENTATIONS if all(task.is_test for task in given.tasks) else INPUTS
    how = HOW.format(
        functions=", ".join(f"`{task.function}`" for task in given.tasks),
        packages=f"{'PyTorch, ' * given.torch}NumPy, SciPy, einops and `tutorial_lib`",
        inputs=inputs.format(digits=round(-math.log10(min(task.rtol for task in given.tasks)))),
    )
    notebook.cells[0].source = f"{title}\n\n{how}\n{more}".strip()
    return write_new(notebook, Path(out) / f"{name}.ipynb")


def wrong_handin(name, task, mistake):
    """Return the untouched notebook with one mistake's function as the last cell."""
    notebook = without_solutions(read_notebook(name))
    notebook.cells.append(nbformat.v4.new_code_cell(_edited_source(name, task, mistake)))
    return as_bytes(notebook)


def _edited_source(name, task, mistake):
    """Return the solution with the edits of a mistake."""
    pieces, lines = pieces_of(mistake.edits, task.function), []
    statements = ast.parse(solution_source(name, [task.function])).body
    for statement in reversed(statements):
        text, own = ast.unparse(statement), getattr(statement, "name", "").lstrip("_")
        lines.insert(0, replaced(text, pieces.pop(own), own) if own in pieces else text)
    if pieces:
        raise AssignmentError(
            f"{name}, mistake {mistake.name}: edit functions of the solution; "
            f"{', '.join(pieces)} is not there, so it cannot be handed in"
        )
    return "\n\n\n".join(lines)


def check(exam, *, trusted=False, told=print):
    """Hand in the reference, the untouched notebook and every mistake, and measure the points.

    Return a list of what is wrong with the assignment, empty when it is fit.
    """
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        bench = set_bench(exam, folder, trusted=trusted)
        prove(bench)
        told(f"{exam.name}: reference {exam.out_of} of {exam.out_of}, untouched 0")
        for task in exam.assignment.tasks:
            faults += measure(exam, task, told)
            hidden = unseen(exam, task)
            faults += [_try_mistake(bench, task, m, hidden, told) for m in task.mistakes]
    return [fault for fault in faults if fault]


def _try_mistake(bench, task, mistake, hidden, told):
    """Hand in a mistake; say what is wrong with how it is taken, or ""."""
    record = bench.grade(wrong_handin(bench.exam.name, task, mistake))
    own = [r for r in record["results"] if r["function"] == task.function]
    named = ", ".join(sorted({r["mistake"] for r in own} - {""})) or "nothing"
    earned, of = points({"results": own}), sum(r["points"] for r in own)
    where = ", which no public cell shows" * (mistake.name in hidden)
    told(f"    {mistake.name}: {earned} of {of}, named {named}{where}")
    return "" if named == mistake.name else f"{mistake.name} is reported as {named}"


def measure(exam, task, told=print):
    """Tell what the idea of a task is worth, and what is earned without it.

    All of this is judged in this process: it is code of ours. Return a list of what a rule forbids.
    """
    tests = [test for test in exam.tests if test.task.function == task.function]
    of, ideas = sum(t.case.points for t in tests), [t.case.points for t in tests if t.case.idea]
    unearned = _points_without_idea(tests, np.random.default_rng(exam.seed))
    told(f"  {task.function}: its idea {sum(ideas)} of {of} points, in {len(ideas)} tests; without")
    told(f"    it: {', '.join(f'{what} {n}' for what, n in unearned.items())}")
    faults = [
        f"{task.function}: {what} earns {n} of {of} points, more than a tenth or, of the chapter's "
        "own function, a fifth: ask the idea in more of the cases"
        for what, n in unearned.items()
        if 10 * n > (MOST_OF_CHAPTER if what == CHAPTER else MOST) * of
    ]
    if ideas and (len(ideas) > MOST_IDEAS or 10 * sum(ideas) < LEAST * of):
        faults.append(
            f"{task.function}: the cases with idea=True are {len(ideas)} and worth {sum(ideas)} of "
            f"{of} points; make them one or two, worth four tenths or more"
        )
    return faults + [
        f"{mistake.name} keeps {mistake.keeps} points; the most is {of - sum(ideas)}, all but the "
        "idea's"
        for mistake in task.mistakes
        if mistake.keeps > of - sum(ideas)
    ]


def _points_without_idea(tests, rng):
    """Return {what: points} of answers that know nothing of a task, and of the chapter's own."""
    arguments = range(len(tests[0].case.arguments))
    answers = {
        "zeros": lambda test: np.zeros_like(test.expected),
        "ones": lambda test: np.ones_like(test.expected),
        "noise": lambda test: rng.standard_normal(test.expected.shape).astype(test.expected.dtype),
    }
    inputs = [lambda test, i=i: np.asarray(test.case.arguments[i]) for i in arguments]
    if chapter := tests[0].task.chapter:
        answers[CHAPTER] = lambda test: value_or_none(chapter, test.case, torch=test.torch)

    def earned(answer):
        values = [answer(test) for test in tests]
        replies = [("raised", "") if value is None else ("value", value) for value in values]
        return points({"results": results(tests, replies)})

    found = {what: earned(answer) for what, answer in answers.items()}
    return found | {"an input": max(map(earned, inputs))}


def unseen(exam, task):
    """Return the names of known mistakes with which the public cells print what is right.

    A function's source stands below its stub, and that of the task below every stub: no other may
    bring back a helper that it edits.
    """
    right = {name: solution_source(exam.name, [name]) for name in exam.functions}

    def printed(own):
        shown, names = io.StringIO(), {"__name__": "__main__"}
        for source in student_code_cells(exam.name):
            stubs = [name for name in right if f"def {name}(" in source]
            below = [right[name] for name in stubs if name != task.function] + [own] * bool(stubs)
            try:
                with contextlib.redirect_stdout(shown), np.errstate(all="ignore"):
                    exec("\n".join([source, *below]), names)
            except Exception as error:
                shown.write(f"{type(error).__name__}: {error}\n")
        return shown.getvalue()

    wrong = {m.name: _edited_source(exam.name, task, m) for m in task.mistakes}
    expected = printed(right[task.function])
    return [name for name, own in wrong.items() if printed(own) == expected]
