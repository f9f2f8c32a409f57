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
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.head_scores import run_with

IDS = np.array([[3, 1, 3, 0, 6], [5, 5, 4, 2, 0]])
OTHERS = np.array([[2, 1, 6, 0, 6], [5, 0, 4, 1, 3]])
HEADS = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def oracle_heads(X, params):
    """The heads of one layer on one document, (H, T, d_v), by plain loops."""
    qkv = (oracle.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    return oracle.scaled_dot_product_attention(*qkv, oracle.causal_mask(len(X)))


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_zero_mean_and_resampling_replace_as_named(model, layer, head, assert_close):
    expected = np.stack([copying.run(model, ids)[1][layer].heads[head] for ids in OTHERS])
    zero_output, mean_output, resampled_output = (
        replacement_outputs(model, [(layer, head)], OTHERS, *how)[layer, head]
        for how in (["zero"], [], ["resample"])
    )
    assert zero_output.tolist() == [0] * expected.shape[-1]
    assert_close(mean_output, sum(expected[n, t] for n, t in np.ndindex(2, 5)) / 10)
    assert_close(resampled_output, expected)


@pytest.mark.parametrize("how", ["zero", "mean", "resample"])
def test_ablated_heads_are_those_and_no_others_whatever_their_order(model, how, assert_close):
    for heads in combinations(HEADS, 2):
        expected = run_with(model, IDS, replacement_outputs(model, list(heads), OTHERS, how))
        for order in (heads, heads[::-1]):
            assert_close(ablate(model, IDS, list(order), OTHERS, how=how), expected)


def test_all_heads_but_one_can_be_ablated_and_others_may_be_fewer_and_shorter(model):
    assert ablate(model, IDS, HEADS[1:], OTHERS[:1, :4]).shape == (2, 5, 7)
    assert len(replacement_outputs(model, HEADS, OTHERS)) == 5


def test_each_loss_is_that_of_all_heads_removed_by_then():
    rng = np.random.default_rng(0)
    loss_table = {frozenset(s): rng.random() for n in range(6) for s in combinations(HEADS, n)}
    order, losses = prune_greedily(HEADS, lambda ablated: loss_table[frozenset(ablated)])
    assert sorted(order) == HEADS
    for n, (head, loss) in enumerate(zip(order, losses, strict=True)):
        assert loss == loss_table[frozenset(order[: n + 1])]
        remaining_heads = set(HEADS) - set(order[:n])
        assert head in remaining_heads
        assert loss == min(loss_table[frozenset([*order[:n], other])] for other in remaining_heads)


def test_gates_of_1_change_nothing_and_gates_of_0_ablate(model, assert_close):
    outputs = replacement_outputs(model, HEADS, OTHERS)
    logits, _ = copying.run(model, IDS)
    assert_close(gated(model, IDS, dict.fromkeys(HEADS, 1.0), outputs), logits)
    ablated_logits = gated(model, IDS, {(0, 1): 0, (1, 2): 0}, outputs)
    assert_close(ablated_logits, ablate(model, IDS, [(0, 1), (1, 2)], OTHERS))


def test_a_gate_mixes_a_heads_own_output_with_its_replacement(model, normal, assert_close):
    outputs = {(0, 1): normal(80, 2), (1, 0): normal(81, 5, 4)}
    gates = {(0, 1): 0.3, (1, 0): 0.8}
    _, (lower, _) = copying.run(model, IDS)
    mixtures = {(0, 1): 0.3 * lower.heads[:, 1] + 0.7 * outputs[0, 1]}
    X = lower.X + np.concatenate([lower.heads[:, 0], mixtures[0, 1]], axis=-1) @ model.layers[0].W_O
    upper_heads = np.stack([oracle_heads(x, model.layers[1]) for x in X])
    mixtures[1, 0] = 0.8 * upper_heads[:, 0] + 0.2 * outputs[1, 0]
    assert_close(gated(model, IDS, gates, outputs), run_with(model, IDS, mixtures))


@pytest.mark.parametrize("task", ["surname", "attractor", "bracket"])
def test_gradients_of_gates_are_those_of_differences_of_the_forms_loss(example_model, task):
    documents = sample_documents(np.random.default_rng(5), 8)
    other_ids = sample_documents(np.random.default_rng(6), 8).ids[:, :-1]
    outputs = replacement_outputs(example_model, [(n, h) for n, h in np.ndindex(2, 4)], other_ids)
    gate_values = np.random.default_rng(7).uniform(0.2, 0.9, 7)
    gates = dict(zip(outputs, gate_values.tolist(), strict=False))  # the eighth stays whole

    def task_loss(gate_changes):
        logits = gated(example_model, documents.ids[:, :-1], gates | gate_changes, outputs)
        return form_loss(logits, documents)[task]

    loss_value, gradients = gate_gradients(example_model, documents, task, gates, outputs)
    assert loss_value == pytest.approx(task_loss({}), rel=1e-9)
    assert list(gradients) == list(gates)
    for head, gate in gates.items():
        upper_loss, lower = (task_loss({head: gate + step}) for step in (1e-5, -1e-5))
        assert gradients[head] == pytest.approx((upper_loss - lower) / 2e-5, rel=1e-4, abs=1e-7)


def test_learned_gates_stop_where_the_gradient_is_0_and_within_0_and_1():
    initial_gates = {"free": 1.0, "needed": 1.0, "useful": 1.0}

    def gate_gradient(gates):  # what is useful is best at 0.4
        return {"free": 0.3, "needed": -5.0, "useful": 2 * (gates["useful"] - 0.4)}

    gates = learn_gates(initial_gates, gate_gradient, price=0.3, steps=60)
    assert (gates["free"], gates["needed"]) == (0, 1)
    assert gates["useful"] == pytest.approx(0.4, abs=0.05)
    assert initial_gates == {"free": 1.0, "needed": 1.0, "useful": 1.0}


def test_the_range_contains_the_median_as_often_as_its_confidence():
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(20000, 4))  # whatever the distribution; its median is log 2
    has_median = [lower_bound < np.log(2) < high for lower_bound, high, _ in map(interval, samples)]
    assert interval(samples[0])[2] == 1 - 2 / 16
    assert np.mean(has_median) == pytest.approx(0.875, abs=0.01)


