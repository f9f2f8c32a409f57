"""The tiny model: its gradients, its sequences, and two models of it that copy."""

import inspect

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import records
from tutorial_lib.models import copying, grammar, training
from tutorial_lib.models.copying import TinyModel, copy_accuracy, init_model, sample_sequences


@pytest.fixture
def token_sequences():
    """Two sequences of 6 + 1 tokens, and which of the 6 next tokens count."""
    ids = np.array([[3, 1, 3, 0, 6, 3, 2], [5, 5, 4, 2, 0, 1, 5]])
    return ids, np.array([[0, 0, 1, 1, 0, 1], [1, 0, 0, 1, 1, 1]], dtype=bool)


def test_loss_is_the_mean_surprise_of_the_tokens_that_count(model, token_sequences):
    ids, known = token_sequences
    loss, _ = copying.loss_and_gradients(model, ids, known)
    probabilities = oracle.softmax(sum(oracle.logit_terms(model, ids[:, :-1])))
    surprises = [-np.log(probabilities[n, t, ids[n, t + 1]]) for n, t in np.argwhere(known)]
    np.testing.assert_allclose(loss, np.mean(surprises), rtol=1e-12)


def test_gradients_of_all_arrays_agree_with_central_differences(model, token_sequences):
    _, gradients = copying.loss_and_gradients(model, *token_sequences)
    largest_entry = max(np.abs(gradient).max() for gradient in gradients)
    assert len(gradients) == len(model.arrays) == 11
    for array_index, (array, gradient) in enumerate(zip(model.arrays, gradients, strict=True)):

        def loss(changed_array, array_index=array_index):
            arrays = [*model.arrays[:array_index], changed_array, *model.arrays[array_index + 1 :]]
            return copying.loss_and_gradients(TinyModel.of(arrays), *token_sequences)[0]

        differences = oracle.central_differences(loss, array)
        assert gradient.shape == array.shape
        assert np.abs(differences - gradient).max() <= 1e-8 * largest_entry, array_index


def test_sequences_repeat_blocks_of_different_tokens_with_random_periods():
    ids, known = sample_sequences(np.random.default_rng(0), 400)
    assert (ids.shape, known.shape) == ((400, 33), (400, 32))
    periods = (~known).sum(axis=1)
    assert set(periods) == set(range(4, 13))
    for sequence, period in zip(ids, periods, strict=True):
        assert len(set(sequence[:period].tolist())) == period
        np.testing.assert_array_equal(sequence[period:], sequence[:-period])
    assert len(np.unique(ids[:, 0])) == 32
    assert sample_sequences(np.random.default_rng(0), 9, periods=(6, 6))[1].sum() == 9 * 26


@pytest.mark.parametrize("periods", [(0, 3), (5, 4), (4, 32), (4, 5, 6)])
def test_periods_in_which_no_block_repeats_are_refused(periods):
    with pytest.raises(ValueError, match=r"periods=.*, so that a block repeats. Give a pair"):
        sample_sequences(np.random.default_rng(0), 2, periods=periods)


def test_fresh_model_scores_with_a_spread_near_one():
    rng = np.random.default_rng(0)
    model = init_model(rng, n_heads=4)
    assert len(model.layers) == 2
    scores, records = copying.run(model, sample_sequences(rng, 8)[0][:, :-1])
    assert 0.8 < records[0].X.std() < 1.2
    assert 0.8 < scores.std() < 3


def test_the_committed_model_copies():
    model = TinyModel.of(records.checkpoint("copying"))
    assert copy_accuracy(model, *sample_sequences(np.random.default_rng(5), 64)) > 0.98


@pytest.mark.parametrize("t", range(4, 32))
def test_votes_of_places_are_highest_for_the_right_letter_of_every_period(t):
    from experiments.tiny_model import position_weights  # measures PyTorch too

    votes = position_weights(t)
    assert votes.dtype == int
    assert votes.sum() == 0
    for period in range(4, min(t, 12) + 1):
        sums = [votes[start::period].sum() for start in range(period)]
        winning_sum = sums.pop((t + 1) % period)
        assert winning_sum > max(*sums, 0)


def test_one_layer_copies_without_comparing_a_letter():
    from experiments.tiny_model import position_model  # measures PyTorch too

    model = position_model()
    ids, known = sample_sequences(np.random.default_rng(3), 300)
    assert copy_accuracy(model, ids, known) == 1
    (record,) = copying.run(model, ids[:, :-1])[1]
    assert (record.weights == record.weights[0]).all()  # the same for all sequences


@pytest.mark.parametrize(("module", "line_limit"), [(copying, 120), (training, 80), (grammar, 205)])
def test_module_is_short_enough_to_be_read_at_once(module, line_limit):
    assert len(inspect.getsource(module).splitlines()) <= line_limit
