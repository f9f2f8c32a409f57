"""Whose a hand-in is: by its name, or as a course's own system names what it gives out.

What can be read in two ways is a question, never a guess. Public descriptions of what is read here:

- Blackboard: `assignment_username_attempt_date_file` (github.com/kwurst/bb-file-cleanup, README);
- Brightspace: folders `number - name - date` (github.com/cgmb/d2lmf, `parse_submission_dirname`);
- Teams: `Submitted files/name/assignment/Version n/file`
  (github.com/lwchkg/teams_assignment_explorer, README).
"""

import contextlib
import io
import re
import unicodedata
import zipfile
from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from coursework.grader.files import (
    DAMAGED,
    Handin,
    HandinsError,
    Question,
    Unreadable,
    composed,
    content_of,
    in_zip,
    last_part,
    small_zip,
    stem_of,
    visible,
)
from coursework.grader.inert import listed, plain, quoted

CANVAS = re.compile(
    r"(?P<name>.*?)(?:(?:^|_)(?P<late>LATE))?(?:^|_)(?P<id>[1-9]\d*|anon_[A-Za-z0-9]+)_"
    r"(?:(?P<file>[1-9]\d*)_(?P<rest>.+)|(?:text|link)\.html)",
    re.DOTALL,
)
MOODLE = re.compile(
    r"(?P<name>.*?)(?:_(?P<id>\d+))?_assignsubmission_[a-z0-9]+(?:_(?P<rest>.*))?", re.DOTALL
)
GRADESCOPE = re.compile(r"(?P<name>submission_(?P<id>\d+))")
BLACKBOARD = re.compile(
    r"(?P<title>.+?)_(?P<id>[^_]+)_attempt_(?P<attempt>\d{4}(?:-\d\d){5})(?:_(?P<rest>.+)|\.txt)",
    re.DOTALL,
)
DATE = r"(?:[A-Z][a-z]+ \d\d?|\d\d? [A-Z][a-z]+),? \d{4} \d\d?:?\d\d(?: [AP]M)?"
BRIGHTSPACE = re.compile(
    rf"(?P<id>\d+)-\d+ - (?P<name>.+?) - (?P<attempt>{DATE})(?: - (?P<rest>.+))?", re.DOTALL
)
TOPS = {  # what a file or folder at the top is called
    "gradescope": GRADESCOPE,
    "moodle": MOODLE,
    "blackboard": BLACKBOARD,
    "brightspace": BRIGHTSPACE,
    "canvas": CANVAS,
}
PATHS = {  # where a file lies, from the folder around the class on
    "teams": re.compile(
        r"(?:[^/]+|(?:(?!Working files/)[^/]+/)+?Submitted files)/"  # the first, not a student's
        r"(?P<name>[^/]+)/(?P<title>[^/]+)/Vers\w+ "
        r"(?P<attempt>\d+)/(?P<rest>.+)"
    ),
}
SENT, UNSENT = "Submitted files", "Working files"  # folders of Teams, one beside the other
LAYOUTS = ("files", "folders", *TOPS, *PATHS)
PARTS = {"name": "[^/]+?", "id": "[^/]+?", "attempt": "[^/]+?", "file": ".+"}  # of --who
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
    return re.compile("[^/]*/" + body + ("" if "file" in used else "(?:/.+)?"), re.DOTALL)


def unwrap(entries, layout, around):
    """Take off what is around all: folders with nothing beside them but files of other kinds.

    Parameters
    ----------
    layout : one of LAYOUTS, a pattern of `pattern_of`, or None for what the names say
    around : name of the class's folder or zip file

    Returns
    -------
    around : name of the last folder that was taken off
    entries : what is in it
    """
    top, inner = _only_folder(entries)
    while not _system(entries, layout, around) or _fits_inside(inner, layout, top):
        if not any(e.ends(".ipynb", ".zip") for e in inner):
            break
        if direct := [e for e in inner if len(e.parts) == 1 and e.ends(".ipynb", ".zip")]:
            if layout == "folders":
                break
            if layout is None and not _system(inner, None, top):
                raise _whose_folder(top, direct)
        around, entries = top, inner
        top, inner = _only_folder(entries)
    return around, entries


def _fits_inside(inner, layout, top):
    """Whether a pattern fits within the one folder, too, which then is not of the class."""
    return isinstance(layout, re.Pattern) and bool(_system(inner, layout, top))


def _only_folder(entries):
    """Return the name of the one folder that holds all, and what is in it; nothing otherwise."""
    tops = _tops(entries)
    inner = [replace(e, parts=e.parts[1:]) for e in entries if len(e.parts) > 1]
    return (tops.pop(), inner) if len(tops) == 1 else ("", [])


