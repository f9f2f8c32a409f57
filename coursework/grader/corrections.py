"""Points and remarks that an instructor gives by hand, in a file that no command writes again.

RESULTS/corrections.csv has a line for each: a student, by the name of `grades.csv`, identifier or
folder of reports; a function, or nothing for the whole; the points, which replace the grader's, or
nothing to keep these; and a remark for the report. A student `every MISTAKE` is everyone who made
this known mistake and has no line of their own for it.
"""

import difflib
import re
from pathlib import Path
from typing import NamedTuple

from coursework.grader import GraderError
from coursework.grader.inert import one_line, read_table, safe_table_cell

CORRECTIONS = "corrections.csv"
COLUMNS = ("student", "function", "points", "remark")
EVERY = "every "
NUMBER = re.compile(r"\d{1,6}([.,]\d{1,6})?", re.ASCII)


class Correction(NamedTuple):
    """Points by hand, None where the grader's stay, and a remark for the report."""

    points: float | None
    remark: str


def folders_by_student_name(entries):
    """Return the folder's name, or several, of the students that go by each name.

    A student goes by the name of `grades.csv`, by an identifier, and by the folder of reports.
    """
    found = {}
    for entry in entries:
        names = entry["student"], safe_table_cell(entry["student"]), entry.get("identifier", "")
        for name in (*names, entry["id"]):
            found.setdefault(one_line(name).strip(), set()).add(entry["id"])
    found.pop("", None)
    return found


def read_corrections(out, entries, functions, who_made=None):
    """Return the corrections of some results: {folder of a student: {function: Correction}}.

    The function is "" for the whole.
    GraderError: with the number of each line that fits nothing.

    `out` : the folder
    `entries` : of the batch
    `functions` : names
    `who_made` : students by mistake, {name: folders of students}; None where nobody knows yet
    """
    found, faults, students = {}, [], folders_by_student_name(entries)
    path = Path(out).resolve() / CORRECTIONS
    rows = _numbered_rows(path) if path.exists() else []
    every = {row["student"]: set() for _, row in rows if row["student"].startswith(EVERY)}
    known = every if who_made is None else {EVERY + name: own for name, own in who_made.items()}
    students |= known
    for line, row in sorted(rows, key=lambda each: each[1]["student"] in known):
        if fault := _fault_of_row(row, entries, students, functions, found):
            faults.append(f"{path}, line {line}: {fault}")
            continue
        points = float(row["points"].replace(",", ".")) if row["points"] else None
        points = int(points) if points is not None and points.is_integer() else points
        for folder in students[row["student"]]:
            own = found.setdefault(folder, {})
            own.setdefault(row["function"], Correction(points, row["remark"]))
    if faults:
        raise GraderError("\n".join([*faults, "Nothing was written: correct this first."]))
    return found


def _fault_of_row(row, entries, students, functions, corrections):
    """Return what is wrong with a line, "" when nothing is."""
    student, function = row["student"], row["function"]
    one = not student.startswith(EVERY)
    if student not in students:
        known = {one_line(e[k]) for e in entries for k in ("student", "identifier") if e.get(k)}
        near = difflib.get_close_matches(student, sorted(known), cutoff=0.5) if one else ()
        offer = f"; the nearest: {', '.join(map(repr, near))}" if near else ""
        return f"there is no {'student' if one else 'known mistake'} {student!r}{offer}"
    fitting = students[student]
    if one and len(fitting) > 1:
        return f"{student!r} may be {' or '.join(sorted(fitting))}: give the folder's name"
    if function and function not in functions:
        return f"there is no function {function!r}: expected {', '.join(functions)}, or nothing"
    if not row["points"] and not row["remark"]:
        return "there are neither points nor a remark"
    if row["points"] and not NUMBER.fullmatch(row["points"]):
        return f"{row['points']!r} is not a number of points: expected one such as 7 or 2.5"
    if one and function in corrections.get(next(iter(fitting)), {}):
        return f"{student!r} has two lines for {function or 'the whole'}: keep one"
    return ""


def _numbered_rows(path):
    """Return (number of the line, row) for each line that is not empty."""
    lines = [[one_line(cell).strip() for cell in cells] for cells in read_table(path)]
    columns = [name.lower() for name in lines[0]]
    if sorted(filter(None, columns)) != sorted(COLUMNS):
        raise GraderError(f"{path} begins with other columns than {', '.join(COLUMNS)}")
    rows = [(i, dict(zip(columns, cells, strict=False))) for i, cells in enumerate(lines[1:], 2)]
    return [(i, row) for i, row in rows if any(row.values())]
