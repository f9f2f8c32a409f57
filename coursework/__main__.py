"""Release, check and grade assignments.

    python -m coursework student 05_concatenation             a chapter without its solutions
    python -m coursework release heads --out DIR          an assignment as students get it
    python -m coursework check heads                      reference 100 %, untouched 0, mistakes
    python -m coursework grade heads HANDINS --seed-file SEED --jobs 2 --out RESULTS
    python -m coursework grade heads HANDINS --seed-file SEED --only ANNA --out RESULTS

HANDINS is a folder or a zip file of notebooks: NAME.ipynb, or a folder for each student. SEED is a
file with the number from which the hidden cases are generated. Choose a random one for each
assignment and keep it to yourself; without the file the command asks for it.
RESULTS/corrections.csv is yours: points and remarks by hand, which every run respects.
"""

import argparse
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from coursework.grader import assignment, batch, handins, release, reports, roster
from coursework.grader.corrections import CorrectionsError
from coursework.grader.entries import AnotherBatch, UnknownStudent
from coursework.grader.files import HandinsError
from coursework.grader.inert import shown
from coursework.grader.owners import LAYOUTS, pattern_of
from coursework.grader.records import Damaged
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS, SandboxError
from coursework.grader.seeds import SeedError, number_of, read_seed
from tools.chapters import ContentsError

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 3600
ERRORS = (
    AnotherBatch,
    assignment.AssignmentError,
    batch.ProofFailed,
    CorrectionsError,
    Damaged,
    HandinsError,
    SandboxError,
    SeedError,
    UnknownStudent,
    ContentsError,
    OSError,
)


def _typed(read, expected):
    """Return what reads an argument, and says what was expected where it cannot."""

    def typed(text):
        try:
            return read(text)
        except (ValueError, SeedError) as error:
            why = f"{shown(text)!r} is not {expected.format(error)}"
            raise argparse.ArgumentTypeError(why) from None

    return typed


def _jobs(text):
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= 9999):
        raise ValueError
    return int(text)


def _seconds(text):
    if not 0 < (seconds := float(text)) <= MOST_SECONDS:
        raise ValueError
    return seconds


def _parser():
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("coursework", description=__doc__, formatter_class=described)
    commands = parser.add_subparsers(dest="command", required=True)
    given = {name: commands.add_parser(name, allow_abbrev=False) for name in COMMANDS}
    names = {name: f"one of {', '.join(assignment.names())}" for name in given}
    for name, known in (names | {"student": "a chapter, such as 04_multi_head_attention"}).items():
        given[name].add_argument("name", help=known)
    place = "folder for what is written, made where there is none"
    for name in ("release", "grade"):
        given[name].add_argument("--out", required=True, type=Path, help=place)
    given["student"].add_argument("--out", type=Path, default=Path("student"), help=place)
    seed = _typed(number_of, "a seed: {}")
    given["check"].add_argument("--seed", type=seed, default=1)
    _add_options(given["grade"])
    _add_readings(given["grade"])
    for name in ("check", "grade"):
        trusted = "without bubblewrap: for hand-ins that you trust"
        given[name].add_argument("--trusted", action="store_true", help=trusted)
    return parser


def _add_options(grade):
    held = "a folder or a zip file of notebooks: NAME.ipynb, or a folder for each student"
    limit = f"limit of one test: {SECONDS}, with torch {TORCH_SECONDS}"
    seed = "file with the seed; without it the command asks for the seed at the terminal"
    only = "grade this student anew, and leave all others as they are; may be repeated"
    seconds = _typed(_seconds, f"a limit: expected seconds, above 0 and up to {MOST_SECONDS}")
    jobs = _typed(_jobs, "a number of hand-ins: expected 1 to 9999")
    grade.add_argument("handins", type=Path, metavar="HANDINS", help=held)
    grade.add_argument("--seed-file", type=Path, help=seed)
    grade.add_argument("--only", action="append", metavar="NAME", help=only)
    grade.add_argument("--jobs", type=jobs, default=batch.JOBS, help="hand-ins at a time")
    grade.add_argument("--seconds", type=seconds, help=limit)


