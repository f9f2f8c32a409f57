"""Scores of heads, terms of the logits, ablation, patches: against loops, and what they refuse."""

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import ShapeError
from tutorial_lib.models import copying, head_scores
from tutorial_lib.models.head_scores import (
    attribution_patch,
    best_offset,
    fixed_offset_score,
    logit_terms,
    patch,
    run_with,
    score_head,
)

IDS = np.array([[3, 1, 3, 0, 6], [5, 5, 4, 2, 0]])
OTHER = np.array([[2, 1, 6, 0, 6], [5, 0, 4, 1, 3]])
HEADS = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
TARGET = np.array([[-1, 0, 2, 1, -1], [0, -1, 1, 3, 4], [-1, -1, -1, -1, -1]])


def test_score_of_a_head_is_its_mean_weight_on_its_targets(normal, sizes, assert_close):
    weights = np.exp(normal(71, 3, sizes.H, 5, 5)) * np.tri(5)
    weights /= weights.sum(axis=-1, keepdims=True)
    assert_close(score_head(weights, TARGET), oracle.score_head(weights, TARGET))


def test_best_offset_is_the_most_frequent_distance_and_of_a_tie_the_smaller():
    assert sorted(oracle.offsets(TARGET)) == [0, 0, 0, 0, 1, 1, 2]
    assert best_offset(TARGET) == 0
    for target, offset in (([-1, 0, -1, 0, 1], 3), ([-1, 0, 0], 1), ([0, -1, 0], 0)):
        assert best_offset(np.array([target])) == offset


@pytest.mark.parametrize("seed", range(20))
def test_a_fixed_offset_scores_what_a_head_would_that_always_attends_that_far_back(seed):
    target = np.random.default_rng(seed).integers(-1, 6, (4, 9))
    target, scores = np.minimum(target, np.arange(9)), []
    offsets = oracle.offsets(target)
    for offset in range(10):
        scores.append(fixed_offset_score(target, offset))
        assert scores[-1] == offsets.count(offset) / len(offsets)
        weights = np.broadcast_to(np.eye(9, k=-offset), (4, 1, 9, 9))
        assert scores[-1] == pytest.approx(score_head(weights, target)[0], abs=1e-15)
    assert best_offset(target) == np.argmax(scores)


@pytest.mark.parametrize("ids", [IDS, IDS[0, :3], np.stack([IDS, OTHER])], ids=lambda ids: ids.ndim)
def test_terms_are_the_words_then_each_head_and_sum_to_the_logits(ids, model, assert_close):
    terms = logit_terms(model, ids)
    assert len(terms) == 1 + len(HEADS)
    for term, expected in zip(terms, oracle.logit_terms(model, ids), strict=True):
        assert_close(term, expected)
    assert_close(sum(terms), copying.run(model, ids)[0])


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_a_head_has_another_output_and_later_layers_are_recomputed(
    layer, head, model, normal, assert_close
):
    d_v = (2, 4)[layer]
    for shape in [(), (d_v,), (5, d_v), (5, 1), (2, 1, d_v), (2, 5, d_v)]:
        output = normal(80, *shape)
        expected = sum(oracle.logit_terms(model, IDS, {(layer, head): output}))
        assert_close(run_with(model, IDS, {(layer, head): output}), expected)
    assert_close(run_with(model, IDS[1], {(layer, head): output[1]}), expected[1])


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_a_patch_is_the_output_of_the_head_for_the_other_sequence(layer, head, model, assert_close):
    output = copying.run(model, OTHER)[1][layer].heads[:, head]
    expected = sum(oracle.logit_terms(model, IDS, {(layer, head): output}))
    assert_close(patch(model, IDS, OTHER, layer, head), expected)
    assert_close(patch(model, IDS[0], OTHER[0], layer, head), expected[0])


def test_several_heads_give_other_outputs_at_once(model, normal, assert_close):
    outputs = {(1, 0): normal(90, 5, 4), (0, 1): normal(91, 2), (1, 2): normal(92, 2, 5, 4)}
    expected = sum(oracle.logit_terms(model, IDS, outputs))
    assert_close(run_with(model, IDS, outputs), expected)
    assert_close(run_with(model, IDS, dict(reversed(outputs.items()))), expected)
    assert_close(run_with(model, IDS, {}), copying.run(model, IDS)[0])


