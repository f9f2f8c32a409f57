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

from coursework.grader import GraderError
from coursework.grader.files import Handin, Question
from coursework.grader.inert import listed, plain
from coursework.grader.owners import labels
from coursework.grader.records import put
from coursework.grader.tables import in_table, read_table

NAMES = ("student", "name", "full name", "student name", "display name", "vollständiger name")
FIRST = ("first name", "given name", "vorname")
LAST = ("last name", "surname", "family name", "nachname")
IDS = ("id", "identifier", "student id", "sid", "student number", "id number", "id-nummer")
IDS += ("matriculation number", "matrikelnummer", "orgdefinedid")
IDS += ("sis user id", "sis login id", "login id", "login", "username", "anmeldename")  # logins
IDS += ("github_username", "email", "email address", "e-mail", "e-mail-adresse", "integration id")
CANVAS = {"student", "id", "section"}
CANVAS_OWN = (*CANVAS, "sis user id", "sis login id", "integration id", "root account")
NOBODY = ("points possible", "student, test", "test student")  # lines of Canvas's own
MOODLES = (  # its columns of ids, of grades and of comments, in English and German
    ("identifier", "grade", "feedback comments"),
    ("id", "bewertung", "feedback als kommentar"),
)
TOLD = ("points", "notes")  # what grades and comments are in `grades.csv`
OUTSIDE = "not in the roster"
LATE = re.compile(r" - [^-]* late(?: - |$)")  # in a Moodle worksheet's status


@dataclass(frozen=True)
class Student:
    """A line of a roster.

    Parameters
    ----------
    name : as reports have it; namesakes have the id beside it
    line : its number in the file, from 1
    cells : of ids, logins and addresses, those that are not empty; the first is the id
    late : whether it says so
    """

    name: str
    line: int
    cells: tuple
    late: bool = False

    @property
    def identifier(self):
        """The id, "" for none."""
        return self.cells[0] if self.cells else ""

    @property
    def address(self):
        """The e-mail, "" for none."""
        return next((cell for cell in self.cells if "@" in cell), "")

    def names(self):
        """Return what a hand-in of the student can be called: Doe, Jane is Jane Doe and doejane."""
        words = _words(self.name.removesuffix(f" ({self.identifier})"))
        turned = {"".join(words[i:] + words[:i]) for i in range(len(words))}
        logins = {cell.partition("@")[0] for cell in self.cells}
        return (turned | {"".join(_words(cell)) for cell in (*self.cells, *logins)}) - {""}

    def numbers(self):
        """Return what a system can give as the student's number."""
        found = [re.fullmatch(r"[^\d@]+(\d+)", cell) for cell in self.cells]
        return {cell.casefold() for cell in self.cells} | {match[1] for match in found if match}


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

    @property
    def header(self):
        """The names of the columns, in small letters."""
        return [" ".join(cell.casefold().split()) for cell in self.table[0]]


def read_roster(path):
    """Return the roster that stands in a CSV file.

    Raises
    ------
    GraderError : no columns of names and ids, nobody in it, or a student twice
    """
    roster = Roster(Path(path), read_table(Path(path)), [])
    header = roster.header
    named = [[header.index(c)] for c in NAMES if c in header]
    named += [
        [header.index(f), header.index(n)] for f in FIRST for n in LAST if {f, n} <= {*header}
    ]
    ids = [header.index(c) for c in IDS if c in header]
    if not (named and ids):
        raise GraderError(
            f"{path} has the columns {listed(roster.table[0]) or 'none'}. A roster has a line of "
            f"column names with one of {', '.join(NAMES)} and one of {', '.join(IDS)}"
        )
    for line, row in enumerate(roster.table[1:], 2):
        name = plain(" ".join(row[i] for i in named[0])).strip()
        cells = tuple(cell for i in ids if (cell := plain(row[i]).strip()))
        if (name or cells) and not (set(header) >= CANVAS and name.casefold() in NOBODY):
            late = "status" in header and bool(LATE.search(row[header.index("status")]))
            roster.students.append(Student(name or cells[0], line, cells, late))
    return replace(roster, students=_distinct(path, roster.students))


