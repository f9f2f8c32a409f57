"""Attention layers of transformers that the bridge takes give what they give there; others do not.

Each model is small and random, and is run by transformers itself, with its own masks, rotary
embeddings and cache. What one of its layers reads there, our layer reads too.
"""

import copy
import functools
import importlib
import inspect
import re

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import weight_norm
from transformers import AutoConfig, AutoModel, DynamicCache, LlamaModel
from transformers.masking_utils import (
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from tests.pytorch.layers import draw
from tutorial_lib import ShapeError
from tutorial_lib.pytorch import DecoderCache, decoder_from_gpt2, decoder_from_llama
from tutorial_lib.pytorch.known_layers import GPT2, LLAMAS
from tutorial_lib.variants.patterns import window_mask

B, T, H, D_MODEL, D_K = 3, 9, 6, 24, 8
SIZES = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0)
SIZES |= {"vocab_size": 50, "hidden_size": D_MODEL, "head_dim": D_K, "intermediate_size": 32}
SIZES |= {"num_hidden_layers": 2, "num_attention_heads": H, "num_key_value_heads": 2}
SIZES |= {"max_position_embeddings": 64}
WINDOW = 4
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
YARN = ROPE | {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 64}
LLAMA_3 = ROPE | {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 32}
LLAMA_3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LINEAR = ROPE | {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0}
HALF = {"partial_rotary_factor": 0.5}
SLIDING_FIRST = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
GEMMA_3 = {
    **SLIDING_FIRST,
    "query_pre_attn_scalar": 5,
    "rope_parameters": {"sliding_attention": ROPE, "full_attention": LINEAR},
}
UNCAPPED = {"attn_logit_softcapping": None}
EXPERTS = {"num_experts_per_tok": 1, "num_local_experts": 2}
# Models call what they are given so from transformers 5.24 on, and past_key_values before.
CACHE = {"cache", "past_key_values"}.intersection(inspect.signature(LlamaModel.forward).parameters)


def of(family, layer=0, rope=None, **options):
    """What makes a model of a family, and which of its layers is meant."""
    options |= {"rope_parameters": rope} if rope else {}
    return family, layer, options


