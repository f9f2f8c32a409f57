"""Layers that are right are described as what they are, and raise no alarm."""

import numpy as np
import pytest

from tests.probe import layers
from tests.probe.layers import D_MODEL, PARAMS, attention, band, chunks, full, layer
from tutorial_lib import causal_mask, multi_head_attention
from tutorial_lib.probe import Cache, ProbeError, probe
from tutorial_lib.probe.dependence import Pattern
from tutorial_lib.variants.patterns import attention_with_sink
from tutorial_lib.variants.positions import alibi_bias, alibi_slopes

OPTIONS = {"d_model": D_MODEL, "keep": "keep", "positions": "positions"}


def blocks(T):
    return Pattern(causal=True, block=4).mask(T)


def sinks(T):
    return Pattern(causal=True, window=3, sinks=2).mask(T)


HIDDEN = {
    "the book's": (
        lambda X: multi_head_attention(X, PARAMS, mask=causal_mask(X.shape[1])),
        {"d_model": D_MODEL, "causal": True, "window": None, "position": "none"},
    ),
    "bidirectional": (layer(full), OPTIONS | {"causal": False, "position": "none"}),
    "rotary": (
        layer(rotary=True),
        OPTIONS | {"causal": True, "position": "relative", "cache": chunks()},
    ),
    "a window": (layer(band(4), rotary=True), {"d_model": D_MODEL, "causal": True, "window": 4}),
    "a window of 40": (layer(band(40)), {"d_model": D_MODEL, "causal": True, "window": 40}),
    "blocks": (layer(blocks), {"d_model": D_MODEL, "causal": True, "block": 4}),
    "sinks": (layer(sinks), {"d_model": D_MODEL, "causal": True, "window": 3, "sinks": 2}),
}


def with_slopes(Q, K, V):
    """Attention with a bias by distance."""
    T, S = Q.shape[2], K.shape[2]
    scores = Q @ np.swapaxes(K, -1, -2) * Q.shape[-1] ** -0.5
    scores = scores + alibi_bias(T, S, alibi_slopes(Q.shape[1]))
    return layers.softmax(np.where(causal_mask(T, S), scores, -np.inf)) @ V


def with_sink(Q, K, V):
    """Attention with a sink for each head."""
    scores = Q @ np.swapaxes(K, -1, -2) * Q.shape[-1] ** -0.5
    mask = causal_mask(Q.shape[2], K.shape[2])
    return attention_with_sink(scores, np.zeros(Q.shape[1]), mask=mask) @ V


def with_soft_cap(scores, sees):
    """Cap the scores before the mask."""
    return layers.hiding(30 * np.tanh(scores / 30), sees)


FUNCTIONS = {
    "a memory": (layers.crossing, {"d_model": D_MODEL, "memory": (7, 9), "memory_keep": "keep"}),
    "a soft cap": (
        layers.of_scores(with_soft_cap),
        {"heads": (4, 2), "causal": True, "scale": "1/sqrt(d_k)"},
    ),
    "shared KV heads": (
        attention(),
        {"heads": (6, 2), "causal": True, "scale": "1/sqrt(d_k)", "corner": "last", "bias": "none"},
    ),
    "tiled KV heads": (attention(order=np.tile), {"heads": (6, 2), "key_heads": "tiled"}),
    "slopes": (with_slopes, {"heads": (4, 4), "causal": True, "row_sum": 1, "bias": "nearer"}),
    "slopes of six heads": (with_slopes, {"heads": (6, 6), "causal": True, "bias": "alibi"}),
    "a sink": (with_sink, {"heads": (4, 4), "causal": True, "row_sum": None}),
    "a mask": (
        attention(mask=full),
        {"heads": (3, 1), "mask": "given", "row_sum": 1, "empty_row": "zero"},
    ),
    "another order of axes": (
        lambda Q, K, V: np.swapaxes(attention()(*(np.swapaxes(x, 1, 2) for x in (Q, K, V))), 1, 2),
        {"heads": (6, 2), "axes": "BTHd", "causal": True},
    ),
}


@pytest.mark.parametrize("name", HIDDEN | FUNCTIONS)
def test_a_right_layer_is_right(name):
    function, options = (HIDDEN | FUNCTIONS)[name]
    report = probe(function, **options)
    assert report.ok, report
    assert not report.names, report


@pytest.mark.parametrize("name", HIDDEN | FUNCTIONS)
def test_a_right_layer_is_right_in_single_precision(name):
    function, options = (HIDDEN | FUNCTIONS)[name]

    def single(*arrays, **given):
        return function(*(x.astype(np.float32) for x in arrays), **given).astype(np.float32)

    report = probe(single, **options)
    assert report.ok, report


def test_a_wide_layer_that_computes_in_single_precision_is_right():
    W = np.random.default_rng(1).normal(size=(4, 128, 128)).astype(np.float32) * 128**-0.5

    def attend(X):
        Q, K, V = (X.astype(np.float32) @ W[i] for i in range(3))
        return layers.hiding(Q @ np.swapaxes(K, 1, 2) / 4, causal_mask(X.shape[1])) @ V @ W[3]

    report = probe(attend, d_model=128, causal=True)
    assert report.ok, report


