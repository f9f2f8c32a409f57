"""Weights across: exact copies there and back, and the outputs that the weights belong to."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests import oracle
from tests.pytorch.layers import draw
from tutorial_lib import Params, ShapeError, init_params
from tutorial_lib.pytorch import (
    MultiHeadAttention,
    module_from_params,
    packed_weight,
    params_from_module,
    params_from_torch_mha,
    torch_mha_from_params,
)
from tutorial_lib.variants.grouped import GroupedParams

B, T, S, H, D_MODEL = 2, 6, 7, 4, 20  # not three heads: three are the queries, keys and values
WEIGHTS = ("W_Q", "W_K", "W_V", "W_O")


def assert_same_params(actual, expected):
    for name in WEIGHTS:
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)


def torch_params(H=H, d_model=D_MODEL):
    """Params with the widths that torch's layer can hold."""
    return init_params(np.random.default_rng(5), d_model=d_model, n_heads=H)


def torch_layer(**options):
    """PyTorch's layer in float64; its biases are there and, as PyTorch starts them, zero."""
    torch.manual_seed(0)
    sizes = {"embed_dim": D_MODEL, "num_heads": H, "batch_first": True, "dtype": torch.float64}
    return nn.MultiheadAttention(**sizes | options)


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


# --- there and back ---

CONVERSIONS = {
    module_from_params: params_from_module,
    torch_mha_from_params: params_from_torch_mha,
}
each_conversion = pytest.mark.parametrize(("to_layer", "to_params"), CONVERSIONS.items())


@each_conversion
@pytest.mark.parametrize("widths", [(12, 3, 4, 4), (12, 3, 4, 7), (5, 1, 2, 2), (6, 2, 8, 3)])
def test_params_go_into_a_layer_and_back_unchanged(to_layer, to_params, widths):
    d_model, H, d_k, d_v = widths
    rng = np.random.default_rng(0)
    params = init_params(rng, d_model=d_model, n_heads=H, d_k=d_k, d_v=d_v)
    if to_layer is torch_mha_from_params and not H * d_k == H * d_v == d_model:
        words = f"H={H}, d_model={d_model}, d_k={d_k}, d_v={d_v}; expected d_k = d_v = d_model / H"
        with pytest.raises(ShapeError, match=words):
            to_layer(params)
    else:
        assert_same_params(to_params(to_layer(params)), params)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("to_layer", "layer"),
    [
        (module_from_params, partial(MultiHeadAttention, 12, 3, d_k=4, d_v=7)),
        (torch_mha_from_params, partial(nn.MultiheadAttention, 20, 4, bias=False)),
    ],
)
def test_a_layer_goes_into_params_and_back_unchanged_in_every_precision(to_layer, layer, dtype):
    torch.manual_seed(0)
    layer = layer().to(dtype)
    params = CONVERSIONS[to_layer](layer)
    assert {getattr(params, name).dtype for name in WEIGHTS} == {np.dtype(np.float64)}
    state = to_layer(params, dtype=dtype).state_dict()
    assert list(state) == list(layer.state_dict())
    for name, tensor in layer.state_dict().items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)


def test_the_module_computes_what_the_loops_compute(X, params, square_mask, assert_close):
    module = module_from_params(params)
    mask = None if square_mask is None else torch.tensor(square_mask)
    expected = oracle.mha(X, params, mask=square_mask)
    assert_close(module(torch.tensor(X), mask=mask).detach().numpy(), expected)


@pytest.mark.parametrize("to_layer", CONVERSIONS)
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
    "with gaps": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "float32": lambda array: array.astype(np.float32),
    "integers": lambda array: np.ceil(array).astype(int),
}


@each_conversion
@pytest.mark.parametrize("memory_layout", LAYOUTS)
def test_arrays_of_any_layout_and_kind_go_across_as_float64(to_layer, to_params, memory_layout):
    params = torch_params()
    params = Params(*(LAYOUTS[memory_layout](getattr(params, name)) for name in WEIGHTS))
    layer = to_layer(params)
    assert {weight.dtype for weight in layer.parameters()} == {torch.float64}
    assert_same_params(to_params(layer), params)


