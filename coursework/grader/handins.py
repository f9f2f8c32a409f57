"""The hand-ins of a class: whose each is, and which of a student's counts.

`SYSTEMS` has a pattern for the places of each system's export, and `--who` gives another. Of what
fits none, a notebook at the top is a student's of the file's name, without the " (1)" of a second
download; a folder at the top is a student's, with all notebooks below it, or in a zip file there if
there are no others. What can be read in two ways is a question of `ASKED`, never a guess.
"""

import contextlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from coursework.grader import GraderError
from coursework.grader.files import (
    Handin,
    Unreadable,
    content_of,
    entries_of,
    file_name_of,
    stem_of,
    visible,
    zip_entries,
)
from coursework.grader.inert import name_list, plain, quote

GRADESCOPE = re.compile(r"(?P<name>submission_(?P<id>\d+))(?:/(?P<file>.*))?", re.DOTALL)
MOODLE = re.compile(
    r"(?P<name>[^/]*?)(?:_(?P<id>\d+))?_assignsubmission_[a-z0-9]+_?/?(?P<file>.*)", re.DOTALL
)
CANVAS = re.compile(
    r"(?P<name>[^/]*?)(?:(?:^|_)(?P<late>LATE))?(?:^|_)(?P<id>[1-9]\d*|anon_[A-Za-z0-9]+)_"
    r"(?:(?P<number>[1-9]\d*)_(?P<file>[^/]+)|(?:text|link)\.html)",
    re.DOTALL,
)
PLAIN = re.compile(
    r"(?P<name>[^/]*?)(?:/(?P<file>.*)|(?:\s*\(\d+\))?(?:\.ipynb|\.zip)+)", re.DOTALL | re.I
)
SYSTEMS = {"gradescope": GRADESCOPE, "moodle": MOODLE, "canvas": CANVAS}
LAYOUTS = ("files", "folders", *SYSTEMS)
PARTS = {"name": "[^/]+?", "id": "[^/]+?", "attempt": "[^/]+?", "file": ".+"}  # of --who
SAY_WHO = (
    '--who says how names are built, for example --who "{{name}} - {{file}}"; the page on grading '
    "has patterns for Blackboard, Brightspace, Teams and Google Classroom"
)
WHICH = "it is not clear which notebook counts"
ASKED = {
    "system": "Not all hand-ins have names as {} gives them: look at {}. Say --layout {} to "
    "take the student out of such names and the others as they are, or --layout files to take "
    "each file's or folder's whole name for a student",
    "folder": "All hand-ins lie in one folder, {0}: {1}. Is it a class with a student for each "
    "file, or one student, {0}? Say --layout files for the class, --layout folders for the one "
    f"student; or, where a name holds more than the student's, {SAY_WHO}",
    "zip": "{} lies beside the hand-ins. If it is one student's, as every zip file there, say "
    "--layout files; if it is the class's export, name it in place of the folder, or move it away",
    "alike": "Are these one student or two: {}? Say --layout files if each name is a student; "
    "rename the files of one student to one name, and a second hand-in to 'NAME (1).ipynb'",
    "people": f"Whose are these: {{}}? They do not look like names of people. {SAY_WHO}. If each "
    "is a student's, say --layout files",
    "roster": "Not every hand-in is of one student in {}. {}. Correct the roster or the names, say "
    "with --who how names are built, or say --keep-unknown to grade them under the names that "
    "they have, without an id",
    "held": f"{{}} held, the others are graded: {WHICH}, of {{}}. Repeat the command with "
    "--notebook TEXT, as often as needed, to take those with TEXT in their name or folder",
}
DAYS, TIMES = ("%b %d", "%B %d", "%d %b", "%d %B"), ("%I:%M %p", "%H:%M")
DATES = [f"{day} %Y {time}" for day in DAYS for time in TIMES]
METADATA = "submission_metadata.yml"
COPY = re.compile(r"(?P<base>.*?)\s*\((?P<number>\d+)\)", re.S)
COUNTED = re.compile(r"(?P<base>.*?)[_-](?P<number>\d{1,2})", re.S)
TIE_S = 60  # a copy gives all files of a student times so close to each other
NO_PERSON = re.compile(  # what stands in no name of a person
    r"(?:\b|_)(?:attempt|submi|version|working files)|\d{4}-\d\d-\d\d|\d+-\d+ - ", re.I
)


