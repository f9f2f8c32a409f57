"""The backward pass: against plain loops, central differences and torch's own gradients."""

import dataclasses

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle
from tutorial_lib import Gradients, Params, ShapeError, trace
from tutorial_lib.records import record

MATRICES = ("W_Q", "W_K", "W_V", "W_O")
# name: shape of X, shape of the context, (H, d_k, d_v); H*d_k is never d_model, d_v never d_k
LAYERS = {
    "self": ((4, 5), None, (2, 3, 2)),
    "one token": ((1, 5), None, (3, 2, 4)),
    "one head of width 1": ((4, 3), None, (1, 1, 2)),
    "self, a batch": ((2, 4, 5), None, (3, 2, 4)),
    "self, two batch axes": ((3, 2, 4, 5), None, (2, 3, 1)),
    "cross": ((4, 5), (6, 5), (2, 3, 2)),
    "cross, a batch": ((2, 4, 5), (2, 3, 5), (3, 2, 4)),
    "one context for a batch": ((2, 4, 5), (6, 5), (2, 3, 2)),
    "one X for a batch": ((4, 5), (2, 6, 5), (2, 3, 2)),
    "axes of length 1": ((3, 1, 4, 5), (2, 6, 5), (2, 3, 2)),
}
MASKS = ("none", "causal", "per head", "per sequence and head", "empty rows")


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer, its inputs, and a gradient to send back."""

    X: np.ndarray
    context: np.ndarray | None
    params: Params
    mask: np.ndarray | None
    dY: np.ndarray

    @property
    def arrays(self):
        """All that has a gradient, by name."""
        return {"X": self.X, "context": self.context, **vars(self.params)}

    def gradients(self):
        """Forward and back: gradients by the name of their array."""
        record = trace(self.X, self.params, context=self.context, mask=self.mask)
        found = vars(tl.multi_head_attention_backward(record, self.dY))
        return {name.removeprefix("d"): gradient for name, gradient in found.items()}


def make_case(layer, mask_kind, normal):
    """The case of one row of LAYERS with one kind of mask."""
    X_shape, context_shape, (H, d_k, d_v) = LAYERS[layer]
    d_model, source = X_shape[-1], context_shape or X_shape
    shapes = (H, d_model, d_k), (H, d_model, d_k), (H, d_model, d_v), (H * d_v, d_model)
    batch = np.broadcast_shapes(X_shape[:-2], source[:-2])
    scores = (*batch, H, X_shape[-2], source[-2])
    return Case(
        X=normal(1, *X_shape),
        context=None if context_shape is None else normal(2, *context_shape),
        params=Params(*(normal(10 + i, *shape) for i, shape in enumerate(shapes))),
        mask=make_mask(mask_kind, scores),
        dY=normal(3, *batch, *X_shape[-2:]),
    )


def make_mask(kind, scores):
    """A mask that fits scores of this shape; only "empty rows" leaves queries without a key."""
    some, empty = oracle.drawn_masks(scores)
    causal = oracle.causal_mask(*scores[-2:])
    causal[:, 0] = True
    first = (0,) * (some.ndim - 3)
    return dict(zip(MASKS, (None, causal, some[first], some, empty), strict=True))[kind]


@pytest.fixture(params=LAYERS)
def layer(request):
    """The name of a layer."""
    return request.param


@pytest.fixture(params=MASKS)
def case(request, layer, normal):
    """Every layer with every mask."""
    return make_case(layer, request.param, normal)


def assert_equal(found, expected, digits=1e-10):
    """The same names and shapes, float64, and values equal to within `digits` of the largest."""
    assert found.keys() == expected.keys()
    for name, right in expected.items():
        if right is None:
            assert found[name] is None
            continue
        assert found[name].shape == right.shape, name
        assert found[name].dtype == np.float64, name
        assert np.abs(found[name] - right).max() <= digits * np.abs(right).max(), name


def test_all_gradients_equal_the_loops(case):
    loops = oracle.mha_backward(case.X, case.params, case.dY, case.context, case.mask)
    assert_equal(case.gradients(), {name: loops[name] for name in case.arrays})


def test_all_gradients_agree_with_central_differences(case):
    Y = tl.multi_head_attention(case.X, case.params, context=case.context, mask=case.mask)
    found = case.gradients()
    for name, array in case.arrays.items():
        if array is None:
            continue

        def loss(changed, name=name):
            given = {**case.arrays, name: changed}
            params = Params(*(given[matrix] for matrix in MATRICES))
            options = {"context": given["context"], "mask": case.mask}
            moved = tl.multi_head_attention(given["X"], params, **options) - Y
            return (moved * case.dY).sum()

        differences = oracle.central_differences(loss, array, step=1e-5)
        assert np.abs(differences - found[name]).max() <= 1e-8 * np.abs(found[name]).max(), name


def test_all_gradients_equal_those_of_torch(case):
    import torch
    import torch.nn.functional as F

    arrays = {name: array for name, array in case.arrays.items() if array is not None}
    leaves = {n: torch.tensor(array, requires_grad=True) for n, array in arrays.items()}
    source = leaves.get("context", leaves["X"])
    Q, K, V = (
        x[..., None, :, :] @ leaves[f"W_{name}"]
        for x, name in ((leaves["X"], "Q"), (source, "K"), (source, "V"))
    )
    mask = None if case.mask is None else torch.tensor(case.mask)
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    Y = heads.transpose(-3, -2).flatten(-2) @ leaves["W_O"]
    Y.backward(torch.tensor(case.dY))
    expected = {name: leaf.grad.numpy() for name, leaf in leaves.items()}
    assert_equal(case.gradients(), {"context": None, **expected})


def test_softmax_goes_back_as_its_table_of_derivatives_says(scores, normal):
    weights, dweights = tl.softmax(scores), normal(4, *scores.shape)
    found = tl.softmax_backward(weights, dweights)
    assert_equal({"scores": found}, {"scores": oracle.softmax_backward(weights, dweights)})
    np.testing.assert_allclose(found.sum(axis=-1), 0, atol=1e-14)


def test_attention_goes_back_as_differences_say(Q, K, V, mask, normal):
    weights = tl.attention_weights(Q @ np.swapaxes(K, -1, -2) / 2, mask=mask)
    dheads = normal(4, *weights.shape[:-1], V.shape[-1])
    found = tl.attention_backward(Q, K, V, weights, dheads)
    inputs, direction = {"Q": Q, "K": K, "V": V}, {"Q": 5, "K": 6, "V": 7}
    for gradient, (name, array) in zip(found, inputs.items(), strict=True):
        step = 1e-5 * normal(direction[name], *array.shape)
        above, below = (
            tl.scaled_dot_product_attention(**{**inputs, name: array + s}, mask=mask)
            for s in (step, -step)
        )
        assert gradient.shape == array.shape
        np.testing.assert_allclose(
            ((above - below) * dheads).sum() / 2, (gradient * step).sum(), rtol=1e-6, atol=1e-11
        )


def test_values_may_have_batch_axes_that_queries_and_keys_lack(normal):
    Q, K, V = normal(1, 3, 5, 4), normal(2, 3, 6, 4), normal(3, 2, 3, 6, 7)
    weights, dheads = tl.softmax(Q @ np.swapaxes(K, -1, -2) / 2), normal(4, 2, 3, 5, 7)
    found = tl.attention_backward(Q, K, V, weights, dheads)
    assert [gradient.shape for gradient in found] == [Q.shape, K.shape, V.shape]
    inputs = {"Q": Q, "K": K, "V": V}
    for gradient, (name, array) in zip(found, inputs.items(), strict=True):

        def loss(changed, name=name):
            return (tl.scaled_dot_product_attention(**{**inputs, name: changed}) * dheads).sum()

        differences = oracle.central_differences(loss, array)
        assert np.abs(differences - gradient).max() <= 1e-8 * np.abs(gradient).max(), name


def test_linear_goes_back_as_the_product_rule_says(X, normal):
    W, dY = normal(4, 12, 7), normal(5, *X.shape[:-1], 7)
    dX, dW = tl.linear_backward(X, W, dY)
    rows = oracle.matmul_backward(X.reshape(-1, 12), W, dY.reshape(-1, 7))
    assert_equal({"X": dX, "W": dW}, {"X": rows[0].reshape(X.shape), "W": rows[1]})


def test_heads_go_back_as_one_product_a_head(X, params, normal):
    dQ = normal(4, *X.shape[:-2], 3, X.shape[-2], 4)
    dX, dW = tl.project_heads_backward(X, params.W_Q, dQ)
    by_head = [tl.linear_backward(X, params.W_Q[h], dQ[..., h, :, :]) for h in range(3)]
    expected = {"X": sum(dx for dx, _ in by_head), "W": np.stack([dw for _, dw in by_head])}
    assert_equal({"X": dX, "W": dW}, expected)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 3), [[4, 4, 4], [4, 4, 4]]),
        ((1, 3), [[8, 8, 8]]),
        ((2, 1), [[12], [12]]),
        ((3,), [8, 8, 8]),
        ((1,), [24]),
        ((), 24),
        ((4, 1, 1), [[[6]]] * 4),
        ((4, 2, 3), np.ones((4, 2, 3))),
    ],
)
def test_copies_are_added_up(shape, expected):
    summed = tl.sum_copies(np.ones((4, 2, 3)), shape)
    assert summed.shape == shape
    np.testing.assert_array_equal(summed, expected)


def test_without_context_dX_holds_all_three_paths(params, normal):
    X, dY, mask = normal(1, 2, 5, 12), normal(2, 2, 5, 12), tl.causal_mask(5)
    alone = tl.multi_head_attention_backward(trace(X, params, mask=mask), dY)
    record = trace(X, params, context=X, mask=mask)
    both = tl.multi_head_attention_backward(record, dY)
    np.testing.assert_allclose(alone.dX, both.dX + both.dcontext, rtol=1e-10, atol=1e-12)
    for name in MATRICES:
        np.testing.assert_array_equal(getattr(alone, f"d{name}"), getattr(both, f"d{name}"))


def test_query_with_nothing_to_look_at_gets_and_gives_no_gradient(params, normal):
    X, context = normal(1, 5, 12), normal(2, 6, 12)
    mask = np.ones((5, 6), dtype=bool)
    mask[3] = False  # query 3 looks at nothing
    mask[:, 4] = False  # nobody looks at key 4
    record = trace(X, params, context=context, mask=mask)
    gradients = tl.multi_head_attention_backward(record, normal(3, 5, 12))
    assert (gradients.dX[3] == 0).all()
    assert (gradients.dcontext[4] == 0).all()
    assert (gradients.dX[[0, 1, 2, 4]] != 0).all()
    blind = trace(X, params, mask=np.zeros((5, 5), dtype=bool))
    for gradient in vars(tl.multi_head_attention_backward(blind, X)).values():
        assert gradient is None or (gradient == 0).all()


def test_cloned_heads_get_equal_gradients(params, normal):
    W_Q, W_K, W_V = (np.repeat(W[:1], 3, axis=0) for W in (params.W_Q, params.W_K, params.W_V))
    cloned = Params(W_Q, W_K, W_V, np.tile(params.W_O[:7], (3, 1)))
    record = trace(normal(1, 5, 12), cloned)
    gradients = tl.multi_head_attention_backward(record, normal(2, 5, 12))
    for dW in (gradients.dW_Q, gradients.dW_K, gradients.dW_V, gradients.dW_O.reshape(3, 7, 12)):
        np.testing.assert_allclose(dW[1:], dW[:2], rtol=1e-12, atol=1e-14)
        assert np.abs(dW).max() > 0.1


@pytest.mark.parametrize("layer", LAYERS)
def test_single_precision_stays(layer, normal):
    case = make_case(layer, "causal", normal)
    single = {n: None if a is None else a.astype(np.float32) for n, a in case.arrays.items()}
    params = Params(*(single[name] for name in MATRICES))
    record = trace(single["X"], params, context=single["context"], mask=case.mask)
    found = tl.multi_head_attention_backward(record, case.dY.astype(np.float32))
    for name, right in case.gradients().items():
        gradient = getattr(found, f"d{name}")
        assert (gradient is None) == (right is None)
        if right is not None:
            assert gradient.dtype == np.float32
            assert np.abs(gradient - right).max() <= 1e-5 * np.abs(right).max()


def test_empty_batch_is_no_error(params):
    X = np.ones((0, 5, 12))
    gradients = tl.multi_head_attention_backward(trace(X, params), X)
    assert gradients.dX.shape == X.shape
    assert (gradients.dW_Q == 0).all()


def test_gradients_are_frozen_and_in_the_order_of_the_data_flow():
    names = tuple(field.name for field in dataclasses.fields(Gradients))
    assert names == ("dX", "dcontext", *(f"d{name}" for name in MATRICES))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Gradients(*range(6)).dX = 0


@pytest.mark.parametrize("kinds", [(np.float32, np.float64), (np.float64, np.float32)])
def test_two_precisions_may_meet(kinds, params, normal):
    X = 100 * normal(1, 300, 12).astype(kinds[0])
    mixed = Params(*(array.astype(kinds[1]) for array in vars(params).values()))
    record = trace(X, mixed, context=normal(2, 7, 12).astype(kinds[1]))
    gradients = tl.multi_head_attention_backward(record, X)
    assert gradients.dX.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("Q", (3, 4, 4)),
        ("K", (3, 5, 3)),
        ("V", (3, 4, 7)),
        ("weights", (3, 5, 4)),
        ("concat", (5, 20)),
        ("X", (5, 11)),
        ("Y", (4, 12)),
    ],
)
def test_trace_with_an_array_of_another_shape_is_refused(name, shape, params, normal):
    record = dataclasses.replace(trace(normal(1, 5, 12), params), **{name: normal(2, *shape)})
    with pytest.raises(ShapeError):
        tl.multi_head_attention_backward(record, normal(3, 5, 12))


def test_layer_that_overflowed_on_the_way_forward_is_refused(params, normal):
    loud = dataclasses.replace(params, W_V=1e200 * params.W_V, W_O=1e200 * params.W_O)
    with np.errstate(over="ignore", invalid="ignore"):
        record = trace(normal(1, 5, 12), loud)
    with pytest.raises(ValueError, match=r"trace\.Y is"):
        tl.multi_head_attention_backward(record, normal(2, 5, 12))


def test_committed_measurements_show_what_the_chapter_says_of_them():
    measured = record("gradients")
    differences = measured["differences_from_torch_in_float64"]
    assert set(differences) == {"X", *MATRICES}
    assert max(differences.values()) < 1e-10
    for way in ("chapter", "in place"):
        assert max(measured["speed"][way]["differences_from_torch"].values()) < 1e-6
    errors = measured["errors_of_central_differences_of_W_Q"]
    assert min(errors, key=errors.get) in ("1e-05", "1e-06")
