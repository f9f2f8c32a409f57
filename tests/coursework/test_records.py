"""Whatever ends a grader, its records are whole, and its next run finishes the class."""

import os
import signal
import subprocess
import sys

import pytest

from coursework.__main__ import main
from coursework.grader import records
from coursework.grader.entries import record_of
from coursework.grader.records import Damaged, Journal, put, read_batch, read_record
from tests.coursework.classes import (
    NAME,
    ROOT,
    command,
    counting,
    files,
    grades,
    hand_in,
    slow,
    table,
    wait_until,
)


def kill_when(line, true, what):
    """Start a grader and kill it, as a machine without memory does, once something is true."""
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE) as run:
        wait_until(true, what)
        run.kill()
        run.wait()
    assert run.returncode == -signal.SIGKILL


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_a_hand_in_that_took_the_grader_down_twice_is_skipped_and_its_neighbour_is_not(
    tmp_path, out, seed, capsys
):
    folder = tmp_path / "class"
    folder.mkdir()
    hand_in(folder, "anna")
    hand_in(folder, "guilty", more=slow(6))  # seconds in which this test sees it begun
    hand_in(folder, "innocent", more=slow(6))
    given = ["grade", NAME, str(folder), *seed(1), "--seconds", "60", "--out", str(out)]

    def begun(how):
        path = out / "records" / "underway"
        return path.read_text().count(how) if path.exists() else 0

    def both_begun():
        return begun("beside") == 3 and len(list(out.glob("records/*.json"))) == 1

    kill_when(command(*given), both_begun, "the notes of three files, and Anna's record")
    kill_when(command(*given), lambda: begun("alone") == 1, "the note of a file alone")
    assert main(given) == 0
    assert grades(out) == {"anna": 10, "guilty": 0, "innocent": 10}
    assert "Not graded: the grader went down twice over this file" in table(out)["guilty"]["notes"]
    assert "went down twice over guilty; --only tries it again" in capsys.readouterr().err
    assert main(given) == 0, "it stays so"
    assert grades(out)["guilty"] == 0
    assert main([*given, "--only", "guilty"]) == 0
    assert grades(out) == {"anna": 10, "guilty": 10, "innocent": 10}
    assert begun("") == 1, "an empty file"


def journal_of_one_that_went_down(records, key, alone):
    """Begin a hand-in in a process of its own, and kill it there."""
    code = (
        "import os, sys; from pathlib import Path; from coursework.grader.records import Journal\n"
        "Journal(Path(sys.argv[1])).note(sys.argv[2], bool(sys.argv[3])); os.kill(os.getpid(), 9)"
    )
    line = [sys.executable, "-c", code, str(records), key, "alone" * alone]
    assert subprocess.run(line, cwd=ROOT).returncode == -signal.SIGKILL


def test_what_a_grader_that_went_down_had_begun_is_known_until_there_is_a_record(tmp_path):
    for key, alone in (("one", False), ("two", False), ("two", True)):
        journal_of_one_that_went_down(tmp_path, key, alone)
    with Journal(tmp_path) as journal:
        assert journal.left == {"one": False, "two": True}
        with pytest.raises(BlockingIOError, match=r"another grader is at work in .*--out"):
            Journal(tmp_path)
        (tmp_path / "one.json").touch()
        journal.note("three", alone=False)
    with Journal(tmp_path) as journal:
        assert journal.left == {"two": True}, "ended in good order"


def begin(folder, error):
    """Begin a hand-in, and let an error come."""
    with Journal(folder) as journal:
        journal.note("key", alone=True)
        raise error


@pytest.mark.parametrize("error", [*records.FORESEEN, ZeroDivisionError])
def test_an_error_that_no_hand_in_is_to_blame_for_leaves_no_note(tmp_path, error):
    with pytest.raises(error):
        begin(tmp_path, error)
    with Journal(tmp_path) as journal:
        assert bool(journal.left) == (error is ZeroDivisionError)


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"problem": ""}', "null"])
def test_a_file_without_all_of_its_parts_is_damaged(left, tmp_path):
    assert read_batch(tmp_path) == {}
    (tmp_path / "batch.json").write_text(left)
    with pytest.raises(Damaged, match=r"batch\.json is empty or cut"):
        read_record(tmp_path / "batch.json")
    if "problem" not in left:
        with pytest.raises(Damaged, match=r"empty or cut.*move this file away"):
            read_batch(tmp_path)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_an_empty_or_cut_record_is_named_and_graded_again(folder, out, seed, capsys, monkeypatch):
    given = ["grade", NAME, str(folder), *seed(1), "--out", str(out)]
    assert main(given) == 0
    before = files(out)
    [entry] = [e for e in read_batch(out)["handins"] if e["student"] == "cem"]
    path = out / "records" / f"{entry['record']}.json"
    path.write_bytes(b"")
    with pytest.raises(Damaged, match=r"It is the record of cem: repeat the command"):
        record_of(out, entry)
    assert main([*given, "--only", "anna"]) == 1
    assert f"the command that made {out}, without --only" in capsys.readouterr().err
    again = counting(monkeypatch)
    assert main(given) == 0
    assert f"{path} is empty or cut: cem is graded again" in capsys.readouterr().err
    assert len(again) == 3
    assert files(out) == before


def test_what_is_written_reaches_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen, fsync = tmp_path / "x", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda n: seen.append(path.exists()) or fsync(n))
    put(path, "all of it")
    assert seen == [False]
    assert path.read_text() == "all of it"


@pytest.mark.usefixtures("bubblewrap")
def test_a_full_temporary_folder_is_told_in_a_sentence(folder, out, seed):
    full = str(folder.parent / "full")
    line = ["bwrap", "--dev-bind", "/", "/", "--size", "200000", "--tmpfs", full]
    line += ["--setenv", "TMPDIR", full, *command("grade", NAME, folder, *seed(1), "--out", out)]
    run = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "there is no room for the sandbox's library" in run.stderr
    assert "set TMPDIR to another folder" in run.stderr
    assert len(run.stderr) < 500


@pytest.mark.usefixtures("bubblewrap")
def test_a_second_grader_on_one_folder_is_told_to_wait_and_changes_nothing(
    folder, out, seed, capsys
):
    (out / "records").mkdir(parents=True)
    with Journal(out / "records"):
        assert main(["grade", NAME, str(folder), *seed(1), "--out", str(out)]) == 1
    assert f"another grader is at work in {out}: wait for its end" in capsys.readouterr().err
    assert [path.name for path in files(out)] == ["underway"]
