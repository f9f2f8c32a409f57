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
from torch.nn.utils.parametrizations import weight_norm
from transformers import AutoConfig, AutoModel, DynamicCache, LlamaModel
from transformers.masking_utils import (
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from tests.pytorch.layers import draw
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
LINEAR_ROPE = ROPE | {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0}
HALF_ROTARY = {"partial_rotary_factor": 0.5}
SLIDING_FIRST = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
GEMMA_3 = {
    **SLIDING_FIRST,
    "query_pre_attn_scalar": 5,
    "rope_parameters": {"sliding_attention": ROPE, "full_attention": LINEAR_ROPE},
}
UNCAPPED = {"attn_logit_softcapping": None}
EXPERTS = {"num_experts_per_tok": 1, "num_local_experts": 2}
# Models call what they are given so from transformers 5.24 on, and past_key_values before.
CACHE = {"cache", "past_key_values"}.intersection(inspect.signature(LlamaModel.forward).parameters)


def spec(family, layer=0, rope=None, **options):
    """What makes a model of a family, and which of its layers is meant."""
    options |= {"rope_parameters": rope} if rope else {}
    return family, layer, options


SPECS = {
    "GPT-2": spec("gpt2"),
    "GPT-2, scores not divided": spec("gpt2", scale_attn_weights=False),
    "GPT-2, scores divided by the layer": spec("gpt2", 1, scale_attn_by_inverse_layer_idx=True),
    "Llama, 2 KV heads": spec("llama", rope=ROPE | {"rope_theta": 500_000.0}),
    "Llama, 1 KV head": spec("llama", num_key_value_heads=1),
    "Llama, 6 KV heads": spec("llama", num_key_value_heads=6),
    "Llama with biases": spec("llama", attention_bias=True),
    "Llama, linear": spec("llama", rope=ROPE | {"rope_type": "linear", "factor": 2.0}),
    "Llama 3": spec("llama", rope=LLAMA_3),
    "Llama, YaRN": spec("llama", rope=YARN),
    "Llama, proportional": spec("llama", rope=ROPE | HALF_ROTARY | {"rope_type": "proportional"}),
    "Mistral, a window": spec("mistral", sliding_window=WINDOW),
    "Mistral, no window": spec("mistral", sliding_window=None),
    "gpt-oss, a window and sinks": spec("gpt_oss", **SLIDING_FIRST, **EXPERTS),
    "gpt-oss, sinks": spec("gpt_oss", 1, **SLIDING_FIRST, **EXPERTS),
    "gpt-oss, YaRN": spec("gpt_oss", rope=YARN, **SLIDING_FIRST, **EXPERTS),
    "Gemma 2, a window": spec("gemma2", **SLIDING_FIRST, **UNCAPPED),
    "Gemma 2": spec("gemma2", 1, **SLIDING_FIRST, **UNCAPPED, query_pre_attn_scalar=5),
    "Gemma 2, a soft cap": spec("gemma2", 1, **SLIDING_FIRST, attn_logit_softcapping=2.0),
    "Gemma 3, a window": spec("gemma3_text", **GEMMA_3),
    "Gemma 3": spec("gemma3_text", 1, **GEMMA_3),
    "Qwen2": spec("qwen2"),
    "Qwen2, a window": spec("qwen2", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3": spec("qwen3"),
    "Qwen3, a window": spec("qwen3", use_sliding_window=True, **SLIDING_FIRST),
    "Qwen3, YaRN, a large eps": spec("qwen3", rope=YARN, rms_norm_eps=0.3),
}


class HFModel:
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
        layer_calls = []

        def record_call(module, args, options, outputs):
            layer_options = dict(options)
            X = args[0] if args else layer_options.pop("hidden_states")
            layer_calls.append((X, layer_options, outputs[0]))

        with torch.no_grad(), self.attention.register_forward_hook(record_call, with_kwargs=True):
            self.model(inputs_embeds=X, **options)
        return layer_calls[0]


@functools.cache
def hf_model_of(name):
    """A model that no test changes."""
    return HFModel(*SPECS[name])


def model_of(name):
    return hf_model_of(name).model


normal_tensor = functools.partial(draw, dtype=torch.float32)
PAD_LENGTHS = (0, 2, 5)
CHUNKINGS = {
    "prefill and words": ((6, 1, 1, 1), PAD_LENGTHS),
    "pieces": ((4, 3, 2), PAD_LENGTHS),
    "words": ((1,) * 9, (0, 0, 0)),
}


@pytest.mark.parametrize("chunking", CHUNKINGS)
@pytest.mark.parametrize("name", SPECS)
def test_rows_and_keys_are_theirs_with_their_cache_and_their_masks(name, chunking):
    hf_model, (lengths, pad) = hf_model_of(name), CHUNKINGS[chunking]
    decoder, X, pad = hf_model.decoder(), normal_tensor(B, T, D_MODEL), torch.tensor(pad)
    is_token = torch.arange(T) >= pad[:, None]
    positions = (is_token.cumsum(-1) - 1).clamp(min=0)
    hf_cache = DynamicCache(config=hf_model.model.config)
    cache = DecoderCache(decoder, B, capacity=T, pad=pad if pad.any() else None)
    start = 0
    for n in lengths:
        now, start = slice(start, start + n), start + n
        options = {"attention_mask": is_token[:, :start].long(), "position_ids": positions[:, now]}
        inputs, _, expected = hf_model.run(X[:, now], **options, **dict.fromkeys(CACHE, hf_cache))
        with torch.no_grad():
            Y = decoder(inputs, cache=cache)
        tokens = is_token[:, now]
        torch.testing.assert_close(Y[tokens], expected[tokens], rtol=1e-5, atol=1e-5)
        keys = hf_cache.layers[hf_model.layer].keys
        n = keys.shape[-2]  # one less than a window
        tokens = is_token[:, None, start - n : start].expand(B, decoder.n_kv_heads, n)
        K = cache.buffers[0][:, :, start - n : start]
        torch.testing.assert_close(K[tokens], keys[tokens], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SPECS)
def test_whole_sequences_and_their_gradients_are_theirs(name):
    hf_model = hf_model_of(name)
    decoder, grads = hf_model.decoder(), []
    X, options, expected = hf_model.run(normal_tensor(B, T, D_MODEL), use_cache=False)
    for layer in (lambda X: hf_model.attention(X, **options)[0], decoder):
        X_leaf = X.clone().requires_grad_()
        layer(X_leaf).square().sum().backward()
        grads.append(X_leaf.grad)
    with torch.no_grad():
        torch.testing.assert_close(decoder(X), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-6 * grads[0].abs().max().item())


def test_each_known_class_is_among_the_layers():
    class_names = {type(hf_model_of(name).attention).__qualname__ for name in SPECS}
    assert class_names == {name.split(".")[1] for name in (*GPT2, *LLAMAS)}


@pytest.mark.parametrize(
    "layer",
    [SPECS["GPT-2"], SPECS["Llama 3"], SPECS["Qwen3"], spec("llama", sliding_window=WINDOW)],
)
def test_a_scale_of_ones_own_is_taken_and_an_unused_window_is_not(layer):
    hf_model = HFModel(*layer)
    hf_model.attention.scaling = 0.7
    X, _, expected = hf_model.run(normal_tensor(B, T, D_MODEL), use_cache=False)
    torch.testing.assert_close(hf_model.decoder()(X), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["GPT-2", "Llama with biases", "gpt-oss, sinks", "Gemma 3"])
def test_both_sides_own_their_numbers(name):
    hf_model = HFModel(*SPECS[name])
    decoder, original_state = hf_model.decoder(), copy.deepcopy(hf_model.attention.state_dict())
    with torch.no_grad():
        for weight in decoder.parameters():
            assert weight.requires_grad
            assert weight.is_leaf
            assert weight.is_contiguous()
            weight.add_(1)
    for weight, tensor in hf_model.attention.state_dict().items():
        assert torch.equal(tensor, original_state[weight])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["Llama with biases", "Qwen2"])
def test_the_precision_is_theirs_and_no_number_is_rounded(name, dtype):
    hf_model = HFModel(*SPECS[name])
    weights = dict(hf_model.attention.to(dtype).named_parameters())
    decoder = hf_model.decoder().state_dict()
    assert {tensor.dtype for tensor in decoder.values()} == {dtype}
    weight_rows = torch.cat([weights[f"{name}_proj.weight"] for name in "qkv"])
    assert torch.equal(decoder["qkv_proj.weight"], weight_rows)
    assert torch.equal(decoder["out_proj.weight"], weights["o_proj.weight"])


def test_gains_are_float32_beside_weights_of_half_precision():
    hf_model = HFModel(*SPECS["Gemma 3"])
    hf_model.attention.to(torch.bfloat16)
    decoder = hf_model.decoder()
    assert decoder.qkv_proj.weight.dtype == torch.bfloat16
    for name in ("q_norm", "k_norm"):
        gains = getattr(hf_model.attention, name).weight.float() + 1
        assert torch.equal(getattr(decoder, name).weight, gains)
    assert decoder(normal_tensor(1, T, D_MODEL).bfloat16()).dtype == torch.bfloat16


HARMLESS = {  # what adds nothing to the rows of a layer
    "a hook that records": lambda a: a.register_forward_hook(lambda *_: None),
    "a parametrization": lambda a: weight_norm(a.q_proj),
    "a parameter that nothing reads": lambda a: a.register_parameter("gate", a.q_proj.weight),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_no_row_is_no_obstacle(name):
    hf_model = HFModel(*SPECS["Llama, 2 KV heads"])
    HARMLESS[name](hf_model.attention)
    X, _, expected = hf_model.run(normal_tensor(B, T, D_MODEL), use_cache=False)
    torch.testing.assert_close(hf_model.decoder()(X), expected, rtol=1e-5, atol=1e-5)


# --- what is refused, and what the sentence names ---


OTHER_CLASSES = {"mixtral": EXPERTS, "cohere": {"rope_parameters": ROPE}, "phi3": {}}


@pytest.mark.parametrize("family", OTHER_CLASSES)
def test_a_layer_of_another_class_is_named_with_the_classes_that_are_known(family):
    hf_model = HFModel(family, 0, OTHER_CLASSES[family])
    with pytest.raises(TypeError) as refusal:
        hf_model.decoder()
    message = str(refusal.value)
    assert re.match(rf"attention is a transformers.models.{family}.modeling_{family}.\w+;", message)
    assert all(name.split(".")[1] in message for name in LLAMAS)
    assert "copy its parameters into a DecoderAttention" in message


class Adapter(nn.Linear):
    """A projection with a low-rank part beside it, as adapters add it: `weight` lacks the part."""

    def __init__(self, layer):
        super().__init__(*layer.o_proj.weight.shape[::-1], bias=False)

    def forward(self, X):
        return super().forward(X) + X.mean(dim=-1, keepdim=True)


class EightBits(nn.Module):
    """A projection that keeps whole numbers, and no weight."""

    def __init__(self, layer):
        super().__init__()
        self.register_buffer("packed", torch.ones(H * D_K, D_MODEL, dtype=torch.int8))


def put(path, value):
    """Put something made of the layer into it, under a name."""

    def change(layer, rotary):
        owner_path, _, name = path.rpartition(".")
        setattr(layer.get_submodule(owner_path), name, value(layer))

    return change


def cast_key(*target):
    """The weight of the keys' projection in another form."""
    return put("k_proj.weight", lambda layer: nn.Parameter(layer.k_proj.weight.to(*target), False))


def patch_forward(layer, rotary):
    """The class, but for its method, as patches for speed replace it."""
    kind, forward = type(layer), type(layer).forward

    def doubled(self, *args, **options):
        Y, *rest = forward(self, *args, **options)
        return 2 * Y, *rest

    layer.__class__ = type(kind.__name__, (kind,), {"forward": functools.wraps(forward)(doubled)})
    layer.__class__.__module__, layer.__class__.__qualname__ = kind.__module__, kind.__qualname__


def longer(parameter, axis=0):
    """A parameter with more entries along an axis."""

    def enlarged(layer):
        W = layer.get_parameter(parameter)
        return nn.Parameter(torch.cat([W, W.narrow(axis, 0, layer.head_dim)], dim=axis))

    return put(parameter, enlarged)


def of_narrow_heads(layer, rotary):
    return layer, HFModel("llama", 0, {"head_dim": 4}).model.rotary_emb


def of_another_file(layer, rotary):
    module = importlib.import_module("transformers.models.qwen3.modular_qwen3")
    layer.__class__ = module.Qwen3Attention


LLAMA, QWEN, OSS = "Llama, 2 KV heads", "Qwen3", "gpt-oss, sinks"
ONE_LAYER = "one: give attention"
OTHER_ROWS = "attention gives other rows than a copy of its weights, "
NO_ROTARY = "; expected the rotary embedding of .*LlamaAttention"
REFUSED = [  # a change of a layer and its rotary embedding, or what stands for them; the words
    (put("o_proj", Adapter), rf"{OTHER_ROWS}by .*; expected a layer .*merge_and_unload\(\)"),
    (put("v_proj", EightBits), "v_proj.weight is a .*NoneType of no .*without quantisation"),
    (cast_key(torch.float8_e4m3fn), r"k_proj.weight is a .*float8_e4m3fn.*without quantisation"),
    (cast_key("meta"), "k_proj.weight is a .*expected a plain tensor of floats that has its"),
    (lambda a, _: a.o_proj.register_forward_hook(lambda *given: given[2] + 1), OTHER_ROWS),
    (lambda a, _: a.q_proj.register_forward_pre_hook(lambda _, X: 2 * X[0]), OTHER_ROWS),
    (put("forward", lambda _: torch.sin), f"{OTHER_ROWS}since copying or running .*TypeError"),
    (put("k_proj.forward", lambda a: a.v_proj.forward), OTHER_ROWS),
    (patch_forward, OTHER_ROWS),
    (put("scaling", lambda _: nn.Parameter(torch.ones(()))), f"{OTHER_ROWS}.*must be float"),
    (put("is_causal", lambda _: False), "is_causal=False, .* expected a layer in which no query"),
    (put("__class__", lambda a: type("Mine", (type(a),), {})), "is a .*Mine; expected .* exactly"),
    (of_another_file, "is a transformers.models.qwen3.modular_qwen3.Qwen3Att", QWEN),
    (put("k_norm.variance_epsilon", lambda _: 0.1), f"{OTHER_ROWS}.* one eps", QWEN),
    (put("sinks", lambda a: nn.Parameter(a.sinks.to("meta"))), f"{OTHER_ROWS}.*meta", OSS),
    (longer("q_proj.weight"), rf"{OTHER_ROWS}.*mismatch for qkv_proj.weight.*\[88, 24\]"),
    (longer("k_norm.weight"), f"{OTHER_ROWS}.*mismatch for k_norm", QWEN),
    (longer("o_proj.bias"), f"{OTHER_ROWS}.*mismatch for out_proj.bias", "Llama with biases"),
    (lambda a, _: (a, None), f"rotary is a builtins.NoneType{NO_ROTARY}"),
    (lambda a, _: (a, a.config), f"rotary is a .*LlamaConfig{NO_ROTARY}"),
    (lambda a, _: (a, model_of("Mistral, no window").rotary_emb), f"Mistral.*Embedding{NO_ROTARY}"),
    (of_narrow_heads, "rotary was made for another configuration than attention; expected that of"),
    (lambda _, rotary: rotary.register_forward_hook(lambda *given: given[2][::-1]), OTHER_ROWS),
    (lambda _, rotary: (model_of(LLAMA), rotary), rf"Model.* {ONE_LAYER}.layers\[0\].self_attn\."),
    (lambda _, rotary: (model_of(LLAMA).layers[0], rotary), rf"Layer.* {ONE_LAYER}.self_attn\."),
    (lambda a, rotary: (nn.Sequential(a), rotary), rf"is a .*Sequential.* {ONE_LAYER}\[0\]\."),
    (lambda _, rotary: (hf_model_of("GPT-2").attention, rotary), r"call decoder_from_gpt2\(atten"),
    (lambda _, rotary: ("llama", rotary), r"is a builtins.str; .* model.model.layers\[0\].self_a"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[1])
def test_what_would_be_lost_is_refused_and_named(case):
    change, message, name = (*case, LLAMA)[:3]
    hf_model = HFModel(*SPECS[name])
    layer, rotary = hf_model.attention, hf_model.model.rotary_emb
    replacement = change(layer, rotary)
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        decoder_from_llama(*replacement if isinstance(replacement, tuple) else (layer, rotary))


DYNAMIC_ROPE = ROPE | {"rope_type": "dynamic", "factor": 2.0}
BIDIRECTIONAL = {"use_bidirectional_attention": True}
OPTIONS = [
    (spec("llama", rope=DYNAMIC_ROPE), "rope_type='dynamic'; expected one of"),
    (spec("gemma3_text", **GEMMA_3, **BIDIRECTIONAL), "is_causal=False, or"),
]


@pytest.mark.parametrize(("layer", "message"), OPTIONS)
def test_options_that_a_decoder_has_not_are_refused_and_named(layer, message):
    with pytest.raises(ValueError, match=message):
        HFModel(*layer).decoder()


@pytest.mark.parametrize(
    ("make_layer", "message"),
    [
        (lambda: hf_model_of("Qwen3").attention, r"this one call decoder_from_llama\(attention, r"),
        (lambda: nn.Linear(3, 5), "is a torch.*Linear; expected .* exactly one of these: GPT2Att"),
        (
            lambda: GPT2Attention(hf_model_of("GPT-2").model.config, True, 0),
            "or looks at another sequence",
        ),
    ],
)
def test_what_is_no_self_attention_of_gpt2_is_refused(make_layer, message):
    with pytest.raises((TypeError, ValueError), match=message):
        decoder_from_gpt2(make_layer())


# --- is a window of 128 128 keys? ---


def n_keys_seen(hf_model, t, T):
    """How many tokens move the row of token t, each changed in a text of its own."""
    X = normal_tensor(1, T, D_MODEL)
    _, options, _ = hf_model.run(X, use_cache=False)
    changed = torch.cat([X, X + torch.eye(T)[..., None]])
    with torch.no_grad():
        rows = hf_model.attention(changed, **options)[0][:, t]
    return int((rows[1:] != rows[0]).any(-1).sum())


@pytest.mark.parametrize("family", ["mistral", "gpt_oss"])
def test_a_window_of_128_is_128_keys_itself_included(family):
    hf_model = HFModel(*spec(family, **SLIDING_FIRST | {"sliding_window": 128}, **EXPERTS))
    assert n_keys_seen(hf_model, 139, 140) == 128
    assert n_keys_seen(hf_model, 100, 140) == 101, "the text begins"


def test_the_mask_functions_of_transformers_count_in_two_ways():
    t, s = torch.arange(300)[:, None], torch.arange(300)
    causal_mask = sliding_window_causal_mask_function(128)(0, 0, t, s)
    assert torch.equal(causal_mask, torch.from_numpy(window_mask(300, 300, 128)))
    assert causal_mask.sum(-1).max() == 128
    two_way_mask = sliding_window_bidirectional_mask_function(128)(0, 0, t, s)
    assert two_way_mask.sum(-1).max() == 128 + 1 + 128


def test_the_cache_of_transformers_keeps_one_less_than_its_window():
    hf_model = hf_model_of("Mistral, a window")
    hf_cache = DynamicCache(config=hf_model.model.config)
    for n in (6, 1, 3):
        hf_cache.update(*torch.ones(2, 1, 2, n, D_K), layer_idx=0)
        assert hf_cache.layers[0].keys.shape[-2] == WINDOW - 1
    assert hf_model.decoder().scores.window == WINDOW
