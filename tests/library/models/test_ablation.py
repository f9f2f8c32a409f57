"""Ablation, gates, pruning and ranges of seeds: against plain loops, and what they refuse."""

from itertools import combinations

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import ShapeError
from tutorial_lib.models import copying
from tutorial_lib.models.ablation import (
    ablate,
    gate_gradients,
    gated,
    interval,
    learn_gates,
    prune_greedily,
    replacement_outputs,
)
from tutorial_lib.models.entropy import form_loss
from tutorial_lib.models.grammar import FORMS, TASKS, sample_documents
from tutorial_lib.models.head_scores import run_with

IDS = np.array([[3, 1, 3, 0, 6], [5, 5, 4, 2, 0]])
OTHERS = np.array([[2, 1, 6, 0, 6], [5, 0, 4, 1, 3]])
HEADS = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def own_output(model, ids, layer, head):
    """The output of a head for each document, from plain loops over the runs of one document."""
    return np.stack([copying.run(model, document)[1][layer].heads[head] for document in ids])


def oracle_heads(X, params):
    """The heads of one layer on one document, (H, T, d_v), by plain loops."""
    parts = (oracle.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    return oracle.scaled_dot_product_attention(*parts, oracle.causal_mask(len(X)))


# --- what replaces an output ---


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_zero_mean_and_resampling_replace_as_named(tiny, layer, head, assert_close):
    there = own_output(tiny, OTHERS, layer, head)
    found = {
        how: replacement_outputs(tiny, [(layer, head)], OTHERS, *how.split())
        for how in ("zero", "", "resample")
    }
    assert found["zero"][layer, head].tolist() == [0] * there.shape[-1]
    mean = sum(there[n, t] for n, t in np.ndindex(2, 5)) / 10
    assert_close(found[""][layer, head], mean)
    assert_close(found["resample"][layer, head], there)


@pytest.mark.parametrize("how", ["zero", "mean", "resample"])
def test_ablated_heads_are_those_and_no_others_whatever_their_order(tiny, how, assert_close):
    for heads in combinations(HEADS, 2):
        right = run_with(tiny, IDS, replacement_outputs(tiny, list(heads), OTHERS, how))
        for order in (heads, heads[::-1]):
            assert_close(ablate(tiny, IDS, list(order), OTHERS, how=how), right)


def test_resampled_by_the_same_documents_nothing_changes(tiny, assert_close):
    whole, _ = copying.run(tiny, IDS)
    assert_close(ablate(tiny, IDS, [(0, 1), (1, 2)], IDS, how="resample"), whole)


@pytest.mark.parametrize(
    ("heads", "error", "says"),
    [
        ([(0, 1), (0, 1)], ValueError, r"heads is \[\(0, 1\), \(0, 1\)\]; .* Drop what is twice"),
        ([(0, 2)], ValueError, "head 2 of 2: expected 0 to 1"),
        ([(2, 0)], ValueError, "layer 2 of 2: expected 0 to 1"),
        ([(1,)], TypeError, r"a head is named \(1,\); expected a tuple"),
    ],
)
def test_heads_that_cannot_be_ablated_are_refused(tiny, heads, error, says):
    for call in (
        lambda: ablate(tiny, IDS, heads, OTHERS),
        lambda: replacement_outputs(tiny, heads, OTHERS),
    ):
        with pytest.raises(error, match=says):
            call()


def test_all_heads_at_once_are_refused_and_all_but_one_pass(tiny):
    with pytest.raises(ValueError, match=r"all 5 heads are ablated.*expected fewer.*run_with"):
        ablate(tiny, IDS, HEADS, OTHERS)
    assert ablate(tiny, IDS, HEADS[1:], OTHERS).shape == (2, 5, 7)
    assert len(replacement_outputs(tiny, HEADS, OTHERS)) == 5


def test_others_are_as_many_and_as_long_only_to_resample(tiny):
    for others in (OTHERS[:, :4], OTHERS[:1]):
        with pytest.raises(ShapeError, match=r"ids has shape \(2, 5\) and the others \(., .\)"):
            ablate(tiny, IDS, [(0, 1)], others, how="resample")
    assert ablate(tiny, IDS, [(0, 1)], OTHERS[:1, :4]).shape == (2, 5, 7)
    with pytest.raises(ValueError, match="how is 'median'; expected one of"):
        replacement_outputs(tiny, [(0, 1)], OTHERS, "median")


# --- pruning ---


def test_each_loss_is_that_of_all_heads_removed_by_then():
    rng = np.random.default_rng(0)
    table = {frozenset(s): rng.random() for n in range(6) for s in combinations(HEADS, n)}
    order, losses = prune_greedily(HEADS, lambda removed: table[frozenset(removed)])
    assert sorted(order) == HEADS
    for n, (head, found) in enumerate(zip(order, losses, strict=True)):
        assert found == table[frozenset(order[: n + 1])]
        left = set(HEADS) - set(order[:n])
        assert head in left
        assert found == min(table[frozenset([*order[:n], other])] for other in left)


def test_pruning_refuses_a_head_twice():
    with pytest.raises(ValueError, match="twice"):
        prune_greedily([(0, 0), (0, 0)], len)


# --- gates ---


def test_gates_of_1_change_nothing_and_gates_of_0_ablate(tiny, assert_close):
    outputs = replacement_outputs(tiny, HEADS, OTHERS)
    whole, _ = copying.run(tiny, IDS)
    assert_close(gated(tiny, IDS, dict.fromkeys(HEADS, 1.0), outputs), whole)
    some = [(0, 1), (1, 2)]
    closed = gated(tiny, IDS, dict.fromkeys(some, 0), outputs)
    assert_close(closed, ablate(tiny, IDS, some, OTHERS))


def test_a_gate_mixes_a_heads_own_output_with_its_replacement(tiny, normal, assert_close):
    outputs = {(0, 1): normal(80, 2), (1, 0): normal(81, 5, 4)}
    gates = {(0, 1): 0.3, (1, 0): 0.8}
    _, (low, _) = copying.run(tiny, IDS)
    mixed = {(0, 1): 0.3 * low.heads[:, 1] + 0.7 * outputs[0, 1]}
    X = low.X + np.concatenate([low.heads[:, 0], mixed[0, 1]], axis=-1) @ tiny.layers[0].W_O
    above = np.stack([oracle_heads(x, tiny.layers[1]) for x in X])
    mixed[1, 0] = 0.8 * above[:, 0] + 0.2 * outputs[1, 0]
    assert_close(gated(tiny, IDS, gates, outputs), run_with(tiny, IDS, mixed))


WRONG_GATES = {
    "above 1": ({(0, 1): 1.01}, ValueError, r"the gate of \(0, 1\) is 1.01; expected 0, closed"),
    "below 0": ({(0, 1): -0.1}, ValueError, "is -0.1"),
    "NaN": ({(0, 1): float("nan")}, ValueError, "is nan"),
    "a word": ({(0, 1): "half"}, TypeError, "is a str; expected a number"),
    "True": ({(0, 1): True}, TypeError, "is a bool"),
    "none": ({}, ValueError, "gates is empty"),
    "no output": ({(1, 1): 0.5}, ValueError, r"head \(1, 1\) has a gate and no replacement output"),
}


@pytest.mark.parametrize("name", WRONG_GATES)
def test_gates_that_cannot_be_are_refused(tiny, name):
    gates, error, says = WRONG_GATES[name]
    outputs = {(0, 1): np.zeros(2), (0, 0): np.zeros(2)}
    with pytest.raises(error, match=says):
        gated(tiny, IDS, gates, outputs)


@pytest.mark.parametrize(("task", "size"), [("surname", 12), ("attractor", 2), ("bracket", 2)])
def test_gradients_of_gates_are_those_of_differences_and_the_loss_is_the_forms(example, task, size):
    documents = sample_documents(np.random.default_rng(5), 8)
    others = sample_documents(np.random.default_rng(6), 8).ids[:, :-1]
    heads = [(layer, head) for layer in range(2) for head in range(4)]
    outputs = replacement_outputs(example, heads, others)
    values = np.random.default_rng(7).uniform(0.2, 0.9, 7)
    gates = dict(zip(heads[:7], values.tolist(), strict=True))  # the eighth stays whole
    target = documents.target_of(task)

    def loss(changed):
        logits, total, count = gated(example, documents.ids[:, :-1], changed, outputs), 0, 0
        for n, t in np.argwhere(target >= 0):
            right = documents.ids[n, t + 1]
            forms = [word for word in range(100) if FORMS[word] == FORMS[right]]
            assert len(forms) == size
            scores = logits[n, t] - logits[n, t].max()
            total -= scores[right] - np.log(np.exp(scores[forms]).sum())
            count += 1
        return total / count

    found, gradients = gate_gradients(example, documents, task, gates, outputs)
    assert found == pytest.approx(loss(gates), rel=1e-9)
    assert found == pytest.approx(
        form_loss(gated(example, documents.ids[:, :-1], gates, outputs), documents)[task]
    )
    assert list(gradients) == heads[:7]
    for head in heads[:7]:
        up, down = (loss(gates | {head: gates[head] + step}) for step in (1e-5, -1e-5))
        assert gradients[head] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-7)


