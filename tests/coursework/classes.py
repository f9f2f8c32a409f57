"""What tests make a class of: hand-ins, commands as an instructor types them, what comes out."""

import contextlib
import csv
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

from coursework.grader import batch
from coursework.grader.assignment import read_assignment, read_notebook, without_solutions
from coursework.grader.batch import as_bytes

NAME = "heads"
ROOT = Path(__file__).resolve().parents[2]
[TASK] = read_assignment(NAME).tasks
FUNCTION = TASK.function
ENDLESS = f"\n\n\ndef {FUNCTION}(*arguments):\n    while True:\n        pass"  # it never comes back
MOST_S = 600  # ends a test that hangs; nothing is judged by it


def hand_in(folder, student, *, right=True, mark="", more=""):
    """Put a right or an untouched notebook into the class's folder, with more in its last cell."""
    notebook = read_notebook(NAME) if right else without_solutions(read_notebook(NAME))
    notebook.cells[0].source += mark or student
    notebook.cells[-1].source += more
    (folder / f"{student}.ipynb").write_bytes(as_bytes(notebook))


def command(*arguments):
    """A command of the grader, as an instructor types it."""
    return [sys.executable, "-m", "coursework", *map(str, arguments)]


def table(out):
    """The lines of grades.csv, by student."""
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def grades(out):
    """The points of each student in grades.csv."""
    return {student: float(row["points"]) for student, row in table(out).items()}


class Seen(HTMLParser):
    """What a browser takes a page to hold."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))
        self.text += " | " * (tag == "td")

    def handle_data(self, data):
        self.text += data


def text_of(out, folder):
    """What a browser shows of a student's report, by its folder's name."""
    return Seen((out / "reports" / folder / "report.html").read_text("utf-8")).text


def counting(monkeypatch):
    """Count the hand-ins that are really graded."""
    graded = []
    grade = batch.grade
    monkeypatch.setattr(batch, "grade", lambda *a, **how: graded.append(a[1]) or grade(*a, **how))
    return graded


def files(out):
    """The content of every file of some results."""
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def processes():
    """The command lines of all processes, a line each."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            lines.append(path.read_bytes().decode(errors="replace").replace("\0", " "))
    return "\n".join(lines)


def wait_until(true, what):
    """Wait for something, longer than any load delays it.

    Parameters
    ----------
    true : called again and again, until it returns something true
    what : should come, as the message names it
    """
    deadline = time.monotonic() + MOST_S
    while not true():
        assert time.monotonic() < deadline, f"{what}: not within {MOST_S} seconds"
        time.sleep(0.05)
