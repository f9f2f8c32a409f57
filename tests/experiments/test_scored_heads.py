"""Scores of heads: the script does what the chapter's functions do, and its record holds."""

import json

import numpy as np
import pytest
import torch

from experiments import known_text, scored_heads
from experiments.known_text import LENGTH, SEEDS, as_model, drawn
from experiments.scored_heads import MODELS, PLATEAUS, WAYS
from tests.rounding import unlike
from tutorial_lib import records
from tutorial_lib.models import copying, grammar
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import ID, TASKS, Documents
from tutorial_lib.models.head_scores import patch, run_with
from tutorial_lib.models.language import BlockModel, run_blocks

RECORD = records.record("scored_heads")
CACHED = (scored_heads.baseline, scored_heads.pairs, scored_heads.newness)
SHOWN = {"two layers": (TinyModel, "known_text"), "norm and MLP": (BlockModel, "known_block")}
SMALL = [
    known_text.Arm("", "one layer", 3, 3, 4, layers=1),
    known_text.Arm("", "two layers", 3, 3, 4),
    known_text.Arm("", "no positions", 3, 3, 4, positions="none"),
    known_text.Arm("", "blocks", 3, 3, 4, feed=24),
]


@pytest.fixture
def few(monkeypatch):
    """Few pairs and documents, and no memory of other numbers of them."""
    monkeypatch.setattr(scored_heads, "PAIRS", 3)
    monkeypatch.setattr(known_text, "TESTED", 40)
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


def shown(name):
    """A committed model, as a chapter opens it."""
    kind, file = SHOWN[name]
    return kind.of(records.checkpoint(file))


def small(arm):
    """An untrained model of an arm, and its arrays as the script trains them."""
    arrays = [array.detach().double() for array in known_text.begin(arm, 5)]
    return as_model([array.numpy() for array in arrays], arm), arrays


