"""Text of a student's that does nothing where it is shown: terminal, table, disk.

Tables are CSV files, as spreadsheets write and read them.
"""

import csv
import hashlib
import io
import re
import unicodedata

from coursework.grader import GraderError

MARK = re.compile(r"-[0-9a-f]{8,}$")
MOST_OF_A_NAME, MOST_OF_WORDS = 60, 200
SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"  # as in East Asia, too
FORMULA = re.compile(rf"(^|[,;|:\t\"'])(\s*)(?=[{SIGNS}])")


def one_line(text):
    """Return text as one line without control characters: no escape, no turned writing order."""
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in str(text)))


def plain(text):
    """Return what is kept of a student's words: as shown, 200 characters."""
    return one_line(text)[:MOST_OF_WORDS]


def quote(text):
    """Return a student's words between quotation marks, which nothing in them can close."""
    return f"“{re.sub('[“”]', chr(39), plain(text))}”"


def name_list(names, max_names=10):
    """Return names in order for a message, and how many more; semicolons where one has a comma."""
    told = [one_line(name)[:80] for name in sorted(names)]
    told = [name + "”" * (name.count("“") - name.count("”")) for name in told]  # where it was cut
    more = [f"and {len(told) - max_names} more"] * (len(told) > max_names)
    mark = "; " if any("," in name for name in told[:max_names]) else ", "
    return mark.join([*told[:max_names], *more])


def digest_of(student):
    """Return what tells a student's name from another that looks the same."""
    return hashlib.sha256(student.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def report_folder_names(students):
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


def read_table(path):
    """Return the rows of a CSV file, each as long as the first, its header.

    Commas, semicolons or tabs are between cells; the text is UTF-8 or western Europe's.
    GraderError: it cannot be read, or holds nothing.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8-sig").lstrip("\r\n")
    except UnicodeDecodeError:  # Excel's "CSV" in western Europe
        text = content.decode("cp1252", "replace").lstrip("\r\n")
    sign = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise GraderError(f"{path}, line {reader.line_num}: {error}") from None
    if not rows:
        raise GraderError(f"{path} is empty: it begins with a line of column names")
    return [[*row, *[""] * (len(rows[0]) - len(row))] for row in rows]


def table_as_csv(rows):
    """Return dicts as the text of a CSV file, in which no text begins a formula."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, max(rows, key=len, default=[]), restval="")
    writer.writeheader()
    writer.writerows({name: safe_table_cell(value) for name, value in row.items()} for row in rows)
    return f"\ufeff{file.getvalue()}"


def safe_table_cell(value):
    """Return a value for a cell of a CSV file; text begins no formula, whatever separates cells."""
    return FORMULA.sub(r"\1\2'", one_line(value)) if isinstance(value, str) else value
