"""Whose a hand-in is: by its name, or as Canvas, Moodle, Gradescope or a pattern name what it is.

What can be read in two ways is a question, never a guess.
"""

import contextlib
import io
import re
import unicodedata
import zipfile
from collections import Counter
from dataclasses import replace
from datetime import datetime

from coursework.grader import GraderError
from coursework.grader.files import (
    DAMAGED,
    Handin,
    Question,
    Unreadable,
    content_of,
    in_zip,
    last_part,
    small_zip,
    stem_of,
    visible,
)
from coursework.grader.inert import listed, plain, quoted

CANVAS = re.compile(
    r"(?P<name>[^/]*?)(?:(?:^|_)(?P<late>LATE))?(?:^|_)(?P<id>[1-9]\d*|anon_[A-Za-z0-9]+)_"
    r"(?:(?P<number>[1-9]\d*)_(?P<file>[^/]+)|(?:text|link)\.html)",
    re.DOTALL,
)
MOODLE = re.compile(
    r"(?P<name>[^/]*?)(?:_(?P<id>\d+))?_assignsubmission_[a-z0-9]+_?/?(?P<file>.*)", re.DOTALL
)
GRADESCOPE = re.compile(r"(?P<name>submission_(?P<id>\d+))(?:/(?P<file>.*))?", re.DOTALL)
SYSTEMS = {"gradescope": GRADESCOPE, "moodle": MOODLE, "canvas": CANVAS}
LAYOUTS = ("files", "folders", *SYSTEMS)
PARTS = {"name": "[^/]+?", "id": "[^/]+?", "attempt": "[^/]+?", "file": ".+"}  # of --who
SAY_WHO = (
    '--who says how names are built, for example --who "{name} - {file}"; the page on grading has '
    "patterns for Blackboard, Brightspace, Teams and Google Classroom"
)
WHOSE_ZIP = (
    "holds notebooks and lies beside the hand-ins. If it is one student's, as every zip file "
    "there, say --layout files; if it is the class's export, name it in place of the folder, or "
    "move it away"
)
DATES = [
    f"{day} %Y {time}"
    for day in ("%b %d", "%B %d", "%d %b", "%d %B")
    for time in ("%I:%M %p", "%H:%M")
]
METADATA = "submission_metadata.yml"
COPIES = (  # as Windows, macOS, Jupyter and Drive name a second file, often a backup
    re.compile(r"(?P<base>.*?)[ _-]+(?:copy|kopie|copie|copia) ?\(?\d*\)?$", re.I | re.S),
    re.compile(r"(?:copy of|kopie von) (?P<base>.*?)$", re.I | re.S),
)
COUNTED = re.compile(r"(?P<base>.*?)[_-](?P<number>\d{1,2})$", re.S)
COPY = re.compile(r"(?P<base>.*?)\s*\((?P<number>\d+)\)$", re.S)


def pattern_of(text):
    """Return what `--who` describes: `{name}`, `{id}`, `{attempt}` and `{file}`, `*` for anything.

    No part but `{file}` has a `/` in it. A part ends where what follows it first comes, for good:
    the next part takes all else, and no name makes matching slow.

    Raises
    ------
    ValueError : another part, one twice, or neither `{name}` nor `{id}`
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


def unwrap(entries, layout):
    """Take off the folders around all, beside which nothing lies but files of other kinds.

    Parameters
    ----------
    layout : one of LAYOUTS, a pattern of `pattern_of`, or None for what the names say
    """
    while True:
        inner = [replace(e, parts=e.parts[1:]) for e in entries if len(e.parts) > 1]
        if len(_tops(entries)) != 1 or not any(map(_holds, inner)):
            return entries
        inside = isinstance(layout, re.Pattern) and _system(inner, layout)
        if _system(entries, layout) and not inside:
            return entries
        direct = [e.parts[0] for e in inner if len(e.parts) == 1 and _holds(e)]
        if direct and layout == "folders":
            return entries
        if direct and layout is None and not _system(inner, None):
            [top] = map(plain, _tops(entries))
            raise Question(
                f"All hand-ins lie in one folder, {top}: {listed(direct)}. Is it a class with a "
                f"student for each file, or one student, {top}? Say --layout files for the class, "
                "--layout folders for the one student; or, where a name holds more than the "
                f"student's, {SAY_WHO}"
            )
        entries = inner


def _tops(entries):
    """Return the names at the top that can be a student's."""
    return {e.parts[0] for e in entries if len(e.parts) > 1 or e.folder or _holds(e)}


