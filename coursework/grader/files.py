"""What a class's folder or zip file holds, and how a hand-in in it is read.

Nothing is unpacked, links are never followed, and what a student packed is bounded before it is
opened.
"""

import contextlib
import io
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from coursework.grader import GraderError

MOST_MB = 20
MOST_FILES = 1_000  # in a zip file of a student's
LONGEST = 255  # letters of a name on a disk; in a zip file it can be 256 times that
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others are unpacked whole, however large
UTF_8 = 0x800  # the flag of a zip file that says so of a name
ENDINGS = re.compile(r"(?<=\.ipynb)(\.(txt|json))+$", re.I)  # that browsers and mail add
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
DAMAGED += (RuntimeError, NotImplementedError, OSError, OverflowError, ValueError)


class Question(GraderError):
    """The class can be read in two ways; the message says which, and what answers it."""

    def __str__(self):
        return f"{super().__str__()}. Nothing was graded"


class Unreadable(Exception):
    """One hand-in cannot be read; the message goes into its report."""


@dataclass(frozen=True)
class Handin:
    """One file of a student.

    Parameters
    ----------
    student : name, as the class's folder or the roster has it
    name : the file's place in the folder, "" for a student without a notebook
    when : a time in seconds
    source : path of the folder or of the zip file
    identifier, address : number and e-mail of the roster, or else of the system, "" for none
    zipped : the place of the student's zip file that the notebook is in, "" for none
    problem : why there is nothing to be read, "" where there is
    attempt : of a system that keeps several, a text that sorts as they came
    own : its place as the student named it
    back : its report's name in a zip file that the system takes back, "" for none
    late : whether the system says so
    of, why : how many the student handed in, and of several, why this one counts
    held : whether it waits for an answer, which `problem` asks for
    """

    student: str
    name: str
    when: float
    source: Path
    identifier: str = ""
    address: str = ""
    zipped: str = ""
    problem: str = ""
    attempt: str = ""
    own: str = ""
    back: str = ""
    late: bool = False
    of: int = 1
    why: str = ""
    held: bool = False

    def read(self):
        """Return the bytes of the notebook.

        Raises
        ------
        Unreadable : not a file of its own, too large, or not there
        """
        if self.problem or not self.name:
            raise Unreadable(self.problem or "there is no .ipynb file")
        content = content_of(self.source, self.zipped or self.name)
        if not self.zipped:
            return content
        inside = self.name[len(self.zipped) + 1 :]
        return _from_zip(io.BytesIO(small_zip(content)), inside)


def content_of(source, name):
    """Return the bytes of a file in a folder or zip file, MOST_MB at most."""
    content = _from_zip(source, name) if source.is_file() else _from_folder(source / name)
    return _not_too_large(content)


def _not_too_large(content):
    if len(content) > MOST_MB * 1_000_000:
        raise Unreadable(
            f"the file is larger than {MOST_MB} MB: clear the outputs and hand in again"
        )
    return content


def small_zip(content):
    """Turn down a zip file whose list of files alone would cost much memory."""
    if content.count(b"PK\x01\x02") > MOST_FILES:
        raise Unreadable(f"the zip file holds more than {MOST_FILES} files: hand in the notebook")
    return content


def _from_folder(path):
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        link = os.path.islink(path)
        why = "it is a link: hand in the file itself" if link else error.strerror.lower()
        raise Unreadable(f"the file cannot be opened, {why}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise Unreadable("it is not a file")
        return file.read(MOST_MB * 1_000_000 + 1)


def _from_zip(source, name):
    try:
        with zipfile.ZipFile(source) as archive:
            info = {_readable(info): info for info in archive.infolist()}[name]
            if info.compress_type not in PACKED:
                raise Unreadable("it is in a zip file of a rare kind: hand in the notebook itself")
            with archive.open(info) as file:
                return _not_too_large(file.read(MOST_MB * 1_000_000 + 1))
    except DAMAGED as error:
        raise Unreadable(f"the zip file does not give it out ({type(error).__name__})") from None


@dataclass(frozen=True)
class Entry:
    """A file or folder of a class: `parts` of its place, what the source calls it, its time."""

    parts: tuple
    name: str
    when: float
    folder: bool = False

    @property
    def path(self):
        """Its place in one text."""
        return "/".join(self.parts)

    def ends(self, *endings):
        """Whether it is a file of one of these endings."""
        return not self.folder and self.parts[-1].lower().endswith(endings)


def _is_zip(path):
    """Whether a file is a zip file, or began as one and is damaged."""
    if zipfile.is_zipfile(path):
        return True
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"
    return False


def entries_of(source):
    """Return what a folder or zip file holds but for what systems hide: .DS_Store, __MACOSX."""
    if source.is_dir():
        found = _in_folder(source)
    elif _is_zip(source):
        try:
            with zipfile.ZipFile(source) as archive:
                found = in_zip(archive)
        except DAMAGED as error:
            raise GraderError(f"{source} is a damaged zip file ({error}): fetch it again") from None
    else:
        raise GraderError(f"{source} is neither a folder nor a zip file of hand-ins")
    return [entry for entry in found if visible(entry)]


def visible(entry):
    """Whether a person put this there: not .DS_Store, ._anna.ipynb, checkpoints, __MACOSX."""
    *above, last = entry.parts
    if any(part.startswith(".") for part in above) or ".ipynb_checkpoints" in last:
        return False
    if last.startswith(".") and (last.startswith("._") or not entry.ends(".ipynb")):
        return False
    return "__MACOSX" not in entry.parts or entry.ends(".ipynb")


def _in_folder(source):
    found = []
    for folder, folders, files in os.walk(source, onerror=_no_way_in):
        place = Path(folder).relative_to(source).parts
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in folders:
            if not os.path.islink(os.path.join(folder, name)):
                found.append(Entry(composed((*place, name)), str(Path(*place, name)), 0.0, True))
        for name in files:
            try:
                when = os.lstat(os.path.join(folder, name)).st_mtime
            except OSError as error:
                _no_way_in(error)
            found.append(Entry(composed((*place, name)), str(Path(*place, name)), when))
    return found


def _no_way_in(error):
    raise GraderError(
        f"{error.filename} cannot be opened ({error.strerror}): make it readable, or move it away"
    )


def in_zip(archive):
    """Return the entries of a zip file; of two with one name the later one is what it gives out."""
    found = {}
    for info in archive.infolist():
        name = _readable(info)
        path = PurePosixPath(name.replace("\\", "/"))
        parts = [p for p in path.parts if p not in ("/", "..", ".")]
        parts = parts[1:] if parts and re.fullmatch(r"[A-Za-z]:", parts[0]) else parts
        if parts:
            folder = name.endswith(("/", "\\"))
            found[name] = Entry(composed(parts), name, _seconds(info), folder)
    return list(found.values())


def _readable(info):
    """Return a name in a zip file; macOS and some others write UTF-8 and do not say so."""
    if info.flag_bits & UTF_8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def composed(parts):
    """Return names in one form, of bounded length.

    macOS takes the dots off an ü; a notebook that came as heads.ipynb.txt is heads.ipynb.
    """
    return tuple(ENDINGS.sub("", unicodedata.normalize("NFC", part[:LONGEST])) for part in parts)


def _seconds(info):
    try:
        return datetime(*info.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def stem_of(name):
    """Return a file's name without its ending."""
    return re.sub(r"(\.ipynb|\.zip)+$", "", name, flags=re.I)


def last_part(name):
    """Return the name of a file without the folders above it."""
    return PurePosixPath(name.replace("\\", "/")).name
