"""Hostile and broken files of a class: what each tries, what it earns, what its report then says.

A function gets the class's folder and the bytes of a right notebook; where it changes a notebook,
the dict of one.
"""

import itertools
import json
import os
from typing import NamedTuple

FILES = []  # of Attack
COUNTS = [float("nan"), -float("inf"), True, "<b>", [[]], {}, 10**400, -1, 1.5]
SOURCES = [
    "x = " + "+".join("1" * 100_000),
    "if x == 0:\n    y = 0\n" + "elif x == 1:\n    y = 1\n" * 5000,
    "x" + ".x" * 50_000,
    "lambda: " * 50_000 + "x",
    "x = [" + "for x in x " * 20_000 + "]",
]
READS = """
right = attend_at_scales


def attend_at_scales(Q, K, V):
    return right(Q, K, V) * ({} if "LAST" in globals() else {})
"""


class Attack(NamedTuple):
    """What a hand-in tries; `act` is the text of its graded cell, or puts files into a folder."""

    name: str
    points: int
    words: str
    act: object


def file(points, words):
    """Note a function as an attack."""

    def note(function):
        FILES.append(Attack(function.__name__, points, words, function))
        return function

    return note


def changed(points, words):
    """Note as an attack a notebook that a function changes, in a file of its name."""

    def note(function):
        def hand_in(folder, content):
            notebook = json.loads(content)
            function(notebook)
            (folder / f"{function.__name__}.ipynb").write_text(json.dumps(notebook))

        FILES.append(Attack(function.__name__, points, words, hand_in))
        return function

    return note


def code(source):
    """A code cell of a notebook's JSON."""
    return {"cell_type": "code", "source": source}


@file(0, "it is not a notebook")
def deep_json(folder, content):
    """Brackets within brackets, more than a parser can follow."""
    (folder / "deep.ipynb").write_bytes(b"[" * 1_000_000)


@file(0, "it is not a notebook")
def empty_file(folder, content):
    """A file with nothing in it."""
    (folder / "empty.ipynb").write_bytes(b"")


@file(0, "there is no .ipynb file")
def folder_as_file(folder, content):
    """A folder that is called a notebook."""
    (folder / "folder.ipynb").mkdir()


@file(10, "right")
def hidden_file(folder, content):
    """A notebook with nothing before its ending, which Jupyter opens and many screens hide."""
    (folder / "Nele").mkdir()
    (folder / "Nele" / ".ipynb").write_bytes(content)


