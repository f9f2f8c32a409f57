"""How many heads: the arms are what they are called, and the record does not contradict itself."""

import numpy as np
import pytest

from experiments import how_many_heads, known_text, measuring, scored_heads
from experiments.how_many_heads import JOBS, MODELS, WAYS
from experiments.known_text import SEEDS, as_model
from experiments.scored_heads import named
from tests.rounding import unlike
from tutorial_lib import records
from tutorial_lib.models import entropy, grammar
from tutorial_lib.models.ablation import replacement_outputs
from tutorial_lib.models.grammar import TASKS

RECORD = records.record("how_many_heads")


def small_documents(seed, *, length=known_text.LENGTH):
    """Few documents in place of those of the script."""
    return grammar.sample_documents(np.random.default_rng(seed), 12, length=length)


def test_models_that_are_compared_learn_equally_many_numbers():
    counts = {name: how_many_heads.learned(arm) for name, arm in MODELS.items()}
    equal = [name for name in MODELS if "equal" in name or "head" in name]
    assert {counts[name] for name in equal} == {49_664}
    layer = 2 * 64 * 64  # numbers of W_O in two layers
    assert counts["no W_O"] == counts["frozen W_O"] == 49_664 - layer
    assert counts["merged W_O"] == 49_664 - 2 * layer + 2 * 4 * 64 * 64


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("frozen")])
def test_a_frozen_output_stays_as_it_was_drawn(name, monkeypatch):
    def few(seed, documents):
        return small_documents(seed).ids

    monkeypatch.setattr(known_text, "stream", few)
    arm = MODELS[name]
    began = [array.detach().clone() for array in known_text.begin(arm, 3)]
    *_, (_, ended) = known_text.train(arm, 3, 4e-3, 1)
    outputs = [i for i, shape in enumerate(arm.shapes) if shape == (64, 64) and i > 1]
    same = [i for i, (a, b) in enumerate(zip(began, ended, strict=True)) if (a == b).all()]
    assert same == outputs
    assert len(outputs) == 2


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("merged")])
def test_a_merged_head_may_write_anything_of_rank_d_model(name):
    arrays = [array.detach().numpy() for array in known_text.begin(MODELS[name], 1)]
    params = as_model(arrays, MODELS[name]).layers[0]
    assert params.W_V.shape == (MODELS[name].heads, 64, 64)
    np.testing.assert_array_equal(params.W_O, np.tile(np.eye(64), (MODELS[name].heads, 1)))


@pytest.mark.long
def test_what_stands_in_is_the_mean_of_the_other_record(example):
    others = scored_heads.drawn(scored_heads.MEANS).ids[:, :-1]
    right = scored_heads.means(example)
    for head, output in replacement_outputs(example, named(example), others).items():
        np.testing.assert_allclose(output, right[head], rtol=1e-9, atol=1e-12)


def test_four_heads_are_the_two_layers_of_the_other_record():
    other = records.record("scored_heads")["models"]["two layers"]
    found = RECORD["models"]["4 heads"]["second"]
    assert found["rate"] == other["rate"]
    ends = [[run["excess_loss"][-1] for run in part["runs"]] for part in (found, other)]
    np.testing.assert_allclose(*ends, rtol=0, atol=2e-5)


def test_single_heads_cost_what_the_other_record_says():
    others = records.record("scored_heads")["heads"]["two layers"]["seeds"]
    for part, other in zip(RECORD["seeds"], others, strict=True):
        assert list(part["single"]) == list(WAYS)
        np.testing.assert_allclose(part["single"]["mean"]["loss"], other["loss"], atol=2e-3)
        for task in TASKS:
            for kind in ("form", "nats"):
                cost = part["single"]["mean"][kind][task]
                np.testing.assert_allclose(cost, other[kind][task], atol=2e-3)


def test_sets_of_heads_agree_with_each_other():
    names = RECORD["settings"]["heads"]
    for part in RECORD["seeds"]:
        sets, greedy = part["together"]["sets"], part["greedy"]
        assert len(sets) == 28 + 3
        assert sorted(greedy["order"]) == names
        loss = dict(zip(sets, part["together"]["loss"], strict=True))
        assert greedy["loss"][-1] == pytest.approx(loss["all"], abs=1e-3)
        pair = " ".join(sorted(greedy["order"][:2]))
        assert greedy["loss"][1] == pytest.approx(loss[pair], abs=1e-3)
        single = dict(zip(names, part["single"]["mean"]["loss"], strict=True))
        assert greedy["loss"][0] == pytest.approx(single[greedy["order"][0]], abs=1e-3)
        best = greedy["best"]
        assert [len(part.split()) for part in best["sets"]] == list(range(1, 9))
        assert (np.array(best["chosen"]) <= greedy["chosen"]).all()
        assert best["loss"][1] == pytest.approx(loss[best["sets"][1]], abs=1e-3)


@pytest.mark.parametrize("removed", [(), ((0, 0), (1, 2)), ((0, 1), (0, 3), (1, 0), (1, 3))])
def test_the_loss_without_a_set_is_that_of_one_run_without_it(removed, example):
    documents = small_documents(3)
    outputs = replacement_outputs(example, named(example), documents.ids[:, :-1])
    found = how_many_heads.losses_of_sets(example, documents, outputs)
    assert len(found) == 2**8
    given = {head: outputs[head] for head in removed}
    logits, _ = scored_heads.go(example, documents.ids[:, :-1], given)
    right = entropy.excess_loss(logits, documents).mean()
    assert found[removed] == pytest.approx(right, rel=1e-10)


def test_gates_lie_from_zero_to_one():
    for part in RECORD["seeds"]:
        assert list(part["gates"]) == list(JOBS)
        for row in part["gates"].values():
            for ways in row.values():
                assert len(ways["gates"]) == 8
                assert all(0 <= gate <= 1 for gate in ways["gates"])


@pytest.mark.long
def test_the_committed_model_gives_the_first_single_costs_again(example):
    given = how_many_heads.prepared(example, known_text.TEST)
    others = scored_heads.drawn(scored_heads.MEANS).ids[:, :-1]
    found = measuring.rounded(how_many_heads.singles(example, given, others))
    faults = unlike(found, RECORD["seeds"][0]["single"], places=4, path="single")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("apart", [0.0, 1e-3])
def test_heads_are_retaken_only_of_the_models_of_the_record(apart, monkeypatch):
    runs = records.record("known_text")["heads"]["4 heads, 4 KV heads"]["runs"]
    written = []

    def almost_kept(arm, seed, rate, steps, tested):
        loss = runs[seed]["excess_loss"][-1] + apart * (seed == 3)
        return {"excess_loss": [loss]}, []

    monkeypatch.setattr(scored_heads, "kept", almost_kept)
    monkeypatch.setattr(how_many_heads, "heads_of", lambda seed: {"seed": seed})
    monkeypatch.setattr(how_many_heads, "write", lambda name, record: written.append(record))
    if apart:
        with pytest.raises(SystemExit, match=r"4 heads, seed 3: 0\.008\d+ nats, in the record"):
            how_many_heads.retake()
        assert not written
        return
    how_many_heads.retake()
    assert [part["seed"] for part in written[0]["seeds"]] == list(SEEDS)
    assert written[0]["models"] == RECORD["models"]
