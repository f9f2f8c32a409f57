"""The roster of a class: who is in it, under which id, and whose a hand-in is.

A CSV file with a header, as Canvas's gradebook, Moodle's grading worksheet or a list of one's own
has it. A hand-in is of the one student whose name, login or id it bears; case, the form of an ü and
the order of first and last name do not matter, and nothing is guessed.
"""

import csv
import io
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from coursework.grader import GraderError
from coursework.grader.files import Handin
from coursework.grader.handins import AmbiguousClass, unique_labels
from coursework.grader.inert import name_list, plain, read_table, safe_table_cell
from coursework.grader.records import NOTHING, write_file

NAMES = ("student", "name", "full name")
IDS = ("id", "identifier", "sis user id", "sis login id")  # logins
IDS += ("github_username", "email", "email address", "integration id")
CANVAS = {"student", "id", "section"}
CANVAS_OWN = (*CANVAS, "sis user id", "sis login id", "integration id", "root account")
NOBODY = ("points possible", "student, test", "test student")  # lines of Canvas's own
MOODLE = {"grade": "points", "feedback comments": "notes"}  # what they are in `grades.csv`
OUTSIDE = "not in the roster"


class Student(NamedTuple):
    """A line of a roster."""

    name: str  # as reports have it; namesakes have the id beside it
    line: int  # its number in the file, from 1
    identifier: str  # the first cell of ids, logins and addresses that is not empty
    names: set  # what a hand-in can be called: Doe, Jane is Jane Doe and doejane; ids and logins
    numbers: set  # what a system can give as the student's number
    address: str  # the first cell with an @, "" for none
    late: bool = False  # whether Moodle's worksheet says so of what was handed in


class Roster(NamedTuple):
    """The students of a class, and the file they stand in."""

    path: Path
    table: list  # of rows, the header first
    header: list  # the names of the columns, in small letters
    students: list  # of Student


def read_roster(path):
    """Return the roster that stands in a CSV file.

    GraderError: no columns of names and ids, nobody in it, or a student twice.
    """
    table = read_table(Path(path))
    header = [" ".join(cell.casefold().split()) for cell in table[0]]
    named, ids = ([header.index(c) for c in known if c in header] for known in (NAMES, IDS))
    if not (named and ids):
        raise GraderError(
            f"{path} has the columns {name_list(table[0]) or 'none'}. A roster has a line of "
            f"column names with one of {', '.join(NAMES)} and one of {', '.join(IDS)}"
        )
    students = []
    for line, row in enumerate(table[1:], 2):
        name = plain(row[named[0]]).strip()
        cells = [cell for i in ids if (cell := plain(row[i]).strip())]
        if (name or cells) and not (set(header) >= CANVAS and name.casefold() in NOBODY):
            late = " late" in dict(zip(header, row, strict=False)).get("status", "")
            students.append(_student_of_row(name or cells[0], line, cells)._replace(late=late))
    return Roster(Path(path), table, header, _with_distinct_names(path, students))


def _student_of_row(name, line, cells):
    words, logins = _normalised_words(name), {cell.partition("@")[0] for cell in cells}
    names = {"".join(words[i:] + words[:i]) for i in range(len(words))}
    names |= {"".join(_normalised_words(cell)) for cell in (*cells, *logins)}
    found = [re.fullmatch(r"[^\d@]+(\d+)", cell) for cell in cells]
    numbers = {cell.casefold() for cell in cells} | {match[1] for match in found if match}
    address = next((cell for cell in cells if "@" in cell), "")
    return Student(name, line, cells[0] if cells else "", names - {""}, numbers, address)


