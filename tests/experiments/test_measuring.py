"""What all experiments share: one head for every record, and files that are written with it."""

import importlib
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import measuring
from tools.chapters import ROOT
from tutorial_lib import records

RECORDS = sorted((records.DATA / "results").glob("*.json"))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty data/ to be written to."""
    for folder in records.FOLDERS:
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(records, "DATA", tmp_path)
    monkeypatch.setattr(records, "MANIFEST", tmp_path / "sha256.json")
    return tmp_path


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_record_says_what_made_it_from_which_seed_where_with_what_and_when(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert tuple(record)[:5] == records.HEAD_KEYS
    assert record["script"].startswith("experiments/")
    assert (ROOT / record["script"]).is_file()
    script = importlib.import_module(record["script"].removesuffix(".py").replace("/", "."))
    assert record["seed"] == script.SEED
    assert {"device", "threads"} <= set(record["machine"])
    assert {"python", "numpy"} <= set(record["versions"])
    for name in {"numpy_blas", "torch_blas"} & set(record["machine"]):
        assert "1 thread" in record["machine"][name]
    assert re.fullmatch(r"20\d\d-[01]\d", record["measured"])


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_record_stands_as_it_is_written(path):
    stored = path.read_text(encoding="utf-8")
    assert measuring.as_text(json.loads(stored)) + "\n" == stored


def test_a_record_begins_with_its_head(monkeypatch):
    clock = SimpleNamespace(strftime=lambda form: time.strftime(form, (2031, 7, *[1] * 7)))
    monkeypatch.setattr(measuring, "time", clock)
    record = measuring.new_record("/a/b/made.py", seed=3)
    assert tuple(record) == records.HEAD_KEYS
    assert (record["script"], record["seed"]) == ("experiments/made.py", 3)
    assert record["machine"] == measuring.machine()
    assert record["measured"] == "2031-07"


def test_a_record_that_is_written_is_read(data):
    record = measuring.new_record(__file__, seed=None) | {"times": [1.5, 2.0]}
    measuring.write("made", record)
    assert records.record("made") == record


@pytest.mark.parametrize("wrong", [2e-5, np.nan])
def test_what_is_not_the_same_is_refused(wrong):
    right = np.ones((1, 24))
    assert measuring.error_of(right + 5e-6, right, wrong="another") == 5e-6
    with pytest.raises(ValueError, match="another"):
        measuring.error_of(right + wrong, right, wrong="another")


def test_a_record_without_a_head_is_not_written(data):
    with pytest.raises(ValueError, match="expected its head"):
        measuring.write("made", {"times": [1.5, 2.0]})
    assert not list(data.rglob("*.json"))


def test_a_checkpoint_that_is_written_is_read_and_has_the_same_bytes_each_time(data, monkeypatch):
    monkeypatch.setitem(records.CHECKPOINT_KB, "made", 1)
    arrays = [np.arange(n, dtype=np.float16) for n in range(1, 13)]
    contents = []
    for _ in range(2):
        measuring.write_checkpoint("made", arrays[:2])
        contents.append((data / "checkpoints" / "made.npz").read_bytes())
    assert contents[0] == contents[1]
    found = records.checkpoint("made")
    assert [array.tolist() for array in found] == [array.tolist() for array in arrays[:2]]
    with pytest.raises(ValueError, match="expected at most 1 kB"):
        measuring.write_checkpoint("made", arrays)
    assert (data / "checkpoints" / "made.npz").read_bytes() == contents[0]


def test_a_change_of_facts_by_hand_is_sealed(data):
    for words in ("one", "two"):
        (data / "facts" / "made.json").write_text(json.dumps({"words": words}), encoding="utf-8")
        measuring.write_checksums()
        assert records.facts("made") == {"words": words}


def test_a_change_of_a_measurement_by_hand_is_not_sealed(data):
    record = measuring.new_record(__file__, seed=None) | {"time_ms": 1.5}
    (data / "results" / "made.json").write_text(json.dumps(record), encoding="utf-8")
    measuring.write_checksums()  # a new file, from another machine
    assert records.record("made") == record
    changed = record | {"time_ms": 1.6}
    (data / "results" / "made.json").write_text(json.dumps(changed), encoding="utf-8")
    measuring.write_checksums()
    with pytest.raises(ValueError, match="changes where its script in experiments/ writes it"):
        records.record("made")
    measuring.write("made", changed)
    assert records.record("made") == changed