def test_positions_that_follow_the_padding_are_not_read_off_it():
    rows = np.random.default_rng(2).normal(size=(99, D_MODEL))

    def numbered(X, keep=None):
        keep = np.ones(X.shape[:2], bool) if keep is None else keep
        return layer()(X + rows[np.maximum(keep.cumsum(axis=1) - 1, 0)], keep)

    options = {"d_model": D_MODEL, "keep": "keep", "causal": True, "sides": ("left",)}
    report = probe(numbered, **options, position="absolute")
    assert report.ok, report
    assert report.facts["position"] == "absolute"


@pytest.mark.parametrize("name", HIDDEN)
def test_a_layer_is_described_without_a_claim(name):
    function, options = HIDDEN[name]
    claimed = {word: options[word] for word in ("causal", "block", "sinks") if word in options}
    window = options.get("window")
    claimed["window"] = window if window and window < 14 else None
    asked = {name: options[name] for name in OPTIONS if name in options}
    report = probe(function, **asked)
    assert report.ok, report
    assert report.pattern == Pattern(**claimed), report


def test_weights_beside_the_outputs_are_left_out():
    assert probe(lambda X: (layer()(X), 0), d_model=D_MODEL, causal=True).ok
    assert probe(lambda *QKV: (attention()(*QKV), 0), heads=(4, 2), causal=True).ok


def test_a_bias_by_distance_and_a_sink_are_described():
    slopes, sink = (probe(FUNCTIONS[name][0], heads=(4, 4)) for name in ("slopes", "a sink"))
    assert slopes.facts["bias"] == "nearer"
    smallest, largest = sink.facts["row_sum"]
    assert 0 < smallest < largest < 1


def test_an_attention_of_torch_is_right():
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    report = probe.torch(
        lambda Q, K, V, mask=None: attend(Q, K, V, attn_mask=mask, enable_gqa=True),
        heads=(6, 2),
        mask="mask",
        scale="1/sqrt(d_k)",
    )
    assert report.ok, report
    assert report.facts["key_heads"] == "repeated"
    first = probe.torch(lambda Q, K, V: attend(Q, K, V, is_causal=True), heads=(2, 2), causal=True)
    assert first.facts["corner"] == "first"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_right():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def attend(Q, K, V):
        (T, S), ahead = (Q.shape[2], K.shape[2]), K.shape[2] - Q.shape[2]
        near = lambda b, h, i, j: (j <= i + ahead) & (i + ahead - j < 4)  # noqa: E731
        mask = create_block_mask(near, None, None, T, S, device="cpu")
        return flex_attention(Q, K, V, block_mask=mask, enable_gqa=True)

    claims = {"causal": True, "window": 4, "scale": "1/sqrt(d_k)", "corner": "last"}
    report = probe.torch(attend, heads=(6, 2), **claims)
    assert report.ok, report


def test_modules_of_torch_are_right():
    from torch import nn

    layer = nn.TransformerEncoderLayer(24, 3, 40, batch_first=True)
    report = probe.torch(layer, keep="~src_key_padding_mask", causal=False, position="none")
    assert report.ok, report
    assert {"gradient", "training", "precision"} <= {row["question"] for row in report.table()}
    assert probe.torch(nn.MultiheadAttention(24, 3)).names == ("batch_as_tokens",)


def test_the_decoder_to_take_away_is_right():
    from tutorial_lib.pytorch.decoder_attention import (
        DecoderAttention,
        DecoderCache,
        Rotation,
        rotary_frequencies,
    )

    def step(module, X, state):
        state = DecoderCache(module, len(X)) if state is None else state
        return module(X, cache=state), state

    def rewind(state, length):
        state.rewind(int(state.length) - length)
        return state

    decoder = DecoderAttention(24, 6, n_kv_heads=2, rotation=Rotation(rotary_frequencies(4)))
    cache = Cache(step, lambda module: None, rewind)
    report = probe.torch(decoder, causal=True, cache=cache)
    assert report.ok, report
    assert sum(row["question"].startswith("cache") for row in report.table()) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windwo": 3}, "nothing can be claimed with 'windwo'"),
        ({"window": 0}, "window=0 is no claim; expected how many tokens"),
        ({"position": "rotary"}, "expected one of none, relative, absolute"),
        ({"window": 3, "block": 4}, "claim the one that holds"),
        ({"d_model": None}, "the width of the layer is not known"),
        ({"sides": ("left",)}, "claimed without keep="),
    ],
)
def test_a_claim_without_a_meaning_is_refused(options, message):
    with pytest.raises(ProbeError, match=message):
        probe(layer(), **{"d_model": D_MODEL} | options)


def test_a_layer_of_another_form_is_refused():
    with pytest.raises(ProbeError, match="expected an output per token"):
        probe(lambda X: X[:, 1:], d_model=5)
    with pytest.raises(ProbeError, match="say axes='BTHd'"):
        probe(lambda Q, K, V: np.swapaxes(attention()(Q, K, V), 1, 2), heads=(4, 2))
    with pytest.raises(ProbeError, match="does not take arrays of NumPy"):
        probe(lambda Q, K, V: Q.unsqueeze(0) if isinstance(Q, str) else len(3), heads=(4, 2))
    with pytest.raises(ProbeError, match="do not share 3 KV heads evenly"):
        probe(attention(), heads=(4, 3))
