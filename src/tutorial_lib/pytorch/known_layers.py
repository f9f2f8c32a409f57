"""The attention layers of transformers that a DecoderAttention can hold with nothing lost."""

import re
from dataclasses import dataclass

import torch
from torch import nn

from tutorial_lib.contract import require
from tutorial_lib.errors import ShapeError

FLOATS = torch.float64, torch.float32, torch.float16, torch.bfloat16


@dataclass(frozen=True)
class KnownLayer:
    """What an attention class of transformers holds, and how it uses it."""

    parts: tuple = ("q_proj", "k_proj", "v_proj", "o_proj")  # its projections, the output's last
    linear: str = "torch.nn.modules.linear.Linear"  # their class
    norm: str | None = None  # the class, in the layer's file, of q_norm and k_norm: RMS, per head
    shift: int = 0  # what is added to the weight of such a norm
    sinks: bool = False  # whether it has a parameter `sinks`
    capped: bool = False  # whether it has an `attn_logit_softcapping`
    window_owner: str | None = None  # the attribute with `sliding_window`, or "self"
    fixed: tuple = ("is_causal",)  # names in FIXED_SETTINGS that it or its configuration listens to

    def window(self, attention):
        """Return the window of a layer of this class, or None."""
        owner = attention if self.window_owner == "self" else attention.config
        return getattr(owner, "sliding_window", None) if self.window_owner else None


GPT2 = {
    "gpt2.GPT2Attention": KnownLayer(
        parts=("c_attn", "c_proj"),
        linear="transformers.pytorch_utils.Conv1D",
        fixed=("is_causal", "is_cross_attention"),
    )
}
LLAMAS = {
    "llama.LlamaAttention": KnownLayer(),
    "mistral.MistralAttention": KnownLayer(window_owner="config"),
    "gpt_oss.GptOssAttention": KnownLayer(window_owner="self", sinks=True),
    "gemma2.Gemma2Attention": KnownLayer(window_owner="self", capped=True),
    "gemma3.Gemma3Attention": KnownLayer(
        window_owner="self", norm="Gemma3RMSNorm", shift=1, capped=True
    ),
    "qwen2.Qwen2Attention": KnownLayer(window_owner="self"),
    "qwen3.Qwen3Attention": KnownLayer(window_owner="self", norm="Qwen3RMSNorm"),
}
CONVERSIONS = {
    "decoder_from_gpt2(attention)": GPT2,
    "decoder_from_llama(attention, rotary)": LLAMAS,
}
FIXED_SETTINGS = {
    "is_causal": (True, "lets no query look at a later key"),
    "is_cross_attention": (False, "looks at the keys of its own sequence"),
}
# Sizes, labels and dropout, and what is read of every layer: config, head_dim, scaling.
ATTRIBUTES = {
    *("training", "config", "layer_idx", "layer_type", "is_sliding"),
    *("embed_dim", "head_dim", "num_heads", "num_key_value_groups", "split_size"),
    *("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"),
    *("scaling", "attention_dropout"),
}
RECORDER = "transformers.utils.output_capturing"  # its hooks, behind output_attentions, only read
NORMS = "q_norm", "k_norm"
PLAIN_ROPE_TYPES = "default", "linear", "llama3", "yarn", "proportional"


def checked_known_layer(attention, known_layers):
    """Require a layer of exactly one of the known classes, GPT2 or LLAMAS; return its KnownLayer.

    Raises
    ------
    TypeError : another class, a projection that is not plain, weights that are no plain floats
    ValueError : hooks, methods that were replaced, parameters, buffers or attributes that are not
        known, or a computation that a DecoderAttention does not do
    ShapeError : projections, biases or norms that do not fit its heads
    """
    kinds = {_hf_class_path(part): kind for part, kind in known_layers.items()}
    kind = kinds.get(_class_path(attention))
    if kind is None:
        raise TypeError(_unknown_layer_message(attention, known_layers))
    class_paths = dict.fromkeys(kind.parts, kind.linear)
    if kind.norm:
        class_paths |= dict.fromkeys(NORMS, f"{type(attention).__module__}.{kind.norm}")
    for part, class_path in class_paths.items():
        found = _class_path(getattr(attention, part, None))
        require(
            found == class_path,
            TypeError,
            f"attention.{part} is a {found}; expected a {class_path}, since what another class "
            f"adds would be lost. Merge an adapter into the weight first, "
            f"model.merge_and_unload(); remove a parametrization, "
            f"torch.nn.utils.parametrize.remove_parametrizations(part, 'weight'); load a quantised "
            f"model without quantisation.",
        )
    tensors = unmodified_module_tensors("attention", attention)
    _require_no_extra_parts(attention, kind, tensors)
    _require_fitting_shapes(attention, kind, tensors)
    return kind


