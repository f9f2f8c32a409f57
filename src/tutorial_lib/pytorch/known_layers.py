"""The attention layers of transformers that a DecoderAttention can hold, and the doors to them.

A layer is taken if its class is one of `GPT2` or `LLAMAS`, exactly, and if nothing of it is lost:
its projections are plain, it has no hooks and none of its methods was replaced, each of its
parameters, buffers and attributes is known, and it does nothing that a DecoderAttention cannot do.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from tutorial_lib.errors import ShapeError
from tutorial_lib.pytorch.doors import FLOATS


def no_window(attention):
    """Say that no layer of this class has a window."""


def own_window(attention):
    """Return the window of this one layer, or None."""
    return attention.sliding_window


def model_window(attention):
    """Return the window of all layers of the model, or None."""
    return getattr(attention.config, "sliding_window", None)


def always(attention):
    """Say that each layer of this class rotates its queries and keys."""
    return True


@dataclass(frozen=True)
class Known:
    """What an attention class of transformers holds, and how it uses it.

    Parameters
    ----------
    parts : the names of its projections, that of the output last
    linear : the class of the projections, with its module
    norm : the class of `q_norm` and `k_norm`, RMS norms of single heads, from the file of the
        layer; None: it has none
    shift : what is added to the weight of such a norm
    sinks : whether it has a parameter `sinks`
    half : which entries are a pair, as in `Rotation`
    window : finds the window of a layer
    rotates : says of a layer whether it rotates its queries and keys
    reads : attributes that these two functions read, or that say whether there are parts which
        would be lost, beside those in `ATTRIBUTES`
    fixed : names in `FIXED` of the layer, or of its configuration, that this class listens to
    """

    parts: tuple = ("q_proj", "k_proj", "v_proj", "o_proj")
    linear: str = "torch.nn.modules.linear.Linear"
    norm: str | None = None
    shift: int = 0
    sinks: bool = False
    half: bool = True
    window: Callable = no_window
    rotates: Callable = always
    reads: tuple = ()
    fixed: tuple = ("is_causal",)


def _slid(**options):
    return Known(window=own_window, reads=("sliding_window",), **options)


CAPPED = "is_causal", "attn_logit_softcapping"
GPT2 = {
    "gpt2.GPT2Attention": Known(
        parts=("c_attn", "c_proj"),
        linear="transformers.pytorch_utils.Conv1D",
        fixed=("is_causal", "is_cross_attention"),
    )
}
LLAMAS = {
    "llama.LlamaAttention": Known(),
    "mistral.MistralAttention": Known(window=model_window),
    "gpt_oss.GptOssAttention": _slid(sinks=True),
    "apertus.ApertusAttention": Known(norm="ApertusRMSNorm"),
    "cohere.CohereAttention": Known(half=False, reads=("use_qk_norm",)),
    "cohere2.Cohere2Attention": _slid(
        half=False, rotates=lambda attention: attention.sliding_window is not None
    ),
    "exaone4.Exaone4Attention": Known(
        norm="Exaone4RMSNorm",
        window=lambda attention: attention.sliding_window if attention.is_sliding else None,
        rotates=lambda attention: attention.sliding_window is None or attention.is_sliding,
        reads=("sliding_window",),
    ),
    "gemma.GemmaAttention": Known(),
    "gemma2.Gemma2Attention": _slid(fixed=CAPPED),
    "gemma3.Gemma3Attention": _slid(norm="Gemma3RMSNorm", shift=1, fixed=CAPPED),
    "glm.GlmAttention": Known(half=False),
    "glm4.Glm4Attention": Known(half=False),
    "granite.GraniteAttention": Known(),
    "helium.HeliumAttention": Known(half=False),
    "ministral.MinistralAttention": _slid(),
    "mixtral.MixtralAttention": Known(window=model_window),
    "nemotron.NemotronAttention": Known(),
    "olmo.OlmoAttention": Known(fixed=("is_causal", "clip_qkv")),
    "phi.PhiAttention": Known(
        parts=("q_proj", "k_proj", "v_proj", "dense"), reads=("qk_layernorm",)
    ),
    "phi3.Phi3Attention": Known(parts=("qkv_proj", "o_proj"), window=model_window),
    "qwen2.Qwen2Attention": _slid(),
    "qwen3.Qwen3Attention": _slid(norm="Qwen3RMSNorm"),
    "qwen3_moe.Qwen3MoeAttention": _slid(norm="Qwen3MoeRMSNorm"),
    "seed_oss.SeedOssAttention": Known(),
    "smollm3.SmolLM3Attention": Known(
        window=own_window,
        rotates=lambda attention: bool(attention.use_rope),
        reads=("sliding_window", "use_rope"),
    ),
    "stablelm.StableLmAttention": Known(reads=("qk_layernorm",)),
    "starcoder2.Starcoder2Attention": Known(window=model_window),
}
DOORS = {"decoder_from_gpt2(attention)": GPT2, "decoder_from_llama(attention, rotary)": LLAMAS}
FIXED = {
    "is_causal": (True, "lets no query look at a later key"),
    "is_cross_attention": (False, "looks at the keys of its own sequence"),
    "attn_logit_softcapping": (None, "puts no cap on scores"),
    "clip_qkv": (None, "clips no queries, keys or values"),
}
# Sizes, labels and dropout, and what is read of every layer: config, head_dim, scaling.
ATTRIBUTES = {
    *("training", "config", "layer_idx", "layer_type", "is_sliding", "sliding_window_pattern"),
    *("hidden_size", "embed_dim", "head_dim", "num_heads", "num_attention_heads", "split_size"),
    *("num_key_value_heads", "num_key_value_groups", "partial_rotary_factor", "rotary_ndims"),
    *("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"),
    *("scaling", "attention_dropout", "residual_dropout"),
}
RECORDER = "transformers.utils.output_capturing"  # its hooks, behind output_attentions, only read
PLAIN_ROPE_TYPES = "default", "linear", "llama3", "yarn", "proportional"


def require_layer(attention, known):
    """Require a layer of transformers of one of the known classes, of which nothing is lost.

    Parameters
    ----------
    attention : what was given
    known : dict of Known, by the classes' names: GPT2 or LLAMAS

    Returns
    -------
    kind : Known

    Raises
    ------
    TypeError : another class, a projection that is not plain, weights that are no plain floats
    ValueError : hooks, methods that were replaced, parameters, buffers or attributes that are not
        known, or a computation that a DecoderAttention does not do
    ShapeError : projections, biases or norms that do not fit its heads
    """
    kind = {_path_of(name): kind for name, kind in known.items()}.get(_path(attention))
    if kind is None:
        raise TypeError(_unknown(attention, known))
    _require_parts(attention, kind)
    _require_untouched("attention", attention)
    _require_nothing_else(attention, kind)
    _require_fixed(attention, kind)
    _require_shapes(attention, kind)
    return kind


def require_rotary(rotary, attention):
    """Require the rotary embedding of the layer's model, with frequencies that stay.

    Returns
    -------
    inv_freq, stretch : its frequencies for this layer, and what it multiplies the rotated by

    Raises
    ------
    TypeError : another module, frequencies that are no plain floats
    ValueError : hooks, a method that was replaced, another configuration, frequencies that change
        with the length, or for another number of pairs
    """
    cls = type(rotary)
    if cls.__module__ != type(attention).__module__ or "RotaryEmbedding" not in cls.__name__:
        raise TypeError(
            f"rotary is a {_path(rotary)}; expected the rotary embedding of {_path(attention)}, "
            f"which has the frequencies. The model has it: model.model.rotary_emb."
        )
    _require_untouched("rotary", rotary)
    if rotary.config != attention.config:
        raise ValueError(
            "rotary was made for another configuration than attention; expected that of the same "
            "model, whose frequencies fit its heads. Give both from one model."
        )
    kinds, kind = rotary.rope_type, getattr(attention, "layer_type", None)
    own = f"{kind}_" if isinstance(kinds, dict) else ""  # as in Gemma 3, which has two
    inv_freq = getattr(rotary, f"{own}inv_freq")
    _require_numbers(f"rotary.{own}inv_freq", inv_freq)
    _require_rotated(2 * len(inv_freq), attention, kinds[kind] if own else kinds)
    return inv_freq, getattr(rotary, f"{own}attention_scaling")


def _require_rotated(width, attention, rope_type):
    if rope_type not in PLAIN_ROPE_TYPES:
        raise ValueError(
            f"rotary has rope_type={rope_type!r}; expected one of {PLAIN_ROPE_TYPES}, whose "
            f"frequencies are the same at every length. Choose one in the configuration, or stay "
            f"with transformers."
        )
    rotated = getattr(attention, "rotary_ndims", width)
    if rotated != width:
        raise ValueError(
            f"attention rotates {rotated} entries of each head, and rotary has frequencies for "
            f"{width}; expected the same number. Choose another partial_rotary_factor."
        )


def eps_of(norm):
    """Return what an RMS norm of transformers adds to the mean of squares, under either name."""
    return vars(norm).get("variance_epsilon", vars(norm).get("eps"))


def _path_of(name):
    family, cls = name.split(".")
    return f"transformers.models.{family}.modeling_{family}.{cls}"


def _path(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _unknown(attention, known):
    names = ", ".join(name.split(".")[1] for name in known)
    advice, difference = _advice(attention), ""
    if not advice:
        difference = _difference(attention, known)
        advice = (
            "Stay with transformers, or copy its parameters into a DecoderAttention yourself and "
            "compare what the two return."
        )
    return (
        f"attention is a {_path(attention)}{difference}; expected the attention of one layer of a "
        f"model of transformers, whose class is exactly one of these: {names}. {advice}"
    )


def _advice(attention):
    for call, known in DOORS.items():
        if _path(attention) in map(_path_of, known):
            return f"For this one call {call}."
    if not isinstance(attention, nn.Module):
        return "A model has them, for example model.model.layers[0].self_attn."
    paths = {_path_of(name) for known in DOORS.values() for name in known}
    for name, module in attention.named_modules():
        if _path(module) in paths:
            indexed = re.sub(r"\.(\d+)", r"[\1]", f"attention.{name}")
            return f"It contains one: give {indexed}."
    return ""


def _difference(attention, known):
    """Say in what a layer differs from the known class that it comes from, or from the first."""
    classes = {_path_of(name): name for name in known}
    bases = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(attention).__mro__)
    name = next((classes[base] for base in bases if base in classes), next(iter(known)))
    kind = known[name]
    held = {*attention._modules, *attention._parameters, *attention._buffers}
    held |= {name for name in vars(attention) if not name.startswith("_")} - ATTRIBUTES
    usual = {*kind.parts, *kind.reads, *kind.fixed, *(("q_norm", "k_norm") if kind.norm else ())}
    more, less = sorted(held - usual), sorted(set(kind.parts) - held)
    said = [f"has {', '.join(more)}"] if more else []
    said += [f"does not have {', '.join(less)}"] if less else []
    said = said or ["has code of its own for the same parts"]
    return f", which unlike a {name.split('.')[1]} {' and '.join(said)}"


def _require_parts(attention, kind):
    norm = f"{type(attention).__module__}.{kind.norm}"
    expected = dict.fromkeys(kind.parts, kind.linear)
    expected |= dict.fromkeys(("q_norm", "k_norm"), norm) if kind.norm else {}
    for name, path in expected.items():
        part = getattr(attention, name, None)
        if _path(part) != path:
            raise TypeError(
                f"attention.{name} is a {_path(part)}; expected a {path}, since what another "
                f"class adds would be lost. Merge an adapter into the weight first, "
                f"model.merge_and_unload(); remove a parametrization, "
                f"torch.nn.utils.parametrize.remove_parametrizations(part, 'weight'); load a "
                f"quantised model without quantisation."
            )


def _require_numbers(name, tensor):
    plain = type(tensor) in (nn.Parameter, torch.Tensor) and tensor.layout == torch.strided
    if not plain or tensor.dtype not in FLOATS or tensor.is_meta:
        raise TypeError(
            f"{name} is a {_path(tensor)} of {tensor.dtype} on {tensor.device}; expected a plain "
            f"tensor of floats that has its data. Load the whole model, without quantisation, "
            f"sharding or offloading."
        )


def _require_untouched(name, module):
    for path, part in module.named_modules(prefix=name):
        replaced = "on this one module" if "forward" in vars(part) else _foreign(type(part).forward)
        if replaced:
            raise ValueError(
                f"{path}.forward was replaced {replaced}; expected that of its class, since nobody "
                f"knows what another computes. Load the model without what replaces it, such as "
                f"device_map, adapters or patches for speed."
            )
        hooks = (*part._forward_pre_hooks.values(), *part._forward_hooks.values())
        found = [hook for hook in hooks if getattr(hook, "__module__", None) != RECORDER]
        if found:
            raise ValueError(
                f"{path} has a hook, {getattr(found[0], '__qualname__', found[0])}; expected none, "
                f"since a hook may change what a layer reads and returns. Remove it first, by the "
                f"handle that register_forward_hook returned, or by what torch.nn.utils has for it."
            )


def _foreign(method):
    """Name the module of a method, or of what is wrapped around it, that neither library has."""
    while method is not None:
        home = getattr(method, "__globals__", {}).get("__name__", type(method).__module__)
        if home.split(".")[0] not in ("torch", "transformers"):
            return f"by one of {home}"
        method = getattr(method, "__wrapped__", None)
    return ""


def _require_nothing_else(attention, kind):
    parts = (*kind.parts, "q_norm", "k_norm") if kind.norm else kind.parts
    used = {f"{part}.{name}" for part in parts for name in ("weight", "bias")}
    used |= {"sinks"} if kind.sinks else set()
    tensors = dict((*attention.named_parameters(), *attention.named_buffers()))
    left = [name for name in tensors if name not in used]
    names = {*ATTRIBUTES, *kind.reads, *kind.fixed}
    left += [name for name in vars(attention) if name not in names and not name.startswith("_")]
    if left:
        raise ValueError(
            f"attention has {', '.join(left)}, which would be lost; expected only what a "
            f"DecoderAttention has too. Delete what the {type(attention).__name__} does not need, "
            f"or stay with transformers."
        )
    for name, tensor in tensors.items():
        _require_numbers(f"attention.{name}", tensor)


def _require_fixed(attention, kind):
    if kind.norm and eps_of(attention.q_norm) != eps_of(attention.k_norm):
        raise ValueError(
            f"attention.q_norm has eps={eps_of(attention.q_norm)} and attention.k_norm "
            f"{eps_of(attention.k_norm)}; expected one, which is all that a DecoderAttention has. "
            f"Set both alike."
        )
    for name in kind.fixed:
        value, reason = FIXED[name]
        found = getattr(attention, name, getattr(attention.config, name, value))
        if found != value:
            raise ValueError(
                f"attention has {name}={found!r}; expected {value}, since a DecoderAttention "
                f"{reason}. Stay with transformers, or change the configuration and continue "
                f"training."
            )


def _require_shapes(attention, kind):
    d_k, shared = attention.head_dim, getattr(attention, "num_key_value_groups", 1)
    stored = -1 if kind.linear.endswith("Conv1D") else 1  # (in, out), or (out, in)
    shapes = {name: tuple(tensor.shape) for name, tensor in attention.named_parameters()}
    found = [shapes[f"{part}.weight"] for part in kind.parts]
    heads = (shared, 1, 1) if len(kind.parts) == 4 else (shared + 2,)
    rows, d_model = [found[0][::stored][0] // heads[0] * n for n in heads], found[-1][::stored][0]
    right = [*((n, d_model) for n in rows), (d_model, rows[0] // heads[0] * shared)]
    own = {f"{part}.bias": (out,) for part, (out, _) in zip(kind.parts, right, strict=True)}
    own |= dict.fromkeys(("q_norm.weight", "k_norm.weight"), (d_k,))
    fits = found == [shape[::stored] for shape in right] and rows[0] // heads[0] % d_k == 0
    if not fits or any(shapes[name] != shape for name, shape in own.items() if name in shapes):
        pattern = [*((f"{n * d_k}*G", "d_model") for n in heads), ("d_model", f"{shared * d_k}*G")]
        expected = ", ".join(f"({', '.join(shape[::stored])})" for shape in pattern)
        raise ShapeError(
            f"attention has {', '.join(f'{name} {shape}' for name, shape in shapes.items())}; "
            f"expected {expected} for G KV heads of {d_k} numbers, each with {shared} query heads, "
            f"and biases and norms that fit. Load or prune all parts alike."
        )
