"""Release, check and grade assignments.

    python -m coursework student 05_concatenation         a chapter without its solutions
    python -m coursework release heads --out DIR          an assignment as students get it
    python -m coursework check heads                      reference 100 %, untouched 0, mistakes
    python -m coursework grade heads HANDINS --seed-file SEED --jobs 2 --out RESULTS

HANDINS is a folder or a zip file of notebooks: NAME.ipynb, or a folder for each student. SEED is a
file with the number from which the hidden cases are generated. Choose a random one for each
assignment and keep it to yourself; without the file the command asks for it.
RESULTS/corrections.csv is yours: points and remarks by hand, which every run respects.
"""

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from coursework.grader import GraderError, assignment, batch, handins, release, reports, roster
from coursework.grader.inert import name_list, one_line
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS
from coursework.grader.seeds import SeedError, parse_seed, read_seed
from tools.chapters import ContentsError

ROOT = Path(__file__).resolve().parents[1]
ERRORS = (GraderError, ContentsError, OSError)


def _arg_type(parse, expected):
    """Return what reads an argument, and says what was expected where it cannot."""

    def typed(text):
        try:
            return parse(text)
        except (ValueError, SeedError) as error:
            why = f"{one_line(text)!r} is not {expected.format(error)}"
            raise argparse.ArgumentTypeError(why) from None

    return typed


def _in_range(number_type, minimum, maximum):
    """Return what reads a number between two."""

    def read(text):
        if text.isascii() and minimum <= (number := number_type(text)) <= maximum:
            return number
        raise ValueError

    return _arg_type(read, f"a number from {minimum} to {maximum}")


def _argument_parser():
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("coursework", description=__doc__, formatter_class=described)
    commands = parser.add_subparsers(dest="command", required=True)
    given = {name: commands.add_parser(name, allow_abbrev=False) for name in COMMANDS}
    for name, one in given.items():
        known = f"one of {', '.join(assignment.assignment_names())}"
        chapter = "a chapter, such as 04_multi_head_attention"
        one.add_argument("name", help=chapter if name == "student" else known)
        if name != "check":
            default = {"default": Path("student")} if name == "student" else {"required": True}
            place = "folder for what is written, made where there is none"
            one.add_argument("--out", type=Path, help=place, **default)
        if name in ("check", "grade"):
            trusted = "without bubblewrap: for hand-ins that you trust"
            one.add_argument("--trusted", action="store_true", help=trusted)
    given["check"].add_argument("--seed", type=_arg_type(parse_seed, "a seed: {}"), default=1)
    ways = given["grade"].add_mutually_exclusive_group()
    for option, (text, how) in GRADE.items():
        group = ways if option in ("--layout", "--who") else given["grade"]
        group.add_argument(option, help=text, **how)
    return parser


PATTERN, LIMIT = _arg_type(handins.who_pattern, "a pattern: {}"), _in_range(float, 0.1, 3600)
GRADE = {  # the arguments of `grade`
    "handins": (
        "a folder or a zip file of notebooks: NAME.ipynb, or a folder for each student",
        {"type": Path, "metavar": "HANDINS"},
    ),
    "--seed-file": ("file with the seed; else the command asks for it", {"type": Path}),
    "--jobs": ("hand-ins at a time", {"type": _in_range(int, 1, 9999), "default": batch.JOBS}),
    "--seconds": (f"of a test: {SECONDS}, with torch {TORCH_SECONDS}", {"type": LIMIT}),
    "--roster": ("CSV file with names and ids: Canvas's, Moodle's or your own", {"type": Path}),
    "--keep-unknown": ("grade who is not in the roster, too", {"action": "store_true"}),
    "--layout": ("how students' names are given", {"choices": handins.LAYOUTS}),
    "--who": (
        "the same as a pattern of {name}, {id}, {attempt} and {file}, with * for anything",
        {"dest": "layout", "type": PATTERN, "metavar": "PATTERN"},
    ),
    "--notebook": (
        "where neither names nor times tell which notebook counts, the one with TEXT in its name "
        "or folders does, and always one whose whole place TEXT is; may be repeated",
        {"action": "append", "metavar": "TEXT", "default": []},
    ),
}


