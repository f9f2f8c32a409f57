"""Conversions: Params ↔ our modules ↔ torch.nn.MultiheadAttention, GPT-2's and Llama's layers.

The only place that transposes for torch: the book's matrices are (in, out), nn.Linear's (out, in).
"""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from tutorial_lib.contract import MADE_BY, checked, require
from tutorial_lib.errors import ShapeError
from tutorial_lib.projection import Params
from tutorial_lib.pytorch.decoder_attention import DecoderAttention, Rotation, ScoreOptions
from tutorial_lib.pytorch.device import to_float64
from tutorial_lib.pytorch.known_layers import (
    GPT2,
    LLAMAS,
    checked_known_layer,
    checked_rotary_frequencies,
    copied_and_compared,
    rms_norm_eps,
)
from tutorial_lib.pytorch.mha import MultiHeadAttention
from tutorial_lib.variants.grouped import GroupedParams

MADE_BY |= {
    torch.dtype: "a precision of floats. Give torch.float64, torch.float32 or torch.bfloat16.",
    nn.MultiheadAttention: "torch's own layer. For ours call params_from_module(module).",
}


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
        f"Params(W_Q, W_K, W_V, W_O), init_params(rng, ...) or params_from_module(module).",
    )
    rows = []
    for W in (params.W_Q, params.W_K, params.W_V):
        W_T = np.swapaxes(W, -1, -2)  # (H, d, d_model): a row is now one feature of one head
        rows.append(W_T.reshape(-1, params.d_model))  # (H*d, d_model), head 0 first
    return np.concatenate(rows)


@checked
def params_from_module(module: MultiHeadAttention) -> Params:
    """Copy the weights of a module of any precision and device into Params, float64.

    Introduced in chapter 09. The dropout is not copied.

    Raises
    ------
    ValueError : a bias that is not all zeros, NaN or infinity in a weight
    ShapeError : weights that do not fit the heads
    """
    projections = {"qkv_proj": module.qkv_proj, "out_proj": module.out_proj}
    return Params(*_params_arrays(projections, module.n_heads, module.d_k))


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
def params_from_torch_mha(layer: nn.MultiheadAttention) -> Params:
    """Copy the weights of PyTorch's own layer, of any precision and device, into Params, float64.

    Introduced in chapter 09. Its `batch_first` and dropout are not copied, and its masks are the
    opposite of ours: there, True = may not attend. Raises as `params_from_module`, and ValueError
    for kdim or vdim of another width, add_bias_kv and add_zero_attn.

    Source: PyTorch's documentation of torch.nn.MultiheadAttention.
    """
    option_flags = {
        f"kdim={layer.kdim}, vdim={layer.vdim}": layer.in_proj_weight is None,
        "add_bias_kv=True": layer.bias_k is not None,
        "add_zero_attn=True": layer.add_zero_attn,
    }
    extras = ", ".join(option for option, is_set in option_flags.items() if is_set)
    require(
        not extras,
        ValueError,
        f"layer has embed_dim={layer.embed_dim} and {extras}; expected queries, keys and values "
        f"from one width and nothing added to them, since Params hold no more. Make the layer "
        f"without.",
    )
    in_proj = SimpleNamespace(weight=layer.in_proj_weight, bias=layer.in_proj_bias)
    projections = {"in_proj": in_proj, "out_proj": layer.out_proj}
    return Params(*_params_arrays(projections, layer.num_heads, layer.head_dim))


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


def decoder_from_gpt2(attention: "GPT2Attention") -> DecoderAttention:
    """Make a decoder with the weights of a layer of GPT-2, such as `model.transformer.h[0].attn`.

    Introduced in chapter 14. Weights and biases are copied, in their precision and on their device.
    The dropout is not, so in training the two differ. Raises as `known_layers.checked_known_layer`
    and `copied_and_compared`.

    Source: transformers, `models/gpt2/modeling_gpt2.py`, whose Conv1D stores (in, out).
    """
    kind = checked_known_layer(attention, GPT2)
    return copied_and_compared(attention, None, lambda: _copied(attention, kind, None))


def decoder_from_llama(attention: "LlamaAttention", rotary: object) -> DecoderAttention:
    """Make a decoder with the weights and frequencies of a layer of Llama, or of its family.

    Introduced in chapter 16. The others, in `known_layers.LLAMAS`, are Mistral, gpt-oss, Gemma 2
    and 3, Qwen2 and Qwen3: they add a window, sinks, biases, QK-norm or a different scale of
    scores. Subclasses are refused. Weights are copied as by `decoder_from_gpt2`. Of a model give
    `model.model.layers[0].self_attn` and `model.model.rotary_emb`. Raises as
    `decoder_from_gpt2`, and as `known_layers.checked_rotary_frequencies`.

    Source: transformers, `models/llama/modeling_llama.py`, and those of the other families.
    """
    known_layer = checked_known_layer(attention, LLAMAS)
    inv_freq, rotation_scale = checked_rotary_frequencies(rotary, attention)
    rotation = Rotation(inv_freq.double(), half=True, stretch=rotation_scale)
    return copied_and_compared(attention, rotary, lambda: _copied(attention, known_layer, rotation))


