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
from dataclasses import dataclass, replace
from pathlib import Path

from coursework.grader.files import Handin, HandinsError, Question
from coursework.grader.inert import in_table, listed, plain
from coursework.grader.owners import labels
from coursework.grader.records import put

NAMES = ("student", "name", "full name", "student name", "display name", "vollständiger name")
FIRST = ("first name", "given name", "vorname")
LAST = ("last name", "surname", "family name", "nachname")
IDS = ("id", "identifier", "student id", "sid", "student number", "id number", "id-nummer")
IDS += ("matriculation number", "matrikelnummer", "orgdefinedid")
LOGINS = ("sis user id", "sis login id", "login id", "login", "username", "anmeldename")
LOGINS += ("github_username", "email", "email address", "e-mail", "e-mail-adresse")
LOGINS += ("integration id",)
CANVAS = {"student", "id", "section"}
MOODLES = (  # its columns of ids, of grades and of comments, in English and German
    ("identifier", "grade", "feedback comments"),
    ("id", "bewertung", "feedback als kommentar"),
)
TOLD = ("points", "notes")  # what grades and comments are in `grades.csv`
CANVAS_OWN = (*CANVAS, "sis user id", "sis login id", "integration id", "root account")
NOBODY = ("points possible", "student, test", "test student")  # lines of Canvas's own
OUTSIDE = "not in the roster"
LATE = re.compile(r" - [^-]* late(?: - |$)")  # in a Moodle worksheet's status


class RosterError(HandinsError):
    """A file is no roster; the message says what it should have."""


@dataclass(frozen=True)
class Student:
    """A line of a roster.

    Parameters
    ----------
    name : as reports have it; namesakes have the id beside it
    identifier : text of the column of ids
    line : its number in the file, from 1
    keys : what a hand-in of the student can be called
    numbers : what a system can give as the student's number
    address : of e-mail, "" for none
    late : whether it says so
    """

    name: str
    identifier: str
    line: int
    keys: frozenset
    numbers: frozenset
    address: str
    late: bool


@dataclass(frozen=True)
class Roster:
    """The students of a class, and the file they stand in.

    Parameters
    ----------
    path : of the file
    table : list of rows, the header first
    students : list of Student
    """

    path: Path
    table: list
    students: list


def read_roster(path):
    """Return the roster that stands in a CSV file.

    Raises
    ------
    RosterError : no columns of names and ids, nobody in it, or a student twice
    """
    path = Path(path)
    table = _table(path)
    header = [_column(cell) for cell in table[0]]
    named = [[header.index(c)] for c in NAMES if c in header]
    named += [
        [header.index(f), header.index(n)] for f in FIRST for n in LAST if {f, n} <= {*header}
    ]
    ids = [header.index(c) for c in (*IDS, *LOGINS) if c in header]
    status = header.index("status") if "status" in header else None
    if not (named and ids):
        raise RosterError(
            f"{path} has the columns {listed(table[0]) or 'none'}. A roster has a line of column "
            f"names with one of {', '.join(NAMES)} and one of {', '.join((*IDS, *LOGINS))}"
        )
    students = []
    for line, row in enumerate(table[1:], 2):
        name = plain(" ".join(row[i] for i in named[0])).strip()
        cells = [cell for i in ids if (cell := plain(row[i]).strip())]
        canvas = set(header) >= CANVAS and name.casefold() in NOBODY
        if (name or cells) and not canvas:
            late = status is not None and bool(LATE.search(row[status]))
            students.append(_student(name or cells[0], cells, line, late))
    return Roster(path, table, _distinct(path, students))


def _column(cell):
    return " ".join(cell.casefold().split())


