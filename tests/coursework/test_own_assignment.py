"""An instructor's own assignment is a folder, and needs no change anywhere else."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from coursework.__main__ import main
from coursework.grader import assignment
from tests.coursework.classes import ROOT, grades

OWN, COPIED = "my_task", "concatenation"
FUNCTIONS = {"concat_differences": "rows_at_one_scale"}
PARTS = ("coursework", "tools")  # all that the grader imports of the repository

pytestmark = pytest.mark.usefixtures("bubblewrap")


def write_own(root):
    """Put an assignment of one's own into a copy of the repository."""
    source, target = assignment.FOLDER / COPIED, root / "coursework" / "assignments" / OWN
    target.mkdir()
    for path in source.glob("*.*"):
        text = path.read_text(encoding="utf-8")
        for theirs, ours in FUNCTIONS.items():
            assert theirs in text
            text = text.replace(theirs, ours)
        (target / path.name).write_text(text, encoding="utf-8")


def run(root, *words):
    """Run a program of a copy, with nothing of this repository but the library; return its text."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=root, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_it_is_checked_released_and_graded(tmp_path):
    root = tmp_path / "copy"
    for part in PARTS:
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    write_own(root)
    assert "✓ fit to be given out" in run(root, "coursework", "check", OWN)
    run(root, "coursework", "release", OWN, "--out", tmp_path / "class")
    right = root / "coursework" / "assignments" / OWN / "assignment.ipynb"
    shutil.copy(right, tmp_path / "class" / "anna.ipynb")
    (tmp_path / "seed").write_text("5")
    given = ("--seed-file", tmp_path / "seed", "--out", tmp_path / "results")
    run(root, "coursework", "grade", OWN, tmp_path / "class", *given)
    assert grades(tmp_path / "results") == {OWN: 0, "anna": 10}


FAULTS = [  # of `heads`
    ("grading.py", "attend_at_scales", "attend_at_scale", "has mistakes of attend_at_scales"),
    ("mistakes.txt", "- k, v)", "- k, w)", "mistake .*: .* is not in attend_at_scales"),
    ("mistakes.txt", "    + k, 2", "    k, 2", "mistake values_summed: .* was never closed"),
    ("assignment.ipynb", "attend_at_scales", "attend_at", "` defines attend_at_scales"),
    ("grading.py", "ASSIGNMENT =", "ASSIGNMENT = =", r"grading.py, line \d+: SyntaxError"),
    ("grading.py", "ASSIGNMENT =", "1 / 0\nASSIGNMENT =", r", line \d+: ZeroDivisionError: div"),
    ("assignment.ipynb", "def attend_at_scales", "def attend at", "a solution.*: SyntaxError"),
    ("assignment.ipynb", '"solution"', '"mine"', "no cell with the tag `solution`"),
]


@pytest.mark.parametrize(("file", "was", "now", "said"), FAULTS)
def test_what_is_wrong_with_it_is_told_in_a_sentence(file, was, now, said, spoil, capsys):
    spoil(file, was, now)
    assert main(["check", "heads"]) == 1
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.long
def test_no_test_that_walks_over_the_assignments_fails_for_it(tmp_path):
    root = tmp_path / "copy"
    made = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "_build", "__pycache__")
    shutil.copytree(ROOT, root, ignore=made)
    write_own(root)
    chosen = ("-k", f"{OWN} or teach or assignments", "-m", "not long")
    places = (root / "tests" / name for name in ("chapters", "coursework", "tools"))
    run(root, "pytest", "-q", "-p", "no:cacheprovider", *chosen, *places)
