"""Grade a folder of hand-ins: prove the machine first, then each file once, and keep every record.

RESULTS/records/ holds a record for each file that was graded, named after its bytes; a batch that
was stopped goes on from there. `batch.json` says what was graded with what.
"""

import hashlib
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import nbformat

from coursework.grader import GraderError
from coursework.grader.assignment import Exam, offer_library, read_notebook, without_solutions
from coursework.grader.corrections import read_corrections
from coursework.grader.entries import CORRECTED, KEPT, head_of, places_of, require_same_batch
from coursework.grader.files import Unreadable
from coursework.grader.inert import listed
from coursework.grader.judge import grade, points, scored
from coursework.grader.records import Damaged, Journal, make_folder, put_json, read_record
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS, Sandbox, SandboxError

ATTEMPTS = 3
JOBS = 2  # sandboxes at a time
WENT_DOWN = (
    "Not graded: the grader went down twice over this file, the second time with no other "
    "beside it. Ask your instructor."
)


@dataclass(frozen=True)
class Bench:
    """An exam and the means to grade with.

    Parameters
    ----------
    exam : Exam
    open_sandbox : starts a fresh sandbox
    """

    exam: Exam
    open_sandbox: Callable

    def grade(self, content, tests=()):
        """Grade the bytes of a notebook; a machine that fails is tried again before it is told.

        Parameters
        ----------
        tests : some of the exam's, by default all; each result has the digest of its own
        """
        exam = replace(self.exam, tests=tuple(tests) or self.exam.tests)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                record = grade(exam, content, self.open_sandbox)
                break
            except SandboxError:
                if attempt == ATTEMPTS:
                    raise
        for result, test in zip(record["results"], exam.tests, strict=True):
            result["test"] = test.digest
        return record

    def with_limit(self, seconds):
        """Return the same with another limit of a test, or itself for None."""
        if seconds is None:
            return self
        return replace(self, open_sandbox=partial(self.open_sandbox, seconds=seconds))


def set_bench(exam, folder, *, trusted=False, seconds=None):
    """Make ready to grade.

    Parameters
    ----------
    folder : an empty one that outlives the bench
    trusted : see `Sandbox`
    seconds : limit of one test; by default SECONDS, and TORCH_SECONDS with torch
    """
    try:
        offer_library(folder, exam.assignment)
    except OSError as error:
        why = error.strerror or "a file could not be written"
        raise SandboxError(
            f"there is no room for the sandbox's library in {folder} ({why}): make room there, or "
            "set TMPDIR to another folder"
        ) from None
    torch = exam.assignment.torch
    seconds = seconds or (TORCH_SECONDS if torch else SECONDS)
    start = partial(Sandbox, Path(folder), torch=torch, trusted=trusted, seconds=seconds)
    return Bench(exam, start)


def as_bytes(notebook):
    """Return a notebook as a file's content."""
    return nbformat.writes(notebook).encode()


def prove(bench):
    """Grade the reference and the untouched notebook, as hand-ins like any other.

    Raises
    ------
    GraderError : the one does not get all points, or the other gets some
    """
    notebook = read_notebook(bench.exam.name)
    reference = bench.grade(as_bytes(notebook))
    if points(reference) != bench.exam.out_of:
        why = [f"{r['label']}: {r['said']}" for r in reference["results"] if not r["earned"]]
        remarks = [": ".join(remark) for remark in reference["remarks"]]
        why = [w for w in (reference["problem"], *remarks, *why) if w]
        raise GraderError(
            f"the reference of {bench.exam.name} got {points(reference)} of {bench.exam.out_of} "
            f"points on this machine, so nothing was graded. {'; '.join(why[:4])}"
        )
    untouched = bench.grade(as_bytes(without_solutions(notebook)))
    if points(untouched):
        raise GraderError(
            f"the untouched notebook of {bench.exam.name} got {points(untouched)} points on this "
            "machine, so nothing was graded: a test gives points for nothing, or a cell with a "
            "solution lacks the tag `solution` and is given out"
        )


