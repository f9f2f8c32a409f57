"""The layer of chapter 23: its limits, its gradient, and how its model is trained."""

import math

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import ShapeError, causal_mask, concat_heads, multi_head_attention, trace
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.copying import run as run_tiny
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.own_layer import (
    OwnLayer,
    backward_pass,
    forward_pass,
    init_own_model,
    loss_and_gradients,
    run_own,
    train_own,
)
from tutorial_lib.projection import Params
from tutorial_lib.variants.grouped import GroupedParams

T, H, G, D_MODEL, D_K, D_V, B = 6, 4, 2, 12, 6, 5, 2
FREQUENCIES, SINK = np.array([1.0, 0.3]), np.array([0.5, -1.0, 2.0, 0.0])
ALL = {"frequencies": FREQUENCIES, "window": 3, "sink": SINK}
OPTIONS = [{}, *({name: value} for name, value in ALL.items()), ALL]


@pytest.fixture
def rng():
    """A generator with a seed of these tests."""
    return np.random.default_rng(23)


@pytest.fixture
def grouped(normal):
    """Arrays of a layer of four heads with two KV heads."""
    shapes = (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(40 + n, *shape) / 2 for n, shape in enumerate(shapes)))


def by_loops(X, params, frequencies=(), window=T, sink=None):
    """Row by row, head by head, pair by pair."""
    heads = np.zeros((H, len(X), D_V))
    for h, t in np.ndindex(H, len(X)):
        g, exponentials = h * G // H, {}
        q = rotated(X[t] @ params.W_Q[h], t, frequencies)
        for s in range(max(0, t - window + 1), t + 1):
            k = rotated(X[s] @ params.W_K[g], s, frequencies)
            score = sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(D_K)
            exponentials[s] = math.exp(score)
        total = sum(exponentials.values()) + (0 if sink is None else math.exp(sink[h]))
        heads[h, t] = sum(e / total * (X[s] @ params.W_V[g]) for s, e in exponentials.items())
    return concat_heads(heads) @ params.W_O


def rotated(x, position, frequencies):
    """A vector, its first interleaved pairs rotated."""
    x = [*x]
    for n, frequency in enumerate(frequencies):
        a, b = x[2 * n], x[2 * n + 1]
        cos, sin = math.cos(position * frequency), math.sin(position * frequency)
        x[2 * n], x[2 * n + 1] = cos * a - sin * b, sin * a + cos * b
    return x


@pytest.mark.parametrize("options", OPTIONS)
def test_a_layer_with_options_equals_plain_loops(options, grouped, normal):
    X = normal(50, T, D_MODEL)
    Y = forward_pass(X, OwnLayer(grouped, **options)).Y
    np.testing.assert_allclose(Y, by_loops(X, grouped, **options), rtol=1e-10, atol=1e-12)


def test_at_its_limits_it_is_the_causal_layer_and_so_is_its_gradient(grouped, normal):
    X, dY = normal(51, B, T, D_MODEL), normal(52, B, T, D_MODEL)
    params = grouped.expanded()
    limits = {"frequencies": np.zeros(2), "window": T, "sink": np.full(H, -np.inf)}
    whole = GroupedParams(*vars(params).values())
    record = forward_pass(X, OwnLayer(whole, **limits))
    expected = multi_head_attention(X, params, mask=causal_mask(T))
    np.testing.assert_allclose(record.Y, expected, rtol=1e-10, atol=1e-12)
    found = multi_head_attention_backward(trace(X, params, mask=causal_mask(T)), dY)
    dX, (*matrices, dsink) = backward_pass(record, dY)
    wanted = found.dX, found.dW_Q, found.dW_K, found.dW_V, found.dW_O
    for one, other in zip((dX, *matrices), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(dsink, 0, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_every_gradient_is_that_of_central_differences(options, grouped, normal):
    layer = OwnLayer(grouped, **options)
    X, dY = normal(53, B, T, D_MODEL), normal(54, B, T, D_MODEL)
    dX, gradients = backward_pass(forward_pass(X, layer), dY)

    def loss_of(n):
        def loss(array):
            arrays = [*layer.arrays]
            arrays[n] = array
            return (forward_pass(X, layer.of(arrays)).Y * dY).sum()

        return loss

    for n, (array, gradient) in enumerate(zip(layer.arrays, gradients, strict=True)):
        expected = oracle.central_differences(loss_of(n), array)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
    expected = oracle.central_differences(lambda X: (forward_pass(X, layer).Y * dY).sum(), X)
    np.testing.assert_allclose(dX, expected, rtol=1e-5, atol=1e-7)


def in_torch(model, ids):
    """The loss of the whole model, by torch's own operations, and its gradients."""
    import torch

    arrays = [torch.tensor(array, requires_grad=True) for array in model.arrays]
    E, *inner, U = arrays
    X = E[torch.tensor(ids[:, :-1])]
    if model.has_positions:
        X = X + inner.pop(0)[: ids.shape[1] - 1]
    size = len(inner) // 2
    for n, layer in enumerate(model.layers):
        X = X + _attended(X, inner[n * size : (n + 1) * size], layer)
    logits = (X @ U).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[:, 1:]).flatten())
    loss.backward()
    return loss.item(), [array.grad.numpy() for array in arrays]


