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


@pytest.fixture
def weights(normal, sizes):
    """Weights of 3 documents, (3, H, 5, 5)."""
    raw = np.exp(normal(71, 3, sizes.H, 5, 5)) * np.tri(5)
    return raw / raw.sum(axis=-1, keepdims=True)


# --- where heads attend ---


def test_score_of_a_head_is_its_mean_weight_on_its_targets(weights, assert_close):
    assert_close(score_head(weights, TARGET), oracle.score_head(weights, TARGET))


def test_best_offset_is_the_most_frequent_distance_and_of_a_tie_the_smaller():
    assert sorted(oracle.offsets(TARGET)) == [0, 0, 0, 0, 1, 1, 2]
    assert best_offset(TARGET) == 0
    assert best_offset(np.array([[-1, 0, -1, 0, 1]])) == 3
    for target in ([[-1, 0, 0]], [[-1, -1, 0], [-1, 0, -1]]):
        assert best_offset(np.array(target)) == 1
    assert best_offset(np.array([[0, -1, 0]])) == 0


def test_a_fixed_offset_scores_what_a_head_would_that_always_attends_that_far_back():
    for offset in range(5):
        share = fixed_offset_score(TARGET, offset)
        assert share == oracle.offsets(TARGET).count(offset) / 7
        looks = np.broadcast_to(np.eye(5, k=-offset), (3, 1, 5, 5))
        assert share == pytest.approx(score_head(looks, TARGET)[0], abs=1e-15)
    assert fixed_offset_score(TARGET, 99) == 0


def test_no_offset_scores_higher_than_the_best_on_the_same_documents():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        target = np.minimum(rng.integers(-1, 6, (4, 9)), np.arange(9))
        shares = [fixed_offset_score(target, offset) for offset in range(9)]
        assert best_offset(target) == np.argmax(shares)


@pytest.mark.parametrize(
    ("target", "error", "says"),
    [
        (abs(TARGET).astype(np.uint8) * 0, TypeError, "target is an array of uint8; expected pos"),
        (np.array([[0, 2, -1]]), ValueError, r"target is 2 at \(0, 1\); expected .* from 0 to 1"),
        (np.array([[0, -1, 3]]), ValueError, r"target is 3 at .* from 0 to 2"),
        (np.array([[0, -2, 0]]), ValueError, r"target is -2 at \(0, 1\)"),
        (np.full((2, 3), -1), ValueError, "no position has a target: target is -1 throughout"),
    ],
)
def test_a_target_that_cannot_be_is_refused(target, error, says):
    T = target.shape[-1]
    weights = np.broadcast_to(np.eye(T), (len(target), 3, T, T))
    for function, given in (
        (score_head, (weights, target)),
        (best_offset, (target,)),
        (fixed_offset_score, (target, 1)),
    ):
        with pytest.raises(error, match=says):
            function(*given)


def test_a_head_attends_to_nothing_after_its_query():
    with pytest.raises(ShapeError, match=r"weights has shape \(3, 3, 5, 6\).*with T=5"):
        score_head(np.ones((3, 3, 5, 6)), TARGET)
    with pytest.raises(ValueError, match="offset=-1; expected 0 or more"):
        fixed_offset_score(TARGET, -1)


# --- what heads contribute ---


@pytest.mark.parametrize("ids", [IDS, IDS[0, :3], np.stack([IDS, OTHER])], ids=lambda ids: ids.ndim)
def test_terms_are_the_words_then_each_head_and_sum_to_the_logits(ids, tiny, assert_close):
    found, right = logit_terms(tiny, ids), oracle.logit_terms(tiny, ids)
    assert len(found) == len(right) == 1 + len(HEADS)
    for part, expected in zip(found, right, strict=True):
        assert_close(part, expected)
    assert_close(sum(found), copying.run(tiny, ids)[0])


