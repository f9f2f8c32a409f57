"""Measure how many ordinary hand-ins the grader takes a minute.

An ordinary class: a third has the solution, the others the known mistakes, and some nothing. No two
files have the same bytes, so each has a sandbox of its own.
"""

import json
import tempfile
import time
from pathlib import Path

from coursework.grader.assignment import read_notebook, set_exam, without_solutions
from coursework.grader.batch import as_bytes, grade_batch
from coursework.grader.handins import find_handins
from coursework.grader.records import read_record
from coursework.grader.release import wrong_handin
from experiments import measuring

FULL = {"heads": 1000, "pytorch": 50}
QUICK = dict.fromkeys(FULL, 4)
JOBS = 2
SEED = 1
PREPARED = False  # threads and memory are those of a grader as it runs


def ordinary_handins(exam):
    """Return the bytes of every kind of ordinary hand-in."""
    notebook = read_notebook(exam.name)
    wrong = [
        wrong_handin(exam.name, task, mistake)
        for task in exam.assignment.tasks
        for mistake in task.mistakes
    ]
    right = [as_bytes(notebook)] * (len(wrong) // 2)
    return [*right, *wrong, as_bytes(without_solutions(notebook))]


def write_handins(folder, exam, number):
    """Put so many hand-ins into a folder."""
    kinds = ordinary_handins(exam)
    for i in range(number):
        notebook = json.loads(kinds[i % len(kinds)]) | {"hand-in": i}
        (folder / f"student {i:04}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def grade_class(name, number):
    """Grade a class; return hand-ins a minute."""
    exam = set_exam(name, SEED)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        write_handins(Path(folder), exam, number)
        found = find_handins(folder)
        start = time.monotonic()
        batch = grade_batch(exam, found, out, jobs=JOBS)
        seconds = time.monotonic() - start
        records = [read_record(out, entry) for entry in batch["handins"]]
        assert len({entry["record"] for entry in batch["handins"]}) == number
        assert not any(record["problem"] for record in records), "no notebook"
    print(f"{name}: {number} hand-ins, {60 * number / seconds:.0f} a minute")
    rate = round(60 * number / seconds)
    return {"hand_ins": number, "jobs": JOBS, "per_minute": rate}


def machine():
    """Say where the hand-ins are graded: by several processes."""
    where = measuring.machine()
    return where | {"device": where["device"].replace("one core of", f"{JOBS} processes on")}


def main(classes, record):
    """Measure every class."""
    record["classes"] = {name: grade_class(name, number) for name, number in classes.items()}
