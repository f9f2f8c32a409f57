"""The PyTorch layer over a grid: against plain loops, our NumPy gradients and torch's own layers.

All inputs, weights and gradients sent back are numbers that bfloat16 holds exactly. So the loops
run once for a shape and a mask, in float64, and serve all precisions and both paths; what differs
in a lower precision is the arithmetic alone.
"""

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch

import tutorial_lib as tl
from tests import oracle
from tests.pytorch.layers import PATHS
from tutorial_lib import Params
from tutorial_lib.pytorch import MultiHeadAttention, attention_trace

# name: shape of X, shape of the context, (H, d_k, d_v)
SHAPES = {
    "self": ((5, 12), None, (3, 4, 7)),
    "torch's widths": ((5, 12), None, (3, 4, 4)),
    "torch's widths, a batch": ((2, 5, 12), None, (3, 4, 4)),
    "torch's widths, more keys": ((2, 5, 12), (2, 6, 12), (3, 4, 4)),
    "torch's widths, fewer keys": ((5, 12), (3, 12), (3, 4, 4)),
    "more keys": ((2, 4, 5), (2, 7, 5), (3, 2, 4)),
    "fewer keys": ((2, 5, 6), (2, 3, 6), (2, 4, 3)),
    "two batch axes": ((3, 2, 4, 6), None, (2, 3, 5)),
    "one context for two batch axes": ((3, 2, 4, 5), (2, 6, 5), (2, 3, 2)),
    "one X for a batch of contexts": ((4, 5), (2, 6, 5), (3, 2, 4)),
    "one head": ((2, 5, 6), None, (1, 6, 6)),
    "one head, wide values": ((5, 4), (7, 4), (1, 2, 9)),
    "one token": ((1, 6), None, (2, 3, 4)),
    "one query": ((2, 1, 6), (2, 4, 6), (2, 3, 3)),
}
MASKS = ("none", "causal", "boolean", "causal and boolean", "empty row")
# How far an entry may be off, as a share of its array's largest entry, or of 1 if that is more.
# The largest differences seen when this was written were 1.1e-15, 4.3e-7 and 0.022.
TOLERANCES = {"float64": 1e-14, "float32": 2e-6, "bfloat16": 0.05}
GRID = (
    f"parity of PyTorch and NumPy: {len(SHAPES)} shapes, {len(MASKS)} masks, "
    f"{len(TOLERANCES)} precisions, {len(PATHS)} paths"
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer, its inputs, its mask, and a gradient to send back."""

    X: np.ndarray
    context: np.ndarray | None
    params: Params
    mask: np.ndarray | None
    is_causal: bool
    dY: np.ndarray

    @property
    def allowed(self):
        """Mask and causality in one, for what knows no `is_causal`."""
        if not self.is_causal:
            return self.mask
        key_input = self.X if self.context is None else self.context
        causal = oracle.causal_mask(self.X.shape[-2], key_input.shape[-2])
        return causal if self.mask is None else causal & self.mask

    @property
    def has_empty_row(self):
        """Whether some query may look at nothing."""
        return self.allowed is not None and not self.allowed.any(axis=-1).all()

    @property
    def fits_torch(self):
        """Whether `nn.MultiheadAttention` can hold the layer and its inputs, and gives no NaN."""
        params, context = self.params, self.X if self.context is None else self.context
        batch = self.X.shape[:-2]
        widths = params.n_heads * params.d_k == params.d_model and params.d_v == params.d_k
        return widths and len(batch) < 2 and context.shape[:-2] == batch and not self.has_empty_row


def exact(seed, *shape, scale=1.0):
    """Normal numbers, rounded to what bfloat16 holds, in float64."""
    array = scale * np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(array).bfloat16().double().numpy()


@cache
def make_case(shape, kind):
    """The case of one row of SHAPES with one kind of mask."""
    X, context, (H, d_k, d_v) = SHAPES[shape]
    d_model, key_shape = X[-1], context or X
    matrices = (H, d_model, d_k), (H, d_model, d_k), (H, d_model, d_v), (H * d_v, d_model)
    batch = np.broadcast_shapes(X[:-2], key_shape[:-2])
    return Case(
        X=exact(1, *X),
        context=None if context is None else exact(2, *context),
        params=Params(*(exact(10 + i, *m, scale=m[-2] ** -0.5) for i, m in enumerate(matrices))),
        mask=make_mask(kind, (*batch, H, X[-2], key_shape[-2])),
        is_causal="causal" in kind,
        dY=exact(3, *batch, *X[-2:]),
    )


def make_mask(kind, score_shape):
    """The boolean part of a mask; only "empty row" leaves queries without a key."""
    some, empty_row_mask = oracle.drawn_masks(score_shape)
    return {"boolean": some, "causal and boolean": some, "empty row": empty_row_mask}.get(kind)


def packed_rows(params):
    """The rows of `qkv_proj`: a row for each head's each column, of W_Q, then W_K, then W_V."""
    return np.concatenate([head.T for W in (params.W_Q, params.W_K, params.W_V) for head in W])


def unpacked_weights(rows, params):
    """The way back: an array (H, d_model, d) for each of W_Q, W_K, W_V."""
    heads, H = {}, params.n_heads
    for name in ("W_Q", "W_K", "W_V"):
        d = getattr(params, name).shape[-1]
        heads[name], rows = rows[: H * d].reshape(H, d, -1).swapaxes(1, 2), rows[H * d :]
    return heads


def module_from(params, dtype=torch.float64):
    sizes = {"d_k": params.d_k, "d_v": params.d_v}
    module = MultiHeadAttention(params.d_model, params.n_heads, **sizes)
    return loaded_module(module, params, "qkv_proj.weight").to(dtype)


def loaded_module(module, params, name):
    """A module with these weights; those of all projections in front have a name."""
    state = {name: packed_rows(params), "out_proj.weight": params.W_O.T}
    module.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return module


def leaf_tensor(array, dtype):
    """A tensor that gathers its gradient, or None."""
    return None if array is None else torch.tensor(array, dtype=dtype, requires_grad=True)


def numbers(tensor):
    return None if tensor is None else tensor.detach().double().numpy()


def results(Y, inputs, weights):
    gradients = {name: None if x is None else numbers(x.grad) for name, x in inputs.items()}
    return {"Y": numbers(Y)} | gradients | weights


def module_results(case, dtype, path):
    module = module_from(case.params, dtype)
    inputs = {"X": leaf_tensor(case.X, dtype), "context": leaf_tensor(case.context, dtype)}
    mask = None if case.mask is None else torch.tensor(case.mask)
    options = {"context": inputs["context"], "mask": mask, "is_causal": case.is_causal}
    Y = PATHS[path](module, inputs["X"], **options)
    Y.backward(torch.tensor(case.dY, dtype=dtype))
    weights = unpacked_weights(numbers(module.qkv_proj.weight.grad), case.params)
    return results(Y, inputs, weights | {"W_O": numbers(module.out_proj.weight.grad).T})


def torch_module(case, dtype, path):
    """Values and gradients of `nn.MultiheadAttention`, whose mask says who may not look.

    Asked for its weights it takes the steps one by one; otherwise it runs the fused ones.
    """
    p = case.params
    module = torch.nn.MultiheadAttention(p.d_model, p.n_heads, bias=False, batch_first=True)
    loaded_module(module, p, "in_proj_weight").to(dtype)
    inputs = {"X": leaf_tensor(case.X, dtype), "context": leaf_tensor(case.context, dtype)}
    key_input = inputs["X"] if case.context is None else inputs["context"]
    hidden_mask = None if case.allowed is None else torch.tensor(~case.allowed)
    if hidden_mask is not None and hidden_mask.ndim > 2:
        hidden_mask = hidden_mask.flatten(end_dim=-3)  # (B*H, T, S)
    options = {"attn_mask": hidden_mask, "need_weights": path == "explicit"}
    Y, _ = module(inputs["X"], key_input, key_input, **options)
    Y.backward(torch.tensor(case.dY, dtype=dtype))
    weights = unpacked_weights(numbers(module.in_proj_weight.grad), p)
    return results(Y, inputs, weights | {"W_O": numbers(module.out_proj.weight.grad).T})


@cache
def loops(shape, kind):
    case = make_case(shape, kind)
    arguments = {"context": case.context, "mask": case.allowed}
    gradients = oracle.mha_backward(case.X, case.params, case.dY, **arguments)
    return {"Y": oracle.mha(case.X, case.params, **arguments)} | gradients


@cache
def by_hand(shape, kind):
    case = make_case(shape, kind)
    record = tl.trace(case.X, case.params, context=case.context, mask=case.allowed)
    gradients = vars(tl.multi_head_attention_backward(record, case.dY))
    return {"Y": record.Y} | {name.removeprefix("d"): array for name, array in gradients.items()}


def assert_equal(actual, expected, tolerance, reference):
    """Compare arrays by name, each within the tolerance of its largest entry."""
    assert set(actual) == set(expected) == {"Y", "X", "context", "W_Q", "W_K", "W_V", "W_O"}
    for name, array in expected.items():
        label = f"{name} against {reference}"
        if array is None:
            assert actual[name] is None, label
        else:
            assert actual[name].shape == array.shape, label
            atol = tolerance * max(1.0, np.abs(array).max())
            np.testing.assert_allclose(actual[name], array, rtol=0, atol=atol, err_msg=label)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_and_gradients_equal_all_references(shape, kind, precision, path, record_property):
    record_property("grid", GRID)  # tests/conftest.py counts and prints
    case, dtype = make_case(shape, kind), getattr(torch, precision)
    actual = module_results(case, dtype, path)
    references = {"loops": loops(shape, kind), "NumPy": by_hand(shape, kind)}
    if case.fits_torch:
        references["nn.MultiheadAttention"] = torch_module(case, dtype, path)
    for name, expected in references.items():
        assert_equal(actual, expected, TOLERANCES[precision], name)


def test_grid_has_every_kind_of_shape():
    assert len(SHAPES) * len(MASKS) * len(TOLERANCES) * len(PATHS) == 420
    X, context, sizes = zip(*SHAPES.values(), strict=True)
    assert {len(shape) - 2 for shape in X} == {0, 1, 2}
    longer = {np.sign(c[-2] - x[-2]) for x, c in zip(X, context, strict=True) if c is not None}
    assert longer == {-1, 1}, "fewer and more keys than queries"
    assert {np.sign(d_v - d_k) for _, d_k, d_v in sizes} == {-1, 0, 1}
    assert 1 in {H for H, *_ in sizes}
    assert 1 in {shape[-2] for shape in X}
    cases = [make_case(shape, kind) for shape in SHAPES for kind in MASKS]
    assert sum(case.fits_torch for case in cases) == 22, "what nn.MultiheadAttention can hold"
    assert sum(case.has_empty_row for case in cases) == 18


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_of_a_trace_equals_numpy(shape, kind):
    case = make_case(shape, kind)
    X, context, mask = (
        None if array is None else torch.tensor(array)
        for array in (case.X, case.context, case.mask)
    )
    module = module_from(case.params)
    record = attention_trace(module, X, context=context, mask=mask, is_causal=case.is_causal)
    expected = tl.trace(case.X, case.params, context=case.context, mask=case.allowed)
    assert isinstance(record, tl.Trace)
    assert record.params is module
    assert record.X is X
    assert record.context is context
    for name in ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y"):
        actual, array = numbers(getattr(record, name)), getattr(expected, name)
        assert actual.shape == array.shape, name
        np.testing.assert_allclose(actual, array, rtol=1e-12, atol=1e-12, err_msg=name)
