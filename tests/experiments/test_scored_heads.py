"""Scores of heads: the script does what the chapter's functions do, and its record holds."""

import json

import numpy as np
import pytest
import torch

from experiments import known_text, scored_heads
from experiments.known_text import SEEDS, as_model, held_out_documents
from experiments.measuring import rounded
from experiments.scored_heads import WAYS
from tests.rounding import unlike
from tutorial_lib import records
from tutorial_lib.models import copying, grammar
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import TASKS
from tutorial_lib.models.head_scores import patch, run_with
from tutorial_lib.models.language import BlockModel, run_blocks

RECORD = records.record("scored_heads")
SHOWN = {"two layers": (TinyModel, "known_text"), "norm and MLP": (BlockModel, "known_block")}
SMALL = [
    known_text.Arm("", "one layer", 3, 3, 4, layers=1),
    known_text.Arm("", "two layers", 3, 3, 4),
    known_text.Arm("", "no positions", 3, 3, 4, positions="none"),
    known_text.Arm("", "blocks", 3, 3, 4, feed=24),
]


@pytest.fixture
def few(monkeypatch, drawn_anew):
    """Few pairs and documents, and no memory of other numbers of them."""
    monkeypatch.setattr(scored_heads, "PAIRS", 3)
    monkeypatch.setattr(known_text, "TESTED", 40)


def shown(name):
    """A committed model, as a chapter opens it."""
    kind, file = SHOWN[name]
    return kind.of(records.checkpoint(file))


def small(arm):
    """An untrained model of an arm, and its arrays as the script trains them."""
    arrays = [array.detach().double() for array in known_text.init_arrays(arm, 5)]
    return as_model([array.numpy() for array in arrays], arm), arrays


@pytest.mark.parametrize("arm", SMALL, ids=lambda arm: arm.name)
def test_a_model_in_numpy_is_the_arm_that_is_trained(arm):
    model, arrays = small(arm)
    ids = held_out_documents(7).ids[:2, :7]
    right = known_text.forward(arrays, torch.from_numpy(ids), arm).numpy()
    np.testing.assert_allclose(scored_heads.forward(model, ids)[0], right, rtol=1e-9, atol=1e-9)
    run = run_blocks if arm.feed else copying.run
    np.testing.assert_allclose(run(model, ids)[0], right, rtol=1e-9, atol=1e-9)
    again = type(model).of(model.arrays)
    for array, expected in zip(again.arrays, model.arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_head_is_replaced_as_in_the_chapter():
    model, _ = small(SMALL[1])
    ids, other = (held_out_documents(seed).ids[:2, :7] for seed in (7, 8))
    mean = np.arange(4.0)
    found = scored_heads.forward(model, ids, {(0, 2): mean})[0]
    np.testing.assert_allclose(found, run_with(model, ids, {(0, 2): mean}), rtol=1e-10, atol=1e-12)
    output = scored_heads.forward(model, other)[1][1].heads[:, 1]
    found = scored_heads.forward(model, ids, {(1, 1): output})[0]
    np.testing.assert_allclose(found, patch(model, ids, other, 1, 1), rtol=1e-10, atol=1e-12)
    known = scored_heads.forward(model, ids)[1]
    for heads in ({(0, 2): mean}, {(1, 1): output}, {(0, 0): output, (1, 2): mean}):
        again, right = (scored_heads.forward(model, ids, heads, *k)[0] for k in ((known,), ()))
        np.testing.assert_allclose(again, right, rtol=1e-10, atol=1e-12)
    both = scored_heads.forward(model, ids, {(1, 0): mean, (1, 1): output})[0]
    whole = scored_heads.forward(model, ids)[0]
    apart = [
        scored_heads.forward(model, ids, {head: it})[0] - whole
        for head, it in (((1, 0), mean), ((1, 1), output))
    ]
    np.testing.assert_allclose(both - whole, sum(apart), rtol=1e-9, atol=1e-9)  # last layer adds


def test_pairs_are_texts_of_the_rules_that_differ_in_what_is_asked(few):
    ids, others, last, right, its = scored_heads.text_pairs()
    assert len(ids) == 3 * len(WAYS)
    for row, (way, (task, _)) in enumerate(
        (way, how) for way, how in WAYS.items() for _ in range(3)
    ):
        end = last[row] + 1
        asked = grammar.read_documents(np.array([[*ids[row, :end], right[row]]]))
        assert TASKS[asked.task[0, -1]] == task
        grammar.read_documents(np.array([[*others[row, :end], its[row]]]))
        differ = np.flatnonzero(ids[row] != others[row])
        assert len(differ) == 1 + way.endswith("of a noun")
        assert differ[0] == asked.decided_by[0, -1] or task in ("surname", "pronoun", "reflexive")
        assert right[row] != its[row]
        assert grammar.FORMS[right[row]] == grammar.FORMS[its[row]]
        assert not ids[row, end:].any()


def test_an_error_of_a_mean_counts_documents_and_not_places():
    values, n = np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1])
    assert scored_heads.mean_and_error(values, n)["standard_error"] == pytest.approx(np.sqrt(2) / 4)


@pytest.mark.parametrize("name", SHOWN)
def test_the_committed_model_gives_again_what_one_run_says(name):
    run, stored = RECORD["models"][name]["runs"][0], RECORD["heads"][name]["seeds"][0]
    assert run["seed"] == stored["seed"] == SEEDS[0]
    model, documents = shown(name), held_out_documents(known_text.TEST)
    logits, traces = scored_heads.forward(model, documents.ids[:, :-1])
    costs = scored_heads.losses_by_task(logits, documents)
    ends = {task: shares[-1] for task, shares in run["accuracy"].items()}
    assert costs["loss"] == pytest.approx(run["excess_loss"][-1], abs=2e-5)  # in half precision
    assert costs["accuracy"] == pytest.approx(ends, abs=1e-3)
    found = scored_heads.weight_statistics(traces, documents)
    if "path" in stored:
        found["path"] = scored_heads.logit_difference_by_component(model, documents)
    again, parts = json.loads(json.dumps(rounded(found, 3))), {part: stored[part] for part in found}
    faults = unlike(again, parts, places=3, path=name)
    assert not faults, "\n".join(faults)


@pytest.mark.long
@pytest.mark.parametrize("name", SHOWN)
def test_the_committed_model_gives_every_score_of_the_record_again(name):
    found = {"seed": SEEDS[0], **scored_heads.score_heads(shown(name))}
    stored = RECORD["heads"][name]["seeds"][0]
    faults = unlike(json.loads(json.dumps(found)), stored, places=3, path=name)
    assert not faults, "\n".join(faults)


def test_what_needs_no_model_is_found_again():
    assert RECORD["guess_rules"] == scored_heads.guess_rules()
    assert RECORD["settings"] == scored_heads.settings()
