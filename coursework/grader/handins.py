"""The hand-ins of a class: a folder or a zip file, as a course's own system gives it out.

A notebook at the top is a student's of the file's name, without the " (1)" of a second download. A
folder at the top is a student's, with all notebooks below it, or in a zip file there if there are
no others. What the systems of `owners` give out is known by its names.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from coursework.grader.files import (
    HandinsError,
    Question,
    entries_of,
    last_part,
    results_in,
    stem_of,
    without_results,
)
from coursework.grader.inert import listed, plain, quoted
from coursework.grader.owners import COUNTED, numbered, owned, place_of, unwrap

ONE_OR_TWO = "it is not clear whether these are one student or two"
TIE_S = 60  # a copy gives all files of a student times so close to each other


@dataclass(frozen=True)
class Reading:
    """How a class is read.

    Parameters
    ----------
    layout : one of LAYOUTS, or a pattern of `pattern_of`; by default what the names say
    notebook : texts; where nothing else tells which notebook counts, one of them in its name does,
        or else in the names of its folders
    believe_times : where nothing else tells which is the last, take the newer, however close
    enrol : names the students, list of Handin → list of Handin
    title : name of the assignment, and so of its notebook
    """

    layout: str | re.Pattern | None = None
    notebook: Sequence = ()
    believe_times: bool = False
    enrol: Callable = list
    title: str = ""


def find_handins(source, **options):
    """Return every hand-in of a folder or zip file, by student, the one that counts last.

    Where it is not clear which one counts, the last one is `held`.

    Parameters
    ----------
    options : as `Reading` has them

    Raises
    ------
    HandinsError : no such folder, nothing in it, or no notebook is named as an option says
    Question : whose a hand-in is can be read in two ways
    """
    source, reading = Path(source), Reading(**options)
    entries = without_results(entries_of(source))
    name = source.stem if source.is_file() else source.resolve().name
    around, entries = unwrap(entries, reading.layout, name)
    found = list(owned(entries, source, reading.layout, around))
    if not found:
        raise HandinsError(f"{source} holds no .ipynb file and no folder of a student")
    by_student = {}
    for handin in reading.enrol(found):
        by_student.setdefault(handin.student, []).append(handin)
    doubts = _in_doubt(by_student, reading.title) if reading.layout is None else {}
    ordered = []
    for student in sorted(by_student):
        *before, last = _in_order(by_student[student], reading)
        ordered += [*before, replace(last, **doubts.get(student, {}))]
    _require_named(ordered, reading.notebook)
    return ordered


def _in_doubt(by_student, title):
    """Return how those are held who may be one student: a name in capitals and not, x and x-1.

    Raises
    ------
    Question : the only name is the assignment's own
    """
    if [name.casefold() for name in by_student] == [title.casefold()]:
        files = listed(last_part(h.name) for each in by_student.values() for h in each)
        raise Question(
            f"Whose are these: {files}? They bear the assignment's name and no student's. Rename "
            f"each to NAME.ipynb, or say --layout files if {title} is a student. Nothing was graded"
        )
    alike, doubts = {}, {}
    for name in [name for name, own in by_student.items() if not own[0].identifier]:
        of_a_file = stem_of(last_part(by_student[name][0].name)) == name
        counted = COUNTED.fullmatch(name) if of_a_file else None
        base = counted["base"] if counted and counted["base"] in by_student else name
        alike.setdefault(base.casefold(), []).append(name)
    for names in [sorted(names) for names in alike.values() if len(names) > 1]:
        problem = f"{ONE_OR_TWO}: {' and '.join(map(quoted, names))}"
        doubts |= {name: {"held": True, "problem": problem} for name in names}
    return doubts


def _require_named(handins, texts):
    for text in texts:
        if not any(text.casefold() in handin.name.casefold() for handin in handins):
            raise HandinsError(f"--notebook {plain(text)}: no notebook has this in its name")


def _chosen(rivals, texts):
    """Return the rivals with one of some texts in their names, or else in their folders'."""
    texts = [text.casefold() for text in texts]
    for name_of in (last_part, str):
        found = [h for h in rivals if any(text in name_of(h.name).casefold() for text in texts)]
        if len(found) == 1:
            break
    return found


def other_files(source):
    """Return the names of the files that are no notebooks, in order; results are one name."""
    entries = entries_of(Path(source))
    kept = without_results(entries)
    names = {entry.name for entry in kept if not entry.folder and not entry.ends(".ipynb")}
    names |= {"/".join(place) for place in results_in(entries)}
    return sorted(names)


