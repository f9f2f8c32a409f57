"""The hand-ins of a class: a folder or a zip file, as a course's own system gives it out.

A notebook at the top is a student's of the file's name, without the " (1)" of a second download. A
folder at the top is a student's, with all notebooks below it, or in a zip file there if there are
no others. Exports of Canvas, Moodle and Gradescope are known by their names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from coursework.grader.files import (
    HandinsError,
    Question,
    entries_of,
    last_part,
    results_in,
    without_results,
)
from coursework.grader.inert import listed, plain
from coursework.grader.owners import numbered, owned, place_of, unwrap

TIE_S = 60  # a copy gives all files of a student times so close to each other


@dataclass(frozen=True)
class Reading:
    """How a class is read.

    Parameters
    ----------
    layout : one of LAYOUTS, by default what the names say
    notebook : texts; where nothing else tells which notebook counts, one of them in its name does
    believe_times : where nothing else tells which is the last, take the newer, however close
    enrol : names the students, list of Handin → list of Handin
    title : name of the assignment, and so of its notebook
    """

    layout: str | None = None
    notebook: Sequence = ()
    believe_times: bool = False
    enrol: Callable = list
    title: str = ""


def find_handins(source, **options):
    """Return every hand-in of a folder or zip file, by student, the one that counts last.

    Parameters
    ----------
    options : as `Reading` has them

    Raises
    ------
    HandinsError : no such folder, nothing in it, or no notebook is named as an option says
    Question : a student, or which notebook counts, can be read in two ways
    """
    source, reading = Path(source), Reading(**options)
    entries = unwrap(without_results(entries_of(source)), reading.layout)
    found = list(owned(entries, source, reading.layout))
    if not found:
        raise HandinsError(f"{source} holds no .ipynb file and no folder of a student")
    by_student = {}
    for handin in reading.enrol(found):
        by_student.setdefault(handin.student, []).append(handin)
    if reading.layout is None:
        _require_people(by_student, reading.title)
    ordered, unclear = [], []
    for student in sorted(by_student):
        handins, clear = _in_order(by_student[student], reading)
        ordered += handins
        unclear += [] if clear else [handins]
    if unclear:
        raise _which_counts(unclear)
    _require_named(ordered, reading.notebook)
    return ordered


def _require_people(by_student, title):
    """Ask where names are no people's: the assignment's own, or one name in capitals and not."""
    if [name.casefold() for name in by_student] == [title.casefold()]:
        files = listed(last_part(h.name) for each in by_student.values() for h in each)
        raise Question(
            f"Whose are these: {files}? They bear the assignment's name and no student's. Rename "
            f"each to NAME.ipynb, or say --layout files if {title} is a student. Nothing was graded"
        )
    alike = {}
    for name, handins in by_student.items():
        if not handins[0].identifier:
            alike.setdefault(name.casefold(), []).append(name)
    if several := [" and ".join(map(plain, sorted(n))) for n in alike.values() if len(n) > 1]:
        raise Question(
            f"One student or two? These names differ only in capitals: {listed(several, 3)}. Say "
            "--layout files if each is a student; rename the files of one student to one name. "
            "Nothing was graded"
        )


def _require_named(handins, texts):
    for text in texts:
        if not any(_has(handin, text) for handin in handins):
            raise HandinsError(f"--notebook {plain(text)}: no notebook has this in its name")


def _has(handin, text):
    return text.casefold() in last_part(handin.name).casefold()


def other_files(source):
    """Return the names of the files that are no notebooks, in order; results are one name."""
    entries = entries_of(Path(source))
    kept = without_results(entries)
    names = {entry.name for entry in kept if not entry.folder and not entry.ends(".ipynb")}
    names |= {"/".join(place) for place in results_in(entries)}
    return sorted(names)


def _in_order(handins, reading):
    """Return a student's hand-ins, the one that counts last, and whether that is clear."""
    ordered, rivals = _ranked([h for h in handins if h.name] or handins[:1], reading.title)
    if not rivals:
        return ordered, True
    chosen = [h for h in (*rivals, ordered[-1]) if any(_has(h, text) for text in reading.notebook)]
    ordered.sort(key=chosen.__contains__)
    return ordered, reading.believe_times or len(chosen) == 1


def _ranked(handins, title):
    """Return hand-ins, the one that counts last, and those that might count as well.

    A number decides between names that are the same but for it; between other names the
    assignment's own does, then the time.
    """
    names = _names(handins)

    def family(handin):
        return (_rank(names[handin][1].casefold(), title.casefold()), *names[handin][:2])

    def within(handin):
        return (names[handin][2], handin.when, handin.name)

    families = [sorted(own, key=within) for _, own in groupby(sorted(handins, key=family), family)]
    families.sort(key=lambda own: (family(own[-1])[0], own[-1].when, own[-1].name))
    last = families[-1][-1]
    rivals = [
        handin
        for own in families
        for handin in own
        if handin is not last
        and family(handin)[0] == family(last)[0]
        and names[handin][2] == names[own[-1]][2]
        and abs(last.when - handin.when) <= TIE_S
    ]
    return [handin for own in families for handin in own], rivals


def _rank(stem, title):
    """Return how much a notebook's name is the assignment's: 2 all of it, 1 a part, 0 not."""
    return 2 if numbered(stem, {title})[0] == title else int(title in stem)


def _names(handins):
    """Return of each hand-in its folder, its name without a number, and the number."""
    places = {handin: place_of(handin.name) for handin in handins}
    beside = {}
    for folder, stem in places.values():
        beside.setdefault(folder, set()).add(stem)
    return {h: (folder, *numbered(stem, beside[folder])) for h, (folder, stem) in places.items()}


def _which_counts(unclear):
    said = []
    for handins in unclear[:3]:
        names = listed(last_part(handin.name) for handin in handins)
        said.append(f"{plain(handins[0].student)}: {names}")
    more = f"; and {len(unclear) - 3} students more" if len(unclear) > 3 else ""
    return Question(
        f"Which notebook counts? Neither the names nor the times tell for {'; '.join(said)}{more} "
        "(a copy gives all files one time). Say --notebook TEXT, as often as needed, to take those "
        "with TEXT in their name, or --believe-times to take the newest, however "
        f"close: {plain(last_part(unclear[0][-1].name))} for {plain(unclear[0][0].student)}. "
        "Nothing was graded"
    )
