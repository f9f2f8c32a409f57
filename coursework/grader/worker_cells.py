"""What a notebook's file says: its code cells in the order of their runs, its language.

Needs the standard library alone, since it runs in the sandbox.
"""

import json
import re
import sys


def parse_notebook(content):
    """Return the parsed JSON of a file: UTF-8, UTF-16 or UTF-32, with a mark or without.

    An integer that is longer than Python reads, or a notebook needs, is 0.
    """
    text = content.decode(json.detect_encoding(content), "replace")
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 20 else 0)


def code_cells(notebook):
    """Return {number: source} of a notebook's code cells in the order in which they were run.

    A cell without an execution count stays behind the one above it. Where two cells have the same
    count, the kernel was started again between them, so all stay where they stand. ValueError: it
    has no list of cells.
    """
    cells = [cell for cell in _all_cells(notebook) if isinstance(cell, dict)]
    cells = [cell for cell in cells if cell.get("cell_type") == "code"]
    counts = [cell.get("execution_count", cell.get("prompt_number")) for cell in cells]
    counts = [count if type(count) is int else None for count in counts]
    known, turns, turn = [count for count in counts if count is not None], [], -1
    for number, count in enumerate(counts, start=1):
        turn = turn if count is None else count
        turns.append((turn if len({*known}) == len(known) else 0, number))
    return {number: _source(cells[number - 1]) for _, number in sorted(turns)}


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


def metadata(notebook, name):
    """Return a part of what a notebook says of itself, {} where it has not the form of one."""
    found = notebook.get("metadata")
    part = found.get(name) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def newer_python_version(notebook):
    """Return the Python that a notebook names if it is newer than the one that runs, else ""."""
    named = re.match(r"3\.(\d{1,2})", str(metadata(notebook, "language_info").get("version")))
    return named[0] if named and int(named[1]) > sys.version_info.minor else ""


def is_foreign(notebook):
    """Whether a notebook says that it is in another language than Python."""
    for part in (metadata(notebook, "kernelspec"), metadata(notebook, "language_info")):
        said = part.get("language", part.get("name"))
        if isinstance(said, str) and said and "python" not in said.lower():
            return True
    return False
