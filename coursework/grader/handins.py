"""The hand-ins of a class: a folder or a zip file, as a course's own system gives it out.

A notebook at the top is a student's of the file's name, without the " (1)" of a second download. A
folder at the top is a student's, with all notebooks below it, or in a zip file there if there are
no others. What the systems and the patterns of `owners` name is known by its names.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coursework.grader.files import HandinsError, Question, entries_of, last_part, stem_of
from coursework.grader.inert import listed, plain, quoted
from coursework.grader.owners import COUNTED, SAY_WHO, numbered, owned, unwrap

ONE_OR_TWO = "it is not clear whether these are one student or two"
TIE_S = 60  # a copy gives all files of a student times so close to each other
NO_PERSON = re.compile(  # what stands in no name of a person
    r"(?:\b|_)(?:attempt|submi|version|working files)|\d{4}-\d\d-\d\d|\d+-\d+ - ", re.I
)


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
    say : called with each sentence for the instructor: what was left aside, who is held
    """

    layout: str | re.Pattern | None = None
    notebook: Sequence = ()
    believe_times: bool = False
    enrol: Callable = list
    title: str = ""
    say: Callable = lambda sentence: None


def find_handins(source, **options):
    """Return the hand-in of each student that counts, `held` where that is not clear.

    Parameters
    ----------
    source : path of a folder or of a zip file
    options : as `Reading` has them

    Raises
    ------
    HandinsError : no such folder, nothing in it, or no notebook is named as an option says
    Question : whose a hand-in is can be read in two ways
    """
    source, reading = Path(source), Reading(**options)
    entries = entries_of(source)
    found = list(owned(unwrap(entries, reading.layout), source, reading.layout))
    if not found:
        raise HandinsError(f"{source} holds no .ipynb file and no folder of a student")
    by_student = {}
    for handin in reading.enrol(found):
        by_student.setdefault(handin.student, []).append(handin)
    if reading.layout is None:
        _require_people(by_student, reading.title)
    for text in reading.notebook:
        if not any(text.casefold() in handin.name.casefold() for handin in found):
            raise HandinsError(f"--notebook {plain(text)}: no notebook has this in its name")
    doubts = _in_doubt(by_student) if reading.layout is None else {}
    for sentence in [*_left_aside(entries, found, by_student, reading), *_which_students(doubts)]:
        reading.say(sentence)
    counting = [_counting(by_student[student], reading) for student in sorted(by_student)]
    if held := [handin for handin in counting if handin.held]:
        reading.say(_which_counts(held))
    return [replace(handin, **doubts.get(handin.student, {})) for handin in counting]


def _require_people(by_student, title):
    """Ask whose hand-ins are if more than half of the names are no names of people."""
    odd = [name for name, (handin, *_) in by_student.items() if not handin.identifier]
    odd = [
        name
        for name in odd
        if NO_PERSON.search(name)
        or (title and title.casefold() in name.casefold() and _of_a_file(by_student[name][0]))
    ]
    if 2 * len(odd) > len(by_student):
        raise Question(
            f"Whose are these: {listed(odd, 3)}? They do not look like names of people. {SAY_WHO}. "
            "If each is a student's, say --layout files. Nothing was graded"
        )


def _of_a_file(handin):
    """Whether a student's name is that of a file, and not of a folder."""
    return last_part(handin.name).startswith(handin.student)


def _in_doubt(by_student):
    """Return how those are held who may be one student: a name in capitals and not, x and x-1."""
    alike, doubts = {}, {}
    for name in [name for name, own in by_student.items() if not own[0].identifier]:
        counted = COUNTED.fullmatch(name) if _of_a_file(by_student[name][0]) else None
        base = counted["base"] if counted and counted["base"] in by_student else name
        alike.setdefault(base.casefold(), []).append(name)
    for names in [sorted(names) for names in alike.values() if len(names) > 1]:
        problem = f"{ONE_OR_TWO}: {' and '.join(map(quoted, names))}"
        doubts |= {name: {"held": True, "problem": problem} for name in names}
    return doubts


