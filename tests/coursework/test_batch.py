"""A batch proves its machine, goes on where it was stopped, and grades no file twice."""

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from coursework.__main__ import main
from coursework.grader import GraderError, assignment, batch
from coursework.grader.assignment import read_notebook, set_exam, without_solutions
from coursework.grader.batch import grade_batch, prove
from coursework.grader.handins import find_handins
from coursework.grader.sandbox import SandboxError
from tests.coursework.classes import (
    ENDLESS,
    MOST_S,
    NAME,
    ROOT,
    command,
    counting,
    grades,
    hand_in,
    processes,
    text_of,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("bubblewrap")
LONG = pytest.mark.long


def test_class_is_graded_and_a_second_run_grades_nothing_again(
    folder, out, monkeypatch, capsys, seed
):
    assert main(["grade", NAME, str(folder), *seed(2027), "--out", str(out)]) == 0
    assert grades(out) == {"anna": 10, "ben": 0, "cem": 10}
    said = capsys.readouterr()
    assert "3 of 3 hand-ins" in said.err
    assert "3 students" in said.out
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    graded = counting(monkeypatch)
    hand_in(folder, "dora", mark="anna")  # the same bytes as Anna's
    assert main(["grade", NAME, str(folder), *seed(2027), "--out", str(out)]) == 0
    assert len(graded) == 2, "the reference and the untouched notebook alone"
    assert grades(out) == {"anna": 10, "ben": 0, "cem": 10, "dora": 10}
    for path, content in before.items():
        is_record = path.suffix not in (".csv", ".zip") and path.name != "batch.json"
        assert not is_record or path.read_bytes() == content


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=LONG)])
def test_a_stopped_batch_keeps_what_it_has_and_goes_on(folder, out, seed, number):
    for i in range(6):  # two are graded at a time, so one of the last three is not before Ctrl-C
        hand_in(folder, f"student {i}", more=ENDLESS if i >= 3 else "")
    line = command("grade", NAME, folder, *seed(1), "--out", out)
    heed = partial(signal.signal, number, signal.SIG_DFL)  # a job in the background does not
    run = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    wait_until(lambda: len(list(out.glob("records/*.json"))) >= 3, "the first three records")
    run.send_signal(number)
    _, said = run.communicate(timeout=MOST_S)
    assert run.returncode == 130
    assert "The same command goes on from here" in said
    kept = {path: path.stat().st_mtime_ns for path in out.glob("records/*.json")}
    assert 3 <= len(kept) < 9
    assert not list(out.glob("records/*.part"))
    for i in range(3, 6):
        hand_in(folder, f"student {i}")
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(grades(out)) == 9


def test_a_grader_that_is_killed_leaves_no_sandbox_behind(folder, out, tmp_path, seed):
    hand_in(folder, "endless", more=ENDLESS)
    own, said = tmp_path / "temporary", tmp_path / "said"
    own.mkdir()
    line = command("grade", NAME, folder, *seed(1), "--seconds", "60", "--out", out)
    with said.open("w") as file:
        run = subprocess.Popen(line, cwd=ROOT, env=os.environ | {"TMPDIR": str(own)}, stderr=file)
    wait_until(lambda: "3 of 4 hand-ins, at work on endless" in said.read_text(), "the first three")
    assert str(own) in processes()
    run.kill()
    run.wait()
    wait_until(lambda: str(own) not in processes(), "the end of the sandbox")


def test_a_reference_without_all_points_stops_the_batch(folder, out, monkeypatch):
    exam = set_exam(NAME, 1)
    wrong = without_solutions(read_notebook(NAME))
    monkeypatch.setattr(batch, "read_notebook", lambda name: wrong)
    with pytest.raises(GraderError, match=r"got 0 of 10 points .* not done yet"):
        grade_batch(exam, find_handins(folder), out)
    assert not list(out.glob("records/*.json"))


def test_an_untouched_notebook_with_points_stops_the_batch(folder, out, monkeypatch):
    monkeypatch.setattr(batch, "without_solutions", lambda notebook: notebook)
    with pytest.raises(GraderError, match="untouched notebook of heads got 10 points"):
        grade_batch(set_exam(NAME, 1), find_handins(folder), out)


def test_a_machine_that_fails_is_told_and_is_never_a_zero(tmp_path):
    def open_sandbox():
        raise SandboxError("no room")

    with pytest.raises(SandboxError, match="no room"):
        prove(batch.GradingBench(set_exam(NAME, 1), open_sandbox))


def test_trusted_grades_without_a_sandbox_and_every_report_says_so(folder, out, monkeypatch, seed):
    monkeypatch.setenv("PATH", "")  # no bubblewrap
    given = ["grade", NAME, str(folder), *seed(1), "--out", str(out)]
    assert main(given) == 1
    assert not out.exists() or not list(out.glob("records/*.json"))
    assert main([*given[:-1], str(out) + "2", "--trusted"]) == 0
    out = Path(str(out) + "2")
    assert all("without a sandbox" in text_of(out, student) for student in ("anna", "ben", "cem"))
    assert grades(out) == {"anna": 10, "ben": 0, "cem": 10}


def test_where_bubblewrap_is_refused_nothing_is_graded_and_why_is_told(
    folder, out, tmp_path, monkeypatch, capsys, seed
):
    refusing = tmp_path / "bin" / "bwrap"  # stands in for a system that forbids it
    refusing.parent.mkdir()
    refusing.write_text("#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(refusing.parent), prepend=os.pathsep)
    assert main(["grade", NAME, str(folder), *seed(1), "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "No permissions to create a new namespace" in said
    assert "--trusted" in said
    assert not list(out.glob("records/*.json"))


def test_released_notebook_holds_no_solution_and_replaces_nothing(tmp_path, capsys):
    assert main(["release", NAME, "--out", str(tmp_path)]) == 0
    text = (tmp_path / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert "blocks.mean(axis=-2)" not in text
    assert json.loads(text)["nbformat"] == 4
    (tmp_path / f"{NAME}.ipynb").write_text("my work")
    assert main(["release", NAME, "--out", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / f"{NAME}.ipynb").read_text() == "my work"


def test_assistants_are_asked_to_tutor_beside_every_release_and_a_teachers_words_stay(tmp_path):
    for kind, name in {"release": NAME, "student": "05_concatenation"}.items():
        assert main([kind, name, "--out", str(tmp_path / kind)]) == 0
        asked = (tmp_path / kind / "AGENTS.md").read_text(encoding="utf-8")
        assert "tutor, and do not solve" in asked
    (tmp_path / "release" / "AGENTS.md").write_text("ours", encoding="utf-8")
    assert main(["release", "vectorised", "--out", str(tmp_path / "release")]) == 0
    assert (tmp_path / "release" / "AGENTS.md").read_text(encoding="utf-8") == "ours"


def test_unknown_assignment_is_told_with_those_that_there_are(tmp_path, capsys):
    assert main(["release", "04_multi_head_attention", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "'04_multi_head_attention'" in said
    assert all(name in said for name in assignment.assignment_names())
