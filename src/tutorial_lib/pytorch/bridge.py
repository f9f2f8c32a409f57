"""Conversions: Params → our module, or torch.nn.MultiheadAttention.

The only place that transposes for torch: the book's matrices are (in, out), nn.Linear's (out, in).
"""

import numpy as np
import torch
from torch import nn

from tutorial_lib.contract import MADE_BY, checked, require
from tutorial_lib.errors import ShapeError
from tutorial_lib.projection import Params
from tutorial_lib.pytorch.mha import MultiHeadAttention
from tutorial_lib.variants.grouped import GroupedParams

MADE_BY[torch.dtype] = "a precision of floats. Give torch.float64, torch.float32 or torch.bfloat16."


@checked
def packed_weight(params: object) -> np.ndarray:
    """Transpose and stack W_Q, W_K and W_V into the one weight of `qkv_proj`, head 0 first.

    Built in chapter 09. Params become (H*(2*d_k + d_v), d_model), the queries' rows, the keys' and
    the values'; GroupedParams, whose G KV heads have fewer rows, (H*d_k + G*(d_k + d_v), d_model).

    >>> packed_weight(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))).shape
    (36, 12)
    """
    require(
        isinstance(params, Params | GroupedParams),
        TypeError,
        f"params is a {type(params).__name__}; expected Params or GroupedParams. Make them with "
        f"Params(W_Q, W_K, W_V, W_O) or init_params(rng, ...).",
    )
    rows = []
    for W in (params.W_Q, params.W_K, params.W_V):
        W_T = np.swapaxes(W, -1, -2)  # (H, d, d_model): a row is now one feature of one head
        rows.append(W_T.reshape(-1, params.d_model))  # (H*d, d_model), head 0 first
    return np.concatenate(rows)


@checked
def module_from_params(params: Params, *, dtype: torch.dtype = torch.float64) -> MultiHeadAttention:
    """Make a module that computes what the layer of `params` computes.

    Introduced in chapter 09. It is on the CPU, in training mode, has no biases and no dropout, and
    its weights require gradients. The state of torch's random generator does not change.
    """
    state_dict = _packed_state_dict(params, dtype)
    with torch.device("meta"):  # neither memory nor random numbers for weights soon replaced
        module = MultiHeadAttention(params.d_model, params.n_heads, d_k=params.d_k, d_v=params.d_v)
    module.load_state_dict(state_dict, assign=True)
    return module


@checked
def torch_mha_from_params(
    params: Params, *, dtype: torch.dtype = torch.float64
) -> nn.MultiheadAttention:
    """Make PyTorch's own layer with the weights of `params`.

    Introduced in chapter 09. As `module_from_params`, if d_k = d_v = d_model / H. Its inputs are
    (B, T, d_model) or (T, d_model), its masks the opposite of ours: there True = may not attend.

    Source: PyTorch's documentation of torch.nn.MultiheadAttention.
    """
    H, d_model, d_k, d_v = params.n_heads, params.d_model, params.d_k, params.d_v
    require(
        d_k == d_v and H * d_k == d_model,
        ShapeError,
        f"params have H={H}, d_model={d_model}, d_k={d_k}, d_v={d_v}; expected "
        f"d_k = d_v = d_model / H, which is all that torch.nn.MultiheadAttention holds. "
        f"Call module_from_params(params), which takes any widths.",
    )
    layer = nn.MultiheadAttention(d_model, H, bias=False, batch_first=True, device="meta")
    layer.load_state_dict(_packed_state_dict(params, dtype, "in_proj_weight"), assign=True)
    return layer


def _packed_state_dict(params, dtype, input_name="qkv_proj.weight"):
    is_float = dtype.is_floating_point
    require(is_float, TypeError, f"dtype is {dtype}; expected {MADE_BY[torch.dtype]}")
    weights = {input_name: packed_weight(params), "out_proj.weight": params.W_O.T}
    arrays = {name: np.array(W, dtype=np.float64, order="C") for name, W in weights.items()}
    return {name: torch.from_numpy(array).to(dtype) for name, array in arrays.items()}
