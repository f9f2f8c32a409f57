"""Training: Adam against its formula written out, and what a model has after some steps."""

import math

import numpy as np
import pytest

from tutorial_lib.models import training
from tutorial_lib.models.copying import TinyModel, copy_accuracy, init_model, sample_sequences
from tutorial_lib.models.training import adam_step, train


def plain_adam(parameter, gradients, rate):
    """One number after each of its gradients: Kingma and Ba (2015), algorithm 1."""
    first_moment, second_moment, parameter_path = 0.0, 0.0, []
    for step, gradient in enumerate(gradients, start=1):
        first_moment = 0.9 * first_moment + (1 - 0.9) * gradient
        second_moment = 0.98 * second_moment + (1 - 0.98) * gradient * gradient
        denominator = math.sqrt(second_moment / (1 - 0.98**step)) + 1e-8
        parameter -= rate * (first_moment / (1 - 0.9**step)) / denominator
        parameter_path.append(parameter)
    return parameter_path


def training_losses(model, rng, **options):
    """The losses of a training, and the model at its end."""
    _, losses, models = zip(*train(model, rng, **options), strict=True)
    return np.array(losses), models[-1]


def test_adam_moves_every_entry_as_its_formula_says(normal):
    shapes = (2, 3), (5,)
    initial_arrays = [normal(i, *shape) for i, shape in enumerate(shapes)]
    gradients = [[normal(10 * n + i, *s) for i, s in enumerate(shapes)] for n in range(1, 7)]
    gradients[2] = [0 * gradient for gradient in gradients[2]]  # a step without a slope moves too
    arrays, memory, array_path = initial_arrays, None, []
    for step in gradients:
        arrays, memory = adam_step(arrays, step, memory, 0.01)
        array_path.append(arrays)
        for array in [*arrays, *memory[1], *memory[2]]:
            array.setflags(write=False)  # the next step writes into none of them
    for i, shape in enumerate(shapes):
        for ij in np.ndindex(shape):
            expected = plain_adam(initial_arrays[i][ij], [step[i][ij] for step in gradients], 0.01)
            entry_path = [arrays[i][ij] for arrays in array_path]
            np.testing.assert_allclose(entry_path, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("n_arrays", "n_gradients", "n_means"), [(2, 1, 1), (1, 2, 1), (1, 1, 2)])
def test_adam_forgets_no_array_when_lists_differ_in_length(n_arrays, n_gradients, n_means):
    array = np.ones(3)
    memory = 1, [array] * n_means, [array] * n_means
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        adam_step([array] * n_arrays, [array] * n_gradients, memory, 0.1)


def test_training_is_adam_on_new_sequences_in_each_step():
    rng, twin_rng = np.random.default_rng(4), np.random.default_rng(4)
    initial_model, model, memory = init_model(rng), init_model(twin_rng), None
    originals = [array.copy() for array in initial_model.arrays]
    for step, training_step in enumerate(train(initial_model, rng, steps=3, rate=0.02), 1):
        batch = sample_sequences(twin_rng, training.BATCH)
        loss, gradients = training.loss_and_gradients(model, *batch)
        arrays, memory = adam_step(model.arrays, gradients, memory, 0.02)
        model = TinyModel.of(arrays)
        assert training_step[:2] == (step, loss)
        for array, expected in zip(training_step[2].arrays, arrays, strict=True):
            np.testing.assert_array_equal(array, expected)
    for array, original in zip(initial_model.arrays, originals, strict=True):
        np.testing.assert_array_equal(array, original)


def test_gradients_may_come_from_another_function():
    batch_shapes = []

    def differentiate(model, ids, known):
        batch_shapes.append((ids.shape, known.shape))
        return 7.0, [np.ones(array.shape) for array in model.arrays]

    rng = np.random.default_rng(0)
    model = init_model(rng)
    losses, last_model = training_losses(model, rng, steps=2, rate=0.5, differentiate=differentiate)
    assert losses.tolist() == [7.0, 7.0]
    assert batch_shapes == [((32, 33), (32, 32))] * 2
    np.testing.assert_allclose(last_model.U, model.U - 1, rtol=1e-6)
    assert list(train(model, rng, steps=0)) == []


@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_a_few_steps_lower_the_loss(n_heads):
    rng = np.random.default_rng(n_heads)
    losses, _ = training_losses(init_model(rng, n_heads=n_heads), rng, steps=12)
    assert losses.shape == (12,)
    assert losses[-3:].mean() < losses[:3].mean() - 0.3


@pytest.mark.long
def test_two_layers_learn_to_copy_in_steps_in_which_one_does_not():
    validation_set = sample_sequences(np.random.default_rng(1000), 128)
    for n_layers, n_heads, lower_bound, upper_bound in ((2, 4, 0.95, 1), (1, 8, 0.25, 0.6)):
        rng = np.random.default_rng(7)
        model = init_model(rng, n_layers=n_layers, n_heads=n_heads, d_k=16, d_v=16)
        assert sum(array.size for array in model.arrays) == 38912
        _, model = training_losses(model, rng, steps=110)
        assert lower_bound < copy_accuracy(model, *validation_set) <= upper_bound


RANGE_ERROR = r"expected 0 steps or more and a rate above 0, at most 1"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"steps": -1}, ValueError, RANGE_ERROR),
        ({"rate": 0}, ValueError, RANGE_ERROR),
        ({"rate": 1.5}, ValueError, RANGE_ERROR),
        ({"rate": math.nan}, ValueError, RANGE_ERROR),
        ({"differentiate": lambda *_: (np.nan, [])}, FloatingPointError, "step 1 is nan. Lower"),
        ({"differentiate": lambda *_: (np.inf, [])}, FloatingPointError, "step 1 is inf. Lower"),
    ],
)
def test_what_would_train_nothing_is_refused(options, error, message):
    rng = np.random.default_rng(0)
    with pytest.raises(error, match=message):
        next(train(init_model(rng), rng, **{"steps": 1, "rate": 1, **options}))