@pytest.mark.parametrize("arm", SMALL, ids=lambda arm: arm.name)
def test_a_model_in_numpy_is_the_arm_that_is_trained(arm):
    model, arrays = small(arm)
    ids = drawn(7).ids[:2, :7]
    right = known_text.forward(arrays, torch.from_numpy(ids), arm).numpy()
    np.testing.assert_allclose(scored_heads.go(model, ids)[0], right, rtol=1e-9, atol=1e-9)
    run = run_blocks if arm.feed else copying.run
    np.testing.assert_allclose(run(model, ids)[0], right, rtol=1e-9, atol=1e-9)
    again = type(model).of(model.arrays)
    for array, expected in zip(again.arrays, model.arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_head_is_replaced_as_in_the_chapter():
    model, _ = small(SMALL[1])
    ids, other, mean = drawn(7).ids[:2, :7], drawn(8).ids[:2, :7], np.arange(4.0)
    found = scored_heads.go(model, ids, {(0, 2): mean})[0]
    np.testing.assert_allclose(found, run_with(model, ids, {(0, 2): mean}), rtol=1e-10, atol=1e-12)
    output = scored_heads.go(model, other)[1][1].heads[:, 1]
    found = scored_heads.go(model, ids, {(1, 1): output})[0]
    np.testing.assert_allclose(found, patch(model, ids, other, 1, 1), rtol=1e-10, atol=1e-12)
    known = scored_heads.go(model, ids)[1]
    for heads in ({(0, 2): mean}, {(1, 1): output}, {(0, 0): output, (1, 2): mean}):
        again, right = (scored_heads.go(model, ids, heads, *k)[0] for k in ((known,), ()))
        np.testing.assert_allclose(again, right, rtol=1e-10, atol=1e-12)
    both = scored_heads.go(model, ids, {(1, 0): mean, (1, 1): output})[0]
    whole = scored_heads.go(model, ids)[0]
    apart = [
        scored_heads.go(model, ids, {head: it})[0] - whole
        for head, it in (((1, 0), mean), ((1, 1), output))
    ]
    np.testing.assert_allclose(both - whole, sum(apart), rtol=1e-9, atol=1e-9)  # last layer adds


def test_pairs_are_texts_of_the_rules_that_differ_in_what_is_asked(few):
    ids, others, last, right, its = scored_heads.pairs()
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


def test_all_heads_of_one_layer_carry_the_whole_difference_of_the_last_words_logits(few):
    model, _ = small(SMALL[1])
    shares, differences = scored_heads.carried(model)
    ids, others, last, right, its = scored_heads.pairs()
    rows, traces = np.arange(len(ids)), scored_heads.go(model, others)[1]
    every = {(1, head): traces[1].heads[:, head] for head in range(3)}

    def leaning(logits):
        return (logits[rows, last, its] - logits[rows, last, right]).reshape(len(WAYS), -1)

    base = leaning(scored_heads.go(model, ids)[0])
    whole = (leaning(scored_heads.go(model, others)[0]) - base).sum(axis=1)
    joint = (leaning(scored_heads.go(model, ids, every)[0]) - base).sum(axis=1) / whole
    np.testing.assert_allclose(list(differences.values()), whole / 3)
    np.testing.assert_allclose([sum(row[3:]) for row in shares.values()], joint, rtol=1e-8)


def test_paths_add_up_to_the_lead(few):
    model, _ = small(SMALL[1])
    documents = drawn(9)
    logits = scored_heads.go(model, documents.ids[:, :-1])[0]
    for task, parts in scored_heads.added(model, documents).items():
        assert len(parts) == 1 + 6
        assert sum(parts) == pytest.approx(scored_heads.margins(logits, documents, task).mean())


def test_surnames_are_ranked_by_hand():
    text = "<bos> Anna Kern sees Emil Lang . Anna Kern knows Emil Lang . Anna Kern"
    documents = grammar.read_documents(np.array([[ID[word] for word in text.split()]]))
    _, _, ranks, right = scored_heads.asked(documents)
    kern, lang = (ID[name] - ID["Kern"] for name in ("Kern", "Lang"))
    assert ranks[:, [kern, lang]].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert right.tolist() == [kern, lang, kern]
    assert (ranks >= 0).sum() == 6
    even = scored_heads.evenly(ranks)
    np.testing.assert_allclose(even[:, [kern, lang]], 0.5)
    found = scored_heads.fallen(ranks, np.eye(12)[right])
    assert found["by_rank"][:2] == pytest.approx([0, 1])
    assert found["never_said"] == 0


def test_weights_on_copies_and_distances_are_those_of_loops():
    model, _ = small(SMALL[1])
    text = "<bos> Anna Kern sees Emil Lang . Anna Kern knows Emil Lang . Anna Kern"
    documents = grammar.read_documents(np.array([[ID[word] for word in text.split()]]))
    traces = copying.run(model, documents.ids[:, :-1])[1]
    weights = np.concatenate([trace.weights[0] for trace in traces])  # (heads, T, T)
    places = {7: [2], 10: [5], 13: [2, 8]}  # queries at given names, and their surnames so far
    on = np.mean([weights[:, t, at].sum(axis=-1) for t, at in places.items()], axis=0)
    np.testing.assert_allclose(scored_heads.on_copies(traces, documents), on)
    only_last = scored_heads.weights_on(traces, documents.target_of("surname"))
    assert (only_last < on).all()
    back, T = [], weights.shape[-1]
    for head in weights:
        pairs = [(t - j, head[t, j]) for t in range(T) for j in range(1, t + 1)]  # 0 is <bos>
        back.append(sum(d * w for d, w in pairs) / sum(w for _, w in pairs))
    np.testing.assert_allclose(scored_heads.looked(traces), back)


def test_an_error_of_a_mean_counts_documents_and_not_places():
    values, n = np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1])
    assert scored_heads.with_error(values, n)["standard_error"] == pytest.approx(np.sqrt(2) / 4)


