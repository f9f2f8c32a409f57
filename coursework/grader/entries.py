"""What `batch.json` says: which batch it is, and an entry for each student.

An entry has a student's name, `id` (the folder of reports), `mark` (which tells two names that look
alike), the file that counts, how many there were and why it is this one, whether it came late or is
held, and where its report goes; then a record's key, or why there is none.
"""

import os
from pathlib import Path

from coursework.grader import GraderError
from coursework.grader.corrections import called, nearest
from coursework.grader.inert import digest_of, folders, plain, shown
from coursework.grader.records import Damaged, read_batch, read_record
from coursework.grader.seeds import seal

OTHER = {"source": "class {} there, {} now", "seed": "a different seed"}  # of a different batch
TOLD = ("identifier", "address", "back", "late", "why", "held")  # where there is something to tell
CORRECTED = ("digest", "points")  # what a corrected assignment changes
KEPT = {"grades": "", "reported": {}}  # what reports leave for the next run


def head_of(exam, options):
    """Return what tells a batch from another."""
    points = dict.fromkeys(exam.functions, 0)
    for test in exam.tests:
        points[test.task.function] += test.case.points
    source = options.get("source") or ""
    if source:
        source = os.fsencode(Path(source).resolve()).decode("utf-8", "backslashreplace")
    head = {"assignment": exam.name, "seed": seal(exam), "digest": exam.digest, "points": points}
    head |= {"source": source, "trusted": options.get("trusted", False)}
    return head | {"seconds": options.get("seconds")}


def require_same_batch(out, head, free=()):
    """Turn down a folder that holds results of something else.

    Parameters
    ----------
    free : names of `head` that may have changed

    Returns
    -------
    old : the batch that is there, {} where there is none
    """
    old = read_batch(out)
    changed = [name for name in head if old and name not in free and old.get(name) != head[name]]
    if changed:
        there = {name: OTHER.get(name, f"{name} {{}} there, {{}} now") for name in changed}
        said = "; ".join(text.format(old.get(n), head[n]) for n, text in there.items())
        mend = "; or give a newer export of one class the old name" * ("source" in changed)
        raise GraderError(
            f"{out} holds results of a different batch ({said}): name another --out{mend}"
        )
    return old


def places_of(handins, old, head, only):
    """Return (entries of all students, pairs of an entry and the hand-in to grade for it)."""
    places = [(_entry(handin), handin) for handin in handins]
    entries = _in_order([entry for entry, _ in places])
    before, now = ({e["mark"] for e in each} for each in (old.get("handins", ()), entries))
    if before and now and before.isdisjoint(now):
        raise GraderError(
            f"none of the {len(before)} students of these results is in the class now: is it "
            "a different class? Name another --out"
        )
    if not only:
        return entries, places
    if not old:
        raise GraderError("--only grades again, and nothing was graded yet: first leave it out")
    if not old.get("finished"):
        raise GraderError("--only grades again: first repeat the same command without it")
    if old["digest"] != head["digest"]:
        raise GraderError("the assignment has changed: first repeat the command without --only")
    again = _find(only, entries)
    places = [(entry, handin) for entry, handin in places if entry["id"] in again]
    by_mark, new = ({e["mark"]: e for e in old["handins"]}, {e["mark"]: e for e, _ in places})
    for entry in (new[mark] for mark in new.keys() - by_mark.keys()):
        raise GraderError(
            f"{entry['student']!r} is not in the results yet: repeat the command without --only"
        )
    return _in_order(list((by_mark | new).values())), places


def record_of(folder, entry):
    """Return the record of a student, from a folder of results.

    Raises
    ------
    Damaged : it is empty, cut or gone
    """
    if "record" not in entry:
        return {"problem": entry["problem"], "remarks": [], "results": []}
    try:
        return read_record(Path(folder) / "records" / f"{entry['record']}.json")
    except (Damaged, FileNotFoundError) as error:
        raise Damaged(
            f"{error}. It is the record of {entry['student']}: repeat the command that made "
            f"{folder}, without --only"
        ) from None


def _entry(handin):
    entry = {"student": plain(handin.student), "file": plain(handin.name), "of": handin.of}
    told = {name: getattr(handin, name) for name in TOLD if getattr(handin, name)}
    entry |= {name: shown(text) if isinstance(text, str) else text for name, text in told.items()}
    return entry | {"mark": digest_of(handin.student)}


def _in_order(entries):
    """Return entries by their students' names, each with the name of its folder of reports."""
    entries = sorted(entries, key=lambda entry: (entry["student"], entry["mark"]))
    names = folders([(entry["student"], entry["mark"]) for entry in entries])
    for entry, name in zip(entries, names, strict=True):
        entry["id"] = name
    return entries


def _find(only, entries):
    """Return the folders of the students who go by some names."""
    known, found = called(entries), set()
    for name in map(shown, only):
        if name not in known:
            raise GraderError(f"there is no student {name!r}{nearest(name, entries)}")
        found |= known[name]
    return found
