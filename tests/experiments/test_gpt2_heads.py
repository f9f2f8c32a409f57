"""The script for GPT-2 small, on a small GPT-2 with random weights, and where there are none."""

import json

import pytest

from experiments import gpt2_heads, measuring
from tests.pytorch.test_gpt2 import random_gpt2, splitter
from tutorial_lib.pytorch import gpt2


class Splitter:
    """A stand-in for a tokenizer, of which the script uses `encode`."""

    encode = staticmethod(splitter())


def test_record_holds_every_head_of_both_tasks(monkeypatch, tmp_path, capsys):
    written = {}
    monkeypatch.setattr(gpt2_heads, "load", lambda source: (random_gpt2(), Splitter))
    monkeypatch.setattr(gpt2_heads, "prepare", lambda: None)  # the threads are the tests' own
    monkeypatch.setattr(gpt2_heads, "write", lambda name, record: written.update({name: record}))
    gpt2_heads.main([])
    record = json.loads(measuring.as_text(written["gpt2_heads"]))
    assert record["columns"] == list(gpt2.COLUMNS)
    assert list(record["tasks"]) == list(gpt2.FRAMES)
    for task, found in record["tasks"].items():
        prompts = gpt2.make_prompts(Splitter.encode, task)
        assert found["prompts"] == len(prompts.ids)
        assert found["fixed_offset_score"] == 0.5  # each of the two places, in half of the prompts
        for layer, measures in gpt2.measure_heads(random_gpt2(), prompts):
            assert found["heads"][f"layer {layer}"] == pytest.approx(measures.numpy(), rel=1e-2)
    assert "python" in capsys.readouterr().out


def test_without_weights_it_leaves_with_what_it_needs(tmp_path):
    with pytest.raises(SystemExit, match="needs the weights and the tokenizer of GPT-2 small"):
        gpt2_heads.main(["--weights", str(tmp_path)])
