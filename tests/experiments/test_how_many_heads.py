"""How many heads: the arms are what they are called, and the record does not contradict itself."""

import numpy as np
import pytest

from experiments import how_many_heads, known_text, measuring, scored_heads
from experiments.how_many_heads import MODELS
from experiments.scored_heads import all_heads
from tests.rounding import unlike
from tutorial_lib import records
from tutorial_lib.models import entropy, grammar
from tutorial_lib.models.ablation import replacement_outputs

RECORD = records.record("how_many_heads")


def small_documents(seed, *, length=known_text.LENGTH):
    """Few documents in place of those of the script."""
    return grammar.sample_documents(np.random.default_rng(seed), 12, length=length)


def test_models_that_are_compared_learn_equally_many_numbers():
    counts = {name: how_many_heads.count_trainable_parameters(arm) for name, arm in MODELS.items()}
    equal = [name for name in MODELS if "equal" in name or "head" in name]
    assert {counts[name] for name in equal} == {49_664}
    layer = 2 * 64 * 64  # numbers of W_O in two layers
    assert counts["no W_O"] == counts["frozen W_O"] == 49_664 - layer
    assert counts["merged W_O"] == 49_664 - 2 * layer + 2 * 4 * 64 * 64


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("frozen")])
def test_a_frozen_output_stays_as_it_was_drawn(name, monkeypatch):
    def few(seed, documents):
        return small_documents(seed).ids

    monkeypatch.setattr(known_text, "training_ids", few)
    arm = MODELS[name]
    began = [array.detach().clone() for array in known_text.init_arrays(arm, 3)]
    *_, (_, ended) = known_text.train(arm, 3, 4e-3, 1)
    outputs = [i for i, shape in enumerate(arm.shapes) if shape == (64, 64) and i > 1]
    same = [i for i, (a, b) in enumerate(zip(began, ended, strict=True)) if (a == b).all()]
    assert same == outputs
    assert len(outputs) == 2


def test_four_heads_are_the_two_layers_of_the_other_record():
    other = records.record("scored_heads")["models"]["two layers"]
    found = RECORD["models"]["4 heads"]["second"]
    assert found["rate"] == other["rate"]
    ends = [[run["excess_loss"][-1] for run in part["runs"]] for part in (found, other)]
    np.testing.assert_allclose(*ends, rtol=0, atol=2e-5)


@pytest.mark.parametrize("removed", [(), ((0, 0), (1, 2)), ((0, 1), (0, 3), (1, 0), (1, 3))])
def test_the_loss_without_a_set_is_that_of_one_run_without_it(removed, example):
    documents = small_documents(3)
    outputs = replacement_outputs(example, all_heads(example), documents.ids[:, :-1])
    found = how_many_heads.losses_of_sets(example, documents, outputs)
    assert len(found) == 2**8
    given = {head: outputs[head] for head in removed}
    logits, _ = scored_heads.forward(example, documents.ids[:, :-1], given)
    right = entropy.excess_loss(logits, documents).mean()
    assert found[removed] == pytest.approx(right, rel=1e-10)


@pytest.mark.long
def test_the_committed_model_gives_the_first_single_costs_again(example):
    given = how_many_heads.documents_and_baseline(example, known_text.TEST)
    others = scored_heads.held_out_documents(scored_heads.MEANS).ids[:, :-1]
    found = measuring.rounded(how_many_heads.ablate_singles(example, given, others))
    faults = unlike(found, RECORD["seeds"][0]["single"], places=4, path="single")
    assert not faults, "\n".join(faults)