# --- what depends on them ---


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_a_head_has_another_output_and_later_layers_are_recomputed(
    layer, head, tiny, normal, assert_close
):
    d_v = (2, 4)[layer]
    for shape in [(), (d_v,), (5, d_v), (5, 1), (2, 1, d_v), (2, 5, d_v)]:
        output = normal(80, *shape)
        right = sum(oracle.logit_terms(tiny, IDS, {(layer, head): output}))
        assert_close(run_with(tiny, IDS, {(layer, head): output}), right)
    alone = run_with(tiny, IDS[1], {(layer, head): output[1]})
    np.testing.assert_allclose(alone, right[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("layer", "head"), HEADS)
def test_a_patch_is_the_output_of_the_head_for_the_other_sequence(layer, head, tiny, assert_close):
    others = copying.run(tiny, OTHER)[1][layer].heads[:, head]
    right = sum(oracle.logit_terms(tiny, IDS, {(layer, head): others}))
    assert_close(patch(tiny, IDS, OTHER, layer, head), right)
    assert_close(patch(tiny, IDS[0], OTHER[0], layer, head), right[0])


# --- patches, estimated ---


def test_estimated_patches_are_slopes_of_small_patches(tiny, normal, assert_close):
    dlogits, step, found = normal(82, 2, 5, 7), 1e-6, []
    here, there = (copying.run(tiny, ids)[1] for ids in (IDS, OTHER))
    for layer, head in HEADS:
        own, other = (records[layer].heads[:, head] for records in (here, there))
        both = [{(layer, head): own + sign * step * (other - own)} for sign in (1, -1)]
        up, down = (run_with(tiny, IDS, outputs) for outputs in both)
        found.append((dlogits * (up - down)).sum(axis=(-2, -1)) / (2 * step))
    slopes = np.transpose(found)  # (2, heads)
    estimated = attribution_patch(tiny, IDS, OTHER, dlogits)
    np.testing.assert_allclose(estimated, slopes, rtol=1e-6, atol=1e-8)
    one = attribution_patch(tiny, IDS[1], OTHER[1], dlogits[1])
    np.testing.assert_allclose(one, estimated[1], rtol=1e-10, atol=1e-12)


def test_estimated_patches_of_the_last_layer_are_exact(tiny, normal, assert_close):
    dlogits, logits = normal(83, 2, 5, 7), copying.run(tiny, IDS)[0]
    changes = [patch(tiny, IDS, OTHER, 1, head) - logits for head in range(3)]
    exact = np.transpose([(dlogits * change).sum(axis=(-2, -1)) for change in changes])
    assert_close(attribution_patch(tiny, IDS, OTHER, dlogits)[:, 2:], exact)


@pytest.mark.parametrize(
    ("layer", "head", "error", "says"),
    [
        (1, 3, ValueError, "head 3 of 3: expected 0 to 2"),
        (0, -1, ValueError, "head -1 of 2: expected 0 to 1"),
        (2, 0, ValueError, "layer 2 of 2: expected 0 to 1"),
        (1, 1.0, TypeError, "head is 1.0, a float; expected a whole number. Give"),
    ],
)
def test_a_head_that_is_not_there_is_refused(layer, head, error, says, tiny, monkeypatch):
    monkeypatch.setattr(head_scores, "run", None)  # nothing is computed
    monkeypatch.setattr(head_scores, "embed", None)
    for call in (
        lambda: run_with(tiny, IDS, {(layer, head): np.zeros(())}),
        lambda: patch(tiny, IDS, OTHER, layer, head),
    ):
        with pytest.raises(error, match=says):
            call()


def test_several_heads_give_other_outputs_at_once(tiny, normal, assert_close):
    outputs = {(1, 0): normal(90, 5, 4), (0, 1): normal(91, 2), (1, 2): normal(92, 2, 5, 4)}
    right = sum(oracle.logit_terms(tiny, IDS, outputs))
    assert_close(run_with(tiny, IDS, outputs), right)
    assert_close(run_with(tiny, IDS, dict(reversed(outputs.items()))), right)
    assert_close(run_with(tiny, IDS, {}), copying.run(tiny, IDS)[0])


@pytest.mark.parametrize("name", [1, "10", (1, 0, 2)])
def test_outputs_that_name_no_heads_are_refused(name, tiny):
    with pytest.raises(
        TypeError, match=r"a head is named .*; expected a tuple \(layer, head\). He"
    ):
        run_with(tiny, IDS, {name: np.zeros(4)})


@pytest.mark.parametrize(
    ("output", "error", "says"),
    [
        (np.zeros(3), ShapeError, r"output has shape \(3,\); expected what .* \(2, 5, 4"),
        (np.zeros((3, 2, 5, 4)), ShapeError, r"shape \(3, 2, 5, 4\).*has shape \(4,\)"),
        (np.full(4, np.nan), ValueError, r"output is nan at position \(0,\)"),
        (0.0, TypeError, "output is a float; expected a NumPy array"),
    ],
)
def test_an_output_that_no_head_can_give_is_refused(output, error, says, tiny):
    with pytest.raises(error, match=says):
        run_with(tiny, IDS, {(1, 0): output})


def test_a_patch_between_sequences_of_different_shapes_is_refused(tiny):
    with pytest.raises(
        ShapeError, match=r"other has shape .*with T=5, but its axis T has length 4"
    ):
        patch(tiny, IDS, OTHER[:, :4], 1, 0)
    for call in (
        lambda: patch(tiny, IDS, OTHER[0], 1, 0),
        lambda: attribution_patch(tiny, IDS, OTHER[0], np.ones((2, 5, 7))),
    ):
        with pytest.raises(ShapeError, match=r"ids has shape \(2, 5\) and the others \(5,\)"):
            call()


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        (np.array([7]), ValueError, "is 7 at position"),
        (np.zeros(10, dtype=int), ShapeError, "10 tokens, but P has rows for 9"),
    ],
)
def test_ids_that_a_model_cannot_read_are_refused_before_it_runs(
    ids, error, says, tiny, monkeypatch
):
    monkeypatch.setattr(head_scores, "run", None)
    good = np.zeros(len(ids), dtype=int)
    for call in (
        lambda: run_with(tiny, ids, {(1, 0): np.zeros(4)}),
        lambda: patch(tiny, ids, good, 1, 0),
        lambda: patch(tiny, good, ids, 1, 0),
        lambda: attribution_patch(tiny, ids, good, np.ones((len(ids), 7))),
        lambda: attribution_patch(tiny, good, ids, np.ones((len(ids), 7))),
    ):
        with pytest.raises(error, match=says):
            call()


# --- on the example ---