def _tops(entries):
    """Return the names at the top that can be a student's."""
    return {e.parts[0] for e in entries if len(e.parts) > 1 or e.folder or e.ends(".ipynb", ".zip")}


def _whose_folder(top, direct):
    names = listed(e.parts[0] for e in direct)
    return Question(
        f"All hand-ins lie in one folder, {plain(top)}: {names}. Is it a class with a student for "
        f"each file, or one student, {plain(top)}? Say --layout files for the class, --layout "
        "folders for the one student. Nothing was graded"
    )


def _match(system, entry, around):
    """Return what the name of a file or folder says in a system, None for nothing."""
    if system in TOPS:
        return TOPS[system].fullmatch(entry.parts[0])
    return PATHS.get(system, system).fullmatch("/".join((around, *entry.parts)))


def _system(entries, layout, around):
    """Return the name or the pattern of the system that names are of, None for no system."""
    if isinstance(layout, re.Pattern):
        return layout if any(_match(layout, entry, around) for entry in entries) else None
    books = [e for e in entries if e.ends(".ipynb", ".zip") and e.parts[0] != UNSENT]
    for name in PATHS:
        fits = [match for match in (_match(name, book, around) for book in books) if match]
        if fits and (layout == name or (layout is None and len(fits) == len(books))):
            _require_one_title({match.groupdict().get("title") for match in fits})
            return name
    tops = _tops(entries)
    for name, pattern in TOPS.items():
        fits = [match for match in map(pattern.fullmatch, tops) if match]
        if layout == name and fits:
            return name
        if layout is None and fits and _can_be(name, fits, entries):
            if len(fits) == len(tops) and (name != "canvas" or _several(fits)):
                return name
            raise _which_system(name, fits, tops)
    return None


def _require_one_title(titles):
    """Ask where a folder of Teams holds several assignments, each with attempts of its own."""
    if len(titles) > 1:
        raise Question(
            f"These are of several assignments: {listed(titles, 5)}. Give the folder "
            f"{SENT!r}, and say which one you mean with --who, for example "
            f'--who "{{name}}/{min(titles)}/Version {{attempt}}/{{file}}". Nothing was graded'
        )


def _can_be(name, fits, entries):
    """Whether all else is as a system gives it out: Canvas numbers each file.

    A name of Blackboard's with another beginning may be of a user whose name has a `_` in it.
    """
    if name == "gradescope":
        return any(entry.parts == (METADATA,) for entry in entries)
    if name == "blackboard":
        return len({match["title"] for match in fits}) == 1
    if name != "canvas":
        return True
    of = {match["file"]: set() for match in fits}
    for match in fits:
        of[match["file"]].add((match["id"], numbered(stem_of(match["rest"] or ""), ())[0]))
    return all(len(owners) == 1 for owners in of.values())


def _several(fits):
    return len(fits) == 1 or len({match["id"] for match in fits}) > 1


def _which_system(name, fits, tops):
    other = listed(tops - {match[0] for match in fits})
    held = f", and these do not: {other}" if other else ", all of one student"
    names = listed(match[0] for match in fits)
    return Question(
        f"{len(fits)} of {len(tops)} hand-ins are named as {name.title()} names them: {names}"
        f"{held}. Say --layout {name} to take the student out of such names and the others as "
        "they are, or --layout files to take each file's or folder's whole name for a student. "
        "Nothing was graded"
    )


def owned(entries, source, layout, around):
    """Yield the hand-ins with the names of their students, ordered by nothing."""
    held, system = {}, _system(entries, layout, around)
    if layout not in (None, "files", "folders") and not system:
        named = f"as {layout.title()} names it" if layout in LAYOUTS else "as --who says"
        raise HandinsError(f"{source} holds nothing that is named {named}")
    owners = _owners(entries, source, layout, system, around)
    for entry in entries:
        match = _match(system, entry, around) if system else None
        told = _told(entry, match)
        for owner in owners(entry, match):
            held.setdefault(owner, []).append(told)
    names = labels(held)
    for owner, own in held.items():
        for handin in _of_student(own, source):
            yield replace(handin, student=names[owner], identifier=owner[1])


def _told(entry, match):
    """Return an entry with what its name says besides its student."""
    said = match.groupdict() if match else {}
    own = said.get("file") or said.get("rest") if match and match.re not in TOPS.values() else None
    depth = max(len(entry.parts) - 2, 0) if own is None else own.count("/")
    attempt = _in_time(said.get("attempt") or "")
    return replace(entry, attempt=attempt, depth=depth, late=bool(said.get("late")))


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