@pytest.mark.parametrize("name", SHOWN)
def test_the_committed_model_gives_the_first_scores_of_the_record(name):
    run, found = RECORD["models"][name]["runs"][0], RECORD["heads"][name]["seeds"][0]
    assert run["seed"] == found["seed"] == SEEDS[0]
    documents = Documents(*(values[:60] for values in vars(drawn(known_text.TEST)).values()))
    logits, traces = scored_heads.go(shown(name), documents.ids[:, :-1])
    costs = scored_heads.costs(logits, documents)
    ends = {task: shares[-1] for task, shares in run["accuracy"].items()}
    assert costs["loss"] == pytest.approx(run["excess_loss"][-1], abs=1e-3)  # of 60 in place of 600
    assert costs["accuracy"] == pytest.approx(ends, abs=0.01)
    for task in TASKS:
        weights = scored_heads.weights_on(traces, documents.target_of(task))
        near = pytest.approx(found["weight"][task], abs=0.15)
        assert weights == near, f"the weights of the heads on what decides {task}"


@pytest.mark.long
@pytest.mark.parametrize("name", SHOWN)
def test_the_committed_model_gives_every_score_of_the_record_again(name):
    found = {"seed": SEEDS[0], **scored_heads.scored(shown(name))}
    stored = RECORD["heads"][name]["seeds"][0]
    faults = unlike(json.loads(json.dumps(found)), stored, places=3, path=name)
    assert not faults, "\n".join(faults)


def test_the_example_is_the_first_seed_of_two_layers():
    run = records.record("known_text")["heads"]["4 heads, 4 KV heads"]["runs"][0]
    assert RECORD["models"]["two layers"]["runs"][0]["excess_loss"][-1] == run["excess_loss"][-1]


def test_controls_have_exactly_as_many_numbers():
    equal = ("two layers", "one layer", "norm and MLP, equal parameters")
    assert {RECORD["models"][name]["parameters"] for name in equal} == {49_664}
    assert RECORD["models"]["norm and MLP"]["parameters"] == 115_200


@pytest.mark.parametrize("name", RECORD["heads"])
def test_scores_of_heads_do_not_contradict_each_other(name):
    found, arm = RECORD["heads"][name], MODELS[name]
    assert found["names"] == [f"{i}.{h}" for i in range(arm.layers) for h in range(arm.heads)]
    assert [part["seed"] for part in found["seeds"]] == list(SEEDS)
    for part in found["seeds"]:
        assert list(part["patch"]) == list(WAYS)
        assert ("path" in part) == (not arm.feed)
        assert list(part["best"]) == list(part["needed"]) == list(TASKS)
        assert set(part["needed"].values()) <= set(found["names"])
        for task, row in part["best"].items():
            place = found["names"].index(row["head"])
            for score in ("weight", "fall", "form", "nats", "patch"):
                assert row[score] == part[score][task][place]
        for row in part["pair"].values():
            assert len(set(row["heads"])) == 2
        assert all(0 <= distance <= LENGTH for distance in part["distance"])
        on_last = np.array(part["weight"]["surname"])
        assert (np.array(part["copies"]) >= on_last - 0.001).all()  # rounded
        assert max(part["copies"]) <= 1
        for task in TASKS:  # the weights of a head sum to 1, so on one word at most 1
            assert all(0 <= weight <= 1 for weight in part["weight"][task])
            assert all(-1 <= fall <= 1 for fall in part["fall"][task])
            surnames = task == "surname"  # after a given name the set is certain, so both are one
            if surnames and not arm.feed:
                assert part["form"][task] == pytest.approx(part["nats"][task], abs=0.05)
        totals = [part["number"][f"other {number}"] for number in ("singular", "plural")]
        assert np.sum(totals, axis=0).max() <= 1