LAYERS = {
    "GPT-2": of("gpt2"),
    "GPT-2, scores not divided": of("gpt2", scale_attn_weights=False),
    "GPT-2, scores divided by the layer": of("gpt2", 1, scale_attn_by_inverse_layer_idx=True),
    "Llama, 2 KV heads": of("llama", rope=ROPE | {"rope_theta": 500_000.0}),
    "Llama, 1 KV head": of("llama", num_key_value_heads=1),
    "Llama, 6 KV heads": of("llama", num_key_value_heads=6),
    "Llama with biases": of("llama", attention_bias=True),
    "Llama, linear": of("llama", rope=ROPE | {"rope_type": "linear", "factor": 2.0}),
    "Llama 3": of("llama", rope=LLAMA_3),
    "Llama, YaRN": of("llama", rope=YARN),
    "Llama, proportional": of("llama", rope=ROPE | HALF | {"rope_type": "proportional"}),
    "Mistral, a window": of("mistral", sliding_window=WINDOW),
    "Mistral, no window": of("mistral", sliding_window=None),
    "gpt-oss, a window and sinks": of("gpt_oss", **SLIDING_FIRST, **EXPERTS),
    "gpt-oss, sinks": of("gpt_oss", 1, **SLIDING_FIRST, **EXPERTS),
    "gpt-oss, YaRN": of("gpt_oss", rope=YARN, **SLIDING_FIRST, **EXPERTS),
    "Apertus": of("apertus"),
    "Cohere": of("cohere", rope=ROPE),
    "Cohere 2, a window": of("cohere2", **SLIDING_FIRST),
    "Cohere 2, nothing rotated": of("cohere2", 1, **SLIDING_FIRST),
    "EXAONE 4, a window": of("exaone4", **SLIDING_FIRST),
    "EXAONE 4, nothing rotated": of("exaone4", 1, **SLIDING_FIRST),
    "EXAONE 4, no window": of("exaone4", sliding_window=None, layer_types=["full_attention"] * 2),
    "Gemma": of("gemma"),
    "Gemma 2, a window": of("gemma2", **SLIDING_FIRST, **UNCAPPED),
    "Gemma 2": of("gemma2", 1, **SLIDING_FIRST, **UNCAPPED, query_pre_attn_scalar=5),
    "Gemma 3, a window": of("gemma3_text", **GEMMA_3),
    "Gemma 3": of("gemma3_text", 1, **GEMMA_3),
    "GLM, half of the pairs": of("glm", attention_bias=True),
    "GLM-4": of("glm4"),
    "Granite": of("granite", attention_multiplier=0.1),
    "Helium": of("helium", head_dim=4),
    "Ministral, a window": of("ministral", **SLIDING_FIRST),
    "Ministral": of("ministral", 1, **SLIDING_FIRST),
    "Mixtral, a window": of("mixtral", sliding_window=WINDOW, **EXPERTS),
    "Nemotron, half of the pairs": of("nemotron"),
    "Nemotron, half of the pairs, YaRN": of("nemotron", rope=YARN | HALF),
    "OLMo": of("olmo"),
    "Phi, half of the pairs": of("phi", rope=ROPE | HALF),
    "Phi-3, a window": of("phi3", sliding_window=WINDOW),
    "Phi-3, half of the pairs": of("phi3", rope=ROPE | HALF),
    "Qwen2": of("qwen2"),
    "Qwen2, a window": of("qwen2", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3": of("qwen3"),
    "Qwen3, a window": of("qwen3", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3, YaRN, a large eps": of("qwen3", rope=YARN, rms_norm_eps=0.3),
    "Qwen3-MoE": of("qwen3_moe", num_experts=2, num_experts_per_tok=1, moe_intermediate_size=8),
    "Seed-OSS": of("seed_oss"),
    "SmolLM3": of("smollm3", no_rope_layers=[1, 0]),
    "SmolLM3, nothing rotated": of("smollm3", 1, no_rope_layers=[1, 0]),
    "StableLM, half of the pairs": of("stablelm", head_dim=4, rope=ROPE | HALF),
    "StarCoder2, a window": of("starcoder2", sliding_window=WINDOW),
}


class Theirs:
    """A small random model of transformers, and one of its attention layers."""

    def __init__(self, family, layer=0, options=()):
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, **SIZES | dict(options))
        self.model = AutoModel.from_config(config, attn_implementation="eager").eval()
        layers = [m for m in self.model.modules() if type(m).__name__.endswith("Attention")]
        self.layer, self.attention = layer, layers[layer]
        with torch.no_grad():
            for weight in self.attention.parameters():
                weight += torch.randn_like(weight) * 0.3

    def decoder(self):
        if isinstance(self.attention, GPT2Attention):
            return decoder_from_gpt2(self.attention)
        return decoder_from_llama(self.attention, self.model.rotary_emb)

    def run(self, X, **options):
        """Run the model on embeddings: what the layer reads, its other arguments, its output."""
        calls = []

        def record(module, args, options, outputs):
            others = dict(options)
            X = args[0] if args else others.pop("hidden_states")
            calls.append((X, others, outputs[0]))

        with torch.no_grad(), self.attention.register_forward_hook(record, with_kwargs=True):
            self.model(inputs_embeds=X, **options)
        return calls[0]


@functools.cache
def theirs_of(name):
    """A model that no test changes."""
    return Theirs(*LAYERS[name])


def model_of(name):
    return theirs_of(name).model


normal = functools.partial(draw, dtype=torch.float32)
PADDED = (0, 2, 5)
PIECES = {
    "prefill and words": ((6, 1, 1, 1), PADDED),
    "pieces": ((4, 3, 2), PADDED),
    "words": ((1,) * 9, (0, 0, 0)),
}


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("name", LAYERS)
def test_rows_and_keys_are_theirs_with_their_cache_and_their_masks(name, pieces):
    theirs, (lengths, pad) = theirs_of(name), PIECES[pieces]
    ours, X, pad = theirs.decoder(), normal(B, T, D_MODEL), torch.tensor(pad)
    real = torch.arange(T) >= pad[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    past = DynamicCache(config=theirs.model.config)
    cache = DecoderCache.empty(ours, T, batch=(B,), pad=pad if pad.any() else None)
    start = 0
    for n in lengths:
        now, start = slice(start, start + n), start + n
        options = {"attention_mask": real[:, :start].long(), "position_ids": positions[:, now]}
        inputs, _, expected = theirs.run(X[:, now], **options, **dict.fromkeys(CACHE, past))
        with torch.no_grad():
            Y, cache = ours.step(inputs, cache)
        tokens = real[:, now]
        torch.testing.assert_close(Y[tokens], expected[tokens], rtol=1e-5, atol=1e-5)
        keys = past.layers[theirs.layer].keys
        n = keys.shape[-2]  # one less than a window
        tokens = real[:, None, start - n : start].expand(B, ours.n_kv_heads, n)
        torch.testing.assert_close(cache.K[..., -n:, :][tokens], keys[tokens], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_whole_sequences_and_their_gradients_are_theirs(name):
    theirs = theirs_of(name)
    ours, grads = theirs.decoder(), []
    X, options, expected = theirs.run(normal(B, T, D_MODEL), use_cache=False)
    for layer in (lambda X: theirs.attention(X, **options)[0], ours):
        leaf = X.clone().requires_grad_()
        layer(leaf).square().sum().backward()
        grads.append(leaf.grad)
    with torch.no_grad():
        torch.testing.assert_close(ours(X), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-6 * grads[0].abs().max().item())


def test_each_known_class_is_among_the_layers():
    classes = {type(theirs_of(name).attention).__qualname__ for name in LAYERS}
    assert classes == {name.split(".")[1] for name in (*GPT2, *LLAMAS)}


def test_a_layer_that_rotates_nothing_does_without_frequencies():
    theirs = theirs_of("SmolLM3, nothing rotated")
    assert decoder_from_llama(theirs.attention, None).rotation is None


@pytest.mark.parametrize(
    "layer",
    [LAYERS["GPT-2"], LAYERS["Llama 3"], LAYERS["Qwen3"], of("llama", sliding_window=WINDOW)],
)
def test_a_scale_of_ones_own_is_taken_and_an_unused_window_is_not(layer):
    theirs = Theirs(*layer)
    theirs.attention.scaling = 0.7
    X, _, expected = theirs.run(normal(B, T, D_MODEL), use_cache=False)
    torch.testing.assert_close(theirs.decoder()(X), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["GPT-2", "Llama with biases", "gpt-oss, sinks", "Gemma 3"])
def test_both_sides_own_their_numbers(name):
    theirs = Theirs(*LAYERS[name])
    ours, before = theirs.decoder(), copy.deepcopy(theirs.attention.state_dict())
    with torch.no_grad():
        for weight in ours.parameters():
            assert weight.requires_grad
            assert weight.is_leaf
            assert weight.is_contiguous()
            weight.add_(1)
    for weight, tensor in theirs.attention.state_dict().items():
        assert torch.equal(tensor, before[weight])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["Llama with biases", "Qwen2", "Phi-3, a window"])
def test_the_precision_is_theirs_and_no_number_is_rounded(name, dtype):
    theirs = Theirs(*LAYERS[name])
    weights = dict(theirs.attention.to(dtype).named_parameters())
    ours = theirs.decoder().state_dict()
    assert {tensor.dtype for tensor in ours.values()} == {dtype}
    names = (f"{name}_proj.weight" for name in ("q", "k", "v", "qkv"))
    rows = [weights[name] for name in names if name in weights]
    assert torch.equal(ours["qkv_proj.weight"], torch.cat(rows))
    assert torch.equal(ours["out_proj.weight"], weights["o_proj.weight"])


def test_a_scale_goes_into_halves_with_one_rounding():
    theirs = Theirs(*LAYERS["Granite"])
    theirs.attention.to(torch.bfloat16)
    exact = theirs.attention.q_proj.weight.double() * (0.1 * D_K**0.5)
    rows = theirs.decoder().qkv_proj.weight[: H * D_K]
    assert rows.dtype == torch.bfloat16
    half = torch.finfo(torch.bfloat16).eps / 2
    assert ((rows - exact).abs() <= 1.001 * half * exact.abs()).all()


def test_gains_are_float32_beside_weights_of_half_precision():
    theirs = Theirs(*LAYERS["Gemma 3"])
    theirs.attention.to(torch.bfloat16)
    ours = theirs.decoder()
    assert (ours.qk_norm.dtype, ours.qkv_proj.weight.dtype) == (torch.float32, torch.bfloat16)
    scale = (D_K / theirs.model.config.query_pre_attn_scalar) ** 0.5
    expected = (1 + theirs.attention.q_norm.weight.float()) * scale
    torch.testing.assert_close(ours.qk_norm[0], expected)
    torch.testing.assert_close(ours.qk_norm[1], 1 + theirs.attention.k_norm.weight.float())
    assert ours(normal(1, T, D_MODEL).bfloat16()).dtype == torch.bfloat16


def test_hooks_that_transformers_itself_leaves_behind_do_no_harm():
    theirs = Theirs(*LAYERS["Llama, 2 KV heads"])
    theirs.model(inputs_embeds=normal(1, T, D_MODEL), output_attentions=True)
    assert theirs.attention._forward_hooks, "it records the weights by a hook, which it leaves"
    theirs.decoder()


# --- what is refused, and what the sentence names ---


def layer_of(family, name):
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    sizes = SIZES | {"q_lora_rank": 8}
    if family == "falcon":
        del sizes["head_dim"]
    config = getattr(module, name.replace("Attention", "Config"))(**sizes)
    return getattr(module, name)(config, 0)


OTHERS = {
    "keys behind a latent": ("deepseek_v3", "DeepseekV3Attention", "does not have k_proj, "),
    "two softmaxes": ("diffllama", "DiffLlamaAttention", "has groupnorm, lambda_init, lambda_k1"),
    "one weight, KV heads behind": ("falcon", "FalconAttention", "query_key_value"),
    "one weight, head by head": ("gpt_neox", "GPTNeoXAttention", "query_key_value"),
    "values with a norm": ("gemma4", "Gemma4TextAttention", "v_norm"),
    "norms at the end": (
        "hunyuan_v1_dense",
        "HunYuanDenseV1Attention",
        "has key_layernorm, query_",
    ),
    "temperature by position": ("llama4", "Llama4TextAttention", "has attn_scale, attn_temp"),
    "norms of all heads": ("olmo2", "Olmo2Attention", "has k_norm, q_norm;"),
    "norms, and clipping": ("olmoe", "OlmoeAttention", "has k_norm, q_norm;"),
    "gates in the queries": ("qwen3_next", "Qwen3NextAttention", "has k_norm, q_norm;"),
    "norms under other names": ("lfm2", "Lfm2Attention", "has k_layernorm, out_proj, q_layernorm "),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_layer_of_another_class_is_told_what_it_has_and_which_are_known(name):
    family, cls, difference = OTHERS[name]
    with pytest.raises(TypeError) as caught:
        decoder_from_llama(layer_of(family, cls), None)
    message = str(caught.value)
    assert all(name.split(".")[1] in message for name in LLAMAS)
    for words in (
        f"transformers.models.{family}.modeling_{family}.{cls}, which unlike a LlamaAttention",
        difference,
        "copy its parameters into a DecoderAttention",
    ):
        assert words in message


class Adapter(nn.Linear):
    """A projection with a low-rank part beside it, as adapters add it: `weight` lacks the part."""

    def __init__(self, layer):
        super().__init__(D_MODEL, H * D_K, bias=False)


class EightBits(nn.Module):
    """A projection that keeps whole numbers, and no weight."""

    def __init__(self, layer):
        super().__init__()
        self.register_buffer("packed", torch.ones(H * D_K, D_MODEL, dtype=torch.int8))


def put(path, value):
    """Put something made of the layer into it, under a name."""

    def change(layer, rotary):
        owner, _, name = path.rpartition(".")
        setattr(layer.get_submodule(owner), name, value(layer))

    return change


def converted(*form):
    """The weight of the keys' projection in another form."""
    return put("k_proj.weight", lambda layer: nn.Parameter(layer.k_proj.weight.to(*form), False))


def patched(layer, rotary):
    """The class, but for its method, as patches for speed replace it."""

    def forward(self, *args):
        raise AssertionError

    kind = type(layer)
    layer.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    layer.__class__.__module__, layer.__class__.__qualname__ = kind.__module__, kind.__qualname__


def wrapped(layer, rotary):
    """The same, with a method that looks like the one in it."""
    patched(layer, rotary)
    layer.__class__.forward = functools.wraps(type(layer).__mro__[1].forward)(type(layer).forward)


def subclassed(layer, rotary):
    return type("Normed", (type(layer),), {"q_norm": None})(layer.config, 0), rotary


def of_narrow_heads(layer, rotary):
    return layer, Theirs("llama", 0, {"head_dim": 4}).model.rotary_emb


def of_another_file(layer, rotary):
    module = importlib.import_module("transformers.models.qwen3.modular_qwen3")
    layer.__class__ = module.Qwen3Attention


LLAMA, QWEN, OSS = "Llama, 2 KV heads", "Qwen3", "gpt-oss, sinks"
ONE = "one: give attention"
REPLACED = "attention.forward was replaced"
NO_ROTARY = "; expected the rotary embedding of .*LlamaAttention"
REFUSED = [  # a change of a layer and its rotary embedding, or what stands for them; the words
    (put("q_proj", Adapter), r"q_proj is a tests.*Adapter; expected a torch.*merge_and_unload\(\)"),
    (put("o_proj", Adapter), "attention.o_proj is a .*Adapter"),
    (lambda a, _: a.v_proj.register_parameter("lora", a.q_proj.weight), "v_proj.lora, which would"),
    (lambda a, _: weight_norm(a.q_proj), "q_proj is a .*ParametrizedLinear;.*remove_parametrizati"),
    (put("v_proj", EightBits), "v_proj is a .*EightBits; .*a quantised model without quantisation"),
    (converted(torch.float8_e4m3fn), r"k_proj.weight is a .*float8_e4m3fn .*without quantisation"),
    (converted("meta"), "weight is a .* on meta; expected a plain tensor of floats that has its"),
    (lambda a, _: a.register_forward_hook(print), "attention has a hook, print; expected none,"),
    (lambda a, _: a.o_proj.register_forward_pre_hook(print), "attention.o_proj has a hook, print"),
    (lambda a, _: prune.l1_unstructured(a.q_proj, "weight", 3), "q_proj has a hook, .*L1Unstructu"),
    (put("forward", lambda _: torch.sin), f"{REPLACED} on this one module; expected.*device_m"),
    (put("k_proj.forward", lambda _: torch.sin), "k_proj.forward was replaced on this one module"),
    (patched, f"{REPLACED} by one of tests.pytorch"),
    (wrapped, f"{REPLACED} by one of tests.pytorch"),
    (put("gate", lambda a: a.q_proj.weight), "has gate, which would be lost; expected only what"),
    (put("scaling", lambda _: nn.Parameter(torch.ones(()))), "has scaling, which would be lost"),
    (lambda a, _: a.register_buffer("bias", torch.ones(T, T)), "has bias, which would be lost"),
    (put("q_norm", lambda _: nn.RMSNorm(D_K)), "attention has q_norm.weight, which would be lost"),
    (put("temperature", lambda _: 2.0), "attention has temperature, which would be lost"),
    (put("is_causal", lambda _: False), "is_causal=False; expected True, since a .* lets no query"),
    (put("__class__", lambda a: type("Mine", (type(a),), {})), "Mine, .* has code of its own for"),
    (subclassed, "is a .*Normed, which unlike a LlamaAttention has"),
    (of_another_file, "is a transformers.models.qwen3.modular_qwen3.Qwen3Att", QWEN),
    (put("k_norm.variance_epsilon", lambda _: 0.1), r"eps=\[1e-06, 0.1\]; expected one", QWEN),
    (put("sinks", lambda a: nn.Parameter(a.sinks.to("meta"))), "n.sinks is a .* on meta", OSS),
    (lambda a, _: (a, None), f"rotary is a builtins.NoneType{NO_ROTARY}"),
    (lambda a, _: (a, a.config), f"rotary is a .*LlamaConfig{NO_ROTARY}"),
    (lambda a, _: (a, model_of("Mistral, no window").rotary_emb), f"Mistral.*Embedding{NO_ROTARY}"),
    (of_narrow_heads, "rotary was made for another configuration than attention; expected that of"),
    (lambda _, rotary: rotary.register_forward_hook(print), "rotary has a hook, print"),
    (lambda _, rotary: rotary.to("meta"), "rotary.inv_freq is a .* on meta"),
    (lambda _, rotary: (model_of(LLAMA), rotary), rf"Model.* {ONE}.layers\[0\].self_attn\."),
    (lambda _, rotary: (model_of(LLAMA).layers[0], rotary), rf"Layer.* {ONE}.self_attn\."),
    (lambda a, rotary: (nn.Sequential(a), rotary), rf"is a .*Sequential.* {ONE}\[0\]\."),
    (lambda _, rotary: (theirs_of("GPT-2").attention, rotary), r"call decoder_from_gpt2\(atten"),
    (lambda _, rotary: ("llama", rotary), r"is a builtins.str; .* model.model.layers\[0\].self_a"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[1])
def test_what_would_be_lost_is_refused_and_named(case):
    change, words, name = (*case, LLAMA)[:3]
    theirs = Theirs(*LAYERS[name])
    layer, rotary = theirs.attention, theirs.model.rotary_emb
    instead = change(layer, rotary)
    with pytest.raises((TypeError, ValueError), match=words):
        decoder_from_llama(*instead if isinstance(instead, tuple) else (layer, rotary))


DYNAMIC = ROPE | {"rope_type": "dynamic", "factor": 2.0}
QUARTER = ROPE | {"partial_rotary_factor": 0.25}
BIDIRECTIONAL = {"use_bidirectional_attention": True}
OPTIONS = [
    (of("llama", rope=DYNAMIC), "rope_type='dynamic'; expected one of"),
    (of("stablelm", head_dim=4, rope=QUARTER), "rotates 1 entries .* frequencies for 2; expected"),
    (of("olmo", clip_qkv=8.0), "clip_qkv=8.0; expected None, since a DecoderAttention clips no"),
    (of("gemma2", attn_logit_softcapping=50.0), "softcapping=50.0; expected None, .* puts no cap"),
    (of("cohere", rope=ROPE, use_qk_norm=True), "has q_norm.weight, k_norm.weight, which would"),
    (of("phi", qk_layernorm=True), "has q_layernorm.weight, q_layernorm.bias, k_l"),
    (of("stablelm", qk_layernorm=True), "has q_layernorm.norms.0.weight, q_layern"),
    (of("gemma3_text", **GEMMA_3, **BIDIRECTIONAL), "is_causal=False; expected True"),
]


@pytest.mark.parametrize(("layer", "words"), OPTIONS)
def test_options_that_a_decoder_has_not_are_refused_and_named(layer, words):
    with pytest.raises(ValueError, match=words):
        Theirs(*layer).decoder()


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *(("Llama with biases", f"{name}_proj.weight") for name in "qkvo"),
        *(("Llama with biases", f"{name}_proj.bias") for name in "vo"),
        *(("GPT-2", f"{name}.weight") for name in ("c_attn", "c_proj")),
        *(("Phi-3, a window", f"{name}_proj.weight") for name in ("qkv", "o")),
        ("Qwen3", "k_norm.weight"),
    ],
)
def test_parts_that_do_not_fit_the_heads_are_refused_with_their_shapes(name, parameter, axis):
    theirs = Theirs(*LAYERS[name])
    W = theirs.attention.get_parameter(parameter)
    larger = torch.cat([W, W.narrow(axis, 0, theirs.attention.head_dim)], dim=axis)
    put(parameter, lambda _: nn.Parameter(larger))(theirs.attention, None)
    shape = re.escape(f"{parameter} {tuple(larger.shape)}")
    with pytest.raises(ShapeError, match=rf"^attention has .*{shape}.*; expected .* G KV heads of"):
        theirs.decoder()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: theirs_of("Qwen3").attention, r"this one call decoder_from_llama\(attention, r"),
        (lambda: nn.Linear(3, 5), "is a torch.*Linear, which unlike a GPT2Attention has bias, in_"),
        (lambda: GPT2Attention(theirs_of("GPT-2").model.config, True, 0), "has q_attn"),
    ],
)
def test_what_is_no_self_attention_of_gpt2_is_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        decoder_from_gpt2(make())


