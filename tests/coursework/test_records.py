"""Whatever ends a grader, its records are whole, and its next run finishes the class."""

import json
import os
import signal
import subprocess
import sys

import pytest

from coursework.__main__ import main
from coursework.grader import records
from coursework.grader.entries import record_of
from coursework.grader.records import (
    ALONE,
    Damaged,
    Journal,
    put,
    read_batch,
    read_record,
)
from tests.coursework.classes import (
    ENDLESS,
    MOST_S,
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

    def notes(how=""):
        running = subprocess.run(["grep", "-rl", how, out / "underway"], capture_output=True)
        return len(running.stdout.splitlines())

    def both_begun():
        return notes() == 2 and len(list(out.glob("records/*.json"))) == 1

    kill_when(command(*given), both_begun, "the notes of two files, and Anna's record")
    kill_when(command(*given), lambda: notes(ALONE) == 1, "the note of a file alone")
    assert main(given) == 0
    assert grades(out) == {"anna": 10, "guilty": 0, "innocent": 10}
    assert "Not graded: the grader went down twice over this file" in table(out)["guilty"]["notes"]
    assert "went down twice over guilty; --only tries it again" in capsys.readouterr().err
    assert main(given) == 0, "it stays so"
    assert grades(out)["guilty"] == 0
    assert main([*given, "--only", "guilty"]) == 0
    assert grades(out) == {"anna": 10, "guilty": 10, "innocent": 10}
    assert notes() == 0


def test_a_note_outlives_its_grader_and_is_taken_for_none_while_another_is_at_it(tmp_path):
    notes, done = tmp_path / "underway", tmp_path / "records"
    code = (
        "import os, sys; from pathlib import Path; from coursework.grader.records import Journal\n"
        "with Journal(Path(sys.argv[1]), Path()).note('k', 'beside others'):\n"
        "    print(flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", code, str(notes)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(line, cwd=ROOT, **pipes) as run:
        run.stdout.readline()
        assert Journal(notes, done).left == {}
        run.kill()
    assert Journal(notes, done).left == {"k": "beside others"}
    done.mkdir()
    (done / "k.json").touch()
    assert Journal(notes, done).left == {}
    assert not (notes / "k").exists(), "its record is there"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, *records.FORESEEN])
def test_an_error_that_no_hand_in_is_to_blame_for_leaves_no_note(tmp_path, error):
    journal = Journal(tmp_path, tmp_path / "records")
    begin(journal, error)
    assert not (tmp_path / "k").exists()
    begin(journal, ZeroDivisionError)
    assert Journal(tmp_path, tmp_path / "records").left == {"k": ALONE}


def begin(journal, error):
    """Note a file, and let an error come in between."""
    with pytest.raises(error), journal.note("k", ALONE):
        raise error


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


@pytest.mark.long
@pytest.mark.usefixtures("bubblewrap")
def test_a_full_disk_keeps_the_old_results_and_the_batch_goes_on_elsewhere(folder, out, seed):
    small, place = folder.parent / "small", str(folder.parent / "disk")
    line = command("grade", NAME, folder, *seed(1), "--out", f"{place}/results")
    bound = ["bwrap", "--dev-bind", "/", "/", "--size", "40000", "--tmpfs", place]
    script = f"{' '.join(map(str, line))}; echo $?; cp -r {place}/results {small}"
    run = subprocess.run(
        [*bound, "sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.endswith("1\n")
    assert "No space left on device" in run.stderr
    assert not list(small.rglob("*.part"))
    for path in small.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    small.rename(out)
    assert main(["grade", NAME, str(folder), *seed(1), "--out", str(out)]) == 0
    assert grades(out) == {"anna": 10, "ben": 0, "cem": 10}


@pytest.mark.long
@pytest.mark.usefixtures("bubblewrap")
def test_two_graders_on_one_folder_both_end_and_agree(folder, out, seed):
    for i in range(4):
        hand_in(folder, f"student {i}", more=slow(1))
    line = command("grade", NAME, folder, *seed(1), "--out", out)
    runs = [subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(2)]
    for run in runs:
        _, said = run.communicate(timeout=MOST_S)
        assert run.returncode == 0, said
    assert sum(grades(out).values()) == 60
    assert not list(out.rglob("*.part"))
    assert not (out / "underway").exists()


@pytest.mark.usefixtures("bubblewrap")
def test_a_grader_that_is_asked_to_end_stops_as_after_ctrl_c(folder, out, seed):
    for i in range(3):  # two are graded at a time: the batch is not at its end before the signal
        hand_in(folder, f"student {i}", more=ENDLESS)
    line = command("grade", NAME, folder, *seed(1), "--out", out)
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        wait_until(lambda: list(out.glob("underway/*")), "the note of a file")
        run.terminate()
        said = run.stderr.read()
    assert run.returncode == 130
    assert "The same command goes on from here" in said
    assert not list(out.glob("underway/*"))
