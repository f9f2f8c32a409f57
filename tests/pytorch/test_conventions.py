"""Which library means what: the answers of PyTorch and transformers, each by its call.

On the CPU, with the versions of requirements.txt. JAX and ONNX are asked in tests/peers.
"""

import inspect
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import flex_attention, varlen
from torch.nn.attention.bias import causal_lower_right
from transformers import Gemma2Config, MistralConfig, MistralModel, T5Config
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sliding_window_bidirectional_overlay
from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as rotate_neighbours
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotate_halves
from transformers.models.mistral.modeling_mistral import eager_attention_forward, repeat_kv
from transformers.models.t5.modeling_t5 import T5Attention

from tests.conventions import (
    CELLS,
    CORNERS,
    WINDOW,
    Interface,
    called,
    described_rows,
    draw,
    rotary_pairs,
    softmax,
)


def tensors(*arrays):
    return [torch.from_numpy(np.array(A)) for A in arrays]


class Sdpa(Interface):
    parameters = frozenset(re.findall(r"(\w+)[,=)]", F.scaled_dot_product_attention.__doc__[:200]))
    function = staticmethod(F.scaled_dot_product_attention)

    def call(self, Q, K, V, *, mask=None, causal=False, **options):
        Q, K, V = tensors(Q, K, V)
        options["enable_gqa"] = Q.shape[1] != K.shape[1]
        mask = None if mask is None else tensors(mask)[0]
        return self.function(Q, K, V, attn_mask=mask, is_causal=causal, **options).numpy()

    def dropout(self):
        dropped = self.weights(9, 9, dropout_p=0.5)
        assert (dropped == 0).any(), "though nothing is in training"
        return "also in evaluation"


class Flex(Interface):
    parameters = frozenset(inspect.signature(flex_attention.flex_attention).parameters)

    def call(self, Q, K, V, *, mask=None, causal=False, **options):
        Q, K, V = tensors(Q, K, V)
        shown = (lambda b, h, q_idx, kv_idx: q_idx >= kv_idx) if causal else None
        if mask is not None:
            [table] = tensors(mask)
            shown = lambda b, h, q_idx, kv_idx: table[q_idx, kv_idx]  # noqa: E731
        sizes = {"B": None, "H": None, "Q_LEN": Q.shape[2], "KV_LEN": K.shape[2], "device": "cpu"}
        blocks = flex_attention.create_block_mask(shown, **sizes) if shown else None
        options |= {"block_mask": blocks, "enable_gqa": Q.shape[1] != K.shape[1]}
        return flex_attention.flex_attention(Q, K, V, **options).numpy()


class Layer(Interface):
    """`nn.MultiheadAttention` whose projections change nothing."""

    parameters = frozenset(inspect.signature(nn.MultiheadAttention.forward).parameters)
    parameters |= frozenset(inspect.signature(nn.MultiheadAttention).parameters)

    def call(self, Q, K, V, *, mask=None, causal=False, **options):
        Q, K, V = tensors(Q, K, V)
        layer = identity_layer(Q.shape[-1] * Q.shape[1], Q.shape[1], batch_first=True)
        if causal:  # the hint is followed in this call alone, and asks for a mask
            mask, options = np.zeros((Q.shape[2], K.shape[2]), bool), {"need_weights": False}
        mask = None if mask is None else tensors(mask)[0]
        X = (A.transpose(1, 2).flatten(2) for A in (Q, K, V))
        Y = layer(*X, attn_mask=mask, is_causal=causal, **options)[0]
        return Y.unflatten(2, (Q.shape[1], -1)).transpose(1, 2).detach().numpy()

    def groups(self):
        assert not {"num_kv_heads", "kv_heads", "num_key_value_heads"} & self.parameters
        return "no shared heads"

    def axes(self):
        [X] = tensors(draw(4, 2, 8))  # T=4, B=2
        together = identity_layer(8, 2)(X, X, X)[0]
        alone = identity_layer(8, 2)(X[:, :1], X[:, :1], X[:, :1])[0]
        torch.testing.assert_close(together[:, :1], alone)
        return "(T, B, d_model)"

    def dropout(self):
        layer, [X] = identity_layer(8, 2, dropout=0.5), tensors(draw(4, 2, 8))
        for training in (True, False):
            first, second = (layer.train(training)(X, X, X)[0] for _ in range(2))
            assert torch.equal(first, second) != training
        return "in training only"

    def returns(self):
        Y, weights = identity_layer(8, 2)(*tensors(*[draw(4, 3, 8)] * 3))
        assert Y.shape == (4, 3, 8)
        assert weights.shape == (3, 4, 4)
        return "the output, and the weights averaged over the heads"

    def lengths(self):
        [X], padding = tensors(draw(1, 5, 8)), torch.arange(5)[None] >= 3
        layer = identity_layer(8, 2, batch_first=True)
        weights = layer(X, X, X, key_padding_mask=padding)[1]
        assert torch.equal(weights[0] > 0, ~padding.expand(5, 5))
        return "by `key_padding_mask` (B, S), True for padding"


