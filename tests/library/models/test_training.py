"""Training: Adam against its formula written out, and what a model has after some steps."""

import inspect
import math

import numpy as np
import pytest

from tutorial_lib.models import training
from tutorial_lib.models.copying import TinyModel, copy_accuracy, init_model, sample_sequences
from tutorial_lib.models.training import adam_step, train

LONGEST_MODULE = 80  # lines


def plain_adam(start, gradients, rate):
    """Where one number stands after each of its gradients: Kingma and Ba (2015), algorithm 1."""
    place, mean, square, places = start, 0.0, 0.0, []
    for step, gradient in enumerate(gradients, start=1):
        mean = 0.9 * mean + (1 - 0.9) * gradient
        square = 0.98 * square + (1 - 0.98) * gradient * gradient
        size = math.sqrt(square / (1 - 0.98**step)) + 1e-8
        place -= rate * (mean / (1 - 0.9**step)) / size
        places.append(place)
    return places


def trained(model, rng, **options):
    """The losses of a training, and the model at its end."""
    _, losses, models = zip(*train(model, rng, **options), strict=True)
    return np.array(losses), models[-1]


def test_adam_moves_every_entry_as_its_formula_says(normal):
    shapes = (2, 3), (5,)
    start = [normal(i, *shape) for i, shape in enumerate(shapes)]
    gradients = [[normal(10 * n + i, *s) for i, s in enumerate(shapes)] for n in range(1, 7)]
    gradients[2] = [0 * gradient for gradient in gradients[2]]  # a step without a slope moves too
    arrays, memory, reached = start, None, []
    for step in gradients:
        arrays, memory = adam_step(arrays, step, memory, 0.01)
        reached.append(arrays)
    for i, shape in enumerate(shapes):
        for at in np.ndindex(shape):
            places = plain_adam(start[i][at], [step[i][at] for step in gradients], 0.01)
            found = [arrays[i][at] for arrays in reached]
            np.testing.assert_allclose(found, places, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("n_arrays", "n_gradients", "n_before"), [(2, 1, 1), (1, 2, 1), (1, 1, 2)])
def test_adam_forgets_no_array_when_lists_differ_in_length(n_arrays, n_gradients, n_before):
    one = np.ones(3)
    memory = 1, [one] * n_before, [one] * n_before
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        adam_step([one] * n_arrays, [one] * n_gradients, memory, 0.1)


def test_adam_leaves_what_it_is_given_alone(normal, assert_untouched):
    arrays, memory = adam_step([normal(0, 3, 2)], [normal(1, 3, 2)], None, 0.1)
    means, squares = memory[1][0], memory[2][0]

    def step(array, gradient, mean, square):
        adam_step([array], [gradient], (1, [mean], [square]), 0.1)

    assert_untouched(step, arrays[0], normal(2, 3, 2), means, squares)


def test_training_is_adam_on_new_sequences_in_each_step():
    rng, drawn = np.random.default_rng(4), np.random.default_rng(4)
    start, again = init_model(rng), init_model(drawn)
    memory = None
    for expected, (step, loss, model) in enumerate(train(start, rng, steps=3, rate=0.02), 1):
        ids, known = sample_sequences(drawn, training.BATCH)
        right, gradients = training.loss_and_gradients(again, ids, known)
        arrays, memory = adam_step(again.arrays, gradients, memory, 0.02)
        again = TinyModel.of(arrays)
        assert step == expected
        assert loss == right
        for found, array in zip(model.arrays, again.arrays, strict=True):
            np.testing.assert_array_equal(found, array)


def test_gradients_may_come_from_another_function():
    seen = []

    def differentiate(model, ids, known):
        seen.append((ids.shape, known.shape))
        return 7.0, [np.ones(array.shape) for array in model.arrays]

    rng = np.random.default_rng(0)
    model = init_model(rng)
    losses, moved = trained(model, rng, steps=2, rate=0.5, differentiate=differentiate)
    assert losses.tolist() == [7.0, 7.0]
    assert seen == [((32, 33), (32, 32))] * 2
    np.testing.assert_allclose(moved.U, model.U - 1, rtol=1e-6)


@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_a_few_steps_lower_the_loss(n_heads):
    rng = np.random.default_rng(n_heads)
    model = init_model(rng, n_heads=n_heads)
    before = [array.copy() for array in model.arrays]
    losses, moved = trained(model, rng, steps=12)
    assert losses.shape == (12,)
    assert losses[-3:].mean() < losses[:3].mean() - 0.3
    for old, array, new in zip(before, model.arrays, moved.arrays, strict=True):
        np.testing.assert_array_equal(old, array)  # the first model stays as it was
        assert not np.array_equal(array, new)


@pytest.mark.long
def test_two_layers_learn_to_copy_in_steps_in_which_one_does_not():
    fresh = sample_sequences(np.random.default_rng(1000), 128)
    sizes, found = [], []
    for n_layers, n_heads in ((2, 4), (1, 8)):
        rng = np.random.default_rng(7)
        model = init_model(rng, n_layers=n_layers, n_heads=n_heads, d_k=16, d_v=16)
        sizes.append(sum(array.size for array in model.arrays))
        _, model = trained(model, rng, steps=110)
        found.append(copy_accuracy(model, *fresh))
    assert sizes == [38912, 38912]
    assert found[0] > 0.95
    assert 0.25 < found[1] < 0.6


def test_module_is_short_enough_to_be_read_at_once():
    assert len(inspect.getsource(training).splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("options", [{"steps": -1}, {"rate": 0}, {"rate": 1.5}, {"rate": math.nan}])
def test_what_would_train_nothing_is_refused(options):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"expected 0 steps or more and a rate above 0, at most 1"):
        next(train(init_model(rng), rng, **{"steps": 1, **options}))
    assert next(train(init_model(rng), rng, steps=1, rate=1))[0] == 1


def test_no_steps_give_nothing():
    rng = np.random.default_rng(0)
    assert list(train(init_model(rng), rng, steps=0)) == []


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_loss_that_is_no_number_ends_the_training(loss):
    rng = np.random.default_rng(0)
    model = init_model(rng)

    def differentiate(model, ids, known):
        return loss, [np.zeros(array.shape) for array in model.arrays]

    with pytest.raises(FloatingPointError, match=f"The loss of step 1 is {loss}. Lower the rate."):
        next(train(model, rng, steps=1, differentiate=differentiate))
