"""The attention layers of transformers that a DecoderAttention can hold, and their comparison.

A copy is taken for right because it gives the rows of its original, and not because nothing
unknown was found in it: an adapter, a hook or a patch is seen by what it changes.
"""

import copy
import re
from dataclasses import dataclass

import torch
from torch import nn

from tutorial_lib.contract import require
from tutorial_lib.pytorch.decoder_attention import visible

FLOATS = torch.float64, torch.float32, torch.float16, torch.bfloat16
N_COMPARED, TOLERANCE = 9, 1e-4  # tokens; of the largest entry: softmax and angles are in float32


@dataclass(frozen=True)
class KnownLayer:
    """What an attention class of transformers holds, and how it uses it."""

    parts: tuple = ("q_proj", "k_proj", "v_proj", "o_proj")  # its projections, the output's last
    has_norms: bool = False  # whether it has q_norm and k_norm: RMS, per head
    shift: int = 0  # what is added to the weight of such a norm
    sinks: bool = False  # whether it has a parameter `sinks`
    capped: bool = False  # whether it has an `attn_logit_softcapping`
    window_owner: str | None = None  # the attribute with `sliding_window`, or "self"

    def window(self, attention):
        """Return the window of a layer of this class, or None."""
        owner = attention if self.window_owner == "self" else attention.config
        return getattr(owner, "sliding_window", None) if self.window_owner else None


GPT2 = {"gpt2.GPT2Attention": KnownLayer(parts=("c_attn", "c_proj"))}
LLAMAS = {
    "llama.LlamaAttention": KnownLayer(),
    "mistral.MistralAttention": KnownLayer(window_owner="config"),
    "gpt_oss.GptOssAttention": KnownLayer(window_owner="self", sinks=True),
    "gemma2.Gemma2Attention": KnownLayer(window_owner="self", capped=True),
    "gemma3.Gemma3Attention": KnownLayer(window_owner="self", has_norms=True, shift=1, capped=True),
    "qwen2.Qwen2Attention": KnownLayer(window_owner="self"),
    "qwen3.Qwen3Attention": KnownLayer(window_owner="self", has_norms=True),
}
CONVERSIONS = {
    "decoder_from_gpt2(attention)": GPT2,
    "decoder_from_llama(attention, rotary)": LLAMAS,
}
PLAIN_ROPE_TYPES = "default", "linear", "llama3", "yarn", "proportional"


def checked_known_layer(attention, known_layers):
    """Require a causal layer of exactly one of the known classes, GPT2 or LLAMAS.

    Returns its KnownLayer.

    Raises
    ------
    TypeError : another class, weights that are no plain floats
    ValueError : a layer that lets a query look at later keys, or at another sequence
    """
    kinds = {_hf_class_path(part): kind for part, kind in known_layers.items()}
    kind = kinds.get(_class_path(attention))
    if kind is None:
        raise TypeError(_unknown_layer_message(attention, known_layers))
    for part in kind.parts:
        weight = getattr(getattr(attention, part, None), "weight", None)
        _require_floats(f"attention.{part}.weight", weight)
    is_causal = getattr(attention, "is_causal", True)
    require(
        is_causal and not getattr(attention, "is_cross_attention", False),
        ValueError,
        f"attention has is_causal={is_causal!r}, or looks at another sequence; expected a layer in "
        f"which no query looks at a later key of its own sequence. Stay with transformers.",
    )
    return kind


def _require_floats(name, weight):
    found = f"{_class_path(weight)} of {getattr(weight, 'dtype', 'no precision')}"
    require(
        isinstance(weight, torch.Tensor) and weight.dtype in FLOATS and not weight.is_meta,
        TypeError,
        f"{name} is a {found}; expected a plain tensor of floats that has its data. Load the "
        f"whole model, without quantisation, sharding or offloading.",
    )


def checked_rotary_frequencies(rotary, attention):
    """Require the rotary embedding of the layer's model, with frequencies that stay.

    Returns its frequencies for this layer, and what it multiplies the rotated by. Refuses another
    module or configuration, and frequencies that change with the length.
    """
    is_of_same_file = type(rotary).__module__ == type(attention).__module__
    require(
        is_of_same_file and "RotaryEmbedding" in type(rotary).__name__,
        TypeError,
        f"rotary is a {_class_path(rotary)}; expected the rotary embedding of "
        f"{_class_path(attention)}, which has the frequencies: the model.model.rotary_emb.",
    )
    require(
        rotary.config == attention.config,
        ValueError,
        "rotary was made for another configuration than attention; expected that of the same "
        "model, whose frequencies fit its heads. Give both from one model.",
    )
    rope_type, layer_prefix = rotary.rope_type, ""
    if isinstance(rope_type, dict):  # as in Gemma 3, which has two
        rope_type, layer_prefix = rope_type[attention.layer_type], f"{attention.layer_type}_"
    require(
        rope_type in PLAIN_ROPE_TYPES,
        ValueError,
        f"rotary has rope_type={rope_type!r}; expected one of {PLAIN_ROPE_TYPES}, whose "
        f"frequencies do not change with the length. Choose one, or stay with transformers.",
    )
    frequencies = getattr(rotary, f"{layer_prefix}inv_freq")
    return frequencies, getattr(rotary, f"{layer_prefix}attention_scaling")


def copied_and_compared(attention, rotary, make_decoder):
    """Make a decoder of a layer, and require that both give the same rows for random input.

    Raises
    ------
    ValueError : parts that do not fit each other, rows that differ
    """
    try:
        decoder = make_decoder()
        error = _largest_error(attention, rotary, decoder)
        found = f"by {error:.2g} of its largest number" if not error <= TOLERANCE else ""
    except Exception as failure:
        found = f"since copying or running it raised {type(failure).__name__}: {failure}"
    require(
        not found,
        ValueError,
        f"attention gives other rows than a copy of its weights, {found}; expected a layer of "
        f"which nothing would be lost. Merge adapters first, model.merge_and_unload(), remove "
        f"hooks and patches, give both q_norm and k_norm one eps, and load or prune all parts "
        f"alike; or stay with transformers.",
    )
    return decoder


def _largest_error(attention, rotary, decoder):
    """Return how far a decoder is off, in float64, as a part of the largest number."""
    original, ours = (copy.deepcopy(A).cpu().double().eval() for A in (attention, decoder))
    original.config._attn_implementation = "eager"
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(1, N_COMPARED, decoder.d_model, generator=generator, dtype=torch.float64)
    index = torch.arange(N_COMPARED)[None]
    mask = visible(index, index, decoder.scores.window)
    options = {
        "attention_mask": X.new_zeros(mask.shape).masked_fill(~mask, torch.finfo(X.dtype).min)
    }
    if rotary is not None:
        kind = [attention.layer_type] if isinstance(rotary.rope_type, dict) else []
        options["position_embeddings"] = copy.deepcopy(rotary).cpu()(X, index, *kind)
    with torch.no_grad():
        expected = original(X, **options)[0]
        return ((ours(X) - expected).abs().max() / expected.abs().max()).item()


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
