"""Other systems, as far as one can be asked here: code pages, names of folders, what is missing.

Each row runs in a folder with a blank and an umlaut, with no home, no git and no other program,
without the modules that Windows has not, and with texts in Windows' old code page.
"""

import shutil
import subprocess
import sys

import pytest

from tools.release import ROOT, git

SETTINGS = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SETTINGS |= {"PYTHONIOENCODING": "cp1252", "PATH": "", "PYTHONPATH": "src"}
HEAD = """\
import runpy, sys
sys.path[0] = ""
sys.modules |= dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"])
"""
LIBRARY = """\
from tutorial_lib import example, show
from tutorial_lib.records import checkpoint, facts, question_bank, record
print(len([record("numpy_attention"), facts("models"), checkpoint("copying")]))
print(question_bank("04_multi_head_attention")["quiz"][0]["question"])
"""
MODULE = "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
GRADE = "coursework grade heads handins --layout folders --seed-file seed --out results"
ROWS = {  # what runs: its arguments, how it ends, what it says
    "library": (LIBRARY, "", 0, "3\n"),
    "release": (MODULE, "coursework release vectorised --out Ausgabe", 0, "Students get Ausgabe"),
    "grade": (MODULE, GRADE, 1, "hand-ins are graded on Linux"),
    "version": (MODULE, "tools.release 1.0.0", 2, "A release is a commit, and git finds none"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what runs, and a class of one, who has handed in something."""
    root = tmp_path_factory.mktemp("systems") / "Übung 1"
    for name in ("src", "tools", "coursework"):  # with what is compiled: it is the same
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    (root / "handins" / "anna").mkdir(parents=True)
    (root / "handins" / "anna" / "heads.ipynb").write_text("{}", encoding="utf-8")
    (root / "seed").write_text("17", encoding="utf-8")
    return root


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_it_works_or_says_what_is_missing(row, tree):
    code, arguments, status, words = row
    (tree / "run.py").write_text(HEAD + code, encoding="utf-8")
    command = [sys.executable, "run.py", *arguments.split()]
    run = subprocess.run(command, cwd=tree, env=SETTINGS, capture_output=True, check=False)
    told = (run.stdout + run.stderr).decode("cp1252", errors="replace").replace("\r\n", "\n")
    assert words in told, told
    assert run.returncode == status
    assert "Traceback" not in told


def test_git_changes_no_line_end_on_any_system():
    if (told := git(ROOT, "check-attr", "text", "eol", "--", "book/intro.md")) is None:
        pytest.skip("there is no git here: line ends are UNCHECKED")
    assert told.splitlines() == ["book/intro.md: text: auto", "book/intro.md: eol: lf"]
    data = "src/tutorial_lib/data/sha256.json"
    assert git(ROOT, "check-attr", "text", "--", data) == f"{data}: text: unset"
