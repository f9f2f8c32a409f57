"""Grade a folder of hand-ins: prove the machine first, then each file once, and keep every record.

RESULTS/records/ holds a record for each file that was graded, named after its bytes; a batch that
was stopped goes on from there. `batch.json` says what was graded with what.
"""

import hashlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import nbformat

from coursework.grader import GraderError
from coursework.grader.assignment import Exam, offer_library, read_notebook, without_solutions
from coursework.grader.corrections import read_corrections
from coursework.grader.files import Unreadable
from coursework.grader.inert import name_list
from coursework.grader.judge import grade, points, scored
from coursework.grader.records import (
    KEPT,
    RECORD,
    Damaged,
    batch_head,
    entries_with_handins,
    lock_folder,
    make_folder,
    read_result,
    require_same_batch,
    write_json,
)
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS, Sandbox

JOBS = 2  # sandboxes at a time


@dataclass(frozen=True)
class GradingBench:
    """An exam and the means to grade with."""

    exam: Exam  # Exam
    open_sandbox: Callable  # starts a fresh sandbox

    def grade(self, content, tests=()):
        """Grade the bytes of a notebook.

        `tests` : some of the exam's, by default all; each result has the digest of its own
        """
        exam = replace(self.exam, tests=tuple(tests) or self.exam.tests)
        record = grade(exam, content, self.open_sandbox)
        for result, test in zip(record["results"], exam.tests, strict=True):
            result["test"] = test.digest
        return record


def set_bench(exam, folder, *, trusted=False, seconds=None):
    """Make ready to grade.

    `folder` : an empty one that outlives the bench
    `trusted` : see `Sandbox`
    `seconds` : limit of one test; by default SECONDS, and TORCH_SECONDS with torch
    """
    offer_library(folder, exam.assignment)
    torch = exam.assignment.torch
    seconds = seconds or (TORCH_SECONDS if torch else SECONDS)
    start = partial(Sandbox, Path(folder), torch=torch, trusted=trusted, seconds=seconds)
    return GradingBench(exam, start)


def as_bytes(notebook):
    """Return a notebook as a file's content."""
    return nbformat.writes(notebook).encode()


def prove(bench):
    """Grade the reference and the untouched notebook, as hand-ins like any other.

    GraderError: the one does not get all points, or the other gets some.
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


def grade_batch(exam, handins, out, *, on_progress=lambda done, of, names: None, **options):
    """Grade the hand-in of every student in the tests of which it has no record yet.

    Return the batch, as stored in `batch.json`. GraderError: nothing more is graded; records stay.

    `exam` : Exam
    `handins` : as `find_handins` returns them
    `out` : folder of the results, made when it is missing
    `on_progress` : called with the number of files done, and of all, and whose are being graded
    `options` : `source`, where the hand-ins lie; `jobs`, sandboxes at a time, by default JOBS;
        `say`, called with each sentence for the instructor; `trusted`, `seconds`: see `set_bench`
    """
    out, head, say = Path(out), batch_head(exam, options), options.get("say", lambda sentence: None)
    old = require_same_batch(out, head)
    entries = entries_with_handins(handins, old)
    read_corrections(out, [entry for entry, _ in entries], list(head["points"]))
    make_folder(out)
    make_folder(out / "records")
    kept = KEPT | {name: old[name] for name in KEPT if name in old}
    batch = head | kept | {"handins": []}
    with lock_folder(out / "records"), tempfile.TemporaryDirectory() as folder:
        write_json(out / "batch.json", batch)
        bench = set_bench(exam, folder, trusted=head["trusted"], seconds=head["seconds"])
        prove(bench)
        _Grader(bench, out / "records", say).grade(entries, options.get("jobs", JOBS), on_progress)
    batch["handins"] = [entry for entry, _ in entries]
    write_json(out / "batch.json", batch)
    return batch


class _Grader:
    """Fills in the entries of a batch; the same bytes are graded once in the same test."""

    def __init__(self, bench, records, tell_instructor):
        self.bench, self.records, self.say = bench, records, tell_instructor
        self.changed, self.lacking = set(), set()  # records that were there; tests not in them

    def grade(self, entries, jobs, on_progress):
        """Grade hand-ins for their entries; after an error or Ctrl-C, what waits is not begun."""
        files = {}
        for entry, handin in entries:
            try:
                entry["record"] = hashlib.sha256(handin.read()).hexdigest()[:32]
                files.setdefault(entry["record"], (entry, handin))
            except Unreadable as error:
                entry["problem"] = f"Not graded: {error}."
        pool = ThreadPoolExecutor(jobs)
        try:
            futures = {pool.submit(self._complete, *p): p[0]["student"] for p in files.values()}
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                on_progress(done, len(futures), [futures[f] for f in futures if f.running()])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        labels = name_list(t.case.label for t in self.bench.exam.tests if t.digest in self.lacking)
        again = f"Graded again, for {len(self.changed)} hand-ins: {labels}" if labels else ""
        if self.changed:
            self.say(f"The assignment has changed. {again or 'Nothing had to be graded again'}")

    def _complete(self, entry, handin):
        """Write a record that has a result of each test, with the points of today."""
        path, tests = self.records / f"{entry['record']}.json", self.bench.exam.tests
        try:
            record = known = read_result(path, RECORD)
        except Damaged:
            self.say(f"{path} is empty or cut: {entry['student']} is graded again")
            record = known = {}
        results = {result.get("test"): result for result in known.get("results", ())}
        if missing := [test for test in tests if test.digest not in results]:
            record = self.bench.grade(handin.read(), missing)
            results |= {result["test"]: result for result in record["results"]}
        record = record | {"results": scored([results[test.digest] for test in tests], tests)}
        if known and record != known:
            self.changed.add(path)
            self.lacking |= {test.digest for test in missing}
        write_json(path, record)