def identity_layer(d_model, heads, **options):
    layer = nn.MultiheadAttention(d_model, heads, **options)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(d_model).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(d_model))
    return layer


class Varlen(Interface):
    """Runs on GPUs only; arrays on the device `meta` have shapes and no numbers."""

    parameters = frozenset(inspect.signature(varlen.varlen_attn).parameters)

    @staticmethod
    def packed():
        """Return 7 query tokens of 4 heads, 9 key tokens of 2, and offsets."""
        Q, K = (torch.empty(n, heads, 16, device="meta") for n, heads in ((7, 4), (9, 2)))
        offsets = torch.empty(3, device="meta", dtype=torch.int32)
        return Q, K, K, offsets, offsets

    def axes(self):
        assert varlen.varlen_attn(*self.packed(), 4, 5, enable_gqa=True).shape == (7, 4, 16)
        return "(tokens, H, d)"

    def returns(self):
        assert isinstance(varlen.varlen_attn(*self.packed(), 4, 5, enable_gqa=True), torch.Tensor)
        return "the output"


class Transformers(Interface):
    """A Mistral layer of width 16, four query heads, two key heads and random weights."""

    parameters = frozenset({"attention_mask", "sliding_window"})

    def model(self, implementation="eager", **options):
        """Return a model of one layer."""
        sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1}
        sizes |= {"hidden_size": 16, "intermediate_size": 16, "vocab_size": 8}
        options = {"sliding_window": None} | sizes | options
        config = MistralConfig(**options, attn_implementation=implementation)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return MistralModel(config).eval()

    def weights(self, T, S, *, mask=None, causal=True, window=None):
        """Return head 0's weights: the last T of S tokens come after the others are cached."""
        model, tokens, cache = self.model(sliding_window=window), torch.arange(S)[None] % 8, None
        if T < S:
            cache = model(tokens[:, : S - T], use_cache=True).past_key_values
        mask = None if mask is None else tensors(mask[-1:])[0]
        inputs = {"attention_mask": mask, "past_key_values": cache, "output_attentions": True}
        return model(tokens[:, S - T :], **inputs).attentions[0][0, 0].detach().numpy()

    def true(self):
        seen = self.weights(5, 5, mask=np.arange(5)[None] != 1) > 1e-9
        assert (seen == (np.tri(5, dtype=bool) & (np.arange(5) != 1))).all()
        return "may look"

    def empty(self):
        rows = [described_rows(self.first_row(name)) for name in ("sdpa", "eager")]
        return "{} with SDPA, {} with eager".format(*rows)

    def first_row(self, implementation):
        """Return what head 0 gives to token 0, of padding; the values are the identity's rows."""
        seen, model = [], self.model(implementation)
        attention = model.layers[0].self_attn
        attention.v_proj.register_forward_hook(lambda _, inputs, V: torch.eye(5, 8)[None])
        attention.o_proj.register_forward_hook(lambda _, inputs, Y: seen.append(inputs[0]))
        model(torch.arange(5)[None], attention_mask=torch.arange(5)[None] >= 2)
        return seen[0][0, 0, :4].detach().numpy()

    def scale(self):
        attention = self.model().layers[0].self_attn
        assert attention.scaling == attention.head_dim**-0.5
        return "1/√d, set by each model as `scaling`"

    def groups(self):
        heads = repeat_kv(torch.arange(2.0)[None, :, None, None], 2)
        return ", ".join(f"{head:.0f}" for head in heads.flatten().tolist())

    def rotary(self):
        """Ask the function of Llama, and that of GPT-J for its note."""
        angles = torch.tensor([0.0, 1.0])[:, None].expand(2, 8)[None]  # (B, T, d)
        cos, sin = angles.cos(), angles.sin()

        def gptj(Q):
            Y = rotate_neighbours(tensors(Q)[0].transpose(1, 2), sin[..., :4], cos[..., :4])
            return Y.transpose(1, 2).numpy()

        assert rotary_pairs(gptj) == "neighbours"
        return rotary_pairs(lambda Q: rotate_halves(*tensors(Q, Q), cos, sin)[0].numpy())

    def axes(self):
        layer, X = self.model().layers[0].self_attn, torch.zeros(2, 5, 16)
        angles = torch.ones(2, 5, 4)
        assert layer(X, (angles, angles), None)[0].shape == (2, 5, 16)
        heads = torch.zeros(2, 4, 5, 4)
        for attend in (sdpa_attention_forward, eager_attention_forward):
            Y = attend(layer, heads, heads[:, :2], heads[:, :2], None, scaling=1.0)[0]
            assert Y.shape == (2, 5, 4, 4)
        return "(B, T, d_model)"

    def dropout(self):
        model = self.model(attention_dropout=0.5)
        for training in (True, False):
            first, second = (model.train(training)(torch.arange(8)[None])[0] for _ in range(2))
            assert torch.equal(first, second) != training
        return "in training only"

    def returns(self):
        weights = {}
        for implementation in ("sdpa", "eager"):
            layer, X = self.model(implementation).layers[0].self_attn, torch.zeros(2, 5, 16)
            weights[implementation] = layer(X, (X[..., :4], X[..., :4]), None)[1]
        assert weights["sdpa"] is None
        assert weights["eager"].shape == (2, 4, 5, 5)
        return "the output; the weights with eager only"

    def lengths(self):
        assert self.true() == "may look"  # the mask of its call has the shape (B, S)
        return "by `attention_mask` (B, S), 1 for a token"


