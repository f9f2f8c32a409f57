"""Write the notebook that students get, and show that an assignment is fit to be given out."""

import ast
import math
from pathlib import Path

import nbformat

from coursework.grader.assignment import (
    AssignmentError,
    read_assignment,
    read_notebook,
    solution_source,
    without_solutions,
)
from coursework.grader.batch import as_bytes, points, prove, set_bench
from coursework.grader.records import make_folder, temporary_folder
from tools.chapters import page
from tutorial_lib.practice.mistake import pieces_of, replaced

HOW = """Write your code where this notebook says so, in as many cells as you like, and hand in \
this file. The grader runs all cells once, in the order in which you ran them. An error ends only \
its own cell, and a cell that takes too long is ended, too. Then the grader calls {functions} with \
inputs that you have not seen, and compares results. Beside Python's own library it has \
{packages}, but no other package, no threads and no network; plots are not drawn, and a file is \
there only if a cell has written it. Save before you hand in, and do not rename a function. \
Warnings of NumPy cost nothing, and numbers need to be right to {digits} digits."""


def student_version(chapter):
    """Return a chapter without its solutions; its link to Colab leads to `student/`.

    Raises
    ------
    ContentsError : there is no such chapter
    """
    notebook = without_solutions(nbformat.read(page(chapter).path, as_version=4))
    here, there = f"/blob/main/notebooks/{chapter}.ipynb", f"/blob/main/student/{chapter}.ipynb"
    first = notebook.cells[0]
    first.source = first.source.replace(here, there)
    return notebook


def write_new(notebook, path):
    """Write a notebook where there is none yet.

    Raises
    ------
    FileExistsError : there is one, perhaps with somebody's work in it
    """
    make_folder(path.parent, 0o777)
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
    have to be the student's own.

    Returns
    -------
    path : the notebook
    """
    notebook = without_solutions(read_notebook(name))
    for cell in notebook.cells:
        for numbered in (cell, *cell.get("outputs", [])):
            if "execution_count" in numbered:
                numbered.execution_count = None
    notebook.metadata.language_info = {"name": "python"}
    title, _, more = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{_how(read_assignment(name))}\n{more}".strip()
    return write_new(notebook, Path(out) / f"{name}.ipynb")


def _how(assignment):
    """Return what students have to know of the grader."""
    functions = ", ".join(f"`{task.function}`" for task in assignment.tasks)
    digits = round(-math.log10(min(task.rtol for task in assignment.tasks)))
    packages = f"{'PyTorch, ' * assignment.torch}NumPy, SciPy, einops and `tutorial_lib`"
    return HOW.format(functions=functions, packages=packages, digits=digits)


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
    """Hand in the reference, the untouched notebook and every mistake.

    Returns
    -------
    faults : list of what is wrong with the assignment, empty when it is fit
    """
    with temporary_folder() as folder:
        bench = set_bench(exam, folder, trusted=trusted)
        prove(bench)
        told(f"{exam.name}: reference {exam.out_of} of {exam.out_of}, untouched 0")
        pairs = [(task, mistake) for task in exam.assignment.tasks for mistake in task.mistakes]
        faults = [_try_mistake(bench, task, mistake, told) for task, mistake in pairs]
    return [fault for fault in faults if fault]


def _try_mistake(bench, task, mistake, told):
    """Hand in a mistake; say what is wrong with how it is taken, or ""."""
    record = bench.grade(wrong_handin(bench.exam.name, task, mistake))
    own = [r for r in record["results"] if r["function"] == task.function]
    named = ", ".join(sorted({r["mistake"] for r in own} - {""})) or "nothing"
    earned, of = points({"results": own}), sum(r["points"] for r in own)
    told(f"  {mistake.name}: {earned} of {of}, named {named}")
    return "" if named == mistake.name else f"{mistake.name} is reported as {named}"
