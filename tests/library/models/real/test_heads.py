"""Heads are replaced, read through E, and their circuits hold the gains."""

import numpy as np
import pytest

from tests.library.models.real.small import D_K, H, L
from tutorial_lib import concat_heads, project_heads
from tutorial_lib.models.circuits import ov_circuit, qk_circuit
from tutorial_lib.models.real.heads import fold_gain, head_logits, run_real_with
from tutorial_lib.models.real.model import rms_norm_with_gain, run_real

IDS = np.array([[3, 17, 260, 40, 9], [8, 8, 101, 250, 77]])


@pytest.fixture(scope="module")
def trace(small_model):
    """A run on two texts."""
    return run_real(small_model, IDS)


def test_a_head_has_the_output_that_it_is_given(small_model, trace):
    outputs = {(0, 4): trace.heads[0][:, 4], (1, 2): trace.heads[1][:, 2]}
    np.testing.assert_array_equal(run_real_with(small_model, IDS, outputs).logits, trace.logits)
    mean = trace.heads[0][:, 4].mean(axis=(0, 1))
    changed = run_real_with(small_model, IDS, {(0, 4): mean})
    assert (changed.heads[0][:, 4] == mean).all()
    np.testing.assert_array_equal(changed.heads[0][:, :4], trace.heads[0][:, :4])
    assert np.abs(changed.logits - trace.logits).max() > 1e-3


@pytest.mark.parametrize(
    ("head", "output", "message"),
    [
        ((0, H), np.zeros(D_K), f"head {H} of {H}"),
        ((L, 0), np.zeros(D_K), f"layer {L} of {L}"),
        ((0, 0), np.zeros((4, D_K)), r"expected what broadcasts to \(2, 5, 16\)"),
        ((0, 0), np.full(D_K, np.nan), "output"),
    ],
)
def test_an_output_that_does_not_fit_is_refused(small_model, head, output, message):
    with pytest.raises(ValueError, match=message):
        run_real_with(small_model, IDS, {head: output})


def test_heads_feeds_and_the_embedding_sum_to_the_logits(small_model, trace):
    tokens = np.array([5, 200, 31])
    last, final = trace.X[0] + trace.feeds.sum(axis=0), trace.X[-1] + trace.feeds[-1]
    final = final + concat_heads(trace.heads[-1]) @ small_model.blocks[-1].params.W_O
    divisor = np.sqrt(np.mean(final**2, axis=-1, keepdims=True) + small_model.epsilon)
    others = (last / divisor * small_model.gain @ small_model.E[tokens].T)[:, -1]
    found = head_logits(small_model, trace, tokens)
    assert found.shape == (L, 2, H, 3)
    np.testing.assert_allclose(
        found.sum(axis=(0, 2)) + others, trace.logits[:, -1, tokens], rtol=1e-4, atol=1e-4
    )


def test_circuits_with_folded_gains_are_those_of_the_normed_rows(small_model, trace):
    block, X = small_model.blocks[1], trace.X[1, 0]
    normed = rms_norm_with_gain(X, block.gain_1, small_model.epsilon)
    rows = rms_norm_with_gain(X, np.ones_like(block.gain_1), small_model.epsilon)
    folded, params = fold_gain(block), block.params.expanded()
    Q, K, V = (project_heads(normed, W) for W in (params.W_Q, params.W_K, params.W_V))
    W_O = params.W_O.reshape(H, D_K, -1)
    for head in range(H):
        scores = rows @ qk_circuit(folded, head) @ rows.T
        np.testing.assert_allclose(scores, Q[head] @ K[head].T, rtol=1e-4, atol=1e-4)
        added = rows @ ov_circuit(folded, head)
        np.testing.assert_allclose(added, V[head] @ W_O[head], rtol=1e-4, atol=1e-4)