def _holds(entry):
    """Whether it is a file that may hold a notebook."""
    return entry.ends(".ipynb", ".zip")


def _system(entries, layout):
    """Return the pattern that names are of, None for no system."""
    if isinstance(layout, re.Pattern):
        return layout if any(layout.fullmatch(entry.path) for entry in entries) else None
    tops = _tops(entries)
    for name, pattern in SYSTEMS.items():
        fits = [match for match in map(pattern.fullmatch, tops) if match]
        if not fits or layout not in (None, name):
            continue
        if layout is None and (len(fits) < len(tops) or not _is_sure(name, fits, entries)):
            other = listed(tops - {match[0] for match in fits})
            raise Question(
                f"{len(fits)} of {len(tops)} hand-ins have names of the form that {name.title()} "
                f"gives: {listed(match[0] for match in fits)}"
                f"{f', and these do not: {other}' if other else ''}. Say --layout {name} to take "
                "the student out of such names and the others as they are, or --layout files to "
                "take each file's or folder's whole name for a student"
            )
        return pattern
    return None


def _is_sure(name, fits, entries):
    """Whether all is as a system gives it out: Canvas numbers each file, and several students."""
    if name == "canvas":
        numbers = [match["number"] for match in fits if match["number"]]
        several = len(fits) == 1 or len({match["id"] for match in fits}) > 1
        return several and len(numbers) == len({*numbers})
    return name == "moodle" or any(entry.parts == (METADATA,) for entry in entries)


def owned(entries, source, layout):
    """Yield the hand-ins with the names of their students, ordered by nothing."""
    held, system = {}, _system(entries, layout)
    if layout not in (None, "files", "folders") and not system:
        how = f"as {layout.title()} names it" if layout in LAYOUTS else "as --who says"
        given = listed([entry.path for entry in entries if not entry.folder], 2)
        raise GraderError(f"{source} holds nothing that is named {how}, but {given}")
    owners = _owners(entries, source, layout, system)
    for entry in entries:
        match = system.fullmatch(entry.path) if system else None
        handin = _handin(entry, source, match)
        for owner in owners(entry, match):
            held.setdefault(owner, []).append((entry, handin))
    names = labels(held)
    for owner, pairs in held.items():
        mail = owner[1] if "@" in owner[1] else ""
        for handin in _of_student(pairs, source):
            yield replace(handin, student=names[owner], identifier=owner[1], address=mail)


def _handin(entry, source, match):
    """Return an entry as a hand-in, with what its name says besides its student."""
    name = match.groupdict() if match else {}
    own = name.get("file") or "/".join(entry.parts[1:]) or entry.parts[0]
    more = {"attempt": _in_time(name.get("attempt") or ""), "late": bool(name.get("late"))}
    return Handin("", entry.name, entry.when, source, own=own, back=_back(entry, match), **more)


def _back(entry, match):
    """Return the name under which a system takes the report on a file back, "" for none.

    Canvas knows a file by its numbers and shows it under the name of what was handed in, so it can
    be a notebook or a zip file alone; Moodle knows the folder, or the beginning of a name.
    """
    if match and match.re is CANVAS and _holds(entry):
        return last_part(entry.name)
    if match and match.re is MOODLE:
        return entry.path[: match.start("file")] + "report.html"
    return ""


def _in_time(text):
    """Return a text that sorts as attempts came: a date of Brightspace's in order, numbers too."""
    date = re.sub(r"(\d\d?):?(\d\d)(?=(?: [AP]M)?$)", r"\1:\2", text.replace(",", ""))
    for form in DATES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(date, form).isoformat()
    return re.sub(r"\d+", lambda match: match[0].zfill(20), text)


def labels(owners):
    """Return a name for each (name, identifier): namesakes have the identifier beside it."""
    held = Counter(name for name, _ in owners)
    names = {o: o[0] if held[o[0]] == 1 else f"{o[0]} ({o[1]})" for o in owners}
    if len(set(names.values())) == len(names):
        return names
    return {owner: f"{owner[0]} ({owner[1]})" for owner in owners}


