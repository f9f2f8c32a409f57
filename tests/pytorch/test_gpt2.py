"""The measures of chapter 20 on a GPT-2: on a small one with random weights, against known facts.

No trained weights are in the environment. The tokenizer is a stand-in that splits at spaces.
"""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tutorial_lib import Params, causal_mask, show, trace
from tutorial_lib.pytorch import gpt2

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "20_scoring_heads.ipynb"
LAYERS, H, D_MODEL, T, N = 2, 3, 24, 7, 5


def random_gpt2(attention="eager"):
    """A random GPT-2 of 97 tokens in float64, in eval mode."""
    sizes = {"n_positions": 32, "n_embd": D_MODEL, "n_head": H, "n_layer": LAYERS}
    config = GPT2Config(vocab_size=97, attn_implementation=attention, **sizes)
    config.bos_token_id = config.eos_token_id = 0
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture(scope="module")
def model():
    return random_gpt2()


@pytest.fixture(scope="module")
def prompts():
    rng = torch.Generator().manual_seed(1)
    ids, other_ids = torch.randint(97, (2, N, T), generator=rng)
    target = torch.randint(T, (N,), generator=rng)
    right_ids, wrong_ids = torch.arange(N), torch.arange(N) + 40
    return gpt2.Prompts(ids, other_ids, target, right_ids, wrong_ids)


def splitter():
    """A stand-in for a tokenizer: each word is a token, with or without a space in front."""
    token_ids = {}
    return lambda text: [token_ids.setdefault(word, len(token_ids)) for word in text.split()]


