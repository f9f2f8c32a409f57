"""What a notebook's file says: its code cells in the order of their runs, its language.

Needs the standard library alone, since it runs in the sandbox.
"""

import json
from typing import NamedTuple


class Cell(NamedTuple):
    """A code cell: its number among them, its source, and when it was run, None for never."""

    number: int
    source: str
    count: int | None = None


def code_cells(notebook):
    """Return a notebook's code cells, given its parsed JSON, in the order in which they were run.

    A cell without an execution count stays behind the one above it. Where two cells have the same
    count, the kernel was started again between them, so all stay where they stand.

    Raises
    ------
    ValueError : it has no list of cells
    """
    found = [cell for cell in _all_cells(notebook) if isinstance(cell, dict)]
    found = [cell for cell in found if cell.get("cell_type") == "code"]
    cells = [Cell(i, _source(cell), _count(cell)) for i, cell in enumerate(found, start=1)]
    counts = [cell.count for cell in cells if cell.count is not None]
    if len(set(counts)) < len(counts):
        return cells
    turns, turn = [], -1
    for cell in cells:
        turn = turn if cell.count is None else cell.count
        turns.append((turn, cell.number))
    return [cells[number - 1] for _, number in sorted(turns)]


def _all_cells(notebook):
    notebook = notebook if isinstance(notebook, dict) else {}
    sheets = notebook.get("worksheets")  # until version 4 of the format
    for holder in (notebook, *(sheets if isinstance(sheets, list) else ())):
        if isinstance(holder, dict) and isinstance(holder.get("cells"), list):
            return holder["cells"]
    raise ValueError("a notebook has a list of cells")


def _source(cell):
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _count(cell):
    count = cell.get("execution_count", cell.get("prompt_number"))
    return count if type(count) is int else None


def as_text(content):
    """Return a file's text: UTF-8, UTF-16 or UTF-32, with a mark at its beginning or without."""
    return content.decode(json.detect_encoding(content), "replace")


def as_integer(digits):
    """Return an integer of JSON, 0 for one that is longer than Python reads or a notebook needs."""
    return int(digits) if len(digits) < 20 else 0


def metadata(notebook, name):
    """Return a part of what a notebook says of itself, {} where it has not the form of one."""
    found = notebook.get("metadata")
    part = found.get(name) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def is_foreign(notebook):
    """Whether a notebook says that it is in another language than Python."""
    for part in (metadata(notebook, "kernelspec"), metadata(notebook, "language_info")):
        said = part.get("language", part.get("name"))
        if isinstance(said, str) and said and "python" not in said.lower():
            return True
    return False
