"""What a folder of results keeps: which batch it is, an entry for each student, and records.

`batch.json` has the entries. Each has a student's name, `id` (the folder of reports), `mark` (which
tells two names that look alike), the file that counts, how many there were and why it is this one,
whether it came late or is held, and where its report goes; then a record's key, or why there is
none. `records/` holds a record for each file that was graded, named after its bytes.
"""

import contextlib
import json
import os
from pathlib import Path

from coursework.grader import GraderError
from coursework.grader.inert import digest_of, one_line, plain, report_folder_names
from coursework.grader.seeds import seal

NOTHING = "nothing was handed in"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
BATCH, RECORD = {"handins"}, {"problem", "remarks", "results"}  # what a file has to say
FIELDS = {"function", "label", "points", "earned", "said", "fits", "mistake", "kept"}
OTHER = {"source": "class {} there, {} now", "seed": "a different seed"}  # of a different batch
TOLD = ("identifier", "address", "back", "late", "why", "held")  # where there is something to tell
CORRECTED = ("digest", "points")  # what a corrected assignment changes
KEPT = {"grades": "", "reported": {}}  # what reports leave for the next run


class Damaged(GraderError):
    """A file of the results is empty or cut; says which, and what to do."""


def make_folder(path, mode=FOLDER_MODE):
    """Make a folder, of results for its owner alone; one that is there keeps its rights.

    FileExistsError: a file is in its place.
    """
    try:
        Path(path).mkdir(mode=mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileExistsError(
            f"{path} cannot be a folder, for a file is in its place: name another --out"
        ) from None


def write_file(path, content):
    """Write text or bytes for their owner alone: all of it, or nothing and the old file stays."""
    content = content.encode() if isinstance(content, str) else content
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            path.chmod(FILE_MODE)
            return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_json(path, content):
    """Write a dict as JSON, as `write_file` does."""
    write_file(path, json.dumps(content, indent=1, ensure_ascii=False))


@contextlib.contextmanager
def lock_folder(folder):
    """Keep all other graders out of a folder of records.

    GraderError: another grader is at work here; a system without the sandbox.
    """
    try:
        import fcntl  # which Windows has not; there everything but grading works
    except ImportError:
        raise GraderError(
            "hand-ins are graded on Linux, and this system cannot: run the command in a Linux "
            "machine, on Windows in WSL or a virtual machine"
        ) from None
    with (folder / "underway").open("a") as file:
        os.fchmod(file.fileno(), FILE_MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GraderError(
                f"another grader is at work in {folder.parent}: wait for its end, or name another "
                "--out"
            ) from None
        except OSError:
            pass  # a disk that knows no locks
        yield


def read_result(path, needed):
    """Return the dict of a file of results, {} where there is none; Damaged: it lacks something.

    `needed` : what it has to say, BATCH or RECORD
    """
    if not path.exists():
        return {}
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        found = dict(json.loads(path.read_text(encoding="utf-8")))
        if needed <= found.keys() and all(r.keys() >= FIELDS for r in found.get("results", ())):
            return found
    raise Damaged(f"{path} is empty or cut: move this file away, then repeat the command")


def read_record(folder, entry):
    """Return the record of a student, from a folder of results; Damaged: it is cut or gone."""
    if "record" not in entry:
        return {"problem": entry["problem"], "remarks": [], "results": []}
    path = Path(folder) / "records" / f"{entry['record']}.json"
    if record := read_result(path, RECORD):
        return record
    raise Damaged(f"{path} is gone, the record of {entry['student']}: repeat the command")


def batch_head(exam, options):
    """Return what tells a batch from another."""
    points = dict.fromkeys(exam.functions, 0)
    for test in exam.tests:
        points[test.task.function] += test.case.points
    place = os.fsencode(Path(options["source"]).resolve()) if options.get("source") else b""
    head = {"assignment": exam.name, "seed": seal(exam), "digest": exam.digest, "points": points}
    head |= {"source": place.decode("utf-8", "backslashreplace")}
    return head | {"trusted": options.get("trusted", False), "seconds": options.get("seconds")}


def require_same_batch(out, head):
    """Return the batch of a folder, {} for none; turn one down that is not the same, corrected."""
    old = read_result(Path(out) / "batch.json", BATCH)
    changed = [n for n in head if old and n not in CORRECTED and old.get(n) != head[n]]
    if changed:
        there = {name: OTHER.get(name, f"{name} {{}} there, {{}} now") for name in changed}
        said = "; ".join(text.format(old.get(n), head[n]) for n, text in there.items())
        mend = "; or give a newer export of one class the old name" * ("source" in changed)
        raise GraderError(
            f"{out} holds results of a different batch ({said}): name another --out{mend}"
        )
    return old


def entries_with_handins(handins, old_batch):
    """Return pairs of a student's entry and hand-in, in the order of names.

    Each entry has the name of its folder of reports.
    """
    pairs = []
    for handin in handins:
        told = {name: getattr(handin, name) for name in TOLD if getattr(handin, name)}
        told = {name: t if isinstance(t, bool) else one_line(t) for name, t in told.items()}
        entry = {"student": plain(handin.student), "file": plain(handin.location), "of": handin.of}
        pairs.append((entry | told | {"mark": digest_of(handin.student)}, handin))
    pairs.sort(key=lambda pair: (pair[0]["student"], pair[0]["mark"]))
    before = {e[key] for e in old_batch.get("handins", ()) for key in ("mark", "file")} - {""}
    now = {e[key] for e, _ in pairs for key in ("mark", "file")} - {""}  # a roster renames all
    if before and now and before.isdisjoint(now):
        raise GraderError(
            "nobody of these results is in the class now: is it a different one? Name another --out"
        )
    names = report_folder_names([(entry["student"], entry["mark"]) for entry, _ in pairs])
    for (entry, _), name in zip(pairs, names, strict=True):
        entry["id"] = name
    return pairs