def _left_aside(entries, found, by_student, reading):
    """Yield what may be a mistake of the instructor's: a folder too high up, files left aside."""
    if reading.title in by_student or len(by_student) == 1 < len(found):
        yield f"Is this a class? Its students are: {listed(by_student, 3)}. A hand-in is NAME.ipynb"
    names = {handin.name for handin in found} | {handin.zipped for handin in found}
    left = [entry for entry in entries if not entry.folder and entry.name not in names]
    books = [entry.name for entry in left if entry.ends(".ipynb")]
    if books and isinstance(reading.layout, re.Pattern):
        yield f"Left aside, not as --who says ({len(books)}): {listed(books, 5)}"
    if others := [entry.name for entry in left if not entry.ends(".ipynb")]:
        yield f"Left aside, not notebooks ({len(others)}): {listed(others, 5)}"


def _counting(handins, reading):
    """Return the hand-in of a student that counts; it is held where that is not clear.

    Each stage keeps the best, and the last that left others behind says why.
    """
    left, why = [handin for handin in handins if handin.name] or handins[:1], ""
    for reason, kept in STAGES.items():
        best = kept(left, reading.title.casefold())
        left, why = best, reason if len(best) < len(left) else why
    last = max(left, key=lambda handin: (handin.when, handin.name))
    near = [handin for handin in left if last.when - handin.when <= TIE_S]
    if len(left) > 1:
        why = "the newest"
    if len(near) > 1:
        chosen = _chosen(near, reading.notebook)
        if len(chosen) == 1:
            last, why = chosen[0], "the one that --notebook names"
        elif not reading.believe_times:
            names = listed(quoted(name) for name in _told_apart(near))
            problem = f"it is not clear which notebook counts: {names}"
            last = replace(last, held=True, problem=problem)
    return replace(last, of=len(handins), why=why)


def _newest_attempt(handins, title):
    known = all(handin.attempt for handin in handins)
    newest = max(handin.attempt for handin in handins)
    return [handin for handin in handins if not known or handin.attempt == newest]


def _most_alike(handins, title):
    """Return those whose name is the assignment's: all of it, or else a part, or else any."""
    ranks = []
    for handin in handins:
        stem = stem_of(last_part(handin.own)).casefold()
        ranks.append(2 if numbered(stem, {title})[0] == title else int(title in stem))
    return [h for h, rank in zip(handins, ranks, strict=True) if rank == max(ranks)]


def _nearest(handins, title):
    top = min(handin.own.count("/") for handin in handins)
    return [handin for handin in handins if handin.own.count("/") == top]


def _highest_number(handins, title):
    """Return of names that are the same but for a number, as of downloads, the highest."""
    places = {handin: handin.own.rpartition("/") for handin in handins}
    beside = {}
    for folder, _, name in places.values():
        beside.setdefault(folder, set()).add(stem_of(name))
    names = {h: (at, *numbered(stem_of(n), beside[at])) for h, (at, _, n) in places.items()}
    most = {}
    for folder, base, number in names.values():
        most[folder, base] = max(number, most.get((folder, base), 0))
    return [h for h, (folder, base, number) in names.items() if number == most[folder, base]]


STAGES = {
    "the one of the newest attempt": _newest_attempt,
    "the one with the assignment's name": _most_alike,
    "the one nearest to the top": _nearest,
    "the one with the highest number": _highest_number,
}


def _chosen(rivals, texts):
    """Return the rivals with one of some texts in their names, or else in their folders'."""
    texts = [text.casefold() for text in texts]
    for name_of in (last_part, str):
        found = [h for h in rivals if any(text in name_of(h.name).casefold() for text in texts)]
        if len(found) == 1:
            break
    return found


def _told_apart(handins):
    """Return the names of notebooks, with their folders where others have the same."""
    names = [last_part(handin.name) for handin in handins]
    return names if len({*names}) == len(names) else [handin.name for handin in handins]


def _which_students(doubts):
    """Yield the question for whose answer those are held who may be one student."""
    if doubts:
        alike = {held["problem"].partition(": ")[2] for held in doubts.values()}
        yield (
            "One student or two? These names differ only in capitals or in a number: "
            f"{listed(alike, 3)}. Repeat the command with --layout files if each is a student; "
            "rename the files of one student to one name, and a second hand-in to 'NAME (1).ipynb'."
            " They are held, the others are graded"
        )


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
