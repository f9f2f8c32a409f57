"""Grade a folder of hand-ins: prove the machine first, then each file once, and keep every record.

RESULTS/records/ holds a record for each file that was graded, named after its bytes; a batch that
was stopped goes on from there. `batch.json` says what was graded with what.
"""

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import nbformat

from coursework.grader.assignment import Exam, offer_library, read_notebook, without_solutions
from coursework.grader.handins import Unreadable
from coursework.grader.judge import grade, plain
from coursework.grader.sandbox import SECONDS, TORCH_SECONDS, Sandbox, SandboxError

ATTEMPTS = 3
JOBS = 2  # sandboxes at a time


class ProofFailed(Exception):
    """This machine does not give the reference all points and the untouched notebook none."""


class AnotherBatch(Exception):
    """The folder of results belongs to another assignment, seed or version."""


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

    def grade(self, content):
        """Grade the bytes of a notebook; a machine that fails is tried again before it is told."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return grade(self.exam, content, self.open_sandbox)
            except SandboxError:
                if attempt == ATTEMPTS:
                    raise


def set_bench(exam, folder, *, trusted=False, seconds=None):
    """Make ready to grade.

    Parameters
    ----------
    folder : an empty one that outlives the bench
    trusted : see `Sandbox`
    seconds : limit of one test; by default SECONDS, and TORCH_SECONDS with torch
    """
    offer_library(folder, exam.assignment)
    torch = exam.assignment.torch
    seconds = seconds or (TORCH_SECONDS if torch else SECONDS)
    start = partial(Sandbox, Path(folder), torch=torch, trusted=trusted, seconds=seconds)
    return Bench(exam, start)


def as_bytes(notebook):
    """Return a notebook as a file's content."""
    return nbformat.writes(notebook).encode()


def points(record):
    """Return the points of a record."""
    return sum(result["earned"] for result in record["results"])


def prove(bench):
    """Grade the reference and the untouched notebook, as hand-ins like any other.

    Raises
    ------
    ProofFailed : the one does not get all points, or the other gets some
    """
    notebook = read_notebook(bench.exam.name)
    reference = bench.grade(as_bytes(notebook))
    if points(reference) != bench.exam.out_of:
        why = [f"{r['label']}: {r['said']}" for r in reference["results"] if not r["earned"]]
        remarks = [": ".join(remark) for remark in reference["remarks"]]
        why = [w for w in (reference["problem"], *remarks, *why) if w]
        raise ProofFailed(
            f"the reference of {bench.exam.name} got {points(reference)} of {bench.exam.out_of} "
            f"points on this machine, so nothing was graded. {'; '.join(why[:4])}"
        )
    untouched = bench.grade(as_bytes(without_solutions(notebook)))
    if points(untouched):
        raise ProofFailed(
            f"the untouched notebook of {bench.exam.name} got {points(untouched)} points on this "
            "machine, so nothing was graded: a test gives points for nothing"
        )


def grade_batch(exam, handins, out, *, told=lambda done, of: None, **options):
    """Grade the last hand-in of every student that has no record yet.

    Parameters
    ----------
    exam : Exam
    handins : as `find_handins` returns them
    out : folder of the results, made when it is missing
    told : called with the number of students done, and of all
    options : `shard`, (number, of), the part of a class that these are; `jobs`, sandboxes at a
        time, by default JOBS; `trusted` and `seconds`, see `set_bench`

    Returns
    -------
    batch : dict, as stored in `batch.json`

    Raises
    ------
    AnotherBatch, ProofFailed, SandboxError : nothing more is graded; records stay
    """
    out, shard, jobs = Path(out), options.pop("shard", (1, 1)), options.pop("jobs", JOBS)
    head = {"assignment": exam.name, "seed": exam.seed, "digest": exam.digest}
    head |= {"trusted": options.get("trusted", False), "seconds": options.get("seconds")}
    require_same_batch(out, head)
    (out / "records").mkdir(parents=True, exist_ok=True)
    batch = head | {"shard": list(shard), "finished": False, "handins": []}
    write(out / "batch.json", batch)
    students = {}
    for handin in handins:
        students.setdefault(handin.student, []).append(handin)
    with tempfile.TemporaryDirectory() as folder:
        bench = set_bench(exam, folder, **options)
        prove(bench)
        reader = _Reader(bench, out / "records")
        entries = _in_parallel(reader.entry, students.values(), jobs, told)
    batch |= {"finished": True, "handins": entries}
    write(out / "batch.json", batch)
    return batch


