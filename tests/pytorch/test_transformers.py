"""Attention layers of transformers: a DecoderAttention with their weights gives their rows.

Each model is small and random, and is run by transformers itself, with its own masks, rotary
embeddings and cache. What one of its layers reads there, our layer reads too.
"""

import functools
import inspect

import pytest
import torch
from transformers import AutoConfig, AutoModel, DynamicCache, LlamaModel
from transformers.masking_utils import (
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)

from tests.pytorch.layers import draw
from tutorial_lib.pytorch import DecoderAttention, DecoderCache, Rotation, ScoreOptions
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
EXPERTS = {"num_experts_per_tok": 1, "num_local_experts": 2}
# Models call what they are given so from transformers 5.24 on, and past_key_values before.
CACHE = {"cache", "past_key_values"}.intersection(inspect.signature(LlamaModel.forward).parameters)


def spec(family, layer=0, rope=None, **options):
    """What makes a model of a family, and which of its layers is meant."""
    options |= {"rope_parameters": rope} if rope else {}
    return family, layer, options


SPECS = {
    "GPT-2": spec("gpt2"),
    "Llama, 1 KV head, biases": spec("llama", num_key_value_heads=1, attention_bias=True),
    "Llama 3": spec("llama", rope=LLAMA_3),
    "Llama, in part": spec("llama", rope=ROPE | HALF_ROTARY | {"rope_type": "proportional"}),
    "Mistral, a window": spec("mistral", sliding_window=WINDOW),
    "gpt-oss, a window and sinks": spec("gpt_oss", **SLIDING_FIRST, **EXPERTS),
    "gpt-oss, YaRN": spec("gpt_oss", 1, rope=YARN, **SLIDING_FIRST, **EXPERTS),
    "Gemma 2, a soft cap": spec("gemma2", 1, **SLIDING_FIRST, attn_logit_softcapping=2.0),
    "Gemma 3, a window": spec("gemma3_text", **GEMMA_3),
    "Gemma 3": spec("gemma3_text", 1, **GEMMA_3),
    "Qwen2": spec("qwen2"),
    "Qwen3, a window": spec("qwen3", use_sliding_window=True, **SLIDING_FIRST),
}


def copied_tensors(attention):
    """The weights of a layer of transformers, under the names of a DecoderAttention."""
    parts = {name: module for name, module in attention.named_children() if "dropout" not in name}
    norms = {name: parts.pop(name).weight for name in ("q_norm", "k_norm") if name in parts}
    *inputs, out = parts.values()
    tensors = {"qkv_proj.weight": torch.cat([rows_of(part) for part in inputs])}
    tensors["out_proj.weight"] = rows_of(out)
    if inputs[0].bias is not None:
        tensors["qkv_proj.bias"] = torch.cat([part.bias for part in inputs])
        tensors["out_proj.bias"] = torch.zeros(D_MODEL) if out.bias is None else out.bias
    shift = 1 if type(attention).__name__.startswith("Gemma") else 0
    tensors |= {f"{name}.weight": weight + shift for name, weight in norms.items()}
    return tensors | ({"sink": attention.sinks} if hasattr(attention, "sinks") else {})


def rows_of(part):
    """A weight as nn.Linear stores it: Conv1D, which GPT-2 has, stores (in, out)."""
    return part.weight.T if type(part).__name__ == "Conv1D" else part.weight


def rotation_of(attention, rotary):
    """The rotation of a layer; Gemma 3 has one for each kind of layer."""
    if rotary is None:
        return None
    prefix = f"{attention.layer_type}_" if isinstance(rotary.rope_type, dict) else ""
    stretch = getattr(rotary, f"{prefix}attention_scaling")
    return Rotation(getattr(rotary, f"{prefix}inv_freq").double(), half=True, stretch=stretch)


def decoder_of(attention, rotary):
    """A DecoderAttention with the weights and the options of a layer of transformers."""
    tensors, norm = copied_tensors(attention), getattr(attention, "q_norm", None)
    is_windowed = hasattr(attention, "sliding_window") or "Mistral" in type(attention).__name__
    owner = attention if hasattr(attention, "sliding_window") else attention.config
    scores = ScoreOptions(
        scale=attention.scaling,
        soft_cap=getattr(attention, "attn_logit_softcapping", None),
        window=owner.sliding_window if is_windowed else None,
        sink="sink" in tensors,
        norm_eps=norm and vars(norm).get("variance_epsilon", vars(norm).get("eps")),
    )
    decoder = DecoderAttention(
        D_MODEL,
        H,
        n_kv_heads=H // getattr(attention, "num_key_value_groups", 1),
        sizes=(attention.head_dim, attention.head_dim),
        rotation=rotation_of(attention, rotary),
        scores=scores,
        bias="qkv_proj.bias" in tensors,
    )
    decoder.load_state_dict(tensors)
    return decoder


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
        return decoder_of(self.attention, getattr(self.model, "rotary_emb", None))

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