def _require_no_extra_parts(attention, known_layer, tensors):
    parts = (*known_layer.parts, *NORMS) if known_layer.norm else known_layer.parts
    used_names = {f"{part}.{name}" for part in parts for name in ("weight", "bias")}
    used_names |= {"sinks"} if known_layer.sinks else set()
    attributes = {name for name in vars(attention) if not name.startswith("_")}
    attributes -= {*ATTRIBUTES, *known_layer.fixed}
    attributes -= {"sliding_window"} if known_layer.window_owner == "self" else set()
    attributes -= {"attn_logit_softcapping"} if known_layer.capped else set()
    extras = ", ".join([*(name for name in tensors if name not in used_names), *sorted(attributes)])
    require(
        not extras,
        ValueError,
        f"attention has {extras}, which would be lost; expected only what a DecoderAttention has "
        f"too. Delete what the {type(attention).__name__} does not need, or stay with "
        f"transformers.",
    )
    for name in known_layer.fixed:
        required, reason = FIXED_SETTINGS[name]
        current = getattr(attention, name, getattr(attention.config, name, required))
        require(
            current == required,
            ValueError,
            f"attention has {name}={current!r}; expected {required}, since a DecoderAttention "
            f"{reason}. Stay with transformers, or change the configuration and continue training.",
        )


def _require_fitting_shapes(attention, known_layer, tensors):
    eps = [rms_norm_eps(getattr(attention, name)) for name in NORMS if known_layer.norm]
    require(
        len({*eps}) < 2,
        ValueError,
        f"attention.q_norm and attention.k_norm have eps={eps}; expected one, which is all that a "
        f"DecoderAttention has. Set both alike.",
    )
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    needed_shapes, head_text = _shapes_by_parameter(attention, known_layer, shapes)
    require(
        needed_shapes == {name: shapes[name] for name in needed_shapes},
        ShapeError,
        f"attention has {_shape_list(shapes)}; expected {_shape_list(needed_shapes)}, for "
        f"{head_text}. Load or prune all parts alike.",
    )


def _shapes_by_parameter(attention, known_layer, shapes):
    """Return the shape that each parameter has to have, and the heads in words."""
    d_k, shared = attention.head_dim, getattr(attention, "num_key_value_groups", 1)
    axis_order = -1 if known_layer.linear.endswith("Conv1D") else 1  # (in, out), or (out, in)
    head_counts = (shared, 1, 1) if len(known_layer.parts) == 4 else (shared + 2,)  # of one KV head
    n_rows, *_, d_model = (shapes[f"{part}.weight"][::axis_order][0] for part in known_layer.parts)
    G = n_rows // (head_counts[0] * d_k)
    shape_of = dict.fromkeys([f"{name}.weight" for name in NORMS], (d_k,))
    sizes = [*((n * d_k * G, d_model) for n in head_counts), (d_model, shared * d_k * G)]
    for part, shape in zip(known_layer.parts, sizes, strict=True):
        shape_of |= {f"{part}.weight": shape[::axis_order], f"{part}.bias": shape[:1]}
    shape_of = {name: shape for name, shape in shape_of.items() if name in shapes}
    return shape_of, f"{G} KV heads of {d_k} numbers, each with {shared} query heads"


def _shape_list(shapes):
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def checked_rotary_frequencies(rotary, attention):
    """Require the rotary embedding of the layer's model, with frequencies that stay.

    Returns its frequencies for this layer, and what it multiplies the rotated by. Refuses another
    module or configuration, what `unmodified_module_tensors` does, and frequencies that change with
    the length.
    """
    cls = type(rotary)
    require(
        cls.__module__ == type(attention).__module__ and "RotaryEmbedding" in cls.__name__,
        TypeError,
        f"rotary is a {_class_path(rotary)}; expected the rotary embedding of "
        f"{_class_path(attention)}, which has the frequencies: the model.model.rotary_emb.",
    )
    tensors = unmodified_module_tensors("rotary", rotary)
    require(
        rotary.config == attention.config,
        ValueError,
        "rotary was made for another configuration than attention; expected that of the same "
        "model, whose frequencies fit its heads. Give both from one model.",
    )
    return _layer_rotary_frequencies(rotary, attention, tensors)


