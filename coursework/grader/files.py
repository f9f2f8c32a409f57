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


class Unreadable(Exception):
    """One hand-in cannot be read; the message goes into its report."""


@dataclass(frozen=True)
class Handin:
    """One file or folder of a class, and whose it is."""

    source: Path  # path of the class's folder or zip file
    name: str = ""  # its place there, "" for a student without a notebook
    parts: tuple = ()  # of this place, in one form
    when: float | None = None  # in seconds, None in a zip file: many systems give one time to all
    folder: bool = False  # whether it is a folder
    inside: str = ""  # the notebook's place in a zip file of the student's, "" for none
    student: str = ""  # name, as the class's folder or the roster has it
    identifier: str = ""  # number of the roster, or else of the system, "" for none
    address: str = ""  # for an e-mail, as the roster has it
    own: str = ""  # its place as the student named it
    attempt: str = ""  # of a system that keeps several, a text that sorts as they came
    back: str = ""  # its report's name in a zip file that the system takes back, "" for none
    late: bool = False  # whether the system says so
    problem: str = ""  # why there is nothing to be read, "" where there is
    held: bool = False  # whether it waits for an answer, which `problem` asks for
    of: int = 1  # how many the student handed in
    why: str = ""  # of several, why this one counts

    @property
    def path_in_class(self):
        """Its place in one text; a folder's ends in a slash."""
        return "/".join(self.parts) + "/" * self.folder

    @property
    def location(self):
        """The notebook's place, in a zip file of the student's or not."""
        return f"{self.name}/{self.inside}" if self.inside else self.name

    def ends(self, *endings):
        """Whether it is a file of one of these endings."""
        return not self.folder and self.parts[-1].lower().endswith(endings)

    def read(self):
        """Return the bytes of the notebook; Unreadable: it is too large, no file, or not there."""
        if self.problem or not self.name:
            raise Unreadable(self.problem or "there is no .ipynb file")
        content = content_of(self.source, self.name)
        return content_of(content, self.inside) if self.inside else content


def content_of(source, name):
    """Return the bytes of a file, MOST_MB at most.

    `source` : path of a folder or of a zip file, or a zip file's own bytes
    """
    most = MOST_MB * 1_000_000
    if isinstance(source, Path) and source.is_dir():
        content = _read_from_folder(source / name, most + 1)
    else:
        with _open_zip(source) as archive:
            info = {_decoded_file_name(info): info for info in archive.infolist()}[name]
            if info.compress_type not in PACKED:
                raise Unreadable("it is in a zip file of a rare kind: hand in the notebook itself")
            with archive.open(info) as file:
                content = file.read(most + 1)
    if len(content) > most:
        raise Unreadable(f"the file is larger than {MOST_MB} MB: clear outputs, hand in again")
    return content


def _read_from_folder(path, max_bytes):
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        link = os.path.islink(path)
        why = "it is a link: hand in the file itself" if link else error.strerror.lower()
        raise Unreadable(f"the file cannot be opened, {why}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise Unreadable("it is not a file")
        return file.read(max_bytes)


@contextlib.contextmanager
def _open_zip(source):
    """Open a zip file; the bytes of a student's may not list so many files as to cost memory."""
    if isinstance(source, bytes):
        if source.count(b"PK\x01\x02") > MOST_FILES:
            raise Unreadable(f"it holds more than {MOST_FILES} files: hand in the notebook")
        source = io.BytesIO(source)
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive
    except DAMAGED as error:
        raise Unreadable(f"the zip file does not give it out ({type(error).__name__})") from None


def entries_of(source):
    """Return what a class's folder or zip file holds but for what systems hide."""
    if source.is_dir():
        found = _entries_in_folder(source)
    else:
        try:
            found = [Handin(source, name, *of) for name, of in zip_entries(source).items()]
        except Unreadable as error:
            raise GraderError(f"{source} is no folder and no whole zip file: {error}") from None
    return [entry for entry in found if visible(entry.parts)]


def visible(parts):
    """Whether a person put this there: not .DS_Store, ._anna.ipynb, checkpoints, __MACOSX."""
    *above, last = parts
    hidden = last.startswith("._") or ".ipynb_checkpoints" in last
    hidden |= last.startswith(".") and not last.lower().endswith(".ipynb")
    return not (hidden or any(part.startswith(".") or part == "__MACOSX" for part in above))


def _entries_in_folder(source):
    found = []
    for folder, folders, files in os.walk(source, onerror=_raise_not_readable):
        place = Path(folder).relative_to(source)
        paths = {name: os.path.join(folder, name) for name in (*folders, *files)}
        folders[:] = [f for f in folders if f[0] != "." and not os.path.islink(paths[f])]
        for name in (*folders, *files):
            parts, when = normalise((*place.parts, name)), os.lstat(paths[name]).st_mtime
            found.append(Handin(source, str(place / name), parts, when, name in folders))
    return found


def _raise_not_readable(error):
    raise GraderError(
        f"{error.filename} cannot be opened ({error.strerror}): make it readable, or move it away"
    )


def zip_entries(source):
    """Return {name: (parts, time, whether it is a folder)} of what a zip file holds.

    Of two with one name the later one is what it gives out.
    """
    found = {}
    with _open_zip(source) as archive:
        for name in map(_decoded_file_name, archive.infolist()):
            parts = PurePosixPath(name.replace("\\", "/")).parts
            if parts := [part for part in parts if part not in ("/", "..", ".")]:
                found[name] = normalise(parts), None, name.endswith(("/", "\\"))
    return found


def _decoded_file_name(zip_info):
    """Return a name in a zip file; macOS and some others write UTF-8 and do not say so."""
    with contextlib.suppress(UnicodeError):
        if not zip_info.flag_bits & UTF_8:
            return zip_info.filename.encode("cp437").decode("utf-8")
    return zip_info.filename


def normalise(parts):
    """Return names in one form, of bounded length.

    macOS takes the dots off an ü; a notebook that came as heads.ipynb.txt is heads.ipynb.
    """
    return tuple(ENDINGS.sub("", unicodedata.normalize("NFC", part[:LONGEST])) for part in parts)


def stem_of(name):
    """Return a file's name without its ending."""
    return re.sub(r"(\.ipynb|\.zip)+$", "", name, flags=re.I)


def file_name_of(name):
    """Return the name of a file without the folders above it."""
    return PurePosixPath(name.replace("\\", "/")).name