class AmbiguousClass(GraderError):
    """The class can be read in two ways; the message says which, and what answers it."""

    def __init__(self, key, *details):
        super().__init__(f"{ASKED.get(key, key).format(*details)}. Nothing was graded")


@dataclass(frozen=True)
class ReadingOptions:
    """How a class is read."""

    # one of LAYOUTS, or a pattern of `pattern_of`; by default what the names say
    layout: str | re.Pattern | None = None
    # texts; a notebook whose whole place is one of them counts, and where nothing else tells
    # which one does, the one with one of them in its name or folders
    notebook: Sequence = ()
    enrol: Callable = list  # names the students, list of Handin → list of Handin
    title: str = ""  # name of the assignment, and so of its notebook
    # called with each sentence for the instructor: what was left aside, who is held
    say: Callable = lambda sentence: None


def who_pattern(text):
    """Return what `--who` describes: `{name}`, `{id}`, `{attempt}` and `{file}`, `*` for anything.

    No part but `{file}` has a `/` in it. A part ends where what follows it first comes, for good:
    the next part takes all else, and no name makes matching slow. ValueError: another part, one
    twice, or neither `{name}` nor `{id}`.
    """
    first, *pieces = re.split(r"(\{\w+\}|\*)", text)
    parts = [piece.strip("{}*") for piece in pieces[::2]]
    used, body = [part for part in parts if part], re.escape(first)
    for i, (part, literal) in enumerate(zip(parts, pieces[1::2], strict=True), 1):
        found = f"(?P<{part}>{PARTS.get(part, '')})" if part else "[^/]*?"
        found += re.escape(literal)
        body += f"(?>{found})" if part != "file" and i < len(parts) else found
    if not {*used} <= {*PARTS} or len(used) > len({*used}) or not {"name", "id"} & {*used}:
        raise ValueError("expected {name} or {id}, and perhaps {attempt} and {file}, each once")
    return re.compile(body + ("" if "file" in used else "(?:/.+)?"), re.DOTALL)


def find_handins(source, **options):
    """Return the hand-in of each student that counts, `held` where that is not clear.

    GraderError: no such folder, nothing in it, or no notebook is named as an option says.
    AmbiguousClass: whose a hand-in is can be read in two ways.

    `source` : path of a folder or of a zip file
    `options` : as `ReadingOptions` has them
    """
    source, reading = Path(source), ReadingOptions(**options)
    entries = entries_of(source)
    found = _hand_ins_with_students(*_strip_outer_folders(entries, reading.layout), reading.layout)
    if not found:
        raise GraderError(f"{source} holds no .ipynb file and no folder of a student")
    by_student = {}
    for handin in reading.enrol(found):
        by_student.setdefault(handin.student, []).append(handin)
    if reading.layout is None:
        _require_names_of_people(by_student, reading.title.casefold())
    for text in reading.notebook:
        if not any(_rank_by_notebook_option(found, replace(reading, notebook=[text]))):
            raise GraderError(f"--notebook {plain(text)}: no notebook has this in its name")
    counting = [_counting_handin(by_student[student], reading) for student in sorted(by_student)]
    if held := [f"{h.student}: {h.problem.removeprefix(WHICH)}" for h in counting if h.held]:
        reading.say(ASKED["held"].format(len(held), name_list(map(plain, held), 3)))
    names = {handin.name for handin in found}
    left = [entry for entry in entries if not entry.folder and entry.name not in names]
    books = [entry.name for entry in left if entry.ends(".ipynb")]
    if books and isinstance(reading.layout, re.Pattern):
        reading.say(f"Left aside, not as --who says ({len(books)}): {name_list(books, 5)}")
    if others := [entry.name for entry in left if not entry.ends(".ipynb")]:
        reading.say(f"Left aside, not notebooks ({len(others)}): {name_list(others, 5)}")
    return counting


