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
from transformers import AutoConfig, AutoModel, DynamicCache, LlamaModel
from transformers.masking_utils import (
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from tutorial_lib import ShapeError
from tutorial_lib.pytorch import DecoderCache, decoder_from_gpt2, decoder_from_llama
from tutorial_lib.pytorch.known_layers import GPT2, LLAMAS
from tutorial_lib.variants.patterns import window_mask

B, T, H, D_MODEL, D_K = 3, 9, 6, 24, 8
SIZES = {
    "vocab_size": 50,
    "hidden_size": D_MODEL,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "num_key_value_heads": 2,
    "head_dim": D_K,
    "max_position_embeddings": 64,
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
}
WINDOW = 4
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
YARN = ROPE | {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 64}
LLAMA_3 = ROPE | {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
SLIDING_FIRST = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}
GEMMA_3 = {
    **SLIDING_FIRST,
    "query_pre_attn_scalar": 5,
    "rope_parameters": {
        "sliding_attention": ROPE,
        "full_attention": ROPE | {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0},
    },
}
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
    "Llama, proportional": of(
        "llama", rope=ROPE | {"rope_type": "proportional", "partial_rotary_factor": 0.5}
    ),
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
    "EXAONE 4, no layer with a window": of(
        "exaone4", sliding_window=None, layer_types=["full_attention"] * 2
    ),
    "Gemma": of("gemma"),
    "Gemma 2, a window": of("gemma2", **SLIDING_FIRST, attn_logit_softcapping=None),
    "Gemma 2": of(
        "gemma2", 1, **SLIDING_FIRST, attn_logit_softcapping=None, query_pre_attn_scalar=5
    ),
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
    "Nemotron, half of the pairs, YaRN": of("nemotron", rope=YARN | {"partial_rotary_factor": 0.5}),
    "OLMo": of("olmo"),
    "Phi, half of the pairs": of("phi", rope=ROPE | {"partial_rotary_factor": 0.5}),
    "Phi-3, a window": of("phi3", sliding_window=WINDOW),
    "Phi-3, half of the pairs": of("phi3", rope=ROPE | {"partial_rotary_factor": 0.5}),
    "Qwen2": of("qwen2"),
    "Qwen2, a window": of("qwen2", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3": of("qwen3"),
    "Qwen3, a window": of("qwen3", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3, YaRN, a large eps": of("qwen3", rope=YARN, rms_norm_eps=0.3),
    "Qwen3-MoE": of("qwen3_moe", num_experts=2, num_experts_per_tok=1, moe_intermediate_size=8),
    "Seed-OSS": of("seed_oss"),
    "SmolLM3": of("smollm3", no_rope_layers=[1, 0]),
    "SmolLM3, nothing rotated": of("smollm3", 1, no_rope_layers=[1, 0]),
    "StableLM, half of the pairs": of(
        "stablelm", head_dim=4, rope=ROPE | {"partial_rotary_factor": 0.5}
    ),
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
        """Ours, with these weights."""
        if isinstance(self.attention, GPT2Attention):
            return decoder_from_gpt2(self.attention)
        return decoder_from_llama(self.attention, self.model.rotary_emb)

    def run(self, X, **options):
        """Run the model on embeddings: what the layer reads, its other arguments, its output."""
        seen = []

        def see(module, args, options, outputs):
            X, options = (args[0], options) if args else (options["hidden_states"], options)
            others = {name: value for name, value in options.items() if name != "hidden_states"}
            seen.append((X, others, outputs[0]))

        with torch.no_grad(), self.attention.register_forward_hook(see, with_kwargs=True):
            self.model(inputs_embeds=X, **options)
        return seen[0]


@functools.cache
def theirs_of(name):
    """A model that no test changes."""
    return Theirs(*LAYERS[name])


def drawn(*shape):
    """Standard normal numbers, float32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


PADS = {"no padding": (0, 0, 0), "padded": (0, 2, 5)}
PIECES = {
    "prefill and words": ((6, 1, 1, 1), "padded"),
    "pieces": ((4, 3, 2), "padded"),
    "words": ((1,) * 9, "no padding"),
}


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("name", LAYERS)
def test_rows_and_keys_are_theirs_with_their_cache_and_their_masks(name, pieces):
    theirs, (lengths, pad) = theirs_of(name), PIECES[pieces]
    ours, X, counts = theirs.decoder(), drawn(B, T, D_MODEL), torch.tensor(PADS[pad])
    real = torch.arange(T) >= counts[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    past = DynamicCache(config=theirs.model.config)
    kept = DecoderCache.empty(ours, T, batch=(B,), pad=counts if counts.any() else None)
    start = 0
    for n in lengths:
        now, start = slice(start, start + n), start + n
        options = {"attention_mask": real[:, :start].long(), "position_ids": positions[:, now]}
        read, _, right = theirs.run(X[:, now], **options, **dict.fromkeys(CACHE, past))
        with torch.no_grad():
            found, kept = ours.step(read, kept)
        seen = real[:, now]
        torch.testing.assert_close(found[seen], right[seen], rtol=1e-5, atol=1e-5)
        right = past.layers[theirs.layer].keys
        n = right.shape[-2]  # one less than a window
        seen = real[:, None, start - n : start].expand(B, ours.n_kv_heads, n)
        torch.testing.assert_close(kept.K[..., -n:, :][seen], right[seen], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_whole_sequences_and_their_gradients_are_theirs(name):
    theirs = theirs_of(name)
    ours, grads = theirs.decoder(), []
    X, options, right = theirs.run(drawn(B, T, D_MODEL), use_cache=False)
    for layer in (lambda X: theirs.attention(X, **options)[0], ours):
        given = X.clone().requires_grad_()
        layer(given).square().sum().backward()
        grads.append(given.grad)
    with torch.no_grad():
        torch.testing.assert_close(ours(X), right, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-6 * grads[0].abs().max().item())


def test_each_known_class_is_among_the_layers():
    tried = {type(theirs_of(name).attention).__qualname__ for name in LAYERS}
    assert tried == {name.split(".")[1] for name in (*GPT2, *LLAMAS)}


def test_a_layer_that_rotates_nothing_does_without_frequencies():
    theirs = theirs_of("SmolLM3, nothing rotated")
    assert decoder_from_llama(theirs.attention, None).rotation is None


def test_a_window_that_a_llama_does_not_use_is_left_where_it_is():
    theirs = Theirs("llama", 0, {"sliding_window": WINDOW})
    X, _, right = theirs.run(drawn(B, T, D_MODEL), use_cache=False)
    torch.testing.assert_close(theirs.decoder()(X), right, rtol=1e-5, atol=1e-5)


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
    rows = [
        weights[f"{part}_proj.weight"]
        for part in ("q", "k", "v", "qkv")
        if f"{part}_proj.weight" in weights
    ]
    assert torch.equal(ours["qkv_proj.weight"], torch.cat(rows))
    assert torch.equal(ours["out_proj.weight"], weights["o_proj.weight"])


def test_a_scale_goes_into_halves_with_one_rounding():
    theirs = Theirs(*LAYERS["Granite"])
    theirs.attention.to(torch.bfloat16)
    exact = theirs.attention.q_proj.weight.double() * (0.1 * D_K**0.5)
    found = theirs.decoder().qkv_proj.weight[: H * D_K]
    assert found.dtype == torch.bfloat16
    half = torch.finfo(torch.bfloat16).eps / 2
    assert ((found - exact).abs() <= 1.001 * half * exact.abs()).all()


def test_gains_are_float32_beside_weights_of_half_precision():
    theirs = Theirs(*LAYERS["Gemma 3"])
    theirs.attention.to(torch.bfloat16)
    ours = theirs.decoder()
    assert (ours.qk_norm.dtype, ours.qkv_proj.weight.dtype) == (torch.float32, torch.bfloat16)
    scale = (D_K / theirs.model.config.query_pre_attn_scalar) ** 0.5
    right = (1 + theirs.attention.q_norm.weight.float()) * scale
    torch.testing.assert_close(ours.qk_norm[0], right)
    torch.testing.assert_close(ours.qk_norm[1], 1 + theirs.attention.k_norm.weight.float())
    assert ours(drawn(1, T, D_MODEL).bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["Llama, 2 KV heads", "Qwen3", "GPT-2"])
def test_a_scale_of_ones_own_is_taken_too(name):
    theirs = Theirs(*LAYERS[name])
    theirs.attention.scaling = 0.7
    X, _, right = theirs.run(drawn(B, T, D_MODEL), use_cache=False)
    torch.testing.assert_close(theirs.decoder()(X), right, rtol=1e-5, atol=1e-5)


def test_hooks_that_transformers_itself_leaves_behind_do_no_harm():
    theirs = Theirs(*LAYERS["Llama, 2 KV heads"])
    theirs.model(inputs_embeds=drawn(1, T, D_MODEL), output_attentions=True)
    assert theirs.attention._forward_hooks, "it records the weights by a hook, which it leaves"
    theirs.decoder()


# --- what is refused, and what the sentence names ---


def layer_of(family, name):
    """An attention layer of another class, that of layer 0."""
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    sizes = SIZES | {"q_lora_rank": 8}
    if family == "falcon":
        del sizes["head_dim"]
    config = getattr(module, name.replace("Attention", "Config"))(**sizes)
    return getattr(module, name)(config, 0)


OTHERS = {
    "keys behind a latent": (
        "deepseek_v3",
        "DeepseekV3Attention",
        "does not have k_proj, ",
    ),
    "two softmaxes": ("diffllama", "DiffLlamaAttention", "has groupnorm, lambda_init, lambda_k1"),
    "one weight, KV heads behind": ("falcon", "FalconAttention", "query_key_value"),
    "one weight, head by head": ("gpt_neox", "GPTNeoXAttention", "query_key_value"),
    "values with a norm": ("gemma4", "Gemma4TextAttention", "v_norm"),
    "norms behind the rotation": (
        "hunyuan_v1_dense",
        "HunYuanDenseV1Attention",
        "has key_layernorm, query_layernorm;",
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
    said = str(caught.value)
    assert f"transformers.models.{family}.modeling_{family}.{cls}" in said
    assert difference in said
    assert "which unlike a LlamaAttention" in said
    assert all(name.split(".")[1] in said for name in LLAMAS)
    assert "copy its parameters into a DecoderAttention" in said
    assert "not the model" not in said


class Adapter(nn.Linear):
    """A projection with a low-rank part beside it, as adapters add it: `weight` lacks the part."""

    def forward(self, X):
        return super().forward(X) + 1


class EightBits(nn.Module):
    """A projection that keeps whole numbers, and no weight."""

    def __init__(self):
        super().__init__()
        self.register_buffer("packed", torch.ones(H * D_K, D_MODEL, dtype=torch.int8))


def change(what):
    """Llama's layer and rotary embedding, after something was done to them."""
    theirs = Theirs(*LAYERS["Llama, 2 KV heads"])
    layer, rotary = theirs.attention, theirs.model.rotary_emb
    instead = what(layer, rotary)
    return theirs.decoder if instead is None else lambda: decoder_from_llama(*instead)


def put(name, value):
    """Put something into a layer, under a name."""

    def what(layer, rotary):
        part, _, last = name.rpartition(".")
        setattr(layer.get_submodule(part), last, value(layer))

    return what


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


REFUSED = {
    "an adapter": (
        put("q_proj", lambda _: Adapter(D_MODEL, H * D_K, bias=False)),
        r"attention.q_proj is a tests.pytorch.test_transformers.Adapter; expected a torch.*Linear, "
        r".*model.merge_and_unload\(\)",
    ),
    "an adapter on the output": (
        put("o_proj", lambda _: Adapter(H * D_K, D_MODEL, bias=False)),
        "attention.o_proj is a .*Adapter",
    ),
    "an adapter beside the weight": (
        lambda layer, _: layer.v_proj.register_parameter("lora", nn.Parameter(torch.ones(2))),
        "attention has v_proj.lora, which would be lost",
    ),
    "a parametrization": (
        lambda layer, _: torch.nn.utils.parametrizations.weight_norm(layer.q_proj) and None,
        r"attention.q_proj is a .*ParametrizedLinear;.*remove_parametrizations",
    ),
    "a projection of eight bits": (
        put("v_proj", lambda _: EightBits()),
        "attention.v_proj is a .*EightBits; .*load a quantised model without quantisation",
    ),
    "a weight of eight bits": (
        put(
            "k_proj.weight",
            lambda layer: nn.Parameter(layer.k_proj.weight.to(torch.float8_e4m3fn), False),
        ),
        "attention.k_proj.weight is a .* of torch.float8_e4m3fn .*without quantisation",
    ),
    "a weight without numbers": (
        put("k_proj.weight", lambda layer: nn.Parameter(layer.k_proj.weight.to("meta"))),
        "attention.k_proj.weight is a .* on meta; expected a plain tensor of floats that has its d",
    ),
    "a hook on the layer": (
        lambda layer, _: layer.register_forward_hook(print) and None,
        "attention has a hook, print; expected none, .*by the handle that register_forward_hook re",
    ),
    "a hook before a projection": (
        lambda layer, _: layer.o_proj.register_forward_pre_hook(print) and None,
        "attention.o_proj has a hook, print; expected none",
    ),
    "a weight that is pruned": (
        lambda layer, _: prune.l1_unstructured(layer.q_proj, "weight", 3) and None,
        "attention.q_proj has a hook, .*L1Unstructured",
    ),
    "a method of one layer": (
        put("forward", lambda layer: lambda X, **options: (X, None)),
        "attention.forward was replaced on this one module; expected that of its class, .*device_m",
    ),
    "a method of a projection": (
        put("k_proj.forward", lambda layer: torch.sin),
        "attention.k_proj.forward was replaced on this one module",
    ),
    "a method of the class": (patched, "attention.forward was replaced by one of tests.pytorch"),
    "a method wrapped around the class's own": (
        wrapped,
        "attention.forward was replaced by one of tests.pytorch",
    ),
    "a parameter": (
        put("gate", lambda _: nn.Parameter(torch.ones(H))),
        "attention has gate, which would be lost; expected only what a",
    ),
    "a buffer": (
        lambda layer, _: layer.register_buffer("bias", torch.ones(T, T)),
        "attention has bias, which would be lost",
    ),
    "a norm": (
        put("q_norm", lambda _: nn.RMSNorm(D_K)),
        "attention has q_norm.weight, which would be lost",
    ),
    "an attribute": (put("temperature", lambda _: 2.0), "attention has temperature, which would"),
    "queries that look at later keys": (
        put("is_causal", lambda _: False),
        "is_causal=False; expected True, since a DecoderAttention lets no query look at a later",
    ),
    "a subclass": (
        put("__class__", lambda layer: type("Mine", (type(layer),), {})),
        "is a .*Mine, which unlike a LlamaAttention has code of its own for the same parts; ",
    ),
    "a subclass with norms": (
        lambda layer, rotary: (
            type("Normed", (type(layer),), {"q_norm": None})(layer.config, 0),
            rotary,
        ),
        "is a .*Normed, which unlike a LlamaAttention has",
    ),
    "no rotary embedding": (
        lambda layer, rotary: (layer, None),
        "rotary is a builtins.NoneType; expected the rotary embedding of .*LlamaAttention",
    ),
    "the configuration in its place": (
        lambda layer, rotary: (layer, layer.config),
        "rotary is a .*LlamaConfig; expected the rotary embedding",
    ),
    "the rotary embedding of another model": (
        lambda layer, rotary: (layer, theirs_of("Mistral, no window").model.rotary_emb),
        "rotary is a .*MistralRotaryEmbedding; expected the rotary embedding of .*LlamaAttention",
    ),
    "the rotary embedding of other heads": (
        lambda layer, rotary: (layer, Theirs("llama", 0, {"head_dim": 4}).model.rotary_emb),
        "rotary was made for another configuration than attention; expected that of the same mode",
    ),
    "a hook on the rotary embedding": (
        lambda layer, rotary: rotary.register_forward_hook(print) and None,
        "rotary has a hook, print",
    ),
    "frequencies without numbers": (
        lambda layer, rotary: rotary.to("meta") and None,
        "rotary.inv_freq is a .* on meta",
    ),
    "the model": (
        lambda layer, rotary: (theirs_of("Llama, 2 KV heads").model, rotary),
        r"is a .*LlamaModel.*It contains one: give attention.layers\[0\].self_attn\.",
    ),
    "a block": (
        lambda layer, rotary: (theirs_of("Llama, 2 KV heads").model.layers[0], rotary),
        r"is a .*LlamaDecoderLayer.*It contains one: give attention.self_attn\.",
    ),
    "a wrapper": (
        lambda layer, rotary: (nn.Sequential(layer), rotary),
        r"is a .*Sequential.*It contains one: give attention\[0\]\.",
    ),
    "GPT-2's layer": (
        lambda layer, rotary: (theirs_of("GPT-2").attention, rotary),
        r"is a .*GPT2Attention; .*For this one call decoder_from_gpt2\(attention\)",
    ),
    "no module": (
        lambda layer, rotary: ("llama", rotary),
        r"is a builtins.str; expected .*for example model.model.layers\[0\].self_attn",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_lost_is_refused_and_named(name):
    what, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=words):
        change(what)()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            of("llama", rope=ROPE | {"rope_type": "dynamic", "factor": 2.0}),
            "rope_type='dynamic'; e",
        ),
        (
            of("stablelm", head_dim=4, rope=ROPE | {"partial_rotary_factor": 0.25}),
            "rotates 1 entries of each head, and rotary has frequencies for 2; expected the same",
        ),
        (
            of("olmo", clip_qkv=8.0),
            "clip_qkv=8.0; expected None, since a DecoderAttention clips no",
        ),
        (
            of("gemma2", attn_logit_softcapping=50.0),
            "attn_logit_softcapping=50.0; expected None, since a DecoderAttention puts no cap on",
        ),
        (
            of("cohere", rope=ROPE, use_qk_norm=True),
            "attention has q_norm.weight, k_norm.weight, which would be lost",
        ),
        (of("phi", qk_layernorm=True), "has q_layernorm.weight, q_layernorm.bias, k_l"),
        (of("stablelm", qk_layernorm=True), "has q_layernorm.norms.0.weight, q_layern"),
        (
            of("gemma3_text", **GEMMA_3, use_bidirectional_attention=True),
            "is_causal=False; expected True",
        ),
    ],
)
def test_options_that_a_decoder_has_not_are_refused_and_named(make, words):
    with pytest.raises(ValueError, match=words):
        Theirs(*make).decoder()


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *(("Llama with biases", f"{part}_proj.weight") for part in "qkvo"),
        *(("Llama with biases", f"{part}_proj.bias") for part in "vo"),
        *(("GPT-2", f"{part}.weight") for part in ("c_attn", "c_proj")),
        *(("Phi-3, a window", f"{part}.weight") for part in ("qkv_proj", "o_proj")),
        ("Qwen3", "k_norm.weight"),
    ],
)
def test_parts_that_do_not_fit_the_heads_are_refused_with_their_shapes(name, parameter, axis):
    theirs, (part, last) = Theirs(*LAYERS[name]), parameter.split(".")
    W = theirs.attention.get_parameter(parameter)
    larger = torch.cat([W, W.narrow(axis, 0, theirs.attention.head_dim)], dim=axis)
    setattr(theirs.attention.get_submodule(part), last, nn.Parameter(larger))
    shape = re.escape(f"{parameter} {tuple(larger.shape)}")
    with pytest.raises(ShapeError, match=rf"^attention has .*{shape}.*; expected .* G KV heads of"):
        theirs.decoder()