def _attended(X, arrays, layer):
    import torch

    W_Q, W_K, W_V, W_O, *sink = arrays
    Q, K, V = (X[:, None] @ W for W in (W_Q, W_K, W_V))
    if layer.frequencies is not None:
        Q, K = _rotated(Q, layer.frequencies), _rotated(K, layer.frequencies)
    K, V = (Z.repeat_interleave(len(W_Q) // len(W_K), dim=1) for Z in (K, V))
    scores, T = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1]), X.shape[1]
    distances = torch.arange(T)[:, None] - torch.arange(T)
    hidden = (distances < 0) | (distances >= (layer.window or T))
    scores = scores.masked_fill(hidden, -torch.inf)
    if sink:
        column = sink[0][:, None, None].expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = scores.softmax(-1)[..., :T]
    return (weights @ V).transpose(1, 2).flatten(2) @ W_O


def _rotated(Z, frequencies):
    import torch

    angles = torch.arange(Z.shape[-2])[:, None] * torch.tensor(frequencies)
    pairs = torch.view_as_complex(Z.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@pytest.mark.parametrize(
    "options", [{}, {"n_kv_heads": 2, "rotated": True, "window": 5, "sink": True}]
)
def test_a_model_is_the_one_that_torch_differentiates(options, rng):
    pytest.importorskip("torch")
    model, ids = init_own_model(rng, **options), sample_documents(rng, 2).ids[:, :13]
    loss, gradients = loss_and_gradients(model, ids)
    expected, others = in_torch(model, ids)
    assert loss == pytest.approx(expected, rel=1e-12)
    for one, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_without_options_it_is_the_model_of_chapter_19(rng):
    model, ids = init_own_model(rng), sample_documents(rng, 2).ids[:, :-1]
    layers = tuple(Params(*layer.arrays) for layer in model.layers)
    tiny = TinyModel(model.E, model.P, layers, model.U)
    np.testing.assert_allclose(run_own(model, ids)[0], run_tiny(tiny, ids)[0], rtol=1e-10)
    assert model.n_parameters == sum(array.size for array in tiny.arrays) == 49_664


def test_a_model_of_other_arrays_keeps_its_options_and_counts_its_steps(rng):
    model = init_own_model(rng, n_kv_heads=1, rotated=True, window=7, sink=True)
    arrays = [array + 1 for array in model.arrays]
    again = model.of(arrays)
    for one, other in zip(again.arrays, arrays, strict=True):
        assert one is other
    assert not again.P.any()
    assert again.layers[1].options.keys() == {"frequencies", "window", "sink"}
    *_, (step, _, trained) = train_own(model, rng, steps=2)
    assert (step, trained.steps) == (2, 2)
    *_, (step, _, trained) = train_own(trained, rng, steps=1)
    assert (step, trained.steps) == (1, 3)


def test_training_lowers_the_loss_and_leaves_its_model_as_it_was(rng):
    model = init_own_model(rng, n_kv_heads=2, rotated=True)
    before = [array.copy() for array in model.arrays]
    losses = [loss for _, loss, _ in train_own(model, rng, steps=24, rate=2e-2)]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.5
    for one, other in zip(model.arrays, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_no_layer_no_gradient_and_no_training_is_refused(grouped):
    X, model = np.ones((T, D_MODEL)), init_own_model(np.random.default_rng(0))
    record = forward_pass(X, OwnLayer(grouped))
    with pytest.raises(ShapeError, match=r"sink has shape \(3,\); expected \(H\) with H=4"):
        OwnLayer(grouped, sink=np.ones(3))
    with pytest.raises(ValueError, match="sink is nan for head 1"):
        OwnLayer(grouped, sink=SINK * [1, np.nan, 1, 1])
    with pytest.raises(ShapeError, match=r"X has shape \(6, 5\).*with d_model=12"):
        forward_pass(X[:, :5], OwnLayer(grouped))
    with pytest.raises(ShapeError, match="dY has shape"):
        backward_pass(record, X[:2])
    with pytest.raises(TypeError, match="X is an array of int64; expected floats"):
        backward_pass(forward_pass(X.astype(int), OwnLayer(grouped)), X)
    for rate in (np.nan, np.inf, 0.0):
        with pytest.raises(ValueError, match=r"rate=.*; expected a positive number"):
            next(train_own(model, np.random.default_rng(0), steps=1, rate=rate))
