"""The layer of chapter 23: its limits, its gradient, and how its model is trained."""

from functools import partial

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import causal_mask, multi_head_attention, trace
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.models import copying
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.own_layer import (
    OwnLayer,
    backward_pass,
    forward_pass,
    init_own_model,
    loss_and_gradients,
    train_own,
)
from tutorial_lib.models.promises import directional_derivative
from tutorial_lib.variants.grouped import GroupedParams

T, H, G, D_MODEL, D_K, D_V, B = 6, 4, 2, 12, 6, 5, 2
FREQUENCIES, SINK = np.array([1.0, 0.3]), np.array([0.5, -1.0, 2.0, 0.0])
ALL_OPTIONS = {"frequencies": FREQUENCIES, "window": 3, "sink": SINK}
OPTIONS = [{}, *({name: value} for name, value in ALL_OPTIONS.items()), ALL_OPTIONS]


@pytest.fixture
def rng():
    """A generator with a seed of these tests."""
    return np.random.default_rng(23)


@pytest.fixture
def grouped_params(normal):
    """Arrays of a layer of four heads with two KV heads."""
    shapes = (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(40 + n, *shape) / 2 for n, shape in enumerate(shapes)))


def oracle_layer(X, layer):
    """The output of a layer, by plain loops."""
    params, T = layer.params, X.shape[-2]
    Q, K, V = (oracle.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    if layer.frequencies is not None:
        Q, K = (oracle.rotate(array, np.arange(T), layer.frequencies) for array in (Q, K))
    kv_heads = [h * params.n_kv_heads // params.n_heads for h in range(params.n_heads)]
    scores = oracle.scores(Q, K[..., kv_heads, :, :])
    sink = [-np.inf] * params.n_heads if layer.sink is None else layer.sink
    mask = oracle.window_mask(T, T, layer.window or T)
    weights = oracle.attention_with_sink(scores, sink, mask)
    concat = oracle.concat_heads(oracle.mix(weights, V[..., kv_heads, :, :]))
    return oracle.project_out(concat, params.W_O)


def loss_of_array(loss, arrays, n):
    """A loss of a list of arrays as a function of the n-th."""
    return lambda array: loss([*arrays[:n], array, *arrays[n + 1 :]])


@pytest.mark.parametrize("options", OPTIONS)
def test_a_layer_and_its_gradients_equal_plain_loops_and_central_differences(
    options, grouped_params, normal
):
    layer = OwnLayer(grouped_params, **options)
    X, dY = normal(53, B, T, D_MODEL), normal(54, B, T, D_MODEL)
    record = forward_pass(X, layer)
    np.testing.assert_allclose(record.Y, oracle_layer(X, layer), rtol=1e-10, atol=1e-12)
    dX, gradients = backward_pass(record, dY)

    arrays = [X, *layer.arrays]

    def loss(arrays):
        return (forward_pass(arrays[0], layer.with_arrays(arrays[1:])).Y * dY).sum()

    for n, (array, gradient) in enumerate(zip(arrays, [dX, *gradients], strict=True)):
        expected = oracle.central_differences(loss_of_array(loss, arrays, n), array)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_at_its_limits_it_is_the_causal_layer_and_so_is_its_gradient(grouped_params, normal):
    X, dY = normal(51, B, T, D_MODEL), normal(52, B, T, D_MODEL)
    params = grouped_params.expanded()
    limit_options = {"frequencies": np.zeros(2), "window": T, "sink": np.full(H, -np.inf)}
    record = forward_pass(X, OwnLayer(GroupedParams(*vars(params).values()), **limit_options))
    expected = multi_head_attention(X, params, mask=causal_mask(T))
    np.testing.assert_allclose(record.Y, expected, rtol=1e-10, atol=1e-12)
    expected = multi_head_attention_backward(trace(X, params, mask=causal_mask(T)), dY)
    dX, (*matrices, dsink) = backward_pass(record, dY)
    gradients = expected.dX, expected.dW_Q, expected.dW_K, expected.dW_V, expected.dW_O
    for array, gradient in zip((dX, *matrices), gradients, strict=True):
        np.testing.assert_allclose(array, gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(dsink, 0, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"n_kv_heads": 2, "rotated": True, "window": 5, "sink": True}]
)
def test_a_models_loss_and_gradients_are_those_of_loops_and_differences(options, rng):
    model, ids = init_own_model(rng, **options), sample_documents(rng, 2).ids[:, :9]
    loss, gradients = loss_and_gradients(model, ids)
    X = oracle.embed(ids[:, :-1], model.E, model.P)
    for layer in model.layers:
        X = X + oracle_layer(X, layer)
    chances = oracle.softmax(oracle.project_out(X, model.U))
    word_chances = np.take_along_axis(chances, ids[:, 1:, None], axis=-1)
    assert loss == pytest.approx(-np.log(word_chances).mean(), rel=1e-12)
    loss_of = partial(loss_of_array, lambda W: loss_and_gradients(model.with_arrays(W), ids)[0])
    for n, (array, gradient) in enumerate(zip(model.arrays, gradients, strict=True)):
        direction = rng.standard_normal(gradient.shape)
        expected = directional_derivative(loss_of(model.arrays, n), array, direction, step=1e-6)
        assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_without_options_it_is_the_model_of_chapter_19(rng):
    model, ids = init_own_model(rng), sample_documents(rng, 2).ids
    tiny_model = TinyModel.of(model.arrays)
    loss, gradients = loss_and_gradients(model, ids)
    expected = copying.loss_and_gradients(tiny_model, ids, np.ones(ids[:, 1:].shape, dtype=bool))
    assert loss == pytest.approx(expected[0], rel=1e-10)
    for gradient, array in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(gradient, array, rtol=1e-9, atol=1e-12)
    assert model.n_parameters == sum(array.size for array in tiny_model.arrays) == 49_664


def test_a_model_of_other_arrays_keeps_its_options_and_counts_its_steps(rng):
    model = init_own_model(rng, n_kv_heads=1, rotated=True, window=7, sink=True)
    arrays = [array + 1 for array in model.arrays]
    changed_model = model.with_arrays(arrays)
    assert all(a is b for a, b in zip(changed_model.arrays, arrays, strict=True))
    assert not changed_model.P.any()
    assert changed_model.layers[1].options.keys() == {"frequencies", "window", "sink"}
    for steps, step_total in ((2, 2), (1, 3)):
        *_, (step, _, model) = train_own(model, rng, steps=steps)
        assert (step, model.steps) == (steps, step_total)


def test_training_lowers_the_loss_and_leaves_its_model_as_it_was(rng):
    model = init_own_model(rng, n_kv_heads=2, rotated=True)
    original_arrays = [array.copy() for array in model.arrays]
    losses = [loss for _, loss, _ in train_own(model, rng, steps=24, rate=2e-2)]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.5
    for array, original in zip(model.arrays, original_arrays, strict=True):
        np.testing.assert_array_equal(array, original)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p, X: OwnLayer(p, sink=SINK * np.nan), ValueError, "sink is nan for head 0"),
        (lambda p, X: backward_pass(forward_pass(X, OwnLayer(p)), X[:2]), ValueError, "dY has sh"),
        (
            lambda p, X: backward_pass(forward_pass(X.astype(int), OwnLayer(p)), X),
            TypeError,
            "X is an array of int64; expected floats",
        ),
    ],
)
def test_what_is_no_layer_and_no_gradient_is_refused(call, error, message, grouped_params):
    with pytest.raises(error, match=message):
        call(grouped_params, np.ones((T, D_MODEL)))


@pytest.mark.parametrize("rate", [np.nan, np.inf, 0.0])
def test_a_rate_that_is_no_positive_number_is_refused(rate, rng):
    with pytest.raises(ValueError, match=r"rate=.*; expected a positive number"):
        next(train_own(init_own_model(rng), rng, steps=1, rate=rate))