def test_sinks_without_numbers_are_refused():
    theirs = Theirs(*LAYERS["gpt-oss, sinks"])
    theirs.attention.sinks = nn.Parameter(theirs.attention.sinks.to("meta"))
    with pytest.raises(TypeError, match=r"attention.sinks is a .* on meta"):
        theirs.decoder()


def test_two_norms_with_two_eps_are_refused():
    theirs = Theirs(*LAYERS["Qwen3"])
    theirs.attention.k_norm.variance_epsilon = 0.1
    with pytest.raises(
        ValueError, match=r"q_norm has eps=1e-06 and attention.k_norm 0.1; expected"
    ):
        theirs.decoder()


def test_classes_of_the_same_name_from_another_file_are_refused():
    module = importlib.import_module("transformers.models.qwen3.modular_qwen3")
    theirs = Theirs(*LAYERS["Qwen3"])
    theirs.attention.__class__ = module.Qwen3Attention
    with pytest.raises(TypeError, match=r"is a transformers.models.qwen3.modular_qwen3.Qwen3Att"):
        theirs.decoder()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: theirs_of("Qwen3").attention,
            r"For this one call decoder_from_llama\(attention, r",
        ),
        (
            lambda: nn.Linear(3, 5),
            "is a torch.*Linear, which unlike a GPT2Attention has bias, in_",
        ),
        (lambda: GPT2Attention(theirs_of("GPT-2").model.config, True, 0), "has q_attn"),
    ],
)
def test_what_is_no_self_attention_of_gpt2_is_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        decoder_from_gpt2(make())


# --- is a window of 128 128 keys? ---


def looked_at(theirs, t, T):
    """How many tokens move the row of token t, each changed in a text of its own."""
    X = drawn(1, T, D_MODEL)
    _, options, _ = theirs.run(X, use_cache=False)
    changed = torch.cat([X, X + torch.eye(T)[..., None]])
    with torch.no_grad():
        rows = theirs.attention(changed, **options)[0][:, t]
    return int((rows[1:] != rows[0]).any(-1).sum())


@pytest.mark.parametrize(
    "of_128",
    [
        of("mistral", sliding_window=128),
        of("gpt_oss", **SLIDING_FIRST | {"sliding_window": 128}, **EXPERTS),
    ],
)
def test_a_window_of_128_is_128_keys_itself_included(of_128):
    theirs = Theirs(*of_128)
    assert looked_at(theirs, 139, 140) == 128
    assert looked_at(theirs, 100, 140) == 101, "the text begins"


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
