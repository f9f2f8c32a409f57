"""The backward pass: against plain loops and central differences."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle
from tutorial_lib import Params, trace
from tutorial_lib.records import record

MATRICES = ("W_Q", "W_K", "W_V", "W_O")
# name: shape of X, shape of the context, (H, d_k, d_v); H*d_k is never d_model, d_v never d_k
LAYER_SHAPES = {
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
class LayerCase:
    """A layer, its inputs, and a gradient to send back."""

    X: np.ndarray
    context: np.ndarray | None
    params: Params
    mask: np.ndarray | None
    dY: np.ndarray

    def gradients(self):
        """Forward and back: gradients by the name of their array."""
        record = trace(self.X, self.params, context=self.context, mask=self.mask)
        gradients = vars(tl.multi_head_attention_backward(record, self.dY))
        return {name.removeprefix("d"): gradient for name, gradient in gradients.items()}


def make_mask(kind, scores):
    """A mask that fits scores of this shape; only "empty rows" leaves queries without a key."""
    full, empty_row_mask = oracle.drawn_masks(scores)
    causal = oracle.causal_mask(*scores[-2:])
    causal[:, 0] = True
    sequence = (0,) * (full.ndim - 3)
    return dict(zip(MASKS, (None, causal, full[sequence], full, empty_row_mask), strict=True))[kind]


@pytest.fixture(params=itertools.product(LAYER_SHAPES, MASKS), ids=", ".join)
def case(request, normal):
    """Every layer with every mask."""
    layer, mask_kind = request.param
    X_shape, context_shape, (H, d_k, d_v) = LAYER_SHAPES[layer]
    d_model, key_shape = X_shape[-1], context_shape or X_shape
    shapes = (H, d_model, d_k), (H, d_model, d_k), (H, d_model, d_v), (H * d_v, d_model)
    batch_axes = np.broadcast_shapes(X_shape[:-2], key_shape[:-2])
    score_shape = (*batch_axes, H, X_shape[-2], key_shape[-2])
    return LayerCase(
        X=normal(1, *X_shape),
        context=None if context_shape is None else normal(2, *context_shape),
        params=Params(*(normal(10 + i, *shape) for i, shape in enumerate(shapes))),
        mask=make_mask(mask_kind, score_shape),
        dY=normal(3, *batch_axes, *X_shape[-2:]),
    )


def test_all_gradients_equal_the_loops(case):
    loop_gradients = oracle.mha_backward(case.X, case.params, case.dY, case.context, case.mask)
    for name, gradient in case.gradients().items():
        if loop_gradients[name] is None:
            assert gradient is None
        else:
            assert gradient.shape == loop_gradients[name].shape, name
            assert gradient.dtype == np.float64, name
            largest_entry = np.abs(loop_gradients[name]).max()
            assert np.abs(gradient - loop_gradients[name]).max() <= 1e-10 * largest_entry, name


def assert_differences(function, arrays, direction, gradients):
    """Central differences of (function(arrays) * direction).sum() by each array are gradients."""
    base_output = function(arrays)
    for (name, array), gradient in zip(arrays.items(), gradients, strict=True):

        def loss(changed_array, name=name):
            return ((function(arrays | {name: changed_array}) - base_output) * direction).sum()

        differences = oracle.central_differences(loss, array)
        assert gradient.shape == array.shape, name
        assert np.abs(differences - gradient).max() <= 1e-8 * np.abs(gradient).max(), name


# the leading axes of Q and K, and of V
@pytest.mark.parametrize(("query_axes", "V_axes"), [((), ()), ((3,), (3,)), ((3,), (2, 3))])
@pytest.mark.parametrize("is_masked", [False, True])
def test_attention_goes_back_as_differences_say(query_axes, V_axes, is_masked, normal):
    Q, K, V = normal(1, *query_axes, 5, 4), normal(2, *query_axes, 6, 4), normal(3, *V_axes, 6, 7)
    mask, dheads = tl.causal_mask(5, 6) if is_masked else None, normal(4, *V_axes, 5, 7)
    weights = tl.attention_weights(tl.attention_scores(Q, K), mask=mask)
    gradients = tl.attention_backward(Q, K, V, weights, dheads)

    def attention_heads(arrays):
        return tl.scaled_dot_product_attention(**arrays, mask=mask)

    assert_differences(attention_heads, {"Q": Q, "K": K, "V": V}, dheads, gradients)


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (3,), (1,), (), (4, 1, 1), (4, 2, 3)])
def test_copies_are_added_up(shape, normal):
    gradient, array = normal(1, 4, 2, 3), normal(2, math.prod(shape)).reshape(shape)
    summed_copies = tl.sum_copies(gradient, shape)
    assert summed_copies.shape == shape
    np.testing.assert_allclose((summed_copies * array).sum(), (gradient * array).sum(), rtol=1e-12)


def test_empty_batch_is_no_error(params):
    X = np.ones((0, 5, 12))
    gradients = tl.multi_head_attention_backward(trace(X, params), X)
    assert gradients.dX.shape == X.shape
    assert (gradients.dW_Q == 0).all()


@pytest.mark.parametrize("dtypes", [(np.float32, np.float64), (np.float64, np.float32)])
def test_two_precisions_may_meet(dtypes, params, normal):
    X = 100 * normal(1, 300, 12).astype(dtypes[0])
    mixed_params = Params(*(array.astype(dtypes[1]) for array in vars(params).values()))
    record = trace(X, mixed_params, context=normal(2, 7, 12).astype(dtypes[1]))
    gradients = tl.multi_head_attention_backward(record, X)
    assert gradients.dX.dtype == np.float64


def test_committed_measurements_show_what_the_chapter_says_of_them():
    gradient_record = record("gradients")
    differences = gradient_record["differences_from_torch_in_float64"]
    assert set(differences) == {"X", *MATRICES}
    assert max(differences.values()) < 1e-10
    step_errors = gradient_record["errors_of_central_differences_of_W_Q"]
    assert min(step_errors, key=step_errors.get) in ("1e-05", "1e-06")