def left_aside(source, found):
    """Return the names of the notebooks that no hand-in is, in order."""
    books = {entry.name for entry in entries_of(Path(source)) if entry.ends(".ipynb")}
    return sorted(books - {handin.name for handin in found})


def _in_order(handins, reading):
    """Return a student's hand-ins, the one that counts last; it is held where that is not clear."""
    handins = [h for h in handins if h.name] or handins[:1]
    attempts = {h.attempt for h in handins}
    newest = max(attempts) if all(attempts) else None
    older = [h for h in handins if newest and h.attempt < newest]
    ordered, rivals, why = _ranked([h for h in handins if h not in older], reading.title)
    if rivals:
        rivals.append(ordered[-1])
        chosen = _chosen(rivals, reading.notebook)
        ordered.sort(key=chosen.__contains__)
        why = "the one that --notebook names" if len(chosen) == 1 else why
        if len(chosen) != 1 and not reading.believe_times:
            names = listed(quoted(name) for name in _told_apart(rivals))
            problem = f"it is not clear which notebook counts: {names}"
            ordered[-1] = replace(ordered[-1], held=True, problem=problem)
    why = why or "the one of the newest attempt" * bool(older)
    return [*sorted(older, key=lambda h: h.attempt), *ordered[:-1], replace(ordered[-1], why=why)]


def _told_apart(handins):
    """Return the names of notebooks, with their folders where others have the same."""
    names = [last_part(handin.name) for handin in handins]
    return names if len({*names}) == len(names) else [handin.name for handin in handins]


def _ranked(handins, title):
    """Return hand-ins, the one that counts last, those that might count as well, and why.

    A number decides between names that are the same but for it; between other names the
    assignment's own does, then who is nearest to the top, then the time.
    """
    names = _names(handins)

    def family(handin):
        rank = _rank(names[handin][1].casefold(), title.casefold())
        return (rank, -handin.depth, *names[handin][:2])

    def within(handin):
        return (names[handin][2], handin.when, handin.name)

    families = [sorted(own, key=within) for _, own in groupby(sorted(handins, key=family), family)]
    families.sort(key=lambda own: (family(own[-1])[:2], own[-1].when, own[-1].name))
    ordered = [handin for own in families for handin in own]
    last = ordered[-1]
    rivals = [
        handin
        for own in families
        for handin in own
        if handin is not last
        and family(handin)[:2] == family(last)[:2]
        and names[handin][2] == names[own[-1]][2]
        and abs(last.when - handin.when) <= TIE_S
    ]
    return ordered, rivals, _why(*(names[h] for h in ordered[-2:]), *map(family, ordered[-2:]))


def _why(*told):
    """Return why the last of two hand-ins counts, from their names and families; "" for one."""
    if len(told) < 4:
        return ""
    (*_, before), (*_, number), other, own = told
    if other[0] != own[0]:
        return "the one with the assignment's name"
    if other[1] != own[1]:
        return "the one nearest to the top"
    return "the one with the highest number" if other == own and before != number else "the newest"


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


def questions_of(handins):
    """Yield the questions for whose answers somebody is held."""
    held = [handin for handin in handins if handin.held]
    alike = {h.problem.partition(": ")[2] for h in held if h.problem.startswith(ONE_OR_TWO)}
    if alike:
        yield (
            "One student or two? These names differ only in capitals or in a number: "
            f"{listed(alike, 3)}. Repeat the command with --layout files if each is a student; "
            "rename the files of one student to one name, and a second hand-in to 'NAME (1).ipynb'."
            " They are held, the others are graded"
        )
    if held := [handin for handin in held if not handin.problem.startswith(ONE_OR_TWO)]:
        yield _which_counts(held)


def _which_counts(held):
    said = [f"{plain(h.student)}: {h.problem.partition(': ')[2]}" for h in held[:3]]
    more = f"; and {len(held) - 3} students more" if len(held) > 3 else ""
    return (
        f"Which notebook counts? Neither the names nor the times tell for {'; '.join(said)}{more} "
        "(a copy gives all files one time). Repeat the command with --notebook TEXT, as often as "
        "needed, to take those with TEXT in their name or folder, or with --believe-times to take "
        f"the newest, however close: {plain(held[0].name)} for {plain(held[0].student)}. "
        f"{len(held)} held, the others are graded"
    )
