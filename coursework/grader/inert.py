"""Text of a student's that does nothing where it is shown: terminal, table, disk."""

import hashlib
import re
import unicodedata

MARK = re.compile(r"-[0-9a-f]{8,}$")
MOST_OF_A_NAME, MOST_OF_WORDS = 60, 200


def shown(text):
    """Return text as one line without control characters: no escape, no turned writing order."""
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in str(text)))


def plain(text):
    """Return what is kept of a student's words: as shown, 200 characters."""
    return shown(text)[:MOST_OF_WORDS]


def quoted(text):
    """Return a student's words between quotation marks, which nothing in them can close."""
    return f"“{re.sub('[“”]', chr(39), plain(text))}”"


def listed(names, most=10):
    """Return names in order for a message, and how many more; semicolons where one has a comma."""
    told = [shown(name)[:80] for name in sorted(names)]
    told = [name + "”" * (name.count("“") - name.count("”")) for name in told]  # where it was cut
    more = [f"and {len(told) - most} more"] * (len(told) > most)
    mark = "; " if any("," in name for name in told[:most]) else ", "
    return mark.join([*told[:most], *more])


def digest_of(student):
    """Return what tells a student's name from another that looks the same."""
    return hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def folders(students):
    """Return a folder's name for each student of a class, the same in whatever order they come.

    A name that a disk can hold is its own folder; another is what is left of it, and a mark. So is
    a name that looks like one with a mark, and one of two that a disk may take for one.

    `students` : pairs of the name as shown, and its `digest_of`
    """
    kept = ["".join(c if c.isalnum() or c in "-_. @" else "_" for c in n) for n, _ in students]
    kept = [name[:MOST_OF_A_NAME].strip(". ") for name in kept]
    alike = [unicodedata.normalize("NFKC", name).casefold() for name in kept]
    found = []
    for (name, digest), own, same in zip(students, kept, alike, strict=True):
        exact = own and own == name and digest_of(name) == digest and not MARK.search(name)
        found.append(own if exact and alike.count(same) == 1 else f"{own}-{digest[:12]}")
    return found