def grade_batch(exam, handins, out, *, told=lambda done, of: None, **options):
    """Grade the last hand-in of every student in the tests of which it has no record yet.

    Parameters
    ----------
    exam : Exam
    handins : as `find_handins` returns them
    out : folder of the results, made when it is missing
    told : called with the number of students done, and of all
    options : `source`, where the hand-ins lie; `jobs`, sandboxes at a time, by default JOBS;
        `only`, names of students who are graded anew while all others stay as they were; `say`,
        called with each sentence for the instructor; `trusted` and `seconds`, see `set_bench`;
        with `only`, seconds are for these students alone

    Returns
    -------
    batch : dict, as stored in `batch.json`

    Raises
    ------
    GraderError : nothing more is graded; records stay
    """
    out, only, jobs = Path(out), options.get("only") or (), options.get("jobs", JOBS)
    say = options.get("say", lambda sentence: None)
    head = head_of(exam, options)
    own, free = head["seconds"] if only else None, (*CORRECTED, *["seconds"] * bool(only))
    old = require_same_batch(out, head, free)
    entries, places = places_of(handins, old, head, only)
    head["seconds"] = old.get("seconds", head["seconds"])
    read_corrections(out, entries, list(head["points"]))
    make_folder(out)
    make_folder(out / "records")
    kept = KEPT | {name: old[name] for name in KEPT if name in old}
    batch = head | kept | {"finished": False, "handins": []}
    with Journal(out / "records") as journal, tempfile.TemporaryDirectory() as folder:
        if not only:
            put_json(out / "batch.json", batch)
        bench = set_bench(exam, folder, trusted=head["trusted"], seconds=head["seconds"])
        prove(bench)
        reader = _Reader(bench, journal, say, again=bool(only), seconds=own)
        _grade_all(reader, places, jobs, told)
    reader.tell(entries, places)
    batch |= {"finished": True, "handins": entries}
    put_json(out / "batch.json", batch)
    return batch


class _Reader:
    """Fills in the entries of a batch; the same bytes are graded once in the same test.

    `seconds` : limit of these hand-ins alone, kept in their records
    """

    def __init__(self, bench, journal, say, *, again, seconds=None):
        self.bench, self.say, self.again, self.seconds = bench, say, again, seconds
        self.changed, self.lacking = set(), set()  # records that were there; tests not in them
        self.journal, self.records = journal, journal.records
        self.left = {} if again else journal.left
        self.locks, self.guard, self.fresh = {}, threading.Lock(), set()

    def grade(self, place, *, alone=False):
        """Grade a hand-in for its entry; False when it has to wait until it is alone."""
        entry, handin = place
        try:
            content = handin.read()
        except Unreadable as error:
            entry["problem"] = f"Not graded: {error}."
            return True
        key = hashlib.sha256(content).hexdigest()[:32]
        if self.left.get(key):
            entry["problem"] = WENT_DOWN
            self.say(f"The grader went down twice over {entry['student']}; --only tries it again")
            return True
        if key in self.left and not alone:
            return False
        with self.guard:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.fresh:
                self._complete(key, content, alone, self._known(key, entry["student"]))
                self.fresh.add(key)
        entry["record"] = key
        return True

    def _complete(self, key, content, alone, known):
        """Write a record that has a result of each test, with the points of today."""
        seconds, tests = known.get("seconds", self.seconds), self.bench.exam.tests
        results = {result.get("test"): result for result in known.get("results", ())}
        missing = [test for test in tests if test.digest not in results]
        record = known
        if missing:
            self.journal.note(key, alone)
            record = self.bench.with_limit(seconds).grade(content, missing)
            results |= {result["test"]: result for result in record["results"]}
            record |= {"seconds": seconds} if seconds else {}
        record = record | {"results": scored([results[test.digest] for test in tests], tests)}
        if known and record != known:
            self.changed.add(key)
            self.lacking |= {test.digest for test in missing}
        put_json(self.records / f"{key}.json", record)

    def tell(self, entries, places):
        """Say whether the assignment has changed, and who shares a file with somebody chosen."""
        labels = listed(t.case.label for t in self.bench.exam.tests if t.digest in self.lacking)
        again = f"Graded again, for {len(self.changed)} hand-ins: {labels}" if labels else ""
        if self.changed:
            self.say(f"The assignment has changed. {again or 'Nothing had to be graded again'}")
        chosen = {entry["id"] for entry, _ in places}
        for entry in entries:
            if entry["id"] not in chosen and entry.get("record") in self.fresh:
                self.say(f"{entry['student']} has the same file, and so the new record too")

    def _known(self, key, student):
        try:
            return {} if self.again else read_record(self.records / f"{key}.json")
        except FileNotFoundError:
            return {}
        except Damaged as error:
            self.say(f"{error}: {student} is graded again")
            return {}


def _grade_all(reader, places, jobs, told):
    """Grade side by side; then each alone what a grader that went down has left.

    After an error or Ctrl-C, what waits is not begun.
    """
    waiting = places
    if not reader.again:
        pool = ThreadPoolExecutor(jobs)
        try:
            futures = [pool.submit(reader.grade, place) for place in places]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                told(done, len(places))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        waiting = [p for p, done in zip(places, futures, strict=True) if not done.result()]
    for place in waiting:
        reader.grade(place, alone=True)
