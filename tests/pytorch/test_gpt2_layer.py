"""A layer of transformers' GPT-2 is ours: its weights and its output, from `params_of_gpt2`.

The model is small and random, its biases too.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2Model

from tutorial_lib import causal_mask, trace
from tutorial_lib.elements import gallery, inspector
from tutorial_lib.models.language import params_of_gpt2

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "20_scoring_heads.ipynb"
CLOSE = {torch.float64: 1e-10, torch.float32: 1e-5}


def drawn(n_heads=4, n_layers=2):
    """A random GPT2Model of 97 tokens, in eval mode, that shows its attention weights."""
    config = GPT2Config(
        vocab_size=97,
        n_positions=64,
        n_embd=48,
        n_head=n_heads,
        n_layer=n_layers,
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    model = GPT2Model(config).eval().requires_grad_(False)
    for numbers in model.parameters():
        torch.nn.init.normal_(numbers, std=0.3)
    return model


def traced(model, ids, layer):
    """Our trace of one layer, in the model's precision, from what comes to its first norm."""
    part = model.h[layer]
    into = model(ids, output_hidden_states=True).hidden_states[layer]
    X = np.pad(part.ln_1(into)[0].numpy(), ((0, 0), (0, 1)), constant_values=1)
    attn = part.attn
    arrays = (W.numpy() for W in (attn.c_attn.weight, attn.c_attn.bias, attn.c_proj.weight))
    return trace(X, params_of_gpt2(*arrays, attn.num_heads), mask=causal_mask(len(X)))


def theirs(model, ids, layer):
    """The weights and the output of the same layer, as the model makes them."""
    outputs = []
    hook = model.h[layer].attn.register_forward_hook(lambda *given: outputs.append(given[-1][0]))
    weights = model(ids, output_attentions=True).attentions[layer][0]
    hook.remove()
    return weights.numpy(), outputs[0][0].numpy()


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("n_heads", [3, 4])
def test_weights_and_output_are_theirs(n_heads, layer, dtype):
    model, ids = drawn(n_heads).to(dtype), torch.randint(97, (1, 11))
    weights, Y = theirs(model, ids, layer)
    bias = model.h[layer].attn.c_proj.bias.numpy()
    ours = traced(model, ids, layer)
    assert ours.weights.shape == (n_heads, 11, 11)
    np.testing.assert_allclose(ours.weights, weights, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(ours.Y[:, :-1] + bias, Y, rtol=CLOSE[dtype], atol=CLOSE[dtype])
    assert (ours.Y[:, -1] == 0).all()


def shown():
    """The chapter's function of a model, ids and a layer, which its cell with a network calls."""
    sources = ["".join(cell["source"]) for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"]]
    [source] = [source for source in sources if source.startswith("def looks_of_gpt2(")]
    names = {"np": np, "trace": trace, "causal_mask": causal_mask, "params_of_gpt2": params_of_gpt2}
    exec(compile(source, "chapter 20", "exec"), names)
    return names["looks_of_gpt2"]


@pytest.mark.parametrize("layer", [0, 1])
def test_the_lines_of_the_chapter_give_their_weights(layer):
    model, ids = drawn(3), torch.randint(97, (1, 11))
    weights = theirs(model, ids, layer)[0]
    np.testing.assert_allclose(shown()(model, ids, layer), weights, rtol=0, atol=1e-5)


def test_without_the_biases_the_weights_would_not_be_theirs():
    model, ids = drawn(), torch.randint(97, (1, 11))
    ours = traced(model, ids, 0)
    model.h[0].attn.c_attn.bias.zero_()
    assert np.abs(ours.weights - theirs(model, ids, 0)[0]).max() > 0.1


def test_twelve_heads_of_64_tokens_fit_the_gallery_and_the_inspector():
    model, ids = drawn(12), torch.randint(97, (1, 64))
    weights, mask = traced(model, ids, 1).weights, causal_mask(64)
    tokens = [f"token {i}" for i in ids[0].tolist()]
    answers = [(h / 100, "of no matter") for h in range(12)]
    assert "head 11" in gallery(weights, tokens, "Which?", answers, mask=mask).html
    assert "token" in inspector(weights[3:4], tokens, mask=mask).html