INTERFACES = {"sdpa": Sdpa(), "mha": Layer(), "varlen": Varlen(), "flex": Flex()}
INTERFACES["transformers"] = Transformers()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", called(INTERFACES))
def test_the_answer_of_a_cell_is_what_its_call_returns(name):
    question, interface = name.split(": ")
    assert getattr(INTERFACES[interface], question)() == CELLS[name]["answer"]


def flat(T, S):
    """Return queries and keys of zeros, and the identity as values."""
    return np.zeros((1, 1, T, S), np.float32), np.zeros((1, 1, S, S), np.float32), identity(S)


def identity(S):
    return np.eye(S, dtype=np.float32)[None, None]


def test_what_the_notes_say_of_sdpa_and_of_the_layer():
    bias, sdpa = draw(3, 5), Sdpa()
    weights = sdpa.outputs(*flat(3, 5), mask=bias, scale=0.3)[0, 0]
    np.testing.assert_allclose(weights, softmax(bias), atol=1e-6)
    mask = causal_lower_right(2, 5)
    weights = F.scaled_dot_product_attention(*tensors(*flat(2, 5)), attn_mask=mask)[0, 0]
    assert ((weights.numpy() > 0) == CORNERS["bottom right"]).all()
    Q, K = tensors(draw(1, 4, 3, 8), draw(1, 2, 3, 8))
    with pytest.raises(RuntimeError, match="size"):
        F.scaled_dot_product_attention(Q, K, K)
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention.flex_attention(Q, K, K)
    with pytest.raises(ValueError, match="enable_gqa"):
        varlen.varlen_attn(*Varlen.packed(), 4, 5)
    layer, [X] = identity_layer(8, 2), tensors(draw(4, 3, 8))
    assert layer(X, X, X, average_attn_weights=False)[1].shape == (3, 2, 4, 4)
    assert layer(X, X, X, need_weights=False)[1] is None


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_what_the_notes_say_of_flex_and_varlen():
    flex, T, S = Flex(), 2, 5
    for shown, mask in (
        (lambda b, h, q_idx, kv_idx: q_idx + S - T >= kv_idx, CORNERS["bottom right"]),
        (lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, CORNERS["top left"]),
    ):
        blocks = flex_attention.create_block_mask(shown, None, None, T, S, device="cpu")
        heads = flex_attention.flex_attention(*tensors(*flat(T, S)), block_mask=blocks)
        assert ((heads[0, 0].numpy() > 0) == mask).all()
    row = np.arange(140)[139] - np.arange(140) < WINDOW
    assert row.sum() == WINDOW
    Q = draw(1, 1, 3, 5)
    weights = flex.outputs(
        Q, Q, identity(3) @ np.eye(3, 5, dtype=np.float32), scale=0.3, score_mod=add
    )
    expected = softmax(0.3 * Q @ Q.swapaxes(-1, -2) + np.arange(3))
    np.testing.assert_allclose(weights[0, 0, :, :3], expected[0, 0], atol=1e-5)
    Q = torch.zeros(2, 3, 5, 8)
    aux = flex_attention.AuxRequest(lse=True)
    logsumexp = flex_attention.flex_attention(Q, Q, Q, return_aux=aux)[1].lse
    torch.testing.assert_close(logsumexp, torch.full((2, 3, 5), 5.0).log())
    aux = varlen.AuxRequest(lse=True)
    assert varlen.varlen_attn(*Varlen.packed(), 4, 5, enable_gqa=True, return_aux=aux)[1].shape == (
        4,
        7,
    )


def add(score, b, h, q_idx, kv_idx):
    return score + kv_idx


def test_what_the_notes_say_of_transformers():
    model, tokens = Transformers().model(), torch.arange(5)[None]
    mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    with_eager = model(tokens, attention_mask=mask, output_attentions=True).attentions[0]
    assert (with_eager > 0).all(), "it hides nothing"
    model = Transformers().model("sdpa")
    torch.testing.assert_close(model(tokens, attention_mask=mask)[0], model(tokens)[0])
    both = sliding_window_bidirectional_overlay(WINDOW)
    assert sum(bool(both(0, 0, 200, key)) for key in range(400)) == 2 * WINDOW + 1
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    assert Gemma2Attention(Gemma2Config(**sizes, query_pre_attn_scalar=100), 0).scaling == 0.1
    assert T5Attention(T5Config(d_model=16, num_heads=2, d_kv=8)).scaling == 1.0
    positions = []
    model.rotary_emb.register_forward_hook(
        lambda _, inputs, named, Y: positions.append(named["position_ids"].tolist()),
        with_kwargs=True,
    )
    cache = model(tokens, attention_mask=tokens >= 2, use_cache=True).past_key_values
    model(tokens[:, :1], past_key_values=cache)
    assert positions == [[[0, 1, 2, 3, 4]], [[5]]]