def _add_readings(grade):
    """Add what says whose a hand-in is and which counts, where names and times do not."""
    who = "a CSV file with names and ids: Canvas's gradebook, Moodle's worksheet or your own"
    grade.add_argument("--roster", type=Path, help=who)
    on = "grade hand-ins that the roster does not name, too"
    grade.add_argument("--keep-unknown", action="store_true", help=on)
    ways = grade.add_mutually_exclusive_group()
    ways.add_argument("--layout", choices=LAYOUTS, help="how students' names are given")
    named = "the same as a pattern of {name}, {id}, {attempt} and {file}, with * for anything"
    pattern = {"type": _typed(pattern_of, "a pattern: {}"), "metavar": "PATTERN"}
    ways.add_argument("--who", dest="layout", help=named, **pattern)
    held = "where neither names nor times tell which notebook counts, those with TEXT in their "
    held += "name or folder do; may be repeated"
    grade.add_argument("--notebook", action="append", metavar="TEXT", default=[], help=held)
    close = "of several notebooks the newest counts, however close the times of the files"
    grade.add_argument("--believe-times", action="store_true", help=close)


def _release(given):
    path = release.release(given.name, given.out)
    print(f"Students get {path}. Their work is graded by: python -m coursework grade {given.name}")


def _student(given):
    notebook = release.student_version(given.name)
    print(release.write_new(notebook, given.out / f"{given.name}.ipynb"))


def _check(given):
    exam = assignment.set_exam(given.name, given.seed)
    faults = release.check(exam, trusted=given.trusted)
    for fault in faults:
        print(f"✗ {fault}", file=sys.stderr)
    print("✗ not fit to be given out" if faults else "✓ fit to be given out")
    return bool(faults)


def _grade(given):
    exam = assignment.set_exam(given.name, read_seed(given.seed_file, _warn_of))
    _warn_of_place(given.out)
    found, said = _found(given), []
    options = {name: getattr(given, name) for name in OPTIONS} | {"source": given.handins}
    told = _progress(time.monotonic())
    graded = batch.grade_batch(exam, found, given.out, told=told, say=said.append, **options)
    print(file=sys.stderr)
    for sentence in said:
        _warn_of(sentence)
    _tell(graded, given)


def _found(given):
    """Return the hand-ins of the class, under the names of the roster if there is one."""
    if given.out.resolve().is_relative_to(given.handins.resolve()):
        raise HandinsError(f"--out {given.out} is among the hand-ins: name another folder")
    reading = {name: getattr(given, name) for name in ("layout", "notebook", "believe_times")}
    if given.roster:
        named = roster.read_roster(given.roster)
        reading["enrol"] = partial(roster.enrol, named, keep_unknown=given.keep_unknown)
    return handins.find_handins(given.handins, title=given.name, say=_warn_of, **reading)


def _warn_of(sentence):
    """Print a sentence that may hold names of a student's choice."""
    print(shown(sentence), file=sys.stderr)


def _warn_of_place(out):
    """Say that results are about people, where a commit of this repository could hold them."""
    if out.resolve().is_relative_to(ROOT):
        _warn_of(
            f"{out} is inside the book's folder, where a commit could publish what is about "
            "people: a folder outside it is better"
        )


def _progress(start):
    def told(done, of):
        rate = 60 * done / (time.monotonic() - start)
        print(f"\r{done} of {of} hand-ins, {rate:.0f} a minute ", end="", file=sys.stderr)

    return told


def _tell(graded, given):
    out, said = given.out, []
    rows = reports.write_reports(graded, out, say=said.append)
    paths = [out / name for name in ("grades.csv", "items.csv", "feedback.zip", "email.csv")]
    if given.roster:
        named = roster.read_roster(given.roster)
        paths.append(roster.write_back(named, rows, out, graded["assignment"]))
        said.append(roster.outside(rows))
    print(f"{len(rows)} students: {', '.join(str(path) for path in paths if path)}")
    for sentence in filter(None, said):
        print(shown(sentence))


OPTIONS = ("jobs", "only", "trusted", "seconds")
COMMANDS = {
    "student": _student,
    "release": _release,
    "check": _check,
    "grade": _grade,
}


def main(arguments=None):
    """Run a command; return its exit status."""
    given = _parser().parse_args(arguments)
    try:
        return int(COMMANDS[given.command](given) or 0)
    except ERRORS as error:
        for line in _sentence(error).splitlines():
            print(f"coursework: {shown(line)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130


def _sentence(error):
    """Return what an error says, of the system's own without its number."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _stop(number, frame):
    raise KeyboardInterrupt


def _prepare():
    """Read names as UTF-8 wherever this runs, and stop in good order when a machine asks for it."""
    if sys.getfilesystemencoding() != "utf-8":
        words = [sys.executable, "-X", "utf8", "-m", "coursework", *sys.argv[1:]]
        os.execv(sys.executable, words)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) == signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(name, _stop)


if __name__ == "__main__":
    _prepare()
    sys.exit(main())