def test_run_is_the_models_own(model, prompts):
    run = gpt2.run_gpt2(model, prompts.ids)
    with torch.no_grad():
        torch.testing.assert_close(run.logits, model(prompts.ids).logits[:, -1])
    assert run.weights.shape == (N, LAYERS, H, T, T)
    assert run.heads.shape == (N, LAYERS, H, T, D_MODEL // H)
    torch.testing.assert_close(run.weights.sum(-1), torch.ones(N, LAYERS, H, T).double())


def test_heads_are_those_of_the_books_layer(model, prompts):
    block = model.transformer.h[0]
    run, X = gpt2.run_gpt2(model, prompts.ids), model.transformer.wte(prompts.ids)
    X = block.ln_1(X + model.transformer.wpe(torch.arange(T))).detach().numpy()
    packed, bias = (W.detach().numpy() for W in (block.attn.c_attn.weight, block.attn.c_attn.bias))
    X = np.pad(X, ((0, 0), (0, 0), (0, 1)), constant_values=1)  # a bias is a row, times one
    rows = np.concatenate([packed, bias[None]]).reshape(D_MODEL + 1, 3, H, -1)
    W_O = np.zeros((D_MODEL, D_MODEL + 1))
    ours = trace(X, Params(*np.moveaxis(rows, (1, 2), (0, 1)), W_O), mask=causal_mask(T))
    np.testing.assert_allclose(run.heads[:, 0].numpy(), ours.heads, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.weights[:, 0].numpy(), ours.weights, rtol=1e-10, atol=1e-12)


def test_own_outputs_change_nothing_and_zeros_are_rows_of_w_o_at_zero(model, prompts):
    run = gpt2.run_gpt2(model, prompts.ids)
    for layer, head in np.ndindex(LAYERS, H):
        own_output = {(layer, head): run.heads[:, layer, head]}
        torch.testing.assert_close(gpt2.run_gpt2(model, prompts.ids, own_output).logits, run.logits)
        zero_output = {(layer, head): torch.zeros(D_MODEL // H)}
        ablated_run = gpt2.run_gpt2(model, prompts.ids, zero_output)
        pruned = random_gpt2().requires_grad_(False)
        pruned.transformer.h[layer].attn.c_proj.weight.unflatten(0, (H, -1))[head] = 0
        torch.testing.assert_close(ablated_run.logits, gpt2.run_gpt2(pruned, prompts.ids).logits)
        assert not torch.allclose(ablated_run.logits, run.logits)
        assert (ablated_run.heads[:, layer, head] == 0).all()


def test_terms_sum_to_the_logit_difference(model, prompts):
    run, body = gpt2.run_gpt2(model, prompts.ids), model.transformer
    right_ids, wrong_ids = prompts.right, prompts.wrong
    heads, mlps = gpt2.attribute(model, run, right_ids, wrong_ids)
    with torch.no_grad():
        other_terms = body.wte(prompts.ids[:, -1]) + body.wpe(torch.tensor(T - 1))
        other_terms = other_terms + sum(block.attn.c_proj.bias for block in body.h)
        scale = (run.last.var(-1, correction=0) + body.ln_f.eps).sqrt()[:, None]
        other_terms = (
            other_terms - other_terms.mean(-1, keepdim=True)
        ) / scale * body.ln_f.weight + body.ln_f.bias
        U = model.lm_head.weight
        other_terms = (other_terms * (U[right_ids] - U[wrong_ids])).sum(-1)
    term_sum = heads.sum((1, 2)) + mlps.sum(1) + other_terms
    torch.testing.assert_close(term_sum, gpt2.lead(run.logits, right_ids, wrong_ids))


def test_measures_by_hand(model, prompts):
    ids, other_ids, target, right_ids, wrong = prompts
    measures = dict(gpt2.measure_heads(model, prompts))
    assert list(measures) == [0, 1]
    run, other_run = gpt2.run_gpt2(model, ids), gpt2.run_gpt2(model, other_ids)
    layer, head = 1, 2
    weight = np.mean([run.weights[n, layer, head, -1, target[n]] for n in range(N)])
    mean_output = torch.cat([run.heads, other_run.heads])[:, layer, head].mean((0, 1))
    ablated = gpt2.run_gpt2(model, ids, {(layer, head): mean_output}).logits
    patched = gpt2.run_gpt2(model, ids, {(layer, head): other_run.heads[:, layer, head]}).logits
    logit_pairs = [
        torch.stack([x[range(N), t] for t in (right_ids, wrong)], -1) for x in (run.logits, ablated)
    ]
    full_loss, ablated_loss = (-pair.log_softmax(-1)[:, 0].mean() for pair in logit_pairs)
    all_logits = run.logits, other_run.logits, patched
    logit_leads = [(x[range(N), right_ids] - x[range(N), wrong]).mean() for x in all_logits]
    patch_effect = (logit_leads[2] - logit_leads[0]) / (logit_leads[1] - logit_leads[0])
    term = gpt2.attribute(model, run, right_ids, wrong)[0][:, layer, head].mean()
    expected = torch.tensor([weight, term, ablated_loss - full_loss, patch_effect])
    torch.testing.assert_close(measures[layer][head], expected, check_dtype=False)


def test_without_a_change_there_is_no_patching_effect(model, prompts):
    equal_prompts = prompts._replace(other=prompts.ids.clone())
    _, measures = next(gpt2.measure_heads(model, equal_prompts))
    assert torch.isnan(measures[:, 3]).all()


def test_hooks_are_gone_after_a_run_that_fails(model, prompts):
    with pytest.raises(RuntimeError):
        gpt2.run_gpt2(model, prompts.ids, {(0, 0): torch.zeros(D_MODEL + 1)})
    for block in model.transformer.h:
        assert not block.attn.c_proj._forward_pre_hooks
        assert not block.mlp._forward_hooks


@pytest.mark.parametrize("task", gpt2.FRAMES)
def test_prompts_differ_in_the_word_that_decides(task):
    encode = splitter()
    ids, other_ids, target, right_ids, wrong_ids = gpt2.make_prompts(encode, task)
    assert ids.shape == other_ids.shape
    assert ((ids != other_ids).sum(1) == 1).all()
    assert (right_ids != wrong_ids).all()
    assert len(set(target.tolist())) == 2  # no fixed offset finds all of them
    deciding_ids = ids[range(len(ids)), target]
    if task == "indirect object":
        assert (deciding_ids == right_ids).all()
        assert ((ids == right_ids[:, None]).sum(1) == 1).all()
        assert ((ids == wrong_ids[:, None]).sum(1) == 2).all()
        assert ((other_ids == right_ids[:, None]).sum(1) == 2).all()
    else:
        changed_places = (ids != other_ids).int().argmax(1)
        assert (changed_places == target).all()


@pytest.mark.parametrize(
    ("make_model", "error", "message"),
    [
        (lambda: random_gpt2().train(), ValueError, "train mode"),
        (lambda: random_gpt2("sdpa"), ValueError, "eager"),
        (lambda: random_gpt2().transformer, TypeError, "GPT2LMHeadModel"),
    ],
)
def test_models_that_cannot_be_measured_are_refused(make_model, error, message, prompts):
    with pytest.raises(error, match=message):
        gpt2.run_gpt2(make_model(), prompts.ids)


def test_bad_heads_tasks_and_tokens_are_refused(model, prompts):
    for head in ((LAYERS, 0), (0, H), (-1, 0)):
        with pytest.raises(ValueError, match="expected a layer from 0 to 1"):
            gpt2.run_gpt2(model, prompts.ids, {head: torch.zeros(D_MODEL // H)})
    with pytest.raises(ValueError, match="expected one of 'indirect object'"):
        gpt2.make_prompts(splitter(), "agreement")
    with pytest.raises(ValueError, match="is 2 tokens"):
        gpt2.make_prompts(lambda text: [0, *splitter()(text)], "attractor")


def test_guarded_cell_of_the_chapter_measures_every_head(model, capsys):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    [source] = [source for source in sources if source.startswith("MEASURE = False")]
    load_model, tokenizer = mock.Mock(return_value=model), SimpleNamespace(encode=splitter())
    stub_library = SimpleNamespace(
        AutoTokenizer=SimpleNamespace(from_pretrained=lambda name: tokenizer),
        AutoModelForCausalLM=SimpleNamespace(from_pretrained=load_model),
    )
    modules = {"transformers": stub_library}  # no weights are downloaded
    stub_importlib = SimpleNamespace(
        import_module=lambda name: modules.get(name) or importlib.import_module(name)
    )
    namespace = {"importlib": stub_importlib, "show": show}
    exec(source, namespace)
    assert not load_model.called, "as stored, nothing is measured"
    assert capsys.readouterr().out == ""
    exec(source.replace("MEASURE = False", "MEASURE = True"), namespace)
    load_model.assert_called_once_with("gpt2", attn_implementation="eager")
    printed_text = capsys.readouterr().out
    for words in (*gpt2.COLUMNS, *(f"{layer}.{head}" for layer, head in np.ndindex(LAYERS, H))):
        assert words in printed_text
