"""Kinds of notebooks, and what a real kernel makes of each: `points.json` holds the points.

    python -m tests.coursework.notebooks.corpus    run every kind in a kernel, write points.json

A kernel has no sandbox around it: every kind here is ours and harmless. `pip` is a stand-in there
that does nothing.
"""

import ast
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

import numpy as np
from jupyter_client.manager import KernelManager

from coursework.grader.assignment import set_exam, solution_source
from coursework.grader.judge import points, results
from tests.coursework.classes import MOST_S

HERE = Path(__file__).parent
NAME, SEED = "heads", 2027
POINTS = HERE / "points.json"
IMPORTS = (ast.Import, ast.ImportFrom)
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
CALL = """
import numpy as _numpy, pathlib as _pathlib
for _path in sorted(_pathlib.Path("CASES").glob("*.npz")):
    with _numpy.load(_path) as _file:
        _arguments = [_file[_name] for _name in _file.files]
    try:
        with _numpy.errstate(all="ignore"):
            _numpy.save(_path.with_suffix(".npy"), ANSWER(*_arguments))
    except BaseException:
        pass
"""


@dataclass(frozen=True)
class Kind:
    """A notebook: its name and cells, as dicts of version 4, and what is unusual about its file.

    Parameters
    ----------
    change : makes the file's text from that of a usual file
    """

    name: str
    cells: list
    metadata: dict = field(default_factory=METADATA.copy)
    encoding: str = "utf-8"
    change: Callable[[str], str] = str

    def content(self):
        """Return the bytes of the notebook."""
        notebook = {"cells": self.cells, "metadata": self.metadata, "nbformat": 4}
        text = self.change(json.dumps(notebook, ensure_ascii=False, indent=1))
        return text.encode(self.encoding, "surrogatepass")

    def run(self):
        """Return the sources of the code cells that were run, in the order of their counts."""
        code = [cell for cell in self.cells if cell.get("execution_count")]
        return [c["source"] for c in sorted(code, key=lambda cell: cell["execution_count"])]


def exam():
    """Return the assignment that the kinds answer, with its hidden cases."""
    return set_exam(NAME, SEED)


def kinds():
    """Return every kind: those of `kinds.txt`, and the first of them in unusual files."""
    texts = re.split(r"^=== ", (HERE / "kinds.txt").read_text("utf-8"), flags=re.MULTILINE)
    standing = _words()
    found = [_kind(text, standing) for text in texts[1:]]
    return [*found, *(Kind(name, found[0].cells, **how) for name, how in FILES.items())]


def _words():
    """Return what IMPORTS, SOLUTION, RIGHT and ANSWER stand for."""
    [answer] = exam().functions
    chosen = ast.parse(solution_source(NAME, [answer])).body
    imports = [ast.unparse(s) for s in chosen if isinstance(s, IMPORTS)]
    solution = "\n\n".join(ast.unparse(s) for s in chosen if not isinstance(s, IMPORTS))
    texts = {"IMPORTS": "\n".join(imports), "SOLUTION": solution, "ANSWER": answer}
    looks_alike = answer.replace("e", "\N{CYRILLIC SMALL LETTER IE}")
    return texts | {"RIGHT": solution.replace(answer, "right"), "ANSWЕR": looks_alike}


def _kind(text, standing):
    head, _, rest = text.partition("\n")
    name, *version = head.split()
    metadata = METADATA | {"language_info": {"version": "".join(version)}}
    cells = [_cell(part, standing) for part in re.split(r"^---", rest, flags=re.MULTILINE)[1:]]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if not any(cell["execution_count"] for cell in code):
        for count, cell in enumerate(code, start=1):
            cell["execution_count"] = count
    return Kind(name, cells, metadata)


def _cell(text, standing):
    head, _, source = text.partition("\n")
    source = "IMPORTS" if "IMPORTS" in head else source.rstrip("\n")
    for word, meant in standing.items():
        if "ANSW" in word:
            source = source.replace(word, meant)
        else:
            line = re.compile(rf"^( *){word}$", re.MULTILINE)
            source = line.sub(lambda found, meant=meant: indent(meant, found[1]), source)
    kind = next((kind for kind in ("raw", "markdown") if kind in head), "code")
    cell = {"cell_type": kind, "metadata": {}, "source": source}
    count = re.search(r"\d+", head)
    ran = {"execution_count": int(count[0]) if count else None, "outputs": []}
    return cell | ran if kind == "code" else cell