def test_the_baseline_is_chosen_on_one_set_and_reported_on_another():
    chosen, tested = drawn(known_text.VALIDATION), drawn(known_text.TEST)
    for task, found in RECORD["baseline"].items():
        back = {}
        for name, documents in (("chosen", chosen), ("tested", tested)):
            n, t = np.nonzero(documents.task == TASKS.index(task))
            back[name] = (t - documents.decided_by[n, t]).tolist()
        often = {offset: back["chosen"].count(offset) for offset in set(back["chosen"])}
        assert often[found["offset"]] == max(often.values())
        share = back["tested"].count(found["offset"]) / len(back["tested"])
        assert found["accuracy"] == pytest.approx(share, abs=1e-4)
        assert found["cases"] == len(back["tested"])


def test_guesses_of_the_record_fall_somewhere():
    rules = RECORD["guess_rules"]
    assert sum(rules["target"]) == pytest.approx(1, abs=1e-3)
    for name, runs in RECORD["plateau"].items():
        assert [run["seed"] for run in runs] == list(SEEDS)
        assert {run["steps"] for run in runs} == {PLATEAUS[name]}
        for run in runs:
            for part in ("guesses", "expected"):
                whole = sum(run[part]["by_rank"]) + run[part]["never_said"]
                assert whole == pytest.approx(1, abs=1e-3)
    for run, whole in zip(
        RECORD["plateau"]["one layer"], RECORD["models"]["one layer"]["runs"], strict=True
    ):
        assert run["right"] == pytest.approx(whole["accuracy"]["surname"][-1], abs=1e-3)


@pytest.fixture
def miniature(few, tmp_path, monkeypatch):
    """A run of seconds in a folder of its own; what it writes, in place of the files of data/."""
    small = {"DONE": tmp_path, "STEPS": 32, "TRIED_FOR": 16, "WARM_UP": 4, "SEEDS": range(1)}
    for name, value in (small | {"RATES": (2e-3, 8e-3)}).items():
        monkeypatch.setattr(known_text, name, value)
    monkeypatch.setattr(scored_heads, "STEPS", 32)
    monkeypatch.setattr(scored_heads, "SEEDS", range(1))
    monkeypatch.setattr(scored_heads, "BLOCK_RATES", (1e-3, 4e-3))
    chosen = ("two layers", "norm and MLP")
    monkeypatch.setattr(scored_heads, "MODELS", {name: MODELS[name] for name in chosen})
    monkeypatch.setattr(scored_heads, "PLATEAUS", {"two layers": 16})
    monkeypatch.setattr(scored_heads, "LONGER", chosen[:1])
    written = {}

    def keep(name, found):
        written[name] = json.loads(json.dumps(found)) if isinstance(found, dict) else found

    monkeypatch.setattr(scored_heads, "write", keep)
    monkeypatch.setattr(scored_heads, "write_checkpoint", keep)
    return written


@pytest.mark.long
def test_a_run_trains_scores_resumes_and_is_compared_with_another_seed(
    miniature, monkeypatch, capsys
):
    scored_heads.main()
    first, found = json.dumps(miniature["scored_heads"]), miniature["scored_heads"]
    assert [len(part["seeds"]) for part in found["heads"].values()] == [1, 1]
    assert BlockModel.of(miniature["known_block"]).U.dtype == np.float16
    assert found["longer"]["two layers"]["steps"][-1] == 64
    train = known_text.train
    monkeypatch.setattr(known_text, "train", None)  # all is kept
    miniature.clear()
    scored_heads.main()
    assert json.dumps(miniature["scored_heads"]) == first
    monkeypatch.setattr(known_text, "train", train)
    monkeypatch.setattr(records, "record", lambda name: found)
    miniature.clear()
    capsys.readouterr()
    scored_heads.compare(77)
    assert not miniature  # it writes nothing
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1 + (1 + 10 + 30)
    assert said[-1].startswith(f"{sum(line.startswith('OUT') for line in said)} of 41 figures")


@pytest.mark.parametrize("seed", [0, 100, known_text.TEST, -1])
def test_a_seed_that_is_used_is_no_other_seed(seed):
    fault = "below 0" if seed < 0 else "used by the record"
    with pytest.raises(SystemExit, match=f"^seed {seed} is {fault}; expected one of your own"):
        scored_heads.compare(seed)
