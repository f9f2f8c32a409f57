"""The decoder with the weights of transformers' layers of GPT-2 and Llama gives what they give.

So it does with those of Mistral, which have a window, and of gpt-oss, which have sinks too. Each is
small and random, and runs with its own cache and its own masks.
"""

import copy

import pytest
import torch
from transformers import DynamicCache, GPT2Config, GptOssConfig, LlamaConfig, MistralConfig
from transformers.masking_utils import (
    create_causal_mask,
    create_sliding_window_causal_mask,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralAttention, MistralRotaryEmbedding

from tutorial_lib.pytorch import DecoderCache, decoder_from_gpt2, decoder_from_llama
from tutorial_lib.variants.patterns import window_mask

B, T, H, D_MODEL, D_K = 3, 9, 6, 24, 8
PIECES = {
    "prefill": (9,),
    "prefill and words": (6, 1, 1, 1),
    "pieces": (4, 3, 2),
    "words": (1,) * 9,
}
PADS = {"no padding": (0, 0, 0), "padded": (0, 2, 5)}
TURNS = {
    "default": {"rope_theta": 500_000.0},
    "linear": {"rope_theta": 10_000.0, "factor": 2.0},
    "llama3": {
        "rope_theta": 10_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {
        "rope_theta": 150_000.0,
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 64,
    },
}
WINDOW = 4


class GPT2:
    """GPT-2's attention layer, with biases that are not zero."""

    def __init__(self, **options):
        torch.manual_seed(0)
        self.config = GPT2Config(n_embd=D_MODEL, n_head=H, attn_implementation="sdpa", **options)
        self.attention = GPT2Attention(self.config, layer_idx=0).eval()
        for part in (self.attention.c_attn, self.attention.c_proj):
            torch.nn.init.normal_(part.weight, std=0.3)
            torch.nn.init.normal_(part.bias)

    mask = staticmethod(create_causal_mask)

    def decoder(self):
        """Ours, with these weights."""
        return decoder_from_gpt2(self.attention)

    def __call__(self, X, places, **options):
        return self.attention(X, **options)[0]


class Llama:
    """Llama's attention layer, with heads in groups, and its rotation."""

    kinds = LlamaConfig, LlamaAttention, LlamaRotaryEmbedding
    implementation = "sdpa"
    mask = staticmethod(create_causal_mask)

    def __init__(self, n_kv_heads=2, turn="default", layer=0, **options):
        torch.manual_seed(0)
        make, attention, rotary = self.kinds
        rope = {"rope_type": turn, **TURNS.get(turn, {"rope_theta": 10_000.0, "factor": 2.0})}
        sizes = {"hidden_size": D_MODEL, "num_attention_heads": H, "head_dim": D_K}
        sizes |= {"num_key_value_heads": n_kv_heads, "rope_parameters": rope}
        self.config = make(**sizes, attn_implementation=self.implementation, **options)
        self.attention = attention(self.config, layer_idx=layer).eval()
        for weight in self.attention.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        self.rotary = rotary(self.config)

    def decoder(self):
        """Ours, with these weights and rates."""
        return decoder_from_llama(self.attention, self.rotary)

    def __call__(self, X, places, **options):
        return self.attention(X, position_embeddings=self.rotary(X, places), **options)[0]


class Mistral(Llama):
    """Mistral's attention layer: Llama's, within a window."""

    kinds = MistralConfig, MistralAttention, MistralRotaryEmbedding
    implementation = "eager"
    mask = staticmethod(create_sliding_window_causal_mask)

    def __init__(self, window=WINDOW, **options):
        super().__init__(sliding_window=window, **options)


class GptOss(Llama):
    """The attention layer of gpt-oss: sinks, biases, and a window in every other layer."""

    kinds = GptOssConfig, GptOssAttention, GptOssRotaryEmbedding
    implementation = "eager"

    def __init__(self, layer=0, window=WINDOW, **options):
        super().__init__(layer=layer, sliding_window=window, num_hidden_layers=2, **options)
        torch.nn.init.normal_(self.attention.sinks)
        kinds = {0: create_sliding_window_causal_mask, 1: create_causal_mask}
        self.mask = kinds[layer]


LAYERS = {
    "GPT-2": GPT2,
    "Llama, 2 key heads": Llama,
    "Llama, 1 key head": lambda: Llama(1),
    "Llama, 6 key heads": lambda: Llama(6),
    "Llama with biases": lambda: Llama(attention_bias=True),
    "Llama, linear": lambda: Llama(turn="linear"),
    "Llama 3": lambda: Llama(turn="llama3"),
    "Llama, YaRN": lambda: Llama(turn="yarn"),
    "Mistral, a window": Mistral,
    "gpt-oss, a window and sinks": GptOss,
    "gpt-oss, sinks": lambda: GptOss(layer=1),
    "gpt-oss, YaRN": lambda: GptOss(turn="yarn"),
}


def drawn(*shape):
    """Standard normal numbers, float32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("name", LAYERS)
def test_rows_and_keys_are_theirs_with_their_cache_and_their_masks(name, pieces, pad):
    theirs = LAYERS[name]()
    ours, X = theirs.decoder(), drawn(B, T, D_MODEL)
    counts = torch.tensor(PADS[pad])
    real = torch.arange(T) >= counts[:, None]
    places = (real.cumsum(-1) - 1).clamp(min=0)
    pad = counts if counts.any() else None
    past = DynamicCache(config=theirs.config)
    kept = DecoderCache.empty(ours, T, batch=(B,), pad=pad)
    layer = theirs.attention.layer_idx
    start = 0
    for n in PIECES[pieces]:
        now, start = slice(start, start + n), start + n
        new = X[:, now].contiguous()  # GPT-2's Conv1D takes no other
        mask = theirs.mask(theirs.config, new, real[:, :start].long(), past)
        with torch.no_grad():
            right = theirs(new, places[:, now], attention_mask=mask, past_key_values=past)
            found, kept = ours.step(new, kept)
        seen = real[:, now]
        torch.testing.assert_close(found[seen], right[seen], rtol=1e-5, atol=1e-5)
        n = past.layers[layer].keys.shape[-2]  # one less than a window
        seen = real[:, None, start - n : start].expand(B, ours.n_kv_heads, n)
        right = past.layers[layer].keys
        torch.testing.assert_close(kept.K[..., -n:, :][seen], right[seen], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_whole_sequences_and_their_gradients_are_theirs(name):
    theirs, X = LAYERS[name](), drawn(B, T, D_MODEL)
    ours, grads = theirs.decoder(), []
    mask = theirs.mask(theirs.config, X, None, None)

    def right_of(X):
        return theirs(X, torch.arange(T)[None], attention_mask=mask)

    for layer in (right_of, ours):
        given = X.clone().requires_grad_()
        layer(given).square().sum().backward()
        grads.append(given.grad)
    with torch.no_grad():
        torch.testing.assert_close(ours(X), right_of(X), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-6 * grads[0].abs().max().item())


@pytest.mark.parametrize("name", ["GPT-2", "Llama, 2 key heads", "gpt-oss, a window and sinks"])
def test_both_sides_own_their_numbers(name):
    theirs = LAYERS[name]()
    ours, before = theirs.decoder(), copy.deepcopy(theirs.attention.state_dict())
    with torch.no_grad():
        for weight in ours.parameters():
            assert weight.requires_grad
            assert weight.is_contiguous()
            weight.add_(1)
    for weight, tensor in theirs.attention.state_dict().items():
        assert torch.equal(tensor, before[weight])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_precision_is_theirs(dtype):
    theirs = Llama()
    theirs.attention.to(dtype)
    assert {weight.dtype for weight in theirs.decoder().parameters()} == {dtype}


def of_another_scale():
    """Llama whose scores are not divided."""
    layer = Llama()
    layer.attention.scaling = 1.0
    return layer.decoder()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: decoder_from_gpt2(Llama().attention), "expected a GPT2Attention of transformers"),
        (lambda: decoder_from_gpt2(torch.nn.Linear(3, 5)), "is a Linear; expected a GPT2Attention"),
        (lambda: decoder_from_llama(GPT2().attention, None), "expected a LlamaAttention or Mis"),
        (lambda: decoder_from_llama(Llama().attention, None), "rotary is a NoneType; expected the"),
        (GPT2(scale_attn_weights=False).decoder, "scaling=1.0; expected False and 1/sqrt"),
        (of_another_scale, "attention has scaling=1.0; expected 1/sqrt"),
        (Llama(turn="dynamic").decoder, "rope_type='dynamic'; expected one of"),
    ],
)
def test_what_a_decoder_cannot_hold_is_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_cross_attention_is_refused():
    attention = GPT2Attention(GPT2().config, is_cross_attention=True, layer_idx=0)
    with pytest.raises(ValueError, match="is_cross_attention=True"):
        decoder_from_gpt2(attention)


# --- is a window of 128 128 keys? ---


def looked_at(theirs, t, T):
    """How many tokens move the row of token t, each changed in a text of its own."""
    X, places = drawn(1, T, D_MODEL), torch.arange(T)[None]
    changed = torch.cat([X, X + torch.eye(T)[..., None]])
    mask = theirs.mask(theirs.config, changed, None, None)
    with torch.no_grad():
        rows = theirs(changed, places, attention_mask=mask)[:, t]
    return int((rows[1:] != rows[0]).any(-1).sum())


@pytest.mark.parametrize("layer", [Mistral, GptOss])
def test_a_window_of_128_is_128_keys_itself_included(layer):
    theirs = layer(window=128)
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
    theirs, past = Mistral(), DynamicCache(config=Mistral().config)
    for n in (6, 1, 3):
        past.update(*torch.ones(2, 1, 2, n, D_K), layer_idx=0)
        assert past.layers[0].keys.shape[-2] == WINDOW - 1
    assert theirs.decoder().window == WINDOW
