"""The hand-ins of a class: a folder or a zip file, as a course's own system gives it out.

A notebook at the top is a student's of the file's name, without the " (1)" of a second download. A
folder at the top is a student's, with all notebooks below it, or in a zip file there if there are
no others. What the systems and the patterns of `owners` name is known by its names.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coursework.grader import GraderError
from coursework.grader.files import Question, entries_of, last_part, stem_of
from coursework.grader.inert import listed, plain, quoted
from coursework.grader.owners import COUNTED, SAY_WHO, numbered, owned, unwrap

ONE_OR_TWO = "it is not clear whether these are one student or two"
WHICH = "it is not clear which notebook counts"
ANSWERS = {  # to what a hand-in is held for
    ONE_OR_TWO: "--layout files if each is a student; rename the files of one student to one name, "
    "and a second hand-in to 'NAME (1).ipynb'",
    WHICH: "--notebook TEXT, as often as needed, to take those with TEXT in their name or folder, "
    "or with --believe-times to take the newest, however close (a copy gives all files one time)",
}
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
    GraderError : no such folder, nothing in it, or no notebook is named as an option says
    Question : whose a hand-in is can be read in two ways
    """
    source, reading = Path(source), Reading(**options)
    entries = entries_of(source)
    found = list(owned(unwrap(entries, reading.layout), source, reading.layout))
    if not found:
        raise GraderError(f"{source} holds no .ipynb file and no folder of a student")
    by_student = {}
    for handin in reading.enrol(found):
        by_student.setdefault(handin.student, []).append(handin)
    if reading.layout is None:
        _require_people(by_student, reading.title)
    for text in reading.notebook:
        if not any(text.casefold() in handin.name.casefold() for handin in found):
            raise GraderError(f"--notebook {plain(text)}: no notebook has this in its name")
    doubts = _in_doubt(by_student) if reading.layout is None else {}
    counting = [_counting(by_student[student], reading) for student in sorted(by_student)]
    counting = [replace(handin, **doubts.get(handin.student, {})) for handin in counting]
    for sentence in [*_left_aside(entries, found, by_student, reading), *_questions(counting)]:
        reading.say(sentence)
    return counting


def _require_people(by_student, title):
    """Ask whose hand-ins are if more than half of the names are no names of people."""

    def is_odd(name, handin):
        titled = title and title.casefold() in name.casefold() and _of_a_file(handin)
        return not handin.identifier and (titled or NO_PERSON.search(name))

    odd = [name for name, (handin, *_) in by_student.items() if is_odd(name, handin)]
    if 2 * len(odd) > len(by_student):
        raise Question(
            f"Whose are these: {listed(odd, 3)}? They do not look like names of people. {SAY_WHO}. "
            "If each is a student's, say --layout files"
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
    for reason, rank_of in STAGES.items():
        ranks = rank_of(left, reading.title.casefold())
        best = [h for h, rank in zip(left, ranks, strict=True) if rank == max(ranks)]
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
            names = [last_part(handin.name) for handin in near]
            if len({*names}) < len(names):
                names = [handin.name for handin in near]
            problem = f"{WHICH}: {listed(map(quoted, names))}"
            last = replace(last, held=True, problem=problem)
    return replace(last, of=len(handins), why=why)


def _attempts(handins, title):
    known = all(handin.attempt for handin in handins)
    return [handin.attempt * known for handin in handins]


def _likeness(handins, title):
    """Rank names by how far they are the assignment's: all of it, or else a part, or else any."""
    stems = [stem_of(last_part(handin.own)).casefold() for handin in handins]
    return [2 if numbered(stem, {title})[0] == title else int(title in stem) for stem in stems]


def _heights(handins, title):
    return [-handin.own.count("/") for handin in handins]


def _numbers(handins, title):
    """Rank the highest of names that are the same but for a number, as of downloads."""
    places = [handin.own.rpartition("/") for handin in handins]
    beside = {}
    for folder, _, name in places:
        beside.setdefault(folder, set()).add(stem_of(name))
    names = [(folder, *numbered(stem_of(name), beside[folder])) for folder, _, name in places]
    return [number == max(n for *own, n in names if own == same) for *same, number in names]


STAGES = {
    "the one of the newest attempt": _attempts,
    "the one with the assignment's name": _likeness,
    "the one nearest to the top": _heights,
    "the one with the highest number": _numbers,
}


def _chosen(rivals, texts):
    """Return the rivals with one of some texts in their names, or else in their folders'."""
    texts = [text.casefold() for text in texts]
    by_name, by_place = (
        [h for h in rivals if any(text in name_of(h.name).casefold() for text in texts)]
        for name_of in (last_part, str)
    )
    return by_name or by_place


def _questions(handins):
    """Yield what the instructor is asked of those who are held."""
    for problem, answer in ANSWERS.items():
        held = [handin for handin in handins if handin.problem.startswith(problem)]
        said = [f"{plain(h.student)}: {h.problem.removeprefix(f'{problem}: ')}" for h in held]
        if held:
            yield (
                f"{len(held)} held, the others are graded: {problem}, of {listed(said, 3)}. Repeat "
                f"the command with {answer}"
            )
