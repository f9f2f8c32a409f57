"""What a batch keeps on disk: records that a loss of power leaves whole, and what has begun.

RESULTS/records/ holds a record for each file that was graded, named after its bytes, and the file
`underway`, which one grader holds at a time: a line for each hand-in that it has begun.
"""

import contextlib
import fcntl
import json
import os
import threading
from pathlib import Path

from coursework.grader import GraderError
from coursework.grader.sandbox import SandboxError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
FIELDS = {"function", "label", "points", "earned", "said", "fits", "mistake", "kept"}
FORESEEN = (SandboxError, OSError, KeyboardInterrupt)  # errors that no hand-in is to blame for


class Damaged(GraderError):
    """A file of the results is empty or cut; says which, and what to do."""


def make_folder(path, mode=FOLDER_MODE):
    """Make a folder, of results for its owner alone; one that is there keeps its rights.

    Raises
    ------
    FileExistsError : a file is in its place
    """
    try:
        Path(path).mkdir(mode=mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileExistsError(
            f"{path} cannot be a folder, for a file is in its place: name another --out"
        ) from None


def put(path, content):
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


def put_json(path, content):
    """Write a dict as JSON, as `put` does."""
    put(path, json.dumps(content, indent=1, ensure_ascii=False))


def read_batch(folder):
    """Return what `batch.json` of a folder of results says, {} where there is none.

    Raises
    ------
    Damaged : it is empty or cut
    """
    path = Path(folder) / "batch.json"
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise Damaged(
            f"{path} is empty or cut. The records are in files of their own: move this file away, "
            "then repeat the command"
        ) from None


def read_record(path):
    """Return a record.

    Raises
    ------
    FileNotFoundError : there is none
    Damaged : it is empty or cut
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(record["problem"], str) and isinstance(record["remarks"], list)
        if whole and all(set(result) >= FIELDS for result in record["results"]):
            return record
    except (ValueError, KeyError, TypeError):
        pass
    raise Damaged(f"{path} is empty or cut")


class Journal:
    """The hand-ins that a grader has begun; after one that went down, those without a record.

    `left` : {key: whether it was graded alone}, of earlier graders

    Parameters
    ----------
    records : folder of the records

    Raises
    ------
    BlockingIOError : another grader is at work here
    """

    def __init__(self, records):
        self.records, self.guard = records, threading.Lock()
        number = os.open(records / "underway", os.O_RDWR | os.O_CREAT | os.O_APPEND, FILE_MODE)
        self.file = os.fdopen(number, "r+", encoding="utf-8")
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise BlockingIOError(
                f"another grader is at work in {records.parent}: wait for its end, or name another "
                "--out"
            ) from None
        except OSError:
            pass  # a disk that knows no locks
        lines = [line.partition(" ") for line in self.file.read().splitlines()]
        self.left = self._open({key: alone == "alone" for key, _, alone in lines})

    def _open(self, begun):
        """Return those without a record."""
        paths = {key: self.records / f"{key}.json" for key in begun}
        return {key: alone for key, alone in begun.items() if not paths[key].exists()}

    def note(self, key, alone):
        """Note that a hand-in is begun, so that it reaches the disk before anything happens."""
        with self.guard:
            self.file.write(f"{key} {'alone' if alone else 'beside'}\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        """Forget what this grader has begun, unless an error came that it did not foresee."""
        if kind is None or issubclass(kind, FORESEEN):
            self.file.truncate(0)
            for key, alone in self._open(self.left).items():
                self.note(key, alone)
        self.file.close()
