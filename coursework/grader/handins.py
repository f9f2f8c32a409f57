"""The hand-ins of a class: a folder or a zip file, as a course's own system gives it out.

A notebook at the top is a student's of the file's name, without the " (1)" of a second download. A
folder at the top is a student's, with all notebooks below it. Links are never followed.
"""

import lzma
import os
import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOST_MB = 20
COPY = re.compile(r"\s*\((\d+)\)$")
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
DAMAGED += (RuntimeError, NotImplementedError, OSError, ValueError)


class HandinsError(Exception):
    """There is nothing here that can be graded."""


class Unreadable(Exception):
    """One hand-in cannot be read; the message goes into its report."""


@dataclass(frozen=True)
class Handin:
    """One file of a student.

    Parameters
    ----------
    student : name, as the class's folder has it
    name : the file's place in the folder, "" for a student without a notebook
    when : a time; the last hand-in of a student counts
    source : path of the folder or of the zip file
    """

    student: str
    name: str
    when: float
    source: Path

    def read(self):
        """Return the bytes of the notebook.

        Raises
        ------
        Unreadable : not a file of its own, too large, or not there
        """
        if not self.name:
            raise Unreadable("there is no .ipynb file")
        content = _from_zip(self) if self.source.is_file() else _from_folder(self)
        if len(content) > MOST_MB * 1_000_000:
            raise Unreadable(
                f"the file is larger than {MOST_MB} MB: clear the outputs and hand in again"
            )
        return content


def _from_folder(handin):
    try:
        number = os.open(handin.source / handin.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        link = os.path.islink(handin.source / handin.name)
        why = "it is a link: hand in the file itself" if link else error.strerror.lower()
        raise Unreadable(f"the file cannot be opened, {why}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise Unreadable("it is not a file")
        return file.read(MOST_MB * 1_000_000 + 1)


def _from_zip(handin):
    try:
        with zipfile.ZipFile(handin.source) as archive, archive.open(handin.name) as file:
            return file.read(MOST_MB * 1_000_000 + 1)
    except DAMAGED as error:
        raise Unreadable(f"the zip file does not give it out ({type(error).__name__})") from None


def find_handins(source):
    """Return every hand-in of a folder or zip file, by student, the one that counts last.

    Raises
    ------
    HandinsError : no such folder, or nothing in it
    """
    source = Path(source)
    if source.is_dir():
        found = list(_in_folder(source))
    elif zipfile.is_zipfile(source):
        found = list(_in_zip(source))
    else:
        raise HandinsError(f"{source} is neither a folder nor a zip file of hand-ins")
    if not found:
        raise HandinsError(f"{source} holds no .ipynb file and no folder of a student")
    notebooks = {handin.student for handin in found if handin.name}
    empty = {h.student: h for h in found if not h.name and h.student not in notebooks}
    found = [*(h for h in found if h.name), *empty.values()]
    return sorted(found, key=lambda h: (h.student, h.when, _copy(h.name), h.name))


def _copy(name):
    """Return the number of a repeated download, 0 for the first."""
    number = COPY.search(PurePosixPath(name).stem)
    return int(number[1][:9]) if number else 0


def other_files(source):
    """Return the names of the files that are no notebooks, in order."""
    source = Path(source)
    if source.is_dir():
        names = [str(p.relative_to(source)) for p in source.rglob("*") if not p.is_dir()]
    else:
        with zipfile.ZipFile(source) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    hidden = re.compile(r"(^|[/\\])[._]")  # as systems leave them: .DS_Store, __MACOSX
    return sorted(n for n in names if not n.lower().endswith(".ipynb") and not hidden.search(n))


def _student(parts):
    if len(parts) > 1:
        return parts[0]
    return COPY.sub("", parts[0][: -len(".ipynb")]) or parts[0]


def _wanted(parts):
    return parts[-1].lower().endswith(".ipynb") and not any(p.startswith(".") for p in parts)


def _in_folder(source):
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield Handin(entry.name, "", 0, source)
    for folder, _, files in os.walk(source):
        for file in files:
            path = Path(folder, file)
            parts = path.relative_to(source).parts
            if _wanted(parts):
                yield Handin(_student(parts), str(Path(*parts)), path.lstat().st_mtime, source)


def _in_zip(source):
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            path = PurePosixPath(entry.filename.replace("\\", "/"))
            parts = [part for part in path.parts if part not in ("/", "..", ".")]
            if parts and not entry.is_dir() and _wanted(parts):
                when = float("".join(f"{number:02}" for number in entry.date_time))
                yield Handin(_student(parts), entry.filename, when, source)
            elif len(parts) > 1 or (parts and entry.is_dir()):
                yield Handin(parts[0], "", 0, source)