def _of_student(entries, source):
    """Return the notebooks of one student, of each attempt."""
    entries = sorted(entries, key=lambda entry: entry.attempt)
    attempts = [[*own] for _, own in groupby(entries, lambda entry: entry.attempt)]
    if found := [handin for own in attempts for handin in _of_attempt(own, source)]:
        return found
    others = [quoted(last_part(e.name)) for e in entries if not e.folder]
    problem = f"there is no .ipynb file, but {listed(others, 3)}" if others else ""
    return [Handin("", "", 0.0, source, problem=problem)]


def _of_attempt(entries, source):
    """Yield the notebooks of an attempt, those in zip files where there are no others."""
    books = [e for e in entries if e.ends(".ipynb")]
    for book in [b for b in books if b.name.lower().endswith(".ipynb")] or books:
        yield _handin(book, source)
    for entry in [] if books else entries:
        if entry.ends(".zip"):
            yield from _in_students_zip(entry, source)


def _handin(entry, source):
    more = {"attempt": entry.attempt, "depth": entry.depth, "late": entry.late}
    return Handin("", entry.name, entry.when, source, **more)


def _in_students_zip(entry, source):
    """Yield the notebooks in a zip file of a student's, or why there are none."""
    lying, name = _handin(entry, source), quoted(last_part(entry.name))
    try:
        content = small_zip(content_of(source, entry.name))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [e for e in in_zip(archive) if e.ends(".ipynb") and visible(e)]
    except Unreadable as error:
        yield replace(lying, problem=f"{name}: {error}")
    except DAMAGED:
        yield replace(lying, problem=f"{name} is not a zip file that can be read")
    else:
        for book in found:
            place, depth = f"{entry.name}/{book.name}", entry.depth + len(book.parts) - 1
            yield replace(lying, name=place, zipped=entry.name, depth=depth)
        if not found:
            yield replace(lying, problem=f"{name} holds no .ipynb file")


def _owners(entries, source, layout, system, around):
    """Return the function that tells whose an entry with a match is: [(name, identifier), …]."""
    stems = {stem_of(e.parts[0]) for e in entries if len(e.parts) == 1 and e.ends(".ipynb")}
    people = _submitters(entries, source) if system == "gradescope" else {}

    def owners(entry, match):
        top = entry.parts[0]
        if match:
            said = match.groupdict()
            name, identifier = said.get("name") or "", said.get("id") or ""
            return people.get(top) or [(name or identifier or top, identifier)]
        if system and system not in TOPS:
            return []
        if len(entry.parts) > 1 or entry.folder:
            return [(top, "")]
        if entry.ends(".ipynb"):
            return [(_student(stem_of(top), stems) or top, "")]
        if entry.ends(".zip") and (layout == "files" or entry.ends(".ipynb.zip")):
            return [(stem_of(top), "")]
        if entry.ends(".zip") and any(h.zipped for h in _in_students_zip(entry, source)):
            raise _whose_zip(top)
        return []

    return owners


def _whose_zip(top):
    return Question(
        f"{plain(top)} holds notebooks and lies beside the hand-ins. If it is one student's, as "
        "every zip file there, say --layout files; if it is the class's export, name it in place "
        "of the folder, or move it away. Nothing was graded"
    )


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


def place_of(name):
    """Return the folder and the stem of a notebook, as its student named them."""
    parts = list(composed(name.replace("\\", "/").split("/")))
    for pattern in (MOODLE, BLACKBOARD, BRIGHTSPACE, CANVAS):
        if (match := pattern.fullmatch(parts[0])) and match["rest"]:
            parts[0] = match["rest"]
            break
    return tuple(parts[:-1]), stem_of(parts[-1])


def _submitters(entries, source):
    """Return who handed in each folder of a Gradescope export, by the folder's name.

    The file has a line for each name at a depth of its own; what students printed stands deeper.
    """
    places = [e.name for e in entries if e.parts == (METADATA,)]
    try:
        text = content_of(source, places[0]).decode("utf-8", "replace") if places else ""
    except Unreadable as error:
        raise HandinsError(
            f"{METADATA} cannot be read ({error}), so no hand-in has a name. --layout folders "
            "takes the names of the folders"
        ) from None
    people, own, inside = {}, [], False
    for line in text.splitlines():
        if match := re.fullmatch(r"(\S[^:]*):\s*", line):
            own = people.setdefault(match[1], [])
        elif re.match(r"  :", line):
            inside = line.startswith("  :submitters:")
        elif inside and (match := re.fullmatch(r"  (- |  ):(name|email|sid): (.*)", line)):
            own += [{}] if match[1] == "- " or not own else []
            own[-1][match[2]] = _scalar(match[3])
    return {folder: [_person(person) for person in group] for folder, group in people.items()}


def _person(person):
    identifier = person.get("sid") or person.get("email") or ""
    return unicodedata.normalize("NFC", person.get("name") or identifier), identifier


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