@file(0, "it is not a notebook, its JSON cannot be read")
def invalid_json(folder, content):
    """A file that a download has cut off."""
    (folder / "cut off.ipynb").write_bytes(content[: len(content) // 2])


@file(0, "it is a link: hand in the file itself")
def link(folder, content):
    """A link to a file of the machine."""
    (folder / "link.ipynb").symlink_to("/etc/passwd")


@file(0, "there is no .ipynb file")
def link_to_a_folder(folder, content):
    """A link to a folder, in which others have their files."""
    (folder / "Folder of another").mkdir()
    (folder / "Folder of another" / "more").symlink_to(folder)


@file(0, "the file is larger than 20 MB")
def megabytes_500(folder, content):
    """A notebook of 500 MB."""
    (folder / "large.ipynb").write_bytes(content)
    os.truncate(folder / "large.ipynb", 500_000_000)


@file(10, "right")
def name_from_right_to_left(folder, content):
    """A name that screens write backwards, with letters that cannot be seen; the work is right."""
    (folder / "Mia\u202e0 fo 01\u200b\u2066\ufeff\u00ad.ipynb").write_bytes(content)


@file(10, "right")
def name_in_no_alphabet(folder, content):
    """A name that is not UTF-8; the work is right."""
    (folder / os.fsdecode(b"\xff\xfe.ipynb")).write_bytes(content)


@file(10, "right")
def name_that_is_a_formula(folder, content):
    """A name that a spreadsheet would take for a formula; the work is right."""
    (folder / "=HYPERLINK(A1).ipynb").write_bytes(content)


@file(10, "right")
def name_with_code(folder, content):
    """A name that is HTML, Markdown and a path; the work is right."""
    (folder / r"<script>alert(1)<\script>..\..\x|`[a](b)*.ipynb").write_bytes(content)


@file(0, "it is not a file")
def pipe(folder, content):
    """A named pipe, from which reading never ends."""
    os.mkfifo(folder / "pipe.ipynb")


@file(10, "right")
def time_beyond_all_years(folder, content):
    """A file from a year that no calendar has; the work is right."""
    (folder / "late").mkdir()
    for name, time in (("one.ipynb", -(2**40)), ("two.ipynb", 2**45)):
        (folder / "late" / name).write_bytes(content)
        os.utime(folder / "late" / name, (time, time))


@file(10, "There were 2 hand-ins; the one with the highest number counts: twice (1).ipynb")
def two_hand_ins(folder, content):
    """A wrong hand-in, and an hour later a right one, which counts."""
    for name, own, time in (("twice", b"{}", 1e9), ("twice (1)", content, 1e9 + 3600)):
        (folder / f"{name}.ipynb").write_bytes(own)
        os.utime(folder / f"{name}.ipynb", (time, time))


@changed(0, "its kernel is for a language other than")
def another_kernel(notebook):
    """A notebook for R."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = "attend <- function(Q, K, V) { V }"
    notebook["metadata"]["kernelspec"] = {"name": "ir", "language": "R", "display_name": "R"}


@changed(0, "there is no function")
def cells_of_no_kind(notebook):
    """Cells that are numbers, lists and texts of numbers."""
    notebook.clear()
    notebook |= {"cells": [1, None, [], code([1, 2]), {"cell_type": "code"}], "metadata": 3}


@changed(10, "right")
def counts_that_are_no_numbers(notebook):
    """Cells that were run NaN, minus infinity, true or "<b>" times; the work is right."""
    for cell, count in zip(notebook["cells"], itertools.cycle(COUNTS), strict=False):
        cell["execution_count"] = count
    notebook["nbformat"] = 4.5


@changed(10, "cannot be read as Python")
def deep_code(notebook):
    """An expression deeper than Python can read; the other cells count."""
    cell = dict(notebook["cells"][1], source="-" * 1_000_000 + "1", id="deep")
    notebook["cells"].insert(0, cell)


@changed(0, "there is no function attend_at_scales")
def missing_cells(notebook):
    """All code cells are gone."""
    notebook["cells"] = [c for c in notebook["cells"] if c["cell_type"] != "code"]


@changed(0, "cannot be read as Python")
def null_byte(notebook):
    """A null byte within the graded cell, which then cannot be read."""
    for cell in notebook["cells"]:
        if "def attend_at_scales" in "".join(cell["source"]):
            cell["source"] = "\0" + "".join(cell["source"])


@changed(10, "right")
def sum_without_end(notebook):
    """Cells that nobody needs, deeper than a reader of trees can follow; the others count."""
    for source in SOURCES:
        notebook["cells"].insert(0, dict(notebook["cells"][1], source=source))


@changed(10, "right")
def trial_that_ends_the_process(notebook):
    """A right function, and below it a trial that ends the process: not every cell can run."""
    notebook["cells"].append(code("import os\nos._exit(0)"))


@changed(0, "each number is the right one times one and the same factor")
def two_readings_right_in_the_first_try(notebook):
    """Answers rightly until a cell that its function does not need has run: wrong in Jupyter."""
    notebook["cells"] += [code(READS.format(2, 1)), code("LAST = 1")]


@changed(10, "right")
def two_readings_right_in_the_second_try(notebook):
    """Answers rightly once a cell that its function does not need has run, as it has in Jupyter."""
    notebook["cells"] += [code(READS.format(1, 2)), code("LAST = 1")]


@changed(0, "not done yet")
def untouched(notebook):
    """The notebook as it was given out."""
    cells = notebook["cells"]
    notebook["cells"] = [c for c in cells if "solution" not in c["metadata"].get("tags", [])]