@each_conversion
@pytest.mark.parametrize("H", [1, 2])
def test_both_sides_own_their_numbers(to_layer, to_params, H):
    params, original_params = torch_params(H, 2), torch_params(H, 2)
    layer = to_layer(params)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(1)
    assert_same_params(params, original_params)
    original_state = copy.deepcopy(layer.state_dict())
    for W in vars(to_params(layer)).values():
        W[:] = 0
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, original_state[name]), name


# --- torch's own layer ---


def test_torchs_layer_computes_what_the_loops_compute(assert_close):
    params, X, context = torch_params(), draw(B, T, D_MODEL), draw(B, S, D_MODEL, seed=2)
    Y, _ = torch_mha_from_params(params)(X, context, context)
    assert_close(Y.detach().numpy(), oracle.mha(X.numpy(), params, context.numpy()))


def test_batch_first_and_widths_of_keys_that_are_the_same_are_no_properties_of_the_weights():
    expected = params_from_torch_mha(torch_layer())
    for options in ({"batch_first": False}, {"kdim": D_MODEL, "vdim": D_MODEL}):
        assert_same_params(params_from_torch_mha(torch_layer(**options)), expected)


# --- what is refused ---


@pytest.mark.parametrize("value", [None, {"W_Q": np.ones((2, 3, 4))}, MultiHeadAttention(4, 2)])
def test_only_params_are_taken_for_params(value):
    with pytest.raises(TypeError, match=f"params is a {type(value).__name__}; expected Params or"):
        packed_weight(value)


@pytest.mark.parametrize("to_layer", CONVERSIONS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_only_a_precision_of_floats_is_taken_for_one(to_layer, dtype):
    with pytest.raises(TypeError, match=f"dtype is {dtype}; expected a precision of floats. Give"):
        to_layer(torch_params(), dtype=dtype)


@pytest.mark.parametrize("value", [1e-30, math.nan])
@pytest.mark.parametrize(
    ("to_params", "layer"),
    [
        (params_from_module, MultiHeadAttention(4, 2, bias=True)),
        (params_from_torch_mha, nn.MultiheadAttention(4, 2)),
    ],
)
def test_a_bias_must_be_zero(to_params, layer, value):
    layer.requires_grad_(False)
    biases = {name: tensor for name, tensor in layer.named_parameters() if "bias" in name}
    assert len(biases) == 2
    for bias in biases.values():
        bias.zero_()
    to_params(layer)
    for name, bias in biases.items():
        bias[-1] = value
        projection = name.removesuffix("_bias").removesuffix(".bias")
        with pytest.raises(ValueError, match=f"the bias of {projection} is not zero; expected no"):
            to_params(layer)
        bias.zero_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kdim": 7}, "kdim=7, vdim=20; expected queries"),
        ({"vdim": 9, "add_zero_attn": True}, "kdim=20, vdim=9, add_zero_attn=True; expected qu"),
        ({"add_bias_kv": True}, "and add_bias_kv=True; expected"),
    ],
)
def test_options_that_params_cannot_hold_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        params_from_torch_mha(torch_layer(**options))


@each_conversion
def test_weights_that_are_no_numbers_are_refused(to_layer, to_params):
    layer = to_layer(torch_params()).requires_grad_(False)
    layer.out_proj.weight[1, 2] = math.nan
    with pytest.raises(ValueError, match=r"W_O is nan at position \(2, 1\)"):
        to_params(layer)


def test_weights_that_do_not_fit_the_heads_are_refused_with_their_shapes():
    layer = torch_layer(bias=False)
    layer.in_proj_weight = nn.Parameter(layer.in_proj_weight[5:].detach())
    with pytest.raises(ShapeError, match=rf"\(55, 20\) and \(20, 20\); .* with H={H}, d_k=5"):
        params_from_torch_mha(layer)