def require_same_batch(out, head):
    """Turn down a folder that holds results of something else."""
    path = Path(out) / "batch.json"
    if path.exists():
        old = json.loads(path.read_text(encoding="utf-8"))
        if changed := [name for name in head if old.get(name) != head[name]]:
            said = ", ".join(f"{name} {old.get(name)} there, {head[name]} now" for name in changed)
            raise AnotherBatch(f"{out} holds results of another batch ({said}): name another --out")


def in_shard(student, number, of):
    """Whether a student belongs to a shard; it depends on the name alone, not on the class."""
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8]) % of == number - 1


class _Reader:
    """Turns a student's hand-ins into an entry of a batch; the same bytes are graded once."""

    def __init__(self, bench, records):
        self.bench, self.records = bench, records
        self.locks, self.guard = {}, threading.Lock()

    def entry(self, handins):
        handin = handins[-1]
        entry = {"student": plain(handin.student), "file": plain(handin.name)}
        entry |= {"id": name_of(handin.student), "of": len(handins)}
        try:
            content = handin.read()
        except Unreadable as error:
            return entry | {"problem": f"Not graded: {error}."}
        key = hashlib.sha256(content).hexdigest()[:32]
        path = self.records / f"{key}.json"
        with self.guard:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if not path.exists():
                write(path, self.bench.grade(content))
        return entry | {"record": key}


def name_of(student):
    """Return a student's name as a folder's: itself, or what is left of it and a mark."""
    kept = "".join(c if c.isalnum() or c in "-_. @" else "_" for c in student)[:60].strip(". ")
    if kept and kept == student:
        return kept
    mark = hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{kept}-{mark}"


def _in_parallel(work, items, jobs, told):
    """Map a function over items, a few at a time, in order; an error or Ctrl-C ends it at once."""
    items, results, waiting = list(items), {}, {}
    rest = iter(enumerate(items))
    pool = ThreadPoolExecutor(jobs)
    try:
        while True:
            for i, item in islice(rest, jobs - len(waiting)):
                waiting[pool.submit(work, item)] = i
            if not waiting:
                return [results[i] for i in range(len(items))]
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                results[waiting.pop(future)] = future.result()
            told(len(results), len(items))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def write(path, content):
    """Store a dict as JSON, all of it or nothing."""
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    part.replace(path)


def merge(folders, out):
    """Join the results of all shards of a class.

    Raises
    ------
    AnotherBatch : they are not of one assignment, seed and version, or not all and finished
    """
    batches = [json.loads((Path(f) / "batch.json").read_text(encoding="utf-8")) for f in folders]
    own = ("shard", "finished", "handins")
    head = {name: value for name, value in batches[0].items() if name not in own}
    for folder in [*folders, out]:
        require_same_batch(folder, head)
    _require_all(folders, batches)
    out = Path(out)
    (out / "records").mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for path in (Path(folder) / "records").glob("*.json"):
            write(out / "records" / path.name, json.loads(path.read_text(encoding="utf-8")))
    entries = [entry for batch in batches for entry in batch["handins"]]
    entries.sort(key=lambda entry: entry["student"])
    batch = head | {"shard": [1, 1], "finished": True, "handins": entries}
    write(out / "batch.json", batch)
    return batch


def _require_all(folders, batches):
    """Turn down shards that were stopped, and a class of which one is missing or comes twice."""
    for folder, batch in zip(folders, batches, strict=True):
        if not batch["finished"]:
            raise AnotherBatch(f"{folder} was stopped: repeat its command, then merge")
    given = sorted(batch["shard"] for batch in batches)
    of = given[0][1]
    if given != [[number, of] for number in range(1, of + 1)]:
        said = ", ".join(f"{number}/{all_}" for number, all_ in given)
        raise AnotherBatch(f"merge takes each shard of a class once, and was given {said}")