REFUSED = [
    (lambda m: ablate(m, IDS, [(0, 1)] * 2, OTHERS), ValueError, "heads is .* Drop the duplicate"),
    (lambda m: ablate(m, IDS, [(0, 2)], OTHERS), ValueError, "head 2 of 2: expected 0 to 1"),
    (lambda m: ablate(m, IDS, HEADS, OTHERS), ValueError, "all 5 heads are ablated.*run_with"),
    (lambda m: replacement_outputs(m, [(1,)], OTHERS), TypeError, r"named \(1,\); expected a"),
    (lambda m: replacement_outputs(m, [(0, 1)], OTHERS, "median"), ValueError, "how is 'median'; "),
    (lambda m: prune_greedily([(0, 0), (0, 0)], len), ValueError, "heads is .* Drop the duplicate"),
    (lambda m: learn_gates({(0, 0): 2}, dict, price=0.3), ValueError, "the gate of .* is 2"),
    (lambda m: learn_gates({(0, 0): 0.5}, dict, price=0), ValueError, "price is 0; expected more"),
    (lambda m: learn_gates({(0, 0): 0.5}, dict, price=np.nan), ValueError, "price is nan"),
    (lambda m: interval([]), ValueError, "values has 0 entries; expected one for each of"),
    (lambda m: interval(np.array([0.1])), ValueError, "values has 1 entries; expected one for"),
    (lambda m: interval(np.ones((2, 3))), ShapeError, "values has shape"),
    (lambda m: interval([0.1, np.nan]), ValueError, "values is nan at position"),
    (lambda m: interval(["a", "b"]), TypeError, "values is an array of"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_cannot_be_ablated_learned_or_counted_is_refused(call, error, message, model):
    with pytest.raises(error, match=message):
        call(model)


@pytest.mark.parametrize("other_ids", [OTHERS[:, :4], OTHERS[:1]])
def test_others_to_resample_are_as_many_and_as_long(other_ids, model):
    with pytest.raises(ShapeError, match=r"ids has shape \(2, 5\) and the others \(., .\)"):
        ablate(model, IDS, [(0, 1)], other_ids, how="resample")


@pytest.mark.parametrize(
    ("gates", "error", "message"),
    [
        ({(0, 1): 1.01}, ValueError, r"the gate of \(0, 1\) is 1.01; expected 0, closed"),
        ({(0, 1): -0.1}, ValueError, "is -0.1"),
        ({(0, 1): float("nan")}, ValueError, "is nan"),
        ({(0, 1): "half"}, TypeError, "is a str; expected a number"),
        ({(0, 1): True}, TypeError, "is a bool"),
        ({}, ValueError, "gates is empty"),
        ({(1, 1): 0.5}, ValueError, r"head \(1, 1\) has a gate and no replacement output"),
    ],
)
def test_gates_that_cannot_be_are_refused(gates, error, message, model):
    with pytest.raises(error, match=message):
        gated(model, IDS, gates, {(0, 1): np.zeros(2), (0, 0): np.zeros(2)})


@pytest.mark.parametrize(
    ("task", "gate", "width", "message"),
    [
        ("surname", 0.5, 16, "no word of the documents belongs to 'surname'"),
        ("verbs", 0.5, 16, "task is 'verbs'; expected one of"),
        ("surname", 2, 16, r"the gate of \(1, 0\) is 2"),
        ("surname", 0.5, 15, r"output has shape \(15,\)"),
    ],
)
def test_gradients_require_a_word_of_the_task_gates_and_outputs(
    task, gate, width, message, example_model
):
    documents = sample_documents(np.random.default_rng(0), 1, length=2)
    with pytest.raises(ValueError, match=message):
        gate_gradients(example_model, documents, task, {(1, 0): gate}, {(1, 0): np.zeros(width)})
