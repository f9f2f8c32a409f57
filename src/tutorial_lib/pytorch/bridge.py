"""Weights across: Params ↔ our module ↔ torch.nn.MultiheadAttention, and others' layouts to ours.

The only place that transposes for torch. `X @ W` is the book's product, so its matrices are
(in, out); nn.Linear computes `X @ weight.T` and keeps (out, in), one row a feature.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from tutorial_lib.errors import ShapeError, require_divisible
from tutorial_lib.projection import Params
from tutorial_lib.pytorch.device import to_float64
from tutorial_lib.pytorch.mha import MultiHeadAttention

PREFIXES = {  # of the names in a layout, before "weight" and "bias"; the output projection is last
    "packed": ("in_proj_", "out_proj."),
    "interleaved": ("query_key_value.", "dense."),
    "separate": ("q_proj.", "k_proj.", "v_proj.", "out_proj."),
    "conv1d": ("c_attn.", "c_proj."),
}


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
    if not isinstance(module, MultiHeadAttention):
        raise TypeError(
            f"module is a {type(module).__name__}; expected a MultiHeadAttention of this library. "
            f"For torch's own layer call params_from_torch_mha(layer)."
        )
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


def state_dict_from(weights, layout, *, n_heads):
    """Rename and reorder another codebase's tensors into the state dict of our module.

    Introduced in chapter 09. Load it where the widths are those of most models,
    d_k = d_v = d_model / H: `MultiHeadAttention(d_model, n_heads, bias=...).load_state_dict(state)`
    with bias=True where it holds biases.

    The layouts, d short for d_model:

    - "packed", as torch.nn.MultiheadAttention: `in_proj_weight` (3*d, d), the rows of the queries,
      then keys, then values, and `out_proj.weight` (d, d).
    - "interleaved", as GPT-NeoX: `query_key_value.weight` (3*d, d), whose output is viewed as
      (B, T, H, 3*d/H), so its rows go head by head, and `dense.weight` (d, d).
    - "separate", as BART and Whisper: `q_proj.weight`, `k_proj.weight`, `v_proj.weight` and
      `out_proj.weight`, each (d, d). Here any of the biases may be missing, as Whisper's
      `k_proj.bias` is; where others are there it becomes zeros, which is what nn.Linear without
      a bias adds.
    - "conv1d", as GPT-2: `c_attn.weight` (d, 3*d) and `c_proj.weight` (d, d), both (in, out).

    Beside each weight there may be a bias of its output's width, such as `in_proj_bias` and
    `out_proj.bias`; but for "separate" there are all of them or none. A tensor's shape cannot tell
    "packed" from "interleaved", nor whether a square weight is (out, in): you have to know.

    Parameters
    ----------
    weights : dict of tensors of floats under exactly these names, those of one layer
    layout : "packed", "interleaved", "separate" or "conv1d"
    n_heads : number of heads

    Returns
    -------
    state : dict with copies: `qkv_proj.weight` (3*d, d), `out_proj.weight` (d, d), and
        `qkv_proj.bias` (3*d,), `out_proj.bias` (d,) where the layout brings a bias

    Raises
    ------
    TypeError : no dict, no tensors of floats in one precision, n_heads no whole number
    ShapeError : a shape that does not fit, or d_model does not split into n_heads parts
    ValueError : an unknown layout, missing or unknown names, tensors on several devices

    Source: PyTorch's documentation of torch.nn.MultiheadAttention; Hugging Face Transformers,
    modeling_gpt_neox.py, modeling_whisper.py and modeling_gpt2.py.
    """
    require_names(weights, layout)
    require_float_tensors(weights)
    require_layout_shapes(weights, layout, n_heads)
    biased = any(name.endswith("bias") for name in weights)
    state = {}
    for kind in ("weight", "bias") if biased else ("weight",):
        *inputs, out = (_rows(weights, prefix, kind, layout) for prefix in PREFIXES[layout])
        rows = torch.cat(inputs)
        if layout == "interleaved":
            heads = rows.unflatten(0, (n_heads, 3, -1))  # (H, 3, d/H) and columns
            rows = heads.transpose(0, 1).flatten(0, 2)
        state[f"qkv_proj.{kind}"] = rows
        state[f"out_proj.{kind}"] = out.clone(memory_format=torch.contiguous_format)
    return state


def require_params(params):
    """Require Params.

    Raises
    ------
    TypeError : anything else
    """
    if not isinstance(params, Params):
        raise TypeError(
            f"params is a {type(params).__name__}; expected Params. Make them with "
            f"Params(W_Q, W_K, W_V, W_O), init_params(rng, ...) or params_from_module(module)."
        )


def require_float_dtype(dtype):
    """Require one of torch's precisions of floats.

    Raises
    ------
    TypeError : anything else
    """
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(
            f"dtype is {dtype!r}; expected torch's name of a precision of floats. "
            f"Give torch.float64, torch.float32 or torch.bfloat16."
        )


def require_no_biases(**biases):
    """Require of each bias that it is None or all zeros.

    Raises
    ------
    ValueError : another bias
    """
    found = [name for name, bias in biases.items() if bias is not None and bool(bias.any())]
    if found:
        raise ValueError(
            f"the bias of {' and '.join(found)} is not zero; expected none, since Params hold no "
            f"biases. Make the layer with bias=False, or stay in PyTorch with state_dict_from."
        )


def require_plain_torch_mha(layer):
    """Require torch.nn.MultiheadAttention without the options that a Params cannot hold.

    Raises
    ------
    TypeError : another module
    ValueError : kdim, vdim, add_bias_kv or add_zero_attn
    """
    if not isinstance(layer, nn.MultiheadAttention):
        raise TypeError(
            f"layer is a {type(layer).__name__}; expected a torch.nn.MultiheadAttention. "
            f"For this library's own module call params_from_module(module)."
        )
    options = {
        f"kdim={layer.kdim}, vdim={layer.vdim}": layer.in_proj_weight is None,
        "add_bias_kv=True": layer.bias_k is not None,
        "add_zero_attn=True": layer.add_zero_attn,
    }
    found = [option for option, given in options.items() if given]
    if found:
        raise ValueError(
            f"layer has embed_dim={layer.embed_dim} and {', '.join(found)}; expected queries, keys "
            f"and values from one width and nothing added to them, since Params hold no more. "
            f"Make the layer without these options."
        )


def require_names(weights, layout):
    """Require a known layout, all names that it needs and no others.

    Raises
    ------
    TypeError : no dict
    ValueError : an unknown layout, missing or unknown names
    """
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"weights is a {type(weights).__name__}; expected a dict of tensors by name. "
            f"Take it from a module: module.state_dict()."
        )
    if layout not in list(PREFIXES):
        raise ValueError(
            f"layout is {layout!r}; expected one of {', '.join(map(repr, PREFIXES))}. "
            f"Look where the codebase splits queries, keys and values."
        )
    needed = [prefix + "weight" for prefix in PREFIXES[layout]]
    biases = [prefix + "bias" for prefix in PREFIXES[layout]]
    together = layout != "separate" and any(name in weights for name in biases)
    missing = [n for n in (needed + biases if together else needed) if n not in weights]
    unknown = [name for name in weights if name not in needed + biases]
    if missing or unknown:
        raise ValueError(
            f"the weights of layout {layout!r} lack {missing} and hold {unknown} beside; expected "
            f"{needed} and, where there are biases, {biases}. Take one layer's entries, cut what "
            f"stands before these names, and leave out buffers such as GPT-2's mask, 'bias'."
        )


def require_float_tensors(weights):
    """Require tensors of floats in one precision on one device.

    Raises
    ------
    TypeError : no tensor of floats, or several precisions
    ValueError : several devices
    """
    for name, tensor in weights.items():
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            raise TypeError(
                f"{name} is of type {kind}; expected a tensor of floats. "
                f"Convert it first: torch.as_tensor(..., dtype=torch.float32)."
            )
    dtypes = sorted({str(tensor.dtype) for tensor in weights.values()})
    if len(dtypes) > 1:
        raise TypeError(
            f"the weights are in {', '.join(dtypes)}; expected one precision. "
            f"Convert them first: tensor.to(torch.float32)."
        )
    devices = sorted({str(tensor.device) for tensor in weights.values()})
    if len(devices) > 1:
        raise ValueError(
            f"the weights are on {', '.join(devices)}; expected one device. "
            f"Move them first: tensor.cpu()."
        )


def require_layout_shapes(weights, layout, n_heads):
    """Require the shapes of a layout for the d_model of its output projection.

    Raises
    ------
    TypeError : n_heads is no whole number
    ShapeError : a shape that does not fit, or d_model does not split into n_heads parts
    """
    *inputs, output = PREFIXES[layout]
    d_model = max(weights[output + "weight"].shape, default=1)
    rows = dict.fromkeys(inputs, d_model if len(inputs) == 3 else 3 * d_model) | {output: d_model}
    for prefix, width in rows.items():
        shape = (d_model, width) if layout == "conv1d" else (width, d_model)
        for name, expected in ((prefix + "weight", shape), (prefix + "bias", (width,))):
            if name in weights and tuple(weights[name].shape) != expected:
                raise ShapeError(
                    f"{name} has shape {tuple(weights[name].shape)}; expected {expected} in "
                    f"layout {layout!r} with d_model={d_model}, which {output}weight has. "
                    f"Is it another layout, or a layer whose heads differ in number or width?"
                )
    require_divisible("d_model", d_model, "n_heads", n_heads)


def _params(packed, out, *, n_heads, d_k):
    packed, out = (to_float64(weight).numpy() for weight in (packed, out))
    parts = np.split(packed, [n_heads * d_k, 2 * n_heads * d_k])
    heads = [np.swapaxes(rows.reshape(n_heads, -1, packed.shape[1]), -1, -2) for rows in parts]
    return Params(*(np.array(W, order="C") for W in (*heads, out.T)))  # each a copy


def _tensor(array, dtype):
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C")).to(dtype)


def _rows(weights, prefix, kind, layout):
    if prefix + kind not in weights:  # a bias left out
        weight = weights[prefix + "weight"]
        return weight.new_zeros(weight.shape[0])
    tensor = weights[prefix + kind].detach()
    return tensor.T if layout == "conv1d" and kind == "weight" else tensor
