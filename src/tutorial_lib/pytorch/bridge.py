"""Weights across: Params ↔ our module ↔ torch.nn.MultiheadAttention.

The only place that transposes for torch. `X @ W` is the book's product, so its matrices are
(in, out); nn.Linear computes `X @ weight.T` and keeps (out, in), one row a feature.
"""

import numpy as np
import torch
from torch import nn

from tutorial_lib.errors import ShapeError
from tutorial_lib.projection import Params
from tutorial_lib.pytorch.device import to_float64
from tutorial_lib.pytorch.doors import (
    require_float_dtype,
    require_module,
    require_no_biases,
    require_params,
    require_plain_torch_mha,
)
from tutorial_lib.pytorch.mha import MultiHeadAttention


def packed_weight(params):
    """Turn and stack W_Q, W_K and W_V into the one weight of `qkv_proj`.

    Built in chapter 09.

    Parameters
    ----------
    params : Params

    Returns
    -------
    weight : (H*(2*d_k + d_v), d_model): the rows of all heads' queries, then of their keys, then
        of their values, head 0 first

    Raises
    ------
    TypeError : no Params

    >>> packed_weight(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))).shape
    (36, 12)
    """
    require_params(params)
    rows = []
    for W in (params.W_Q, params.W_K, params.W_V):
        W_T = np.swapaxes(W, -1, -2)  # (H, d, d_model): a row is now one feature of one head
        rows.append(W_T.reshape(-1, params.d_model))  # (H*d, d_model), head 0 first
    return np.concatenate(rows)


def params_from_module(module):
    """Copy a module's weights into Params, float64; its dropout is no weight and is left behind.

    Introduced in chapter 09.

    Parameters
    ----------
    module : MultiHeadAttention of this library, in any precision, on any device

    Returns
    -------
    params : Params, float64

    Raises
    ------
    TypeError : another module
    ValueError : a bias that is not all zeros, NaN or infinity in a weight
    """
    mend = "For torch's own layer call params_from_torch_mha(layer)."
    require_module(module, MultiHeadAttention, mend)
    require_no_biases(qkv_proj=module.qkv_proj.bias, out_proj=module.out_proj.bias)
    weights = module.qkv_proj.weight, module.out_proj.weight
    return _params(*weights, n_heads=module.n_heads, d_k=module.d_k)


def module_from_params(params, *, dtype=torch.float64):
    """Make a module that computes what the layer of `params` computes.

    Introduced in chapter 09. As any new module it is on the CPU, in training mode, with weights
    that require gradients. It has no biases and no dropout, so both modes give the same numbers.
    torch's random numbers are left where they are.

    Parameters
    ----------
    params : Params
    dtype : torch's name of a precision of floats

    Returns
    -------
    module : MultiHeadAttention with copies of the weights

    Raises
    ------
    TypeError : no Params, or a dtype that is no precision of floats
    """
    require_params(params)
    require_float_dtype(dtype)
    with torch.device("meta"):  # neither memory nor random numbers for weights soon replaced
        module = MultiHeadAttention(
            params.d_model, params.n_heads, d_k=params.d_k, d_v=params.d_v, bias=False
        )
    state = {
        "qkv_proj.weight": _tensor(packed_weight(params), dtype),
        "out_proj.weight": _tensor(params.W_O.T, dtype),
    }
    module.load_state_dict(state, assign=True)
    return module


def params_from_torch_mha(layer):
    """Copy the weights of PyTorch's own layer into Params, float64.

    Introduced in chapter 09. The layer's `batch_first` and dropout are no weights: they are left
    behind. Its masks are the opposite of ours: there, True = may not look.

    Parameters
    ----------
    layer : torch.nn.MultiheadAttention, in any precision, on any device

    Returns
    -------
    params : Params, float64, with d_k = d_v = d_model / H

    Raises
    ------
    TypeError : another module
    ValueError : a bias that is not all zeros, keys or values of another width (kdim, vdim),
        add_bias_kv, add_zero_attn, NaN or infinity in a weight

    Source: PyTorch's documentation of torch.nn.MultiheadAttention.
    """
    require_plain_torch_mha(layer)
    require_no_biases(in_proj=layer.in_proj_bias, out_proj=layer.out_proj.bias)
    weights = layer.in_proj_weight, layer.out_proj.weight
    return _params(*weights, n_heads=layer.num_heads, d_k=layer.head_dim)


def torch_mha_from_params(params, *, dtype=torch.float64):
    """Make PyTorch's own layer with the weights of `params`.

    Introduced in chapter 09. As any new module it is on the CPU, in training mode, with weights
    that require gradients; it has no biases and no dropout. Its inputs are (B, T, d_model), or
    (T, d_model), and its masks the opposite of ours: there, True = may not look.

    Parameters
    ----------
    params : Params with d_k = d_v = d_model / H
    dtype : torch's name of a precision of floats

    Returns
    -------
    layer : torch.nn.MultiheadAttention(..., bias=False, batch_first=True)

    Raises
    ------
    TypeError : no Params, or a dtype that is no precision of floats
    ShapeError : widths that PyTorch's layer cannot hold

    Source: PyTorch's documentation of torch.nn.MultiheadAttention.
    """
    require_params(params)
    require_float_dtype(dtype)
    H, d_model, d_k, d_v = params.n_heads, params.d_model, params.d_k, params.d_v
    if not (d_k == d_v and H * d_k == d_model):
        raise ShapeError(
            f"params have H={H}, d_model={d_model}, d_k={d_k}, d_v={d_v}; expected "
            f"d_k = d_v = d_model / H, which is all that torch.nn.MultiheadAttention holds. "
            f"Call module_from_params(params), which takes any widths."
        )
    layer = nn.MultiheadAttention(d_model, H, bias=False, batch_first=True, device="meta")
    state = {
        "in_proj_weight": _tensor(packed_weight(params), dtype),
        "out_proj.weight": _tensor(params.W_O.T, dtype),
    }
    layer.load_state_dict(state, assign=True)
    return layer


def _params(packed, out, *, n_heads, d_k):
    packed, out = (to_float64(weight).numpy() for weight in (packed, out))
    parts = np.split(packed, [n_heads * d_k, 2 * n_heads * d_k])
    heads = [np.swapaxes(rows.reshape(n_heads, -1, packed.shape[1]), -1, -2) for rows in parts]
    return Params(*(np.array(W, order="C") for W in (*heads, out.T)))  # each a copy


def _tensor(array, dtype):
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C")).to(dtype)