def _strip_outer_folders(entries, layout):
    """Return the entries without the folders around all, and the pattern of their names.

    Beside such a folder nothing lies but files of other kinds.
    """
    while True:
        system, tops = _pattern_of_system(entries, layout), _top_level_names(entries)
        inner = [replace(e, parts=e.parts[1:]) for e in entries if len(e.parts) > 1]
        inside = _pattern_of_system(inner, layout) if len(tops) == 1 else None
        own = isinstance(layout, re.Pattern) and inside  # the innermost that fits
        if len(tops) != 1 or not any(map(_may_hold_notebook, inner)) or (system and not own):
            if system or layout in (None, "files", "folders"):
                return entries, system or PLAIN
            how = f"as {layout.title()} names it" if layout in LAYOUTS else "as --who says"
            given = name_list([entry.path_in_class for entry in entries if not entry.folder], 2)
            raise GraderError(f"the class holds nothing that is named {how}, but {given}")
        direct = [e.parts[0] for e in inner if len(e.parts) == 1 and _may_hold_notebook(e)]
        if direct and layout == "folders":
            return entries, PLAIN
        if direct and layout is None and not inside:
            raise AmbiguousClass("folder", *map(plain, tops), name_list(direct))
        entries = inner


def _top_level_names(entries):
    """Return the names at the top that can be a student's."""
    return {e.parts[0] for e in entries if len(e.parts) > 1 or e.folder or _may_hold_notebook(e)}


def _may_hold_notebook(entry):
    return entry.ends(".ipynb", ".zip")


def _pattern_of_system(entries, layout):
    """Return the pattern that names are of, None for no system."""
    if isinstance(layout, re.Pattern):
        return layout if any(layout.fullmatch(entry.path_in_class) for entry in entries) else None
    tops = _top_level_names(entries)
    for name, pattern in SYSTEMS.items():
        fit = [match for match in map(pattern.fullmatch, tops) if match]
        if not fit or layout not in (None, name):
            continue
        sure = pattern is not GRADESCOPE or any(entry.parts == (METADATA,) for entry in entries)
        if pattern is CANVAS:  # which numbers each file, and several students
            numbers = [match["number"] for match in fit if match["number"]]
            several = len(fit) == 1 or len({match["id"] for match in fit}) > 1
            sure = several and len(numbers) == len({*numbers})
        if layout is None and (len(fit) < len(tops) or not sure):
            odd = tops - {match[0] for match in fit} or tops
            raise AmbiguousClass("system", name.title(), name_list(odd), name)
        return pattern
    return None


def _hand_ins_with_students(entries, pattern, layout):
    held, people = {}, _gradescope_submitters(entries) if pattern is GRADESCOPE else {}
    patterns = [pattern] if isinstance(layout, re.Pattern) else [pattern, PLAIN]
    for entry in entries:
        match = next(filter(None, (each.fullmatch(entry.path_in_class) for each in patterns)), None)
        if match is None:
            continue
        if match.re is PLAIN and len(entry.parts) == 1 and entry.ends(".zip") and layout != "files":
            raise AmbiguousClass("zip", plain(entry.path_in_class))
        name, number = (match.groupdict().get(part) or "" for part in ("name", "id"))
        for owner in people.get(name) or [(name or number or entry.parts[0], number)]:
            held.setdefault(owner, []).append(_with_name_details(entry, match))
    names = unique_labels(held)
    return [
        replace(handin, student=names[owner], identifier=owner[1])
        for owner, files in held.items()
        for handin in _notebooks_of_student(files)
    ]


