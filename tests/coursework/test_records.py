"""Records are whole whatever ends a grader, and one grader at a time writes them."""

import os

import pytest

from coursework.__main__ import main
from coursework.grader.records import (
    BATCH,
    RECORD,
    Damaged,
    lock_folder,
    read_record,
    read_result,
    write_file,
)
from tests.coursework.classes import (
    NAME,
    counting,
    files,
)


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"problem": ""}', "null", '{"results": [1]}'])
def test_a_file_without_all_of_its_parts_is_damaged(left, tmp_path):
    path = tmp_path / "batch.json"
    assert read_result(path, BATCH) == {}
    path.write_text(left)
    for needed in (BATCH, RECORD):
        with pytest.raises(Damaged, match=r"batch\.json is empty or cut: move this file away"):
            read_result(path, needed)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_an_empty_or_cut_record_is_named_and_graded_again(folder, out, seed, capsys, monkeypatch):
    given = ["grade", NAME, str(folder), *seed(1), "--out", str(out)]
    assert main(given) == 0
    before = files(out)
    [entry] = [
        e for e in read_result(out / "batch.json", BATCH)["handins"] if e["student"] == "cem"
    ]
    path = out / "records" / f"{entry['record']}.json"
    path.write_bytes(b"")
    with pytest.raises(Damaged, match=f"{path} is empty or cut"):
        read_record(out, entry)
    again = counting(monkeypatch)
    assert main(given) == 0
    assert f"{path} is empty or cut: cem is graded again" in capsys.readouterr().err
    assert len(again) == 3
    assert files(out) == before


def test_what_is_written_reaches_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen, fsync = tmp_path / "x", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda n: seen.append(path.exists()) or fsync(n))
    write_file(path, "all of it")
    assert seen == [False]
    assert path.read_text() == "all of it"


@pytest.mark.usefixtures("bubblewrap")
def test_a_second_grader_on_one_folder_is_told_to_wait_and_changes_nothing(
    folder, out, seed, capsys
):
    (out / "records").mkdir(parents=True)
    with lock_folder(out / "records"):
        assert main(["grade", NAME, str(folder), *seed(1), "--out", str(out)]) == 1
    assert f"another grader is at work in {out}: wait for its end" in capsys.readouterr().err
    assert [path.name for path in files(out)] == ["underway"]
