"""A chapter's file alone, in Colab's versions, installs the library and prints what is stored.

An assignment of each part that has one goes the whole way: out of the book, through Colab's
versions and Colab's form of a file, back to the grader.

`make colab-check` asks this, and `make test` does not.
"""

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from coursework.grader.assignment import solution_source
from coursework.grader.release import release
from tests.chapters.named import points
from tests.chapters.pages import NAMES, code_cells, listed, printed, read, written
from tests.chapters.planted import cell_of, good
from tests.conftest import found_weights
from tests.coursework.classes import command, grades
from tests.wheel import build_wheel
from tools.chapters import ROOT, page
from tools.environment import COLAB, python_of
from tutorial_lib.models.real.model import MISSING, VARIABLE, real_file

PYTHON = python_of(ROOT / "_build" / "colab")  # which `make colab-check` has made
LIBRARY = "tutorial-lib"
OUTER = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
TOOL = ROOT / "tools" / "run_notebooks.py"
WALKS = {"Part I": "heads", "Part II": "masks", "Part III": "kv_cache", "Part IV": "scored_heads"}
FORM = {  # what Colab's *Download .ipynb* says of a file; the ids of cells are in their metadata
    "colab": {"provenance": []},
    "kernelspec": {"name": "python3", "display_name": "Python 3"},
    "language_info": {"name": "python"},
}
PICTURE = re.compile(r'<svg\b.*?</svg>|<img\b[^>]*>| style="[^"]*"', re.DOTALL)  # and its room


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The library's wheel; the environment has all that it needs, and not the library."""
    if LIBRARY in versions():
        run(PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", LIBRARY)
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def run(*command, folder=ROOT, **settings):
    """Run a command in a surrounding of its own; return what it prints."""
    outer = {name: value for name, value in os.environ.items() if name not in OUTER}
    env = outer | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | settings
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def versions():
    """The version of every installed package."""
    ask = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name, d.version)"
    return dict(line.split() for line in run(PYTHON, "-c", ask).splitlines())


def differences(stored, fresh):
    """List the cells that print, or show besides pictures, something else than is stored."""
    found = []
    for before, after in zip(code_cells(stored), code_cells(fresh), strict=True):
        if any(output.get("name") == "stderr" for output in after.outputs):
            found.append(f"{before.id} wrote to stderr: {printed(after)}")
        elif printed(before) != printed(after):
            found.append(f"{before.id} printed:\n{printed(after)}\nstored:\n{printed(before)}")
        elif _pages(before) != _pages(after):
            found.append(f"{before.id} shows another page, apart from its picture")
    return found


def _pages(cell):
    data = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
    return [PICTURE.sub("", page) for page in data]


@pytest.mark.colab
@pytest.mark.parametrize("name", NAMES)
def test_notebook_alone_prints_what_is_stored(wheel, tmp_path, name):
    alone = Path(shutil.copy(page(name).path, tmp_path))
    before = versions()
    given = {"TUTORIAL_LIB_SOURCE": str(wheel)}
    if page(name).needs_weights:
        given[VARIABLE] = str(real_file()) if found_weights() else pytest.skip(MISSING)
    run(PYTHON, TOOL, alone, folder=tmp_path, **given)
    found = differences(written(name), read(alone))
    assert not found, f"print what Colab's versions print too: {listed(found)}"
    assert versions() == before | {LIBRARY: wheel.name.split("-")[1]}
    assert f"numpy=={before['numpy']}" in COLAB


def solve(notebook, name):
    """Write the solution of an assignment below its stubs, as a student does."""
    cells = []
    for cell in notebook.cells:
        stubs = re.findall(r"^def (\w+)\(", cell.source, re.M) if cell.cell_type == "code" else []
        cells += [cell, *(new_code_cell(solution_source(name, [stub])) for stub in stubs)]
    notebook.cells = cells


def as_colab_writes_it(notebook):
    """Return the text of a notebook in Colab's form."""
    cells = [cell | {"metadata": {"id": cell["id"]}} for cell in notebook.cells]
    for cell in cells:
        del cell["id"]
    return json.dumps({"nbformat": 4, "nbformat_minor": 0, "metadata": FORM, "cells": cells})


@pytest.mark.colab
@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("name", WALKS.values(), ids=WALKS)
def test_assignment_is_opened_run_solved_exported_handed_in_and_graded(wheel, tmp_path, name):
    mine, handins = release(name, tmp_path / "mine"), tmp_path / "handins"
    notebook = nbformat.read(mine, as_version=4)
    solve(notebook, name)
    nbformat.write(notebook, mine)
    run(PYTHON, TOOL, mine, folder=mine.parent, TUTORIAL_LIB_SOURCE=str(wheel))
    handins.mkdir()
    text = as_colab_writes_it(nbformat.read(mine, as_version=4))
    (handins / "anna.ipynb").write_text(text, encoding="utf-8")
    (tmp_path / "seed").write_text("5", encoding="utf-8")
    given = ("--seed-file", tmp_path / "seed", "--out", tmp_path / "results")
    run(*command("grade", name, handins, *given))
    assert grades(tmp_path / "results") == {"anna": points(name)}


@pytest.mark.parametrize(
    ("cell", "old", "new", "noticed"),
    [
        ("text", "0.571", "0.572", True),
        ("figure", "share 0.5714", "share 0.5715", True),
        ("figure", 'r="0.5714"', 'r="0.5715"', False),
        ("figure", "<svg", "<b>other</b><svg", True),
        ("text", "stdout", "stderr", True),
    ],
)
def test_only_the_bytes_of_a_picture_may_differ(cell, old, new, noticed):
    fresh = copy.deepcopy(good())
    outputs = json.dumps(cell_of(fresh, cell).outputs)
    changed = json.loads(outputs.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))
    cell_of(fresh, cell).outputs = nbformat.from_dict(changed)
    assert changed != json.loads(outputs)
    assert [fault.split()[0] for fault in differences(good(), fresh)] == [cell] * noticed