def _version_3(text):
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        lines = cell.pop("source").splitlines(keepends=True)
        cell |= {"input": lines, "prompt_number": cell.pop("execution_count"), "language": "python"}
    sheet = {"cells": notebook.pop("cells"), "metadata": {}}
    return json.dumps(notebook | {"nbformat": 3, "worksheets": [sheet]})


def _named(**kernelspec):
    return {"metadata": {"kernelspec": kernelspec}}


def _with(old, new):
    return {"change": lambda text: text.replace(old, new)}


FIRST = '"nbformat": 4'
FILES = {
    "kernel_without_language": _named(name="python3", display_name="Python 3", language=""),
    "kernel_with_language_python3": _named(name="python3", language="python3"),
    "kernel_xpython": _named(name="xpython", display_name="xpython", language="python"),
    "kernel_with_a_number_for_language": _named(name="mine", language=3),
    "kernel_of_one_name": _named(name="my-env"),
    "no_metadata": {"metadata": {}},
    "metadata_of_no_form": {"metadata": "Python"},
    "utf_8_with_a_mark": {"encoding": "utf-8-sig"},
    "utf_16": {"encoding": "utf-16"},
    "utf_16_without_a_mark": {"encoding": "utf-16-le"},
    "utf_32": {"encoding": "utf-32"},
    "latin_1": _with("def ", "# \xe9\\ndef ") | {"encoding": "latin-1"},
    "half_a_pair": _with("def ", "# \\ud83d\\ndef "),
    "half_a_pair_in_bytes": _with("def ", "# \ud83d\\ndef "),
    "integer_of_5000_digits": _with(FIRST, f'"long": {"9" * 5000}, {FIRST}'),
    "megabytes_of_outputs": _with(FIRST, f'"long": "{"x" * 5_000_000}", {FIRST}'),
    "carriage_returns": _with("\\n", "\\r\\n"),
    "tabs": _with("    ", "\\t"),
    "version_3": {"change": _version_3},
    "twice_the_same_counts": _with('"execution_count": 2', '"execution_count": 1'),
    "no_counts": {
        "change": lambda text: re.sub(r'"execution_count": \d', '"execution_count": null', text)
    },
}


def points_in_a_kernel(kind, exam):
    """Return the points that a notebook earns when a real kernel runs its cells and answers."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("cases", "bin"):
            (place / name).mkdir()
        (place / "bin" / "pip").write_text("#!/bin/sh\n", encoding="utf-8")
        (place / "bin" / "pip").chmod(0o755)
        for i, test in enumerate(exam.tests):
            np.savez(place / "cases" / f"{i}.npz", *test.case.arguments)
        [answer] = exam.functions
        call = CALL.replace("CASES", str(place / "cases")).replace("ANSWER", answer)
        _run([*kind.run(), call], place)
        found = [_value(place / "cases" / f"{i}.npy") for i in range(len(exam.tests))]
    replies = [("nothing", None) if value is None else ("value", value) for value in found]
    return points({"results": results(exam.tests, replies)})


def _run(sources, place):
    """Run cells in a kernel of their own, in a folder; whatever they ask for, the answer is 2."""
    manager = KernelManager(kernel_name="python3")
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    manager.start_kernel(cwd=place, env=os.environ | {"PATH": path}, stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=MOST_S)
        for source in sources:
            client.execute_interactive(
                source,
                timeout=MOST_S,
                allow_stdin=True,
                stdin_hook=lambda asked: client.input("2"),
                output_hook=lambda shown: None,
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _value(path):
    try:
        value = np.load(path, allow_pickle=False)
    except (EOFError, OSError, ValueError):
        return None
    return value if value.dtype.kind in "biufc" else None


def main():
    """Run every kind and write the points."""
    asked = exam()
    points = {kind.name: points_in_a_kernel(kind, asked) for kind in kinds()}
    POINTS.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