# --- is a window of 128 128 keys? ---


def count_of_keys(theirs, t, T):
    """How many tokens move the row of token t, each changed in a text of its own."""
    X = normal(1, T, D_MODEL)
    _, options, _ = theirs.run(X, use_cache=False)
    changed = torch.cat([X, X + torch.eye(T)[..., None]])
    with torch.no_grad():
        rows = theirs.attention(changed, **options)[0][:, t]
    return int((rows[1:] != rows[0]).any(-1).sum())


@pytest.mark.parametrize("family", ["mistral", "gpt_oss"])
def test_a_window_of_128_is_128_keys_itself_included(family):
    theirs = Theirs(*of(family, **SLIDING_FIRST | {"sliding_window": 128}, **EXPERTS))
    assert count_of_keys(theirs, 139, 140) == 128
    assert count_of_keys(theirs, 100, 140) == 101, "the text begins"


def test_the_mask_functions_of_transformers_count_in_two_ways():
    t, s = torch.arange(300)[:, None], torch.arange(300)
    causal = sliding_window_causal_mask_function(128)(0, 0, t, s)
    assert torch.equal(causal, torch.from_numpy(window_mask(300, 300, 128)))
    assert causal.sum(-1).max() == 128
    both_ways = sliding_window_bidirectional_mask_function(128)(0, 0, t, s)
    assert both_ways.sum(-1).max() == 128 + 1 + 128


def test_the_cache_of_transformers_keeps_one_less_than_its_window():
    theirs = theirs_of("Mistral, a window")
    past = DynamicCache(config=theirs.model.config)
    for n in (6, 1, 3):
        past.update(*torch.ones(2, 1, 2, n, D_K), layer_idx=0)
        assert past.layers[0].keys.shape[-2] == WINDOW - 1
    assert theirs.decoder().window == WINDOW
