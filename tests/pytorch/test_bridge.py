"""Weights across: each number in its place, and the outputs that the weights belong to."""

import numpy as np
import pytest
import torch

from tests import oracle
from tests.pytorch.layers import draw
from tutorial_lib import Params, ShapeError, init_params
from tutorial_lib.pytorch import (
    MultiHeadAttention,
    module_from_params,
    packed_weight,
    torch_mha_from_params,
)
from tutorial_lib.variants.grouped import GroupedParams

B, T, S, H, D_MODEL = 2, 6, 7, 4, 20  # not three heads: three are the queries, keys and values


def torch_params(H=H, d_model=D_MODEL):
    """Params with the widths that torch's layer can hold."""
    return init_params(np.random.default_rng(5), d_model=d_model, n_heads=H)


def grouped_params(G):
    """GroupedParams in which all widths differ."""
    rng = np.random.default_rng(5)
    params = init_params(rng, d_model=12, n_heads=6, d_k=4, d_v=7)
    return GroupedParams(params.W_Q, params.W_K[:G], params.W_V[:G], params.W_O)


@pytest.mark.parametrize("convert", [lambda params: params, lambda _: grouped_params(2)])
def test_each_row_is_one_feature_of_one_head_or_kv_head(params, convert):
    params = convert(params)
    expected = [
        W[h, :, column]
        for W in (params.W_Q, params.W_K, params.W_V)
        for h in range(len(W))
        for column in range(W.shape[-1])
    ]
    np.testing.assert_array_equal(packed_weight(params), np.array(expected))


def test_the_module_computes_what_the_loops_compute(X, params, square_mask, assert_close):
    module = module_from_params(params)
    mask = None if square_mask is None else torch.tensor(square_mask)
    expected = oracle.mha(X, params, mask=square_mask)
    assert_close(module(torch.tensor(X), mask=mask).detach().numpy(), expected)


def test_torchs_layer_computes_what_the_loops_compute(assert_close):
    params, X, context = torch_params(), draw(B, T, D_MODEL), draw(B, S, D_MODEL, seed=2)
    Y, _ = torch_mha_from_params(params)(X, context, context)
    assert_close(Y.detach().numpy(), oracle.mha(X.numpy(), params, context.numpy()))


each_conversion = pytest.mark.parametrize("to_layer", [module_from_params, torch_mha_from_params])


@each_conversion
def test_a_new_layer_is_as_any_new_layer_and_takes_no_random_numbers(to_layer):
    torch.manual_seed(3)
    rng_state = torch.get_rng_state()
    layer = to_layer(torch_params())
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert layer.training
    assert getattr(layer, "dropout", 0.0) == 0.0
    assert getattr(layer, "batch_first", True)
    assert not any("bias" in name for name in layer.state_dict())
    for weight in layer.parameters():
        assert weight.requires_grad
        assert weight.is_leaf
        assert weight.is_contiguous()
        assert (weight.dtype, weight.device.type) == (torch.float64, "cpu")


LAYOUTS = {  # the same numbers in memory in another order
    "backwards": lambda array: np.ascontiguousarray(array[..., ::-1])[..., ::-1],
    "column by column": np.asfortranarray,
    "integers": lambda array: np.ceil(array).astype(int),
}


@each_conversion
@pytest.mark.parametrize("memory_layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_arrays_of_any_layout_go_across_and_stay_as_they_are(to_layer, memory_layout, dtype):
    params = Params(*(LAYOUTS[memory_layout](W) for W in vars(torch_params()).values()))
    packed, W_O = packed_weight(params).astype(float), params.W_O.astype(float)
    layer = to_layer(params, dtype=dtype)
    in_weight, out_weight = layer.parameters()
    assert torch.equal(in_weight, torch.tensor(packed).to(dtype))
    assert torch.equal(out_weight, torch.tensor(W_O.T).to(dtype))
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(1)
    np.testing.assert_array_equal(packed_weight(params), packed)
    np.testing.assert_array_equal(params.W_O, W_O)


# --- what is refused ---


def test_widths_that_torchs_layer_cannot_hold_are_refused(params):
    with pytest.raises(ShapeError, match=r"params have H=3, .*; expected d_k = d_v = d_model / H"):
        torch_mha_from_params(params)


@pytest.mark.parametrize("value", [None, {"W_Q": np.ones((2, 3, 4))}, MultiHeadAttention(4, 2)])
def test_only_params_are_taken_for_params(value):
    with pytest.raises(TypeError, match=f"params is a {type(value).__name__}; expected Params or"):
        packed_weight(value)


@each_conversion
def test_only_a_precision_of_floats_is_taken_for_one(to_layer):
    with pytest.raises(TypeError, match=r"dtype is torch\.int64; expected a precision of"):
        to_layer(torch_params(), dtype=torch.int64)
