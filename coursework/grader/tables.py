"""CSV files, as spreadsheets write and read them."""

import csv
import io
import re

from coursework.grader import GraderError
from coursework.grader.inert import shown

SIGNS = (
    "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"  # also as East Asia types them
)
FORMULA = re.compile(rf"(^|[,;|:\t\"'])(\s*)(?=[{SIGNS}])")


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


def text_of_table(rows):
    """Return dicts as the text of a CSV file, in which no text begins a formula."""
    file = io.StringIO("\ufeff", newline="")
    file.seek(0, io.SEEK_END)
    writer = csv.DictWriter(file, max(rows, key=len, default=[]), restval="")
    writer.writeheader()
    writer.writerows({name: in_table(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def in_table(value):
    """Return a value for a cell of a CSV file; text begins no formula, whatever separates cells."""
    return FORMULA.sub(r"\1\2'", shown(value)) if isinstance(value, str) else value