def _layer_rotary_frequencies(rotary, attention, tensors):
    rope_type, layer_prefix = rotary.rope_type, ""
    if isinstance(rope_type, dict):  # as in Gemma 3, which has two
        rope_type, layer_prefix = rope_type[attention.layer_type], f"{attention.layer_type}_"
    require(
        rope_type in PLAIN_ROPE_TYPES,
        ValueError,
        f"rotary has rope_type={rope_type!r}; expected one of {PLAIN_ROPE_TYPES}, whose "
        f"frequencies are the same at every length. Choose one in the configuration, or stay "
        f"with transformers.",
    )
    return tensors[f"{layer_prefix}inv_freq"], getattr(rotary, f"{layer_prefix}attention_scaling")


def unmodified_module_tensors(name, module):
    """Require no hooks, no replaced method, and plain tensors of floats; return them by name."""
    for path, part in module.named_modules(prefix=name):
        is_own = "forward" in vars(part)
        origin = "on this one module" if is_own else _foreign_code(type(part).forward)
        require(
            not origin,
            ValueError,
            f"{path}.forward was replaced {origin}; expected that of its class, since nobody "
            f"knows what another computes. Load the model without what replaces it, such as "
            f"device_map, adapters or patches for speed.",
        )
        for hook in (*part._forward_pre_hooks.values(), *part._forward_hooks.values()):
            require(
                getattr(hook, "__module__", None) == RECORDER,
                ValueError,
                f"{path} has a hook, {getattr(hook, '__qualname__', hook)}; expected none, since a "
                f"hook may change what a layer reads and returns. Remove it first, by the handle "
                f"that register_forward_hook returned, or by what torch.nn.utils has for it.",
            )
    return _checked_plain_tensors(name, module)


def _checked_plain_tensors(name, module):
    parameters = module.named_parameters(remove_duplicate=False)
    tensors = dict((*parameters, *module.named_buffers()))
    for path, tensor in tensors.items():
        is_strided = type(tensor) in (nn.Parameter, torch.Tensor) and tensor.layout == torch.strided
        require(
            is_strided and tensor.dtype in FLOATS and not tensor.is_meta,
            TypeError,
            f"{name}.{path} is a {_class_path(tensor)} of {tensor.dtype} on {tensor.device}; "
            f"expected a plain tensor of floats that has its data. Load the whole model, without "
            f"quantisation, sharding or offloading.",
        )
    return tensors


def _foreign_code(method):
    """Name the module of a method, or of what is wrapped around it, that neither library has."""
    while method is not None:
        module_name = getattr(method, "__globals__", {}).get("__name__", type(method).__module__)
        if module_name.split(".")[0] not in ("torch", "transformers"):
            return f"by one of {module_name}"
        method = getattr(method, "__wrapped__", None)
    return ""


def rms_norm_eps(norm):
    """Return what an RMS norm of transformers adds to the mean of squares, under either name."""
    return vars(norm).get("variance_epsilon", vars(norm).get("eps"))


def _hf_class_path(name):
    family, class_name = name.split(".")
    return f"transformers.models.{family}.modeling_{family}.{class_name}"


def _class_path(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _unknown_layer_message(attention, known_layers):
    names = ", ".join(name.split(".")[1] for name in known_layers)
    remedy = _advice_for_layer(attention) or (
        "Stay with transformers, or copy its parameters into a DecoderAttention yourself and "
        "compare what the two return."
    )
    return (
        f"attention is a {_class_path(attention)}; expected the attention of one layer of a model "
        f"of transformers, whose class is exactly one of these: {names}. {remedy}"
    )


def _advice_for_layer(attention):
    """Say where the layer is, if what was given has one, or which function takes it."""
    conversions = {_hf_class_path(n): call for call, layers in CONVERSIONS.items() for n in layers}
    if _class_path(attention) in conversions:
        return f"For this one call {conversions[_class_path(attention)]}."
    if not isinstance(attention, nn.Module):
        return "A model has them, for example model.model.layers[0].self_attn."
    for name, module in attention.named_modules():
        if _class_path(module) in conversions:
            indexed_path = re.sub(r"\.(\d+)", r"[\1]", f"attention.{name}")
            return f"It contains one: give {indexed_path}."
    return ""