def _release(args):
    path = release.release(args.name, args.out)
    print(f"Students get {path}. How their work is graded: python -m coursework grade --help")


def _student(args):
    notebook = release.student_version(args.name)
    print(release.write_new(notebook, args.out / f"{args.name}.ipynb"))


def _check(args):
    exam = assignment.set_exam(args.name, args.seed)
    faults = release.check(exam, trusted=args.trusted)
    for fault in faults:
        print(f"✗ {fault}", file=sys.stderr)
    print("✗ not fit to be given out" if faults else "✓ fit to be given out")
    return bool(faults)


def _grade(args):
    exam = assignment.set_exam(args.name, read_seed(args.seed_file, _print_warning))
    _warn_if_inside_repository(args.out)
    class_list = args.roster and roster.read_roster(args.roster)
    found, sentences = _hand_ins_of_class(args, class_list), []
    options = {name: getattr(args, name) for name in ("jobs", "trusted", "seconds")}
    options |= {"source": args.handins, "on_progress": _print_progress, "say": sentences.append}
    graded = batch.grade_batch(exam, found, args.out, **options)
    print(file=sys.stderr)
    for sentence in sentences:
        _print_warning(sentence)
    _write_and_print_results(graded, args.out, class_list)


def _hand_ins_of_class(args, class_list):
    """Return the hand-ins of the class, under the names of the roster if there is one."""
    if args.out.resolve().is_relative_to(args.handins.resolve()):
        raise GraderError(f"--out {args.out} is among the hand-ins: name another folder")
    reading = {"layout": args.layout, "notebook": args.notebook}
    if class_list:
        reading["enrol"] = partial(roster.enrol, class_list, keep_unknown=args.keep_unknown)
    return handins.find_handins(args.handins, title=args.name, say=_print_warning, **reading)


def _print_warning(sentence):
    """Print a sentence that may hold names of a student's choice."""
    print(one_line(sentence), file=sys.stderr)


def _warn_if_inside_repository(out):
    """Say that results are about people, where a commit of this repository could hold them."""
    if out.resolve().is_relative_to(ROOT):
        _print_warning(
            f"{out} is inside the book's folder, where a commit could publish what is about "
            "people: a folder outside it is better"
        )


def _print_progress(done, total, students):
    line = f"{done} of {total} hand-ins{', at work on ' * bool(students)}{name_list(students)}"
    print(f"\r{line[:78]:78}", end="", file=sys.stderr)


def _write_and_print_results(record, out, class_list):
    sentences = []
    rows = reports.write_reports(record, out, say=sentences.append)
    paths = [out / name for name in ("grades.csv", "items.csv", "feedback.zip", "email.csv")]
    if class_list:
        paths.append(roster.write_points(class_list, rows, out, record["assignment"]))
        sentences += roster.roster_warnings(class_list, rows)
    print(f"{len(rows)} students: {', '.join(str(path) for path in paths if path)}")
    for sentence in filter(None, sentences):
        print(one_line(sentence))


COMMANDS = {"student": _student, "release": _release, "check": _check, "grade": _grade}


def main(arguments=None):
    """Run a command; return its exit status."""
    given = _argument_parser().parse_args(arguments)
    try:
        return int(COMMANDS[given.command](given) or 0)
    except ERRORS as error:
        place = getattr(error, "filename", None)  # of the system's own errors
        for line in (f"{place}: {error.strerror}" if place else str(error)).splitlines():
            print(f"coursework: {one_line(line)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130


def _prepare_streams_and_signals():
    """Print names wherever this runs, and stop in good order when a machine asks for it."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) == signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(name, signal.default_int_handler)


if __name__ == "__main__":
    _prepare_streams_and_signals()
    sys.exit(main())
