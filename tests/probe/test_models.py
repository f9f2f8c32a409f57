"""What the page says of small models of transformers, and why some of them are flagged."""

import csv
import warnings

import pytest
import torch
import transformers

from tests.probe import small_models
from tests.probe.small_models import FILE, first_layer_report, row, small_model

LINES = list(csv.reader(FILE.read_text(encoding="utf-8").splitlines()))[1:]
ROWS = {line[0]: tuple(line) for line in LINES}
FLAGGED = {model_type for model_type, *_, broken in ROWS.values() if broken}
REAL, PADDING = 8, 3


def model_of(model_type):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return small_model(model_type).double()


def drawn(length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, length, 32, generator=generator, dtype=torch.float64)


@torch.no_grad()
def padded(model, side, seed=1, *, masked=True):
    """Return the outputs of the real tokens behind or before three of padding."""
    text, padding = drawn(REAL, 0), drawn(PADDING, seed)
    right = side == "right"
    X = torch.cat([text, padding] if right else [padding, text], dim=1)
    keep = torch.ones(1, REAL + PADDING, dtype=torch.long)
    keep[:, slice(REAL, None) if right else slice(0, PADDING)] = 0
    out = model(inputs_embeds=X, attention_mask=keep if masked else None)[0]
    return out[:, :REAL] if right else out[:, -REAL:]


def apart(Y, others):
    return float((Y - others).abs().max())


@pytest.mark.parametrize("model_type", ["convbert", "mobilebert", "nystromformer"])
def test_padding_is_mixed_in_by_convolutions_or_landmarks(model_type):
    model = model_of(model_type)
    assert apart(padded(model, "right", 1), padded(model, "right", 2)) > 1e-4


@pytest.mark.parametrize("model_type", ["yoso", "rwkv"])
def test_the_padding_mask_changes_nothing(model_type):
    model = model_of(model_type)
    assert apart(padded(model, "left"), padded(model, "left", masked=False)) == 0
    assert apart(padded(model, "left", 1), padded(model, "left", 2)) > 1e-4


def test_dpr_counts_left_padding_and_takes_no_positions():
    model = model_of("dpr").question_encoder.bert_model
    with torch.no_grad():
        alone = model(inputs_embeds=drawn(REAL, 0))[0]
    assert apart(padded(model, "right"), alone) < 1e-9 < 1e-4 < apart(padded(model, "left"), alone)


def test_ctrl_writes_into_its_input():
    X = drawn(REAL, 0)
    with torch.no_grad():
        model_of("ctrl")(inputs_embeds=X)
    assert apart(X, drawn(REAL, 0)) > 1


def test_mra_without_its_kernel_attends_to_nothing():
    model, X = model_of("mra").float(), drawn(REAL, 0).float()  # zeros of single precision
    other = X.clone()
    other[0, 3] += torch.arange(32)
    with torch.no_grad():
        moved = (model(inputs_embeds=X)[0] - model(inputs_embeds=other)[0]).abs().amax(dim=-1)
    assert (moved[0] > 1e-4).nonzero().flatten().tolist() == [3]


@torch.no_grad()
def test_moshi_keeps_a_window_of_keys_that_it_does_not_use_as_a_whole():
    model, X = model_of("moshi"), drawn(REAL, 0)
    whole, other = model(inputs_embeds=X)[0], X.clone()
    other[0, 0] *= -1
    assert apart(whole[:, -1], model(inputs_embeds=other)[0][:, -1]) > 1e-4
    cache = transformers.DynamicCache(config=model.config)
    steps = [model(inputs_embeds=x, past_key_values=cache)[0] for x in X.split(1, dim=1)]
    apart_by_token = (torch.cat(steps, dim=1) - whole).abs().amax(dim=-1)[0]
    assert apart_by_token[:4].max() < 1e-6 < 1e-4 < apart_by_token[4:].min()


def test_large_scores_overcome_the_mask_of_openai_gpt():
    attention, X = model_of("openai-gpt").h[0].attn, drawn(REAL, 0)
    other = X.clone()
    other[0, -1] *= -1
    moved = []
    with torch.no_grad():
        attention.c_attn.weight.mul_(50)
        for size in (1, 1000):
            moved.append(apart(attention(size * X)[0][:, 0], attention(size * other)[0][:, 0]))
    assert moved[0] == 0 < moved[1]


def test_these_are_the_flagged_ones():
    explained = {"convbert", "mobilebert", "nystromformer", "yoso", "rwkv", "dpr", "ctrl", "mra"}
    assert explained | {"openai-gpt", "moshi"} == FLAGGED


def test_the_table_says_its_version():
    head = FILE.read_text(encoding="utf-8").partition("\n")[0]
    assert f" {transformers.__version__} " in head, "run python -m tests.probe.small_models again"


@pytest.mark.parametrize("model_type", ["ctrl", "gpt2", "roformer"])
def test_a_line_of_the_page_is_found_again(model_type):
    assert row(model_type, first_layer_report(model_type)) == ROWS[model_type]


@pytest.mark.long
def test_every_line_of_the_page_is_found_again():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {line[0]: line for line in small_models.lines()} == ROWS