def _words(text):
    """Return the words of a name in one form: letters, digits and marks, in lower case."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    return "".join(kept).split()


def _distinct(path, students):
    """Turn down a student who comes twice; give namesakes names of their own."""
    if not students:
        raise GraderError(f"{path} names no student: a roster has a line for each student")
    ids = Counter(s.identifier.casefold() for s in students)
    twice = [s for s in students if not s.identifier or ids[s.identifier.casefold()] > 1]
    if twice:
        said = ", ".join(f"{plain(s.name)} (line {s.line})" for s in twice[:5])
        raise GraderError(
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
            more = f" ({OUTSIDE})" * (handin.student in taken)
            named.append(replace(handin, student=handin.student + more, identifier=""))
    came, why = {handin.student for handin in named}, {"problem": "nothing was handed in"}
    absent = [student for student in roster.students if student.name not in came]
    named += [Handin(s.name, "", 0.0, roster.path, s.identifier, s.address, **why) for s in absent]
    return named


def _fits(roster, handins):
    """Return the students that a hand-in's name can mean, by that name.

    A system's number decides between namesakes; where most hand-ins have the number that the
    roster has for their name, both come from one system, and another number is another student.
    """
    by_key = {}
    for student in roster.students:
        for key in student.names():
            by_key.setdefault(key, []).append(student)
    fits, exact = {}, {}
    for handin in handins:
        bare = handin.student.removesuffix(f" ({handin.identifier})")  # as namesakes have it
        keys = ("".join(_words(name)) for name in (bare, f"{bare} {handin.identifier}"))
        own = fits[handin.student] = next((by_key[key] for key in keys if key in by_key), [])
        if handin.identifier:
            number = handin.identifier.casefold()
            exact[handin.student] = [s for s in own if number in s.numbers()]
    shared = 2 * sum(map(bool, exact.values())) > len(exact)
    return fits | {name: found for name, found in exact.items() if found or shared}


def _who(roster, unknown, handins):
    nobody = [name for name, students in unknown.items() if not students]
    said = [f"{len(nobody)} fit no line: {listed(nobody)}"] if nobody else []
    for name in sorted({*unknown} - {*nobody})[:3]:
        lines = ", ".join(str(student.line) for student in unknown[name])
        said.append(f"{plain(name)} fits the lines {lines}")
    numbers = {h.student: h.identifier for h in handins if h.student in nobody and h.identifier}
    for name, number in sorted(numbers.items()):
        for student in [s for s in roster.students if number.casefold() in s.numbers()][:1]:
            said.append(f"the number {plain(number)} of {plain(name)} is that of {student.name}")
    return Question(
        f"Not every hand-in is of one student in {roster.path}. {'; '.join(said)}. Correct the "
        "roster or the names, say with --who how names are built, or say --keep-unknown to grade "
        "them under the names that they have, without an id"
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
    GraderError : a student of the roster is in no row; the roster itself would be replaced
    """
    header = roster.header
    moodle = next((columns for columns in MOODLES if {*columns[:2]} <= {*header}), None)
    if not (moodle or set(header) >= CANVAS):
        return None
    graded = {row["identifier"]: row for row in rows if row.get("identifier")}
    if missing := [s.name for s in roster.students if s.identifier not in graded]:
        raise GraderError(
            f"{len(missing)} of the roster are not in the results: {listed(missing)}. Grade with "
            "--roster and the same file first"
        )
    path, text = Path(out) / ("moodle.csv" if moodle else "canvas.csv"), io.StringIO(newline="")
    if path.resolve() == roster.path.resolve():
        raise GraderError(f"{path} is the roster, and would be replaced: move it out of {out}")
    lines = [(s.line - 1, graded[s.identifier]) for s in roster.students]
    filled = _for_moodle(roster, lines, moodle) if moodle else _for_canvas(roster, lines, title)
    csv.writer(text).writerows(filled)
    put(path, text.getvalue())
    return path


def _for_moodle(roster, lines, columns):
    """Return a worksheet with its grades and comments filled in, all else as it was."""
    filled = [list(row) for row in roster.table]
    for line, row in lines:
        for column, key in zip(columns[1:], TOLD, strict=True):
            if column in roster.header:
                filled[line][roster.header.index(column)] = in_table(row[key])
    return filled


def _for_canvas(roster, lines, title):
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