def _with_name_details(entry, match):
    """Return an entry with what its name says besides its student.

    A system takes a report back under a name of its own: Canvas knows a file by its numbers and
    shows it under the name of what was handed in, so it can be a notebook or a zip file alone;
    Moodle knows the folder, or the beginning of a name.
    """
    name, back = match.groupdict(), ""
    if match.re is CANVAS and _may_hold_notebook(entry):
        back = file_name_of(entry.name)
    if match.re is MOODLE:
        back = entry.path_in_class[: match.start("file")] + "report.html"
    own = name.get("file") or "/".join(entry.parts[1:]) or entry.parts[0]
    more = {"attempt": _sortable_attempt(name.get("attempt") or ""), "late": bool(name.get("late"))}
    return replace(entry, own=own, back=back, **more)


def _sortable_attempt(text):
    """Return a text that sorts as attempts came: a date of Brightspace's in order, numbers too."""
    date = re.sub(r"(\d\d?):?(\d\d)(?=(?: [AP]M)?$)", r"\1:\2", text.replace(",", ""))
    for form in DATES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(date, form).isoformat()
    return re.sub(r"\d+", lambda match: match[0].zfill(20), text)


def unique_labels(names_and_identifiers):
    """Return a name for each (name, identifier): namesakes have the identifier beside it."""
    held = Counter(name for name, _ in names_and_identifiers)
    names = {o: o[0] if held[o[0]] == 1 else f"{o[0]} ({o[1]})" for o in names_and_identifiers}
    if len(set(names.values())) == len(names):
        return names
    return {owner: f"{owner[0]} ({owner[1]})" for owner in names_and_identifiers}


def _notebooks_of_student(files):
    """Return the notebooks of one student; of each attempt those in zip files if there is none."""
    found = []
    for attempt in {file.attempt for file in files}:
        own = [file for file in files if file.attempt == attempt]
        packed = [each for file in own if file.ends(".zip") for each in _notebooks_in_zip(file)]
        found += [file for file in own if file.ends(".ipynb")] or packed
    if found:
        return found
    others = [quote(file_name_of(file.name)) for file in files if not file.folder]
    problem = f"there is no .ipynb file, but {name_list(others, 3)}" if others else ""
    back = next((file.back for file in files if file.back), "")
    return [Handin(files[0].source, problem=problem, back=back)]


def _notebooks_in_zip(file):
    """Return the notebooks in a zip file of a student's, or why there are none."""
    name = quote(file_name_of(file.name))
    try:
        inside = zip_entries(content_of(file.source, file.name)).items()
    except Unreadable as error:
        return [replace(file, problem=f"{name}: {error}")]
    found = [(n, p[0]) for n, p in inside if visible(p[0]) and p[0][-1].lower().endswith(".ipynb")]
    if not found:
        return [replace(file, problem=f"{name} holds no .ipynb file")]
    return [replace(file, inside=n, own=f"{file.own}/{'/'.join(parts)}") for n, parts in found]


def _gradescope_submitters(entries):
    """Return who handed in each folder of a Gradescope export, by the folder's name.

    The file has a line for each name at a depth of its own; what students printed stands deeper.
    """
    places = [entry for entry in entries if entry.parts == (METADATA,)]
    try:
        text = places[0].read().decode("utf-8", "replace") if places else ""
    except Unreadable as error:
        raise GraderError(
            f"{METADATA} cannot be read ({error}), so no hand-in has a name. --layout folders "
            "takes the names of the folders"
        ) from None
    people = {}
    for block in re.split(r"(?m)^(?=\S)", text):
        inside = re.search(r"(?m)^  :submitters:\n((?:  [- ] :(?:name|email|sid): .*\n?)*)", block)
        for person in re.split(r"(?m)^  - ", inside[1])[1:] if inside else []:
            own = dict(re.findall(r"(?m)^ *:(name|email|sid): (.*)", person))
            own = {key: text.strip().strip("'\"").replace("''", "'") for key, text in own.items()}
            identifier = own.get("sid") or own.get("email") or ""
            name = unicodedata.normalize("NFC", own.get("name") or identifier)
            people.setdefault(block.partition(":")[0], []).append((name, identifier))
    return people