def test_gradients_require_a_task_of_which_the_documents_have_a_word(example):
    documents = sample_documents(np.random.default_rng(0), 1, length=2)
    outputs = {(1, 0): np.zeros(16)}
    with pytest.raises(ValueError, match="no word of the documents belongs to 'surname'"):
        gate_gradients(example, documents, "surname", {(1, 0): 0.5}, outputs)
    with pytest.raises(ValueError, match="task is 'verbs'; expected one of"):
        gate_gradients(example, documents, "verbs", {(1, 0): 0.5}, outputs)
    assert "surname" in TASKS


def test_learned_gates_stop_where_the_gradient_is_0_and_within_0_and_1():
    start = {"free": 1.0, "needed": 1.0, "between": 1.0}

    def gradients(gates):  # what is between is least at 0.4
        return {"free": 0.3, "needed": -5.0, "between": 2 * (gates["between"] - 0.4)}

    found = learn_gates(start, gradients, price=0.3, steps=60)
    assert found["free"] == 0
    assert found["needed"] == 1
    assert found["between"] == pytest.approx(0.4, abs=0.05)
    assert start == {"free": 1.0, "needed": 1.0, "between": 1.0}


@pytest.mark.parametrize("price", [0, -1, float("nan")])
def test_learning_refuses_a_price_that_is_none_and_gates_that_are_none(price):
    with pytest.raises(ValueError, match=r"price is .*expected more than 0"):
        learn_gates({(0, 0): 0.5}, dict, price=price)
    with pytest.raises(ValueError, match=r"the gate of .* is 2"):
        learn_gates({(0, 0): 2}, dict, price=0.3)


# --- seeds ---


def test_the_range_contains_the_median_as_often_as_its_confidence():
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(20000, 4))  # whatever the distribution; its median is log 2
    held = [low < np.log(2) < high for low, high, _ in map(interval, samples)]
    assert interval(samples[0])[2] == 1 - 2 / 16
    assert np.mean(held) == pytest.approx(0.875, abs=0.01)


def test_a_range_requires_two_seeds_and_numbers():
    for few in ([], [0.1], np.array([0.1])):
        with pytest.raises(ValueError, match="expected one for each of two seeds or more"):
            interval(few)
    with pytest.raises(ShapeError, match="values has shape"):
        interval(np.ones((2, 3)))
    with pytest.raises(ValueError, match="values is nan at position"):
        interval([0.1, np.nan])
    with pytest.raises(TypeError, match="values is an array of"):
        interval(["a", "b"])