def _normalised_words(text):
    """Return the words of a name in one form: letters, digits and marks, in lower case."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    return "".join(kept).split()


def _with_distinct_names(path, students):
    """Turn down a student who comes twice; give namesakes names of their own."""
    if not students:
        raise GraderError(f"{path} names no student: a roster has a line for each student")
    ids = Counter(s.identifier.casefold() for s in students)
    twice = [s for s in students if not s.identifier or ids[s.identifier.casefold()] > 1]
    if twice:
        lines = ", ".join(f"{plain(s.name)} (line {s.line})" for s in twice[:5])
        raise GraderError(
            f"{path} has students without an id of their own: {lines}. Each needs one line, one id"
        )
    names = unique_labels([(s.name, s.identifier) for s in students])
    return [s._replace(name=names[s.name, s.identifier]) for s in students]


def enrol(roster, handins, *, keep_unknown=False):
    """Give hand-ins the names and ids of a roster, and a hand-in to everyone who has none.

    AmbiguousClass: a hand-in fits no line of the roster, or several.

    `roster` : Roster
    `handins` : list of Handin
    `keep_unknown` : leave those who fit no line, or several, under the names that they have
    """
    fits = _students_by_handin_name(roster, handins)
    unknown = {name: students for name, students in fits.items() if len(students) != 1}
    if unknown and not keep_unknown:
        nobody = [name for name, students in unknown.items() if not students]
        why = [f"{len(nobody)} fit no line: {name_list(nobody)}"] if nobody else []
        for name in sorted({*unknown} - {*nobody})[:3]:
            lines = ", ".join(str(student.line) for student in unknown[name])
            why.append(f"{plain(name)} fits the lines {lines}")
        raise AmbiguousClass("roster", roster.path, "; ".join(why))
    taken = {student.name for student in roster.students}
    named = []
    for handin in handins:
        if handin.student not in unknown:
            named.append(_with_student_details(handin, *fits[handin.student]))
        else:
            more = f" ({OUTSIDE})" * (handin.student in taken)
            named.append(replace(handin, student=handin.student + more, identifier=""))
    came = {handin.student for handin in named}
    absent = [student for student in roster.students if student.name not in came]
    nothing = Handin(roster.path, problem=NOTHING)
    return named + [_with_student_details(nothing, student) for student in absent]


def _with_student_details(handin, student):
    own = {"student": student.name, "identifier": student.identifier, "address": student.address}
    return replace(handin, late=handin.late or student.late, **own)


def _students_by_handin_name(roster, handins):
    """Return the students that a hand-in's name can mean, by that name.

    A system's number decides between namesakes; where most hand-ins have the number that the
    roster has for their name, both come from one system, and another number is another student.
    """
    by_key = {}
    for student in roster.students:
        for key in student.names:
            by_key.setdefault(key, []).append(student)
    fits, exact = {}, {}
    for handin in handins:
        bare = handin.student.removesuffix(f" ({handin.identifier})")  # as namesakes have it
        keys = ("".join(_normalised_words(name)) for name in (bare, f"{bare} {handin.identifier}"))
        own = fits[handin.student] = next((by_key[key] for key in keys if key in by_key), [])
        if handin.identifier:
            number = handin.identifier.casefold()
            exact[handin.student] = [s for s in own if number in s.numbers]
    shared = 2 * sum(map(bool, exact.values())) > len(exact)
    return fits | {name: found for name, found in exact.items() if found or shared}


def roster_warnings(roster, rows):
    """Yield what to say of who is outside the roster, and of another maximum in Moodle."""
    if names := [row["student"] for row in rows if not row.get("identifier")]:
        told = f"{len(names)} graded outside the roster, and so in no file for the system"
        yield f"{told}: {name_list(names)}"
    of = str(max((row["of"] or 0 for row in rows), default=0))
    lines = [dict(zip(roster.header, c, strict=False)) for c in roster.table[1:] if any(c)]
    if found := {re.sub(r"[.,]0+$", "", line.get("maximum grade", of)) for line in lines} - {of}:
        told = f"The worksheet's maximum grade is {name_list(found)}, the assignment's {of}"
        yield f"{told}: correct it in Moodle before you upload moodle.csv"


def write_points(roster, rows, out, title="points"):
    """Write a roster of Canvas or Moodle with the points in it, for the system to take back.

    Return the file's path, None where the roster is of neither.
    GraderError: the roster itself would be replaced.

    `roster` : Roster
    `rows` : list of dict, the lines of `grades.csv`, each student's of the roster by `identifier`
    `out` : folder; the file is `canvas.csv` or `moodle.csv`
    `title` : the assignment; Canvas's column of it is the one with this name and a number
    """
    header = roster.header
    is_moodle = {"identifier", "grade"} <= {*header}
    if not (is_moodle or set(header) >= CANVAS):
        return None
    graded = {row["identifier"]: row for row in rows if row.get("identifier")}
    path, text = Path(out) / ("moodle.csv" if is_moodle else "canvas.csv"), io.StringIO(newline="")
    if path.resolve() == roster.path.resolve():
        raise GraderError(f"{path} is the roster, and would be replaced: move it out of {out}")
    lines = [(s.line - 1, graded[s.identifier]) for s in roster.students]
    filled = [list(row) for row in roster.table]
    for line, row in lines:
        for column in MOODLE.keys() & {*header}:
            filled[line][header.index(column)] = safe_table_cell(row[MOODLE[column]])
    filled = filled if is_moodle else _canvas_rows(roster, lines, title)
    csv.writer(text).writerows(filled)
    write_file(path, text.getvalue())
    return path


def _canvas_rows(roster, lines, title):
    """Return the columns that tell Canvas whose a line is, and one of points."""
    kept = [i for i, column in enumerate(roster.header) if column in CANVAS_OWN]
    names = roster.table[0]
    own = [cell for cell in names if re.fullmatch(rf"{re.escape(title)} \(\d+\)", cell, re.I)]
    of = max((row["of"] or 0 for _, row in lines), default=0)
    return [
        [*(names[i] for i in kept), own[0] if len(own) == 1 else title],
        ["    Points Possible", *[""] * (len(kept) - 1), of],
        *([*(roster.table[n][i] for i in kept), row["points"]] for n, row in lines),
    ]