def _copied(attention, known_layer, rotation):
    *input_projections, out = (getattr(attention, name) for name in known_layer.parts)
    d_k, group_size = attention.head_dim, getattr(attention, "num_key_value_groups", 1)
    qkv_rows = torch.cat([_weight_as_out_in(projection) for projection in input_projections])
    G = len(qkv_rows) // d_k // (group_size + 2)
    state = {"qkv_proj.weight": qkv_rows, "out_proj.weight": _weight_as_out_in(out)}
    if any(projection.bias is not None for projection in (*input_projections, out)):
        state["qkv_proj.bias"] = torch.cat([_bias_or_zeros(part) for part in input_projections])
        state["out_proj.bias"] = _bias_or_zeros(out)
    if known_layer.sinks:
        state["sink"] = attention.sinks
    if known_layer.has_norms:
        for name in ("q_norm", "k_norm"):
            gains = getattr(attention, name).weight
            wide_gains = gains.to(torch.promote_types(gains.dtype, torch.float32))
            state[f"{name}.weight"] = wide_gains + known_layer.shift
    memory_layout = {"memory_format": torch.contiguous_format}
    state = {name: tensor.detach().clone(**memory_layout) for name, tensor in state.items()}
    scores = _score_options(attention, known_layer)
    decoder_options = {"rotation": rotation, "scores": scores, "n_kv_heads": G}
    return _decoder_from_state_dict(state, group_size * G, d_k, decoder_options)


def _score_options(attention, known_layer):
    return ScoreOptions(
        scale=attention.scaling,
        soft_cap=attention.attn_logit_softcapping if known_layer.capped else None,
        window=known_layer.window(attention),
        sink=known_layer.sinks,
        norm_eps=rms_norm_eps(attention.q_norm) if known_layer.has_norms else None,
    )


def _weight_as_out_in(projection):
    W = projection.weight
    return W if isinstance(projection, nn.Linear) else W.T  # Conv1D's: (in, out)


def _bias_or_zeros(projection):
    weight = _weight_as_out_in(projection)
    return weight.new_zeros(len(weight)) if projection.bias is None else projection.bias


def _decoder_from_state_dict(state, n_heads, d_k, options):
    d_model, concat_width = state["out_proj.weight"].shape
    options = options | {"sizes": (d_k, concat_width // n_heads), "bias": "out_proj.bias" in state}
    with torch.device("meta"):  # neither memory nor random numbers for weights soon replaced
        decoder = DecoderAttention(d_model, n_heads, **options)
    decoder.load_state_dict(state, assign=True)
    return decoder


def _packed_state_dict(params, dtype, input_name="qkv_proj.weight"):
    is_float = dtype.is_floating_point
    require(is_float, TypeError, f"dtype is {dtype}; expected {MADE_BY[torch.dtype]}")
    weights = {input_name: packed_weight(params), "out_proj.weight": params.W_O.T}
    return {name: _contiguous_tensor(weight, dtype) for name, weight in weights.items()}


def _contiguous_tensor(array, dtype):
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C")).to(dtype)


def _params_arrays(projections, H, d_k):
    """Return copies of the four matrices in two projections without biases."""
    biases = {name: projection.bias for name, projection in projections.items()}
    with_bias = [name for name, bias in biases.items() if bias is not None and bool(bias.any())]
    require(
        not with_bias,
        ValueError,
        f"the bias of {' and '.join(with_bias)} is not zero; expected none, since Params hold no "
        f"biases. Make the layer with bias=False, or stay in PyTorch.",
    )
    qkv_weight, out_weight = (projection.weight for projection in projections.values())
    d_v, remainder = divmod(out_weight.shape[1], H)
    require(
        not remainder and qkv_weight.shape == (H * (2 * d_k + d_v), out_weight.shape[0]),
        ShapeError,
        f"the layer has weights {tuple(qkv_weight.shape)} and {tuple(out_weight.shape)}; expected "
        f"(H * (2 * d_k + d_v), d_model) and (d_model, H * d_v) with H={H}, d_k={d_k}. Load both "
        f"for the same heads.",
    )
    qkv_weight, out_weight = (to_float64(weight).numpy() for weight in (qkv_weight, out_weight))
    qkv_blocks = np.split(qkv_weight, [H * d_k, 2 * H * d_k])
    head_matrices = [
        np.swapaxes(rows.reshape(H, -1, qkv_weight.shape[1]), -1, -2) for rows in qkv_blocks
    ]
    return [np.array(W, order="C") for W in (*head_matrices, out_weight.T)]  # each a copy