def _require_names_of_people(by_student, title):
    """Ask about names that may be one student's, or of no person."""
    names, alike = [name for name, own in by_student.items() if not own[0].identifier], {}
    for name in names:
        more = COUNTED.fullmatch(name)
        base = more["base"] if more and more["base"] in by_student else name
        alike.setdefault(base.casefold(), []).append(name)
    if twice := [quote(name) for same in alike.values() if len(same) > 1 for name in same]:
        raise AmbiguousClass("alike", name_list(twice))
    odd = [n for n in names if NO_PERSON.search(n) or (title and title in n.casefold())]
    if 2 * len(odd) > len(by_student):
        raise AmbiguousClass("people", name_list(odd, 3))


def split_number(stem, names_beside):
    """Return what a second file is one of, and its number: 0 for the first.

    `names_beside` : names; "anna-1" is a second one where there is "anna", "anna (1)" everywhere
    """
    for match in (COPY.fullmatch(stem), COUNTED.fullmatch(stem)):
        if match and (match.re is COPY or match["base"] in names_beside):
            return match["base"], int(match["number"][:9])
    return stem, 0


def _counting_handin(handins, options):
    """Return the hand-in of a student that counts; it is held where that is not clear.

    Each stage keeps the best, and the last that left others behind says why.
    """
    left, why = [handin for handin in handins if handin.name] or handins[:1], ""
    for reason, rank_of in STAGES.items():
        ranks = rank_of(left, options)
        best = [h for h, rank in zip(left, ranks, strict=True) if rank == max(ranks)]
        left, why = best, reason if len(best) < len(left) else why
    if len(left) > 1:
        problem = f"{WHICH}: {name_list(quote(h.own) for h in left)}"
        return replace(left[0], of=len(handins), held=True, problem=problem)
    return replace(left[0], of=len(handins), why=why)


def _rank_by_notebook_option(handins, options):
    """Rank those whose place --notebook gives, or in whose name or folders one of its texts is."""
    texts = [text.casefold() for text in options.notebook]
    return [
        h.location in options.notebook or any(t in h.own.casefold() for t in texts) for h in handins
    ]


def _rank_by_assignment_name(handins, options):
    """Rank names by how far they are the assignment's: all of it, or else a part, or else any."""
    title = options.title.casefold()
    stems = [stem_of(file_name_of(handin.own)).casefold() for handin in handins]
    return [2 if split_number(stem, {title})[0] == title else int(title in stem) for stem in stems]


def _rank_by_copy_number(handins, options):
    """Rank the highest of names that are the same but for a number, as of downloads."""
    stems = [stem_of(handin.own) for handin in handins]
    names = [split_number(stem, stems) for stem in stems]
    last = dict(sorted(names))
    return [last[base] == number for base, number in names]


def _rank_by_time(handins, options):
    """Rank the newest, with all that are as new as a copy makes them."""
    times = [handin.when for handin in handins]
    return [None not in times and max(times) - when <= TIE_S for when in times]


STAGES = {
    "the one at the place that --notebook gives": lambda handins, reading: [
        handin.location in reading.notebook for handin in handins
    ],
    "the one of the newest attempt": lambda handins, reading: [
        handin.attempt * all(each.attempt for each in handins) for handin in handins
    ],
    "the one with the assignment's name": _rank_by_assignment_name,
    "the one nearest to the top": lambda handins, reading: [-h.own.count("/") for h in handins],
    "the one with the highest number": _rank_by_copy_number,
    "the newest": _rank_by_time,
    "the one that --notebook names": _rank_by_notebook_option,
}