def _table(path):
    """Return the cells of a file, each row as long as the header."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RosterError(f"{path} cannot be read: {error.strerror}") from None
    text = _text(content)
    first = text.lstrip("\r\n").partition("\n")[0]
    sign = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=sign))
    except csv.Error as error:
        raise RosterError(f"{path} is not a CSV file: {error}") from None
    if not rows:
        raise RosterError(f"{path} is empty: a roster has a line of column names, and students")
    width = len(rows[0])
    return [[*row, *[""] * (width - len(row))] for row in rows]


def _text(content):
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:  # Excel's "CSV" in western Europe
        return content.decode("cp1252", "replace")


def _student(name, cells, line, late):
    """Return the student of a line; the first of the cells is the id."""
    keys = {_key(cell) for cell in cells} | _turned(name)
    keys |= {_key(cell.partition("@")[0]) for cell in cells if "@" in cell}
    numbers = {cell.casefold() for cell in cells}
    numbers |= {match[1] for cell in cells if (match := re.fullmatch(r"[^\d@]+(\d+)", cell))}
    address = next((cell for cell in cells if "@" in cell), "")
    own = (*cells, "")[0], line, frozenset(keys - {""}), frozenset(numbers), address, late
    return Student(name, *own)


def _words(text):
    """Return the words of a name in one form: letters, digits and marks, in lower case."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    return "".join(kept).split()


def _key(text):
    return "".join(_words(text))


def _turned(name):
    """Return a name's words joined, from each word on: Doe, Jane is Jane Doe and doejane."""
    words = _words(name)
    return {"".join(words[i:] + words[:i]) for i in range(len(words))}


def _distinct(path, students):
    """Turn down a student who comes twice; give namesakes names of their own."""
    if not students:
        raise RosterError(f"{path} names no student: a roster has a line for each student")
    ids = Counter(s.identifier.casefold() for s in students)
    twice = [s for s in students if not s.identifier or ids[s.identifier.casefold()] > 1]
    if twice:
        said = ", ".join(f"{plain(s.name)} (line {s.line})" for s in twice[:5])
        raise RosterError(
            f"{path} has students without an id of their own: {said}. Each needs one line, one id"
        )
    names = labels([(s.name, s.identifier) for s in students])
    return [replace(s, name=names[s.name, s.identifier]) for s in students]


def enrol(roster, handins, *, keep_unknown=False):
    """Give hand-ins the names and ids of a roster, and a hand-in to everyone who has none.

    Parameters
    ----------
    roster : Roster
    handins : list of Handin
    keep_unknown : leave those who fit no line, or several, under the names that they have

    Raises
    ------
    Question : a hand-in fits no line of the roster, or several
    """
    fits = _fits(roster, handins)
    unknown = {h.student: fits[h.student] for h in handins if len(fits[h.student]) != 1}
    if unknown and not keep_unknown:
        raise _who(roster, unknown, handins)
    taken = {student.name for student in roster.students}
    named = []
    for handin in handins:
        if handin.student not in unknown:
            [student] = fits[handin.student]
            own = {"student": student.name, "identifier": student.identifier}
            own |= {"address": student.address or handin.address}
            named.append(replace(handin, **own, late=handin.late or student.late))
        else:
            name = handin.student
            name = f"{name} ({OUTSIDE})" if name in taken else name
            named.append(replace(handin, student=name, identifier=""))
    came = {handin.student for handin in named}
    absent = [s for s in roster.students if s.name not in came]
    why = {"problem": "nothing was handed in"}
    return named + [
        Handin(s.name, "", 0.0, roster.path, s.identifier, s.address, **why) for s in absent
    ]


def _fits(roster, handins):
    """Return the students that a hand-in's name can mean, by that name.

    A system's number decides between namesakes; where most hand-ins have the number that the
    roster has for their name, both come from one system, and another number is another student.
    """
    by_key = {}
    for student in roster.students:
        for key in student.keys:
            by_key.setdefault(key, []).append(student)
    fits, exact = {}, {}
    for handin in handins:
        own = by_key.get(_key(_bare(handin)), []) or by_key.get(
            _key(f"{_bare(handin)} {handin.identifier}"), []
        )
        fits[handin.student] = own
        if handin.identifier:
            number = handin.identifier.casefold()
            exact[handin.student] = [s for s in own if number in s.numbers]
    shared = 2 * sum(map(bool, exact.values())) > len(exact)
    return fits | {name: found for name, found in exact.items() if found or shared}