def _of_student(pairs, source):
    """Return the notebooks of one student; of each attempt those in zip files if it has no others.

    A notebook with another ending behind its own counts where there is none without.
    """
    found = []
    for attempt in {handin.attempt for _, handin in pairs}:
        own = [(entry, handin) for entry, handin in pairs if handin.attempt == attempt]
        books = [handin for entry, handin in own if entry.ends(".ipynb")]
        zips = [handin for entry, handin in own if entry.ends(".zip")]
        found += [book for book in books if book.name.lower().endswith(".ipynb")] or books
        found += [] if books else [each for packed in zips for each in _in_students_zip(packed)]
    if found:
        return found
    others = [quoted(last_part(entry.name)) for entry, _ in pairs if not entry.folder]
    problem = f"there is no .ipynb file, but {listed(others, 3)}" if others else ""
    back = next((handin.back for _, handin in pairs if handin.back), "")
    return [Handin("", "", 0.0, source, problem=problem, back=back)]


def _in_students_zip(packed):
    """Return the notebooks in a zip file of a student's, or why there are none."""
    name = quoted(last_part(packed.name))
    try:
        content = small_zip(content_of(packed.source, packed.name))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [e for e in in_zip(archive) if e.ends(".ipynb") and visible(e)]
    except Unreadable as error:
        return [replace(packed, problem=f"{name}: {error}")]
    except DAMAGED:
        return [replace(packed, problem=f"{name} is not a zip file that can be read")]
    if not found:
        return [replace(packed, problem=f"{name} holds no .ipynb file")]
    places = [(f"{packed.name}/{book.name}", f"{packed.own}/{book.path}") for book in found]
    return [replace(packed, name=name, zipped=packed.name, own=own) for name, own in places]


def _owners(entries, source, layout, system):
    """Return the function that tells whose an entry with a match is: [(name, identifier), …]."""
    stems = {stem_of(e.parts[0]) for e in entries if len(e.parts) == 1 and e.ends(".ipynb")}
    people = _submitters(entries, source) if system is GRADESCOPE else {}

    def owners(entry, match):
        top = entry.parts[0]
        if match:
            name, identifier = (match.groupdict().get(part) or "" for part in ("name", "id"))
            return people.get(top) or [(name or identifier or top, identifier)]
        if system and system not in SYSTEMS.values():
            return []
        if len(entry.parts) > 1 or entry.folder:
            return [(top, "")]
        if entry.ends(".ipynb"):
            return [(_student(stem_of(top), stems) or top, "")]
        if entry.ends(".zip") and (layout == "files" or entry.ends(".ipynb.zip")):
            return [(stem_of(top), "")]
        packed = _in_students_zip(_handin(entry, source, None)) if entry.ends(".zip") else []
        if any(handin.zipped for handin in packed):
            raise Question(f"{plain(top)} {WHOSE_ZIP}")
        return []

    return owners


def _student(stem, stems):
    """Return whose a notebook of this name is: a copy belongs to whom the first one belongs."""
    counted = COUNTED.fullmatch(stem)  # may be another student
    base, _ = numbered(stem, stems)
    return stem if counted and counted["base"] == base else base


def numbered(stem, known):
    """Return what a second file is a copy of, and its number: 0 for the first.

    A copy that a person made has the number 0 as well: nobody knows which of the two was changed.

    `known` : names of the files beside it; "anna-1" is a copy where there is "anna".
    """
    for pattern in COPIES:
        if (match := pattern.fullmatch(stem)) and match["base"] in known:
            return match["base"], 0
    if (match := COUNTED.fullmatch(stem)) and match["base"] in known:
        return match["base"], int(match["number"])
    if match := COPY.fullmatch(stem):
        return match["base"], int(match["number"][:9])
    return stem, 0


def _submitters(entries, source):
    """Return who handed in each folder of a Gradescope export, by the folder's name.

    The file has a line for each name at a depth of its own; what students printed stands deeper.
    """
    places = [e.name for e in entries if e.parts == (METADATA,)]
    try:
        text = content_of(source, places[0]).decode("utf-8", "replace") if places else ""
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
            own = {key: _scalar(value) for key, value in own.items()}
            identifier = own.get("sid") or own.get("email") or ""
            name = unicodedata.normalize("NFC", own.get("name") or identifier)
            people.setdefault(block.partition(":")[0], []).append((name, identifier))
    return people


def _scalar(text):
    """Return a text of YAML: plain, or in quotes."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(
            r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))",
            lambda m: m[3] or chr(int(m[1] or m[2], 16)),
            text[1:-1],
        )
    return text
