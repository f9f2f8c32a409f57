"""A reference shows what no other question sees, and where it is alike no alarm is raised."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.probe import layers
from tests.probe.layers import D_MODEL, attention, band, full, layer
from tests.probe.test_right import with_sink
from tutorial_lib.probe import ProbeError, probe

HIDDEN = {"d_model": D_MODEL, "keep": "keep", "positions": "positions", "causal": True}
MEMORY = {"d_model": D_MODEL, "memory": (7, 9), "memory_keep": "keep"}
HEADS = {"heads": (4, 4), "causal": True, "row_sum": None}
PLAIN = layers.of_scores(layers.hiding)
PAIRS = {  # what is asked, a reference, options, the name that is given, words of the sentence
    "a soft cap": (
        PLAIN,
        layers.of_scores(lambda s, sees: layers.hiding(5 * np.tanh(s / 5), sees)),
        HEADS | {"scale": "1/sqrt(d_k)"},
        "other_than_reference",
        "; its scale: that of the claim, behind a soft cap",
    ),
    "a sink": (PLAIN, with_sink, HEADS, "other_than_reference", "on ordinary arrays"),
    "a scale": (attention(scale=lambda d: 1.0), attention(), HEADS, "scale_missing", "equal keys"),
    "KV heads": (
        attention(),
        attention(order=np.tile),
        HEADS | {"heads": (4, 2)},
        "key_heads_repeated",
        "ordinary arrays",
    ),
    "a window": (layer(band(5)), layer(band(4)), HIDDEN, "window_one_wide", "not on one token"),
    "the width of a scale": (
        layer(rotary=True),
        lambda X, **given: layer(rotary=True)(X * 2**0.5, **given) / 2**0.5,
        HIDDEN,
        "other_than_reference",
        "not on one token, equal tokens",
    ),
    "a memory": (
        layers.crossing,
        lambda X, M, keep=None: layers.crossing(X, 2 * M, keep) / 2,
        MEMORY,
        "other_than_reference",
        "on ordinary tokens",
    ),
}


@pytest.mark.parametrize("words", PAIRS)
def test_outputs_of_another_function_are_found(words):
    function, reference, options, name, sentence = PAIRS[words]
    for one in (function, reference):
        assert "✓ like" in str(probe(one, like=one, **options))
    report = probe(function, like=reference, **options)
    assert report.names == (name,), report
    assert sentence in report.findings[-1].sentence


def test_a_reference_takes_what_the_layer_takes():
    with pytest.raises(ProbeError, match="the reference refuses padding on the right: TypeError"):
        probe(layer(), like=lambda X: layer()(X), d_model=D_MODEL, keep="keep")
    with pytest.raises(ProbeError, match=r"on ordinary tokens .* Give a reference of the same"):
        probe(layer(full), like=lambda X: layer(full)(X)[..., :5], d_model=D_MODEL)


class Turned(nn.Linear):
    """Attention whose queries and keys are turned by angles of pairs that are those of no pairs."""

    def __init__(self, halves):
        super().__init__(D_MODEL, 2 * D_MODEL, bias=False)
        self.halves = halves

    def forward(self, X):
        x, V = super().forward(X).chunk(2, dim=-1)
        angle = torch.arange(X.shape[1])[:, None] / torch.arange(1, 7)
        angle = angle.repeat_interleave(2, dim=-1)
        pairs = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        halves = torch.cat([-x[..., 6:], x[..., :6]], dim=-1)
        x = x * angle.cos() + (halves if self.halves else pairs) * angle.sin()
        return nn.functional.scaled_dot_product_attention(x, x, V, is_causal=True)


def test_a_turn_that_is_no_rotation_is_not_relative():
    wrong, right = Turned(True), Turned(False)
    assert probe.torch(right, causal=True, position="relative", like=right).ok
    report = probe.torch(wrong, causal=True, position="relative")
    assert report.names == ("positions_not_relative",), report
    assert probe.torch(wrong, causal=True, like=right).names == ("other_than_reference",)
    assert probe.torch(Turned(False), causal=True, like=right).ok  # of other weights at first
    own = probe.torch(Turned(False), causal=True, like=right, own_weights=True)
    assert own.names == ("other_than_reference",)
    assert probe.torch(right, causal=True, like=lambda X: right(X.float())).ok


class Dropped(torch.autograd.Function):
    """Dropout of a rate of 1/4 whose backward pass multiplies by a factor of its own."""

    @staticmethod
    def forward(ctx, weights, factor):
        ctx.mask, ctx.factor = torch.rand_like(weights) >= 0.25, factor
        return weights * ctx.mask / 0.75

    @staticmethod
    def backward(ctx, dY):
        return dY * ctx.mask * ctx.factor, None


@pytest.mark.parametrize("factor", [1 / 0.75, 0.25])
def test_the_gradient_of_dropout_is_asked_in_training(factor):
    class Layer(nn.Linear):
        def forward(self, X):
            weights = torch.softmax(X @ X.mT, dim=-1)
            weights = Dropped.apply(weights, factor) if self.training else weights
            return weights @ super().forward(X)

    report = probe.torch(Layer(D_MODEL, D_MODEL), causal=False)
    assert report.names == ("gradient_of_another_function",) * (factor < 1), report
    assert "gradient in training" in [finding.question for finding in report.findings]


def test_the_order_of_a_memory_is_claimed():
    rows = np.random.default_rng(3).normal(size=(99, 9))

    def numbered(X, M, keep=None):
        return layers.crossing(X, M + rows[: M.shape[1]], keep)

    assert probe(layers.crossing, **MEMORY, position="none").ok
    assert probe(numbered, **MEMORY).ok
    assert probe(numbered, **MEMORY, position="none").names == ("positions_used",)