def _bare(handin):
    """Return a student's name without the number that tells namesakes apart."""
    return handin.student.removesuffix(f" ({handin.identifier})")


def _who(roster, unknown, handins):
    nobody = [name for name, students in unknown.items() if not students]
    several = [name for name, students in unknown.items() if students]
    said = [f"{len(nobody)} fit no line: {listed(nobody)}"] if nobody else []
    for name in sorted(several)[:3]:
        lines = ", ".join(str(student.line) for student in unknown[name])
        said.append(f"{plain(name)} fits the lines {lines}")
    numbers = {h.student: h.identifier for h in handins if h.student in nobody and h.identifier}
    for name, number in sorted(numbers.items()):
        for student in [s for s in roster.students if number.casefold() in s.numbers][:1]:
            said.append(f"the number {plain(number)} of {plain(name)} is that of {student.name}")
    return Question(
        f"Not every hand-in is of one student in {roster.path}. {'; '.join(said)}. Correct the "
        "roster or the names, say with --who how names are built, or say --keep-unknown to grade "
        "them under the names that they have, without an id. Nothing was graded"
    )


def outside(rows):
    """Return what to say of those who were graded and are not in the roster, "" for nobody."""
    names = [row["student"] for row in rows if not row.get("identifier")]
    said = f"{len(names)} graded outside the roster, and so in no file for the system"
    return f"{said}: {listed(names)}" if names else ""


def write_back(roster, rows, out, title="points"):
    """Write a roster of Canvas or Moodle with the points in it, for the system to take back.

    Parameters
    ----------
    roster : Roster
    rows : list of dict, the lines of `grades.csv`; `identifier` says whose they are
    out : folder; the file is `canvas.csv` or `moodle.csv`
    title : the assignment; Canvas's column of it is the one with this name and a number

    Returns
    -------
    path : of the file, None where the roster is of neither

    Raises
    ------
    RosterError : a student of the roster is in no row; the roster itself would be replaced
    """
    header = [_column(cell) for cell in roster.table[0]]
    moodle = next((columns for columns in MOODLES if {*columns[:2]} <= {*header}), None)
    if not (moodle or set(header) >= CANVAS):
        return None
    students = {student.line: student.identifier for student in roster.students}
    graded = {row["identifier"]: row for row in rows if row.get("identifier")}
    if missing := [s.name for s in roster.students if s.identifier not in graded]:
        raise RosterError(
            f"{len(missing)} of the roster are not in the results: {listed(missing)}. Grade with "
            "--roster and the same file first"
        )
    if moodle:
        told = dict(zip(moodle[1:], TOLD, strict=True))
        places = {header.index(column): told[column] for column in told if column in header}
        table, name = _for_moodle(roster.table, places, students, graded), "moodle.csv"
    else:
        table, name = _for_canvas(roster.table, header, students, graded, title), "canvas.csv"
    path, text = Path(out) / name, io.StringIO(newline="")
    if path.resolve() == roster.path.resolve():
        raise RosterError(f"{path} is the roster, and would be replaced: move it out of {out}")
    csv.writer(text).writerows(table)
    put(path, text.getvalue())
    return path


def _for_moodle(table, places, students, graded):
    """Return a worksheet with its grades and comments filled in, all else as it was."""
    filled = [list(row) for row in table]
    for line, identifier in students.items():
        for place, key in places.items():
            filled[line - 1][place] = in_table(graded[identifier][key])
    return filled


def _for_canvas(table, header, students, graded, title):
    """Return the columns that tell Canvas whose a line is, and one of points."""
    kept = [i for i, column in enumerate(header) if column in CANVAS_OWN]
    of = max((row["of"] or 0 for row in graded.values()), default=0)
    possible = ["    Points Possible", *[""] * (len(kept) - 1), of]
    lines = [
        [*(table[line - 1][i] for i in kept), graded[identifier]["points"]]
        for line, identifier in students.items()
    ]
    own = [cell for cell in table[0] if re.fullmatch(rf"{re.escape(title)} \(\d+\)", cell, re.I)]
    column = own[0] if len(own) == 1 else title
    return [[*(table[0][i] for i in kept), column], possible, *lines]