def test_estimated_patches_are_slopes_of_small_patches(model, normal, assert_close):
    dlogits, step, slopes = normal(82, 2, 5, 7), 1e-6, []
    clean_records, other_records = (copying.run(model, ids)[1] for ids in (IDS, OTHER))
    for layer, head in HEADS:
        own, other_Y = (records[layer].heads[:, head] for records in (clean_records, other_records))
        signed_outputs = [{(layer, head): own + sign * step * (other_Y - own)} for sign in (1, -1)]
        upper_logits, lower_logits = (run_with(model, IDS, outputs) for outputs in signed_outputs)
        slopes.append((dlogits * (upper_logits - lower_logits)).sum(axis=(-2, -1)) / (2 * step))
    estimates = attribution_patch(model, IDS, OTHER, dlogits)  # (2, heads)
    np.testing.assert_allclose(estimates, np.transpose(slopes), rtol=1e-6, atol=1e-8)
    assert_close(attribution_patch(model, IDS[1], OTHER[1], dlogits[1]), estimates[1])


def test_estimated_patches_of_the_last_layer_are_exact(model, normal, assert_close):
    dlogits, logits = normal(83, 2, 5, 7), copying.run(model, IDS)[0]
    logit_changes = [patch(model, IDS, OTHER, 1, head) - logits for head in range(3)]
    effects = np.transpose([(dlogits * change).sum(axis=(-2, -1)) for change in logit_changes])
    assert_close(attribution_patch(model, IDS, OTHER, dlogits)[:, 2:], effects)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ([[0, 2, -1]], ValueError, r"target is 2 at \(0, 1\); expected .* from 0 to 1"),
        ([[0, -1, 3]], ValueError, r"target is 3 at .* from 0 to 2"),
        ([[0, -2, 0]], ValueError, r"target is -2 at \(0, 1\)"),
        ([[-1, -1]], ValueError, "no position has a target: target is -1 throughout"),
        (np.zeros((2, 3), np.uint8), TypeError, "target is an array of uint8; expected positions"),
    ],
)
def test_a_target_that_cannot_be_is_refused(target, error, message):
    target = np.array(target)
    weights = np.ones((len(target), 3, *[target.shape[-1]] * 2))
    for metric, arguments in (
        (score_head, (weights, target)),
        (best_offset, (target,)),
        (fixed_offset_score, (target, 1)),
    ):
        with pytest.raises(error, match=message):
            metric(*arguments)


def with_output(output):
    """Call `run_with` for one head."""
    return lambda model: run_with(model, IDS, {(1, 0): output})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: fixed_offset_score(TARGET, -1), ValueError, "offset=-1; expected 0 or more"),
        (lambda m: run_with(m, IDS, {1: 0}), TypeError, "a head is named 1; expected a tuple"),
        (lambda m: run_with(m, IDS, {"10": 0}), TypeError, "a head is named '10'; expected a t"),
        (lambda m: run_with(m, IDS, {(1, 0, 2): 0}), TypeError, r"a head is named \(1, 0, 2\)"),
        (with_output(np.zeros(3)), ShapeError, r"output has shape \(3,\); expected .* \(2, 5, 4"),
        (with_output(np.zeros((3, 1, 5, 4))), ShapeError, r"shape \(3, 1, 5, 4\).*shape \(4,\)"),
        (with_output(np.full(4, np.nan)), ValueError, r"output is nan at position \(0,\)"),
        (with_output(0.0), TypeError, "output is a float; expected a NumPy array"),
    ],
)
def test_what_no_head_can_give_is_refused(call, error, message, model):
    with pytest.raises(error, match=message):
        call(model)


@pytest.mark.parametrize(
    ("layer", "head", "error", "message"),
    [
        (1, 3, ValueError, "head 3 of 3: expected 0 to 2"),
        (0, -1, ValueError, "head -1 of 2: expected 0 to 1"),
        (2, 0, ValueError, "layer 2 of 2: expected 0 to 1"),
        (1, 1.0, TypeError, "head is 1.0, a float; expected a whole number. Give"),
    ],
)
def test_a_head_that_is_not_there_is_refused(layer, head, error, message, model, monkeypatch):
    monkeypatch.setattr(head_scores, "run", None)  # nothing is computed
    monkeypatch.setattr(head_scores, "embed", None)
    for call in (
        lambda: run_with(model, IDS, {(layer, head): np.zeros(())}),
        lambda: patch(model, IDS, OTHER, layer, head),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (np.array([7]), ValueError, "is 7 at position"),
        (np.zeros(10, dtype=int), ShapeError, "10 tokens, but P has rows for 9"),
        (IDS, ShapeError, r"ids has shape \(.*5.* and the others \(.*5.*; expected the same"),
    ],
)
def test_ids_that_a_model_cannot_read_are_refused_before_it_runs(
    ids, error, message, model, monkeypatch
):
    monkeypatch.setattr(head_scores, "run", None)
    zeros = np.zeros(ids.shape[-1], dtype=int)
    for ids_pair in ((ids, zeros), (zeros, ids)):
        with pytest.raises(error, match=message):
            patch(model, *ids_pair, 1, 0)
        with pytest.raises(error, match=message):
            attribution_patch(model, *ids_pair, np.ones((*ids.shape, 7)))
