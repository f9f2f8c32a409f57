"""What a batch keeps on disk: records that a loss of power leaves whole, notes of what has begun.

RESULTS/records/ holds a record for each file that was graded, named after its bytes. While a file
is graded, RESULTS/underway/ holds a note of that name, which is locked; a note without a lock is
of a grader that went down over this file, or beside it.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import threading
from pathlib import Path

from coursework.grader.sandbox import SandboxError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
FIELDS = {"function", "label", "points", "earned", "said", "fits", "mistake", "kept"}
ALONE, BESIDE = "alone", "beside others"
FORESEEN = (SandboxError, OSError, KeyboardInterrupt)  # errors that no hand-in is to blame for


class Damaged(Exception):
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
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
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
    """Notes of the files that are being graded, and what earlier graders have left of theirs.

    Parameters
    ----------
    folder : of the notes
    records : folder of the records; a note beside a record has served
    """

    def __init__(self, folder, records):
        self.folder, self.left = folder, {}
        make_folder(folder)
        for path in sorted(folder.iterdir()):
            how = _left(path)
            if how and (records / f"{path.name}.json").exists():
                path.unlink(missing_ok=True)
            elif how:
                self.left[path.name] = how

    @contextlib.contextmanager
    def note(self, key, how):
        """Keep a note while a file is graded; an error that the grader foresees takes it away."""
        path = self.folder / key
        number = self._open(path)
        try:
            with contextlib.suppress(BlockingIOError):
                _lock(number)
            os.truncate(number, 0)
            os.write(number, how.encode())
            os.fsync(number)
            yield
            path.unlink(missing_ok=True)
        except FORESEEN:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(number)

    def _open(self, path):
        while True:  # another grader may take the empty folder away at its end
            make_folder(self.folder)
            with contextlib.suppress(FileNotFoundError):
                return os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)

    def close(self):
        """Take the folder away where nothing is left in it."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _left(path):
    """Return how a grader that went down had begun a file; "" while another is at it."""
    try:
        with path.open("rb") as file:
            _lock(file.fileno())
            return ALONE if file.read(80) == ALONE.encode() else BESIDE
    except (BlockingIOError, FileNotFoundError):
        return ""


def _lock(number):
    """Lock a file for as long as it is open; where a disk knows no locks, do without.

    Raises
    ------
    BlockingIOError : another process has locked it
    """
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def temporary_folder():
    """Return a folder for a sandbox's library, which ends with the `with` block."""
    return tempfile.TemporaryDirectory(prefix="coursework-sandbox-")
