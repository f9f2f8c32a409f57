"""The decoder: equal to its NumPy twin, to loops, and to the layers of GPT-2 and Llama.

Its errors are the subject of test_doors.py.
"""

import copy
import doctest
import io
import itertools
import pickle
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import tutorial_lib.pytorch
from experiments.torch_attention import compiler as cxx
from tests.library.variants.compositions import (
    CHUNKS,
    D_K,
    D_MODEL,
    FREQUENCIES,
    GROUPS,
    LAYERS,
    PADS,
    B,
    Grouped,
    H,
    Patterned,
    T,
    X,
    expected,
)
from tests.library.variants.compositions import (
    rows_in_chunks as fed,
)
from tests.sampling import long
from tutorial_lib import (
    causal_mask,
    checks,
    multi_head_attention_backward,
    project_heads,
    trace,
)
from tutorial_lib.pytorch import (
    DecoderAttention,
    DecoderCache,
    MultiHeadAttention,
    Rotation,
    Sight,
    decoder,
    decoder_from_params,
    params_from_decoder,
)
from tutorial_lib.pytorch.decoder import fused_groups, sunk_groups
from tutorial_lib.pytorch.doors import INTEGERS
from tutorial_lib.variants.grouped import GroupedParams, grouped_attention
from tutorial_lib.variants.positions import rotate

HELD = [name for name, layer in LAYERS.items() if type(layer) is Grouped]
HELD = [name for name in HELD if LAYERS[name].slopes is None]
X_T = torch.from_numpy(X)
NO_SINK = -np.inf
SINK = np.array([0.5, -1.0, 2.0, 0.0])
HALVES = torch.float32, torch.bfloat16, torch.float16
WINDOWS = 1, 3, 5, T + 9  # only one; shorter than a chunk; longer; longer than the sequence
SINKS = {"no sink": None, "sinks": SINK}


def sighted(name, window, sink):
    """A composition with a window and sinks, on keys that are all cached."""
    return Patterned(**vars(LAYERS[name]), window=window, sink=SINKS[sink])


SIGHTED = (
    "2 KV heads, halves rotated",
    *long("4 KV heads, no positions", "1 KV heads, interleaved pairs rotated"),
)


def made(layer):
    """The decoder of a composition."""
    rotation = None if layer.frequencies is None else Rotation(layer.frequencies, half=layer.half)
    options = {name: getattr(layer, name, None) for name in ("window", "sink", "qk_norm")}
    sight = Sight(**options, eps=getattr(layer, "eps", 0.0))
    return decoder_from_params(layer.params, rotation=rotation, sight=sight).requires_grad_(False)


def narrow(layer):
    """The composition with values as wide as its keys, which PyTorch's fast kernels expect."""
    p = layer.params
    W_O = p.W_O.reshape(H, -1, D_MODEL)[:, :D_K].reshape(-1, D_MODEL)
    params = GroupedParams(p.W_Q, p.W_K, p.W_V[..., :D_K], W_O)
    return replace(layer, params=params)


def cached(module):
    """A decoder as a layer of arrays."""

    def step(X, cache):
        Y, cache = module.step(torch.from_numpy(X), cache)
        return Y.numpy(), cache

    return SimpleNamespace(empty=partial(DecoderCache.empty, module), step=step)


def pad_of(pad, sequence=...):
    """Numbers of padding tokens as a tensor, of all sequences or of one."""
    return None if PADS[pad] is None else torch.as_tensor(PADS[pad][sequence])


def assert_equal(found, right):
    """Compare to twelve digits."""
    np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


# --- equal to loops and to NumPy ---


@pytest.mark.parametrize("n", CHUNKS)
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", HELD)
def test_every_chunk_gives_what_numpy_gives(name, pad, n):
    assert_equal(fed(cached(made(LAYERS[name])), pad, n), fed(LAYERS[name], pad, n))
    fast = narrow(LAYERS[name])
    assert_equal(fed(cached(made(fast)), pad, n), fed(fast, pad, n))


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", HELD)
def test_whole_sequences_give_the_rows_of_plain_loops(name, pad):
    Y = made(LAYERS[name])(X_T, pad=pad_of(pad))
    np.testing.assert_allclose(Y.numpy(), expected(name, pad), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sight", [Sight(), Sight(window=150, sink=SINK)], ids=["all", "sighted"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_padding_may_be_an_integer_of_any_type(dtype, sight):
    torch.manual_seed(0)
    options = {
        "n_kv_heads": 2,
        "sizes": (D_K, D_K),
        "rotation": Rotation(FREQUENCIES),
        "sight": sight,
    }
    module = DecoderAttention(D_MODEL, H, **options).double().requires_grad_(False)
    tokens = torch.randn(B, 300, D_MODEL, dtype=torch.float64)  # more than int8 and uint8 count
    pad = torch.arange(5, 5 + B).to(dtype)
    whole, chunks = module(tokens, pad=pad), []
    kept = DecoderCache.empty(module, 300, batch=(B,), pad=pad)
    for chunk in tokens.split((100, 199, 1), dim=1):
        Y, kept = module.step(chunk, kept)
        chunks.append(Y)
    for b, left in enumerate(range(5, 5 + B)):
        unpadded_rows = module(tokens[b, left:])
        for Y in (whole, torch.cat(chunks, dim=1)):
            assert_equal(Y[b, left:].numpy(), unpadded_rows.numpy())


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", SIGHTED)
def test_windows_and_sinks_are_those_of_numpy_and_of_plain_loops(name, window, sink, monkeypatch):
    layer = sighted(name, window, sink)
    module = made(layer)
    for pad in PADS:
        right = fed(layer, pad, T)
        np.testing.assert_allclose(right, plain_rows(layer, pad), rtol=1e-10, atol=1e-12)
        for block in (2, 64):
            monkeypatch.setattr(decoder, "BLOCK", block)
            assert_equal(module(X_T, pad=pad_of(pad)).numpy(), right)
            for n in CHUNKS:
                assert_equal(fed(cached(module), pad, n), right)


def take_the_path_of(graph, monkeypatch):
    """Run what a graph of torch.compile or of torch.export runs, without one."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: graph == "export")


GRAPHS = "compile", "export"


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_rows_of_a_graph_are_those_of_the_loop_over_blocks(graph, window, sink, monkeypatch):
    take_the_path_of(graph, monkeypatch)
    layer = sighted("2 KV heads, halves rotated", window, sink)
    module = made(layer)
    for pad, block in itertools.product(PADS, (2, 64)):
        monkeypatch.setattr(decoder, "BLOCK", block)
        right = fed(layer, pad, T)
        assert_equal(module(X_T, pad=pad_of(pad)).numpy(), right)
        assert_equal(module(X_T[0], pad=pad_of(pad, 0)).numpy(), right[0])
        for n in CHUNKS:
            assert_equal(fed(cached(module), pad, n), right)


@pytest.mark.parametrize("sight", ["window", "window and sinks"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_gradients_of_a_graph_are_those_of_the_loop_over_blocks(graph, sight, monkeypatch):
    module, gradients = sighted_module(sight).requires_grad_(), []
    monkeypatch.setattr(decoder, "BLOCK", 2)
    for path in (lambda *_: None, take_the_path_of):
        path(graph, monkeypatch)
        loss = module(X_T, pad=pad_of("padded")).square().sum()
        gradients.append(torch.autograd.grad(loss, list(module.parameters())))
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def plain_rows(layer, pad):
    """The rows of each sequence by itself, in plain loops; zeros for its padding."""
    rows = np.zeros(X.shape)
    for b in range(B):
        start = 0 if PADS[pad] is None else PADS[pad][b]
        rows[b, start:] = layer.loops(X[b, start:])
    return rows


def test_a_window_of_all_keys_and_sinks_that_take_nothing_are_the_layer():
    name = "2 KV heads, halves rotated"
    layer = replace(sighted(name, T, "no sink"), sink=np.full(H, NO_SINK))
    assert_equal(made(layer)(X_T).numpy(), expected(name, "no padding"))


def test_a_row_of_padding_is_zero_where_no_head_has_a_sink():
    layer = replace(sighted("2 KV heads, halves rotated", 3, "no sink"), sink=np.full(H, NO_SINK))
    Y = made(layer)(X_T, pad=torch.tensor(PADS["padded"]))
    for b, left in enumerate(PADS["padded"]):
        assert not Y[b, :left].any()
        assert Y[b, left:].isfinite().all()
        assert (Y[b, left:] != 0).any()


@pytest.mark.parametrize(("given", "single"), [(1e39, False), (1e5, True)])
def test_a_sink_too_large_for_its_precision_takes_everything(given, single):
    module = DecoderAttention(D_MODEL, H, sight=Sight(sink=np.full(H, given)))
    module = (module.half() if single else module).requires_grad_(False)
    assert module.sink.isposinf().all()
    assert not module(torch.ones(3, D_MODEL, dtype=module.sink.dtype)).any()


def test_a_sink_may_stay_in_single_precision_beside_halves():
    module = DecoderAttention(D_MODEL, H, sight=Sight(sink=SINK)).requires_grad_(False)
    X = torch.ones(3, D_MODEL, dtype=torch.bfloat16)
    Y = module.bfloat16()(X)
    module.sink.data = module.sink.data.float()
    torch.testing.assert_close(module(X), Y)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_sink_rounds_to_halves_only_weights_and_heads(autocast):
    torch.manual_seed(0)
    Q, K, V = (2 * torch.randn(3, 4, 300, 64)).bfloat16()
    right = F.scaled_dot_product_attention(*(A.double() for A in (Q, K, V)), is_causal=True)
    mask, none = torch.ones(300, 300, dtype=torch.bool).tril(), torch.full((4,), NO_SINK)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        heads = sunk_groups(Q, K, V, none, mask=mask)
    # Each of the two roundings costs at most half an eps of the largest value: with rounded scores
    # it would be 0.098, and the bound is 0.07.
    assert (heads - right).abs().max() <= torch.finfo(torch.bfloat16).eps * V.abs().max()


def test_a_sink_is_a_key_of_zeros_under_a_mask_of_floats():
    torch.manual_seed(0)
    Q, K, V = torch.randn(3, 1, H, 9, D_K, dtype=torch.float64)
    seen, sink = torch.ones(9, 9, dtype=torch.bool).tril(), torch.from_numpy(SINK)
    scores = torch.zeros(1, H, 9, 9, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    scores = torch.cat((scores, sink[:, None, None].expand(1, H, 9, 1)), dim=-1)
    K_0, V_0 = (F.pad(A, (0, 0, 0, 1)) for A in (K, V))
    fused = F.scaled_dot_product_attention(Q, K_0, V_0, attn_mask=scores)
    torch.testing.assert_close(sunk_groups(Q, K, V, sink, mask=seen), fused)


@pytest.mark.filterwarnings("ignore:Flash attention:UserWarning", "ignore:Both fused:UserWarning")
def test_a_flash_kernel_takes_no_mask_on_cuda_and_none_that_is_learned_on_the_cpu():
    cuda = torch.ops.aten._scaled_dot_product_flash_attention.default._schema
    assert {argument.name for argument in cuda.arguments} == {
        *("query", "key", "value"),
        *("dropout_p", "is_causal", "return_debug_mask", "scale"),
    }
    Q, K, V = torch.ones(3, 1, H, 5, D_K)
    mask = torch.zeros(1, H, 5, 5)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert F.scaled_dot_product_attention(Q, K, V, attn_mask=mask).isfinite().all()
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(Q, K, V, attn_mask=mask.requires_grad_())


def test_blocks_of_a_long_text_are_one_mask():
    torch.manual_seed(0)
    long = torch.randn(200, D_MODEL, dtype=torch.float64)
    for sink in SINKS:
        layer = sighted("2 KV heads, halves rotated", 70, sink)
        Y = made(layer)(long).numpy()
        cache = layer.empty(200)
        assert_equal(Y, layer.step(long.numpy(), cache)[0])


@pytest.mark.parametrize("pad", PADS)
def test_a_window_keeps_as_many_tokens_as_it_looks_at_however_many_come(pad):
    layer = sighted("2 KV heads, halves rotated", 3, "sinks")
    module, twin = made(layer), layer.empty(40 * T, batch=(B,), pad=PADS[pad])
    kept = DecoderCache.empty(module, 9, batch=(B,), pad=PADS[pad])
    start = [buffer.data_ptr() for buffer in kept.buffers]
    for n in (2, 5, 1, 1, T, 3, 1, 2, 2) * 4:  # across the ring's end, and around it
        Y, kept = module.step(X_T[:, -n:], kept)
        right, twin = layer.step(X[:, -n:], twin)
        assert_equal(Y.numpy(), right)
        assert_equal(kept.K.numpy(), twin.K[..., -3:, :])
        assert_equal(kept.V.numpy(), twin.V[..., -3:, :])
        assert_equal(kept.positions(2).numpy(), twin.positions(2))
        assert_equal(kept.mask(2).numpy(), layer.mask(twin, 2))
    assert (kept.length, kept.capacity, kept.buffers[0].shape[-2]) == (100, 3, 3)
    assert [buffer.data_ptr() for buffer in kept.buffers] == start


@pytest.mark.long
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
def test_check_of_the_chapter_finds_nothing_in_a_window(window, sink, capsys):
    layer = cached(made(sighted("2 KV heads, halves rotated", window, sink)))
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


@pytest.mark.long
@pytest.mark.parametrize("name", HELD)
def test_check_of_the_chapter_finds_nothing(name, capsys):
    layer = cached(made(LAYERS[name]))
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("padded", [False, True])
def test_any_batch_axes_are_those_of_numpy(batch, padded):
    layer = LAYERS["2 KV heads, halves rotated"]
    tokens = np.random.default_rng(7).standard_normal((*batch, T, D_MODEL))
    pad = np.arange(np.prod(batch, dtype=int)).reshape(batch) % 3 if padded else None
    ours = cached(made(layer))
    kept, twin = (each.empty(T, batch=batch, pad=pad) for each in (ours, layer))
    for start, end in ((0, 3), (3, 4), (4, T)):
        Y, kept = ours.step(tokens[..., start:end, :], kept)
        right, twin = layer.step(tokens[..., start:end, :], twin)
        assert_equal(Y, right)
        assert_equal(kept.K, twin.K)
        assert_equal(kept.V, twin.V)
        assert_equal(kept.mask(2).numpy(), twin.mask(2))
        assert_equal(kept.positions(2).numpy(), twin.positions(2))
    assert (kept.batch, kept.capacity, kept.length) == (twin.batch, twin.capacity, twin.length)


EVERY_SIGHT = {
    "all keys": Sight(),
    "window": Sight(window=3),
    "sinks": Sight(sink=SINK),
    "window and sinks": Sight(window=3, sink=SINK),
}


def sighted_module(sight):
    """A float64 decoder of two KV heads with a rotation and a sight."""
    options = {"n_kv_heads": 2, "sizes": (D_K, D_K), "rotation": Rotation(FREQUENCIES)}
    module = DecoderAttention(D_MODEL, H, **options, sight=EVERY_SIGHT[sight])
    return module.double().requires_grad_(False)


@pytest.mark.parametrize("sight", EVERY_SIGHT)
@pytest.mark.parametrize("padded", [False, True])
def test_an_empty_batch_stays_empty(sight, padded):
    module, tokens = sighted_module(sight), X_T[:0]
    pad = torch.zeros(0, dtype=torch.int64) if padded else None
    assert module(tokens, pad=pad).shape == (0, T, D_MODEL)
    assert module(tokens[:, :1], pad=pad).shape == (0, 1, D_MODEL)


@pytest.mark.parametrize("sight", EVERY_SIGHT)
@pytest.mark.parametrize("pad", PADS)
def test_shapes_can_be_asked_for_without_numbers(sight, pad):
    module, tokens = sighted_module(sight).to("meta"), X_T.to("meta")
    pad = None if PADS[pad] is None else pad_of(pad).to("meta")
    kept = DecoderCache.empty(module, T, batch=(B,), pad=pad)
    Y, kept = module.step(tokens[:, :5], kept)
    for found, n in (
        (module(tokens, pad=pad), T),
        (Y, 5),
        (module.step(tokens[:, 5:], kept)[0], T - 5),
    ):
        assert (found.shape, found.device.type) == ((B, n, D_MODEL), "meta")


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_rotation_is_that_of_numpy(half, n):
    positions = np.array([0, 1, 7, 100_000])
    Q = np.random.default_rng(8).standard_normal((B, H, 4, D_K))
    rotation = Rotation(FREQUENCIES[:n], half=half)
    rotated = rotation(torch.from_numpy(Q), torch.from_numpy(positions))
    assert_equal(rotated.numpy(), rotate(Q, positions, FREQUENCIES[:n], half=half))


CONVERSIONS = {
    "half": (torch.float16, lambda module, _: module.half()),
    "bfloat16": (torch.bfloat16, lambda module, _: module.bfloat16()),
    **{f"to {dtype}": (dtype, lambda module, dtype: module.to(dtype)) for dtype in HALVES},
    **{f"type {dtype}": (dtype, lambda module, dtype: module.type(dtype)) for dtype in HALVES},
    "half and back": (torch.float64, lambda module, _: module.half().double()),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_frequencies_are_not_rounded_with_the_weights(conversion):
    dtype, convert = CONVERSIONS[conversion]
    module = convert(made(LAYERS["2 KV heads, halves rotated"]), dtype)
    assert module.qkv_proj.weight.dtype == dtype
    Q = torch.ones(1, D_K, dtype=dtype)
    rotated = module.rotation(Q, torch.tensor([50_000]))
    right = rotate(np.ones((1, D_K)), np.array([50_000]), FREQUENCIES, half=True)
    rounding = torch.finfo(dtype).eps
    np.testing.assert_allclose(rotated.double(), right, rtol=0, atol=2 * rounding)


@pytest.mark.parametrize("G", GROUPS)
@pytest.mark.parametrize("mask", [None, "causal", "per sequence"])
def test_groups_are_those_of_numpy(G, mask):
    rng = np.random.default_rng(9)
    Q, K, V = (rng.standard_normal((B, n, T, d)) for n, d in ((H, D_K), (G, D_K), (G, 7)))
    masks = {"causal": causal_mask(T), "per sequence": rng.random((B, 1, T, T)) < 0.5}
    given = None if mask is None else torch.from_numpy(masks[mask])
    heads = fused_groups(*map(torch.from_numpy, (Q, K, V)), mask=given)
    assert_equal(heads.numpy(), grouped_attention(Q, K, V, mask=masks.get(mask)))


# --- mistakes, each in a function of the module ---


def is_causal_of_torch(Q, K, V, *, mask=None, is_causal=False):
    """PyTorch's flag, which aligns the mask at the top left."""
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)


def tiled(Q, K, V, *, mask=None, is_causal=False):
    """Head h attends to KV head h % G."""
    K, V = (torch.cat([A] * (Q.shape[-3] // A.shape[-3]), dim=-3) for A in (K, V))
    return fused_groups(Q, K, V, mask=mask, is_causal=is_causal)


def rotated_again(self, K, V):
    """The cached keys are rotated at each step, and cached so."""
    if self.length:
        every = DecoderCache.empty(self.layer, self.capacity, batch=self.batch, pad=self.pad)
        positions = every.positions(self.length)[..., None, :]
        self.K.copy_(self.layer.rotation(self.K, positions))
    return RIGHT_APPEND(self, K, V)


def overwritten(self, K, V):
    """New tokens are written over the last one."""
    if not self.length:
        return RIGHT_APPEND(self, K, V)
    for buffer, rows in zip(self.buffers, (K, V), strict=True):
        buffer[..., self.length - 1 : self.length - 1 + K.shape[-2], :] = rows
    return decoder.replace(self, length=self.length + K.shape[-2], continued=[])


def unpadded(T, distance, *, lengths=None, window=None):
    """Tokens attend to padding."""
    return RIGHT_VISIBLE(T, distance, window=window)


def other_layout(self, X, positions):
    """Halves for interleaved pairs, and the other way round."""
    frequencies = self.bits.view(torch.float64).numpy()
    return RIGHT_ROTATION(Rotation(frequencies, half=not self.half), X, positions)


RIGHT_APPEND, RIGHT_ROTATION = DecoderCache._append, Rotation.forward
RIGHT_VISIBLE, RIGHT_POSITIONS = decoder.visible, decoder.token_positions
MISTAKES = {
    "is_causal of PyTorch in every chunk": (decoder, "fused_groups", is_causal_of_torch, ""),
    "group tiled": (decoder, "fused_groups", tiled, "2 KV"),
    "mask without offset": (
        decoder,
        "visible",
        lambda T, far, **_: torch.ones(T, len(far), dtype=torch.bool).tril(),
        "",
    ),
    "mask one ahead": (
        decoder,
        "visible",
        lambda T, far, **_: torch.ones(T, len(far), dtype=torch.bool).tril(len(far) - T + 1),
        "",
    ),
    "padding seen": (decoder, "visible", unpadded, ""),
    "positions that restart": (
        decoder,
        "token_positions",
        lambda start, T, pad, device: RIGHT_POSITIONS(0, T, None, device),
        "rotated",
    ),
    "positions that count padding from the first step on": (
        decoder,
        "token_positions",
        lambda start, T, pad, device: RIGHT_POSITIONS(start, T, None if start else pad, device),
        "rotated",
    ),
    "keys rotated again at each step": (DecoderCache, "_append", rotated_again, "rotated"),
    "the other layout of pairs": (Rotation, "forward", other_layout, "rotated"),
    "cached rows are overwritten": (DecoderCache, "_append", overwritten, ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found_in_every_combination_that_can_make_it(mistake, monkeypatch):
    owner, attribute, instead, needs = MISTAKES[mistake]
    monkeypatch.setattr(owner, attribute, instead)
    for name in (name for name in HELD if needs in name):
        layer = cached(made(LAYERS[name]))
        assert any(off(layer, name, pad, n) > 1e-3 for pad in PADS for n in CHUNKS), name


def off(layer, name, pad, n):
    """How far the rows of real tokens are from those of plain loops."""
    right = expected(name, pad)
    return np.abs(fed(layer, pad, n) - right)[right != 0].max()


# --- mistakes with windows and sinks ---


def dropping(self, X, cache):
    """A chunk overwrites keys that its first tokens still attend to."""
    T, end = X.shape[-2], cache.length + X.shape[-2]
    Q, K, V = self._project(X, cache.positions(T))
    longer = cache._append(K, V)
    lengths = None if cache.pad is None else end - cache.pad
    distance = longer._distances()
    Q = Q[..., -len(distance) :, :]
    Y = self._attend(Q, *longer._rows(), distance, lengths)
    return F.pad(Y, (0, 0, T - Y.shape[-2], 0)), longer


def forgotten(T, distance, *, lengths=None, window=None):
    """The window is applied only to a whole sequence."""
    width = window if len(distance) == T else None
    return RIGHT_VISIBLE(T, distance, lengths=lengths, window=width)


def unrolled(self, n):
    """The ring is read from its first row, not from its oldest."""
    return self._rows()[n]


def in_order(self):
    """Distances as if the ring began with the oldest."""
    return RIGHT_DISTANCES(self).sort(descending=True).values


def once_a_block(Q, K, V, sink, *, mask):
    """Each block of two keys has a sink of its own."""
    blocks = torch.tensor(-(-K.shape[-2] // 2))
    return RIGHT_SUNK(Q, K, V, sink + blocks.log(), mask=mask)


def with_a_value(Q, K, V, sink, *, mask):
    """The sink's weight goes to the first key's value."""
    heads = RIGHT_SUNK(Q, K, V, sink, mask=mask)
    weight = 1 - RIGHT_SUNK(Q, K, torch.ones_like(V), sink, mask=mask)
    return heads + weight * V[..., :1, :].repeat_interleave(H // V.shape[-3], -3)


def behind_a_cache_none(Q, K, V, sink, *, mask):
    """New tokens behind old ones have no sink."""
    is_whole = Q.shape[-2] == K.shape[-2]
    return RIGHT_SUNK(Q, K, V, sink if is_whole else sink - 1e4, mask=mask)


RIGHT_DISTANCES, RIGHT_SUNK = DecoderCache._distances, decoder.sunk_groups
SIGHT_MISTAKES = {
    "window wider by one": (
        decoder,
        "visible",
        lambda T, far, lengths, window: RIGHT_VISIBLE(T, far, lengths=lengths, window=window + 1),
    ),
    "window narrower by one": (
        decoder,
        "visible",
        lambda T, far, lengths, window: RIGHT_VISIBLE(T, far, lengths=lengths, window=window - 1),
    ),
    "window forgotten behind a cache": (decoder, "visible", forgotten),
    "dropped before attended to": (DecoderAttention, "step", dropping),
    "ring read from its first row": (DecoderCache, "_in_order", unrolled),
    "distances of a ring in order": (DecoderCache, "_distances", in_order),
    "positions that stop at the window": (
        DecoderCache,
        "positions",
        lambda self, T: RIGHT_POSITIONS(min(self.length, self.capacity), T, self.pad, "cpu"),
    ),
    "sink once a block of keys": (decoder, "sunk_groups", once_a_block),
    "sink with a value": (decoder, "sunk_groups", with_a_value),
    "sink forgotten behind a cache": (decoder, "sunk_groups", behind_a_cache_none),
    "sinks of other heads": (
        decoder,
        "sunk_groups",
        lambda Q, K, V, sink, mask: RIGHT_SUNK(Q, K, V, sink.flip(0), mask=mask),
    ),
    "sink divided by the root of d_k": (
        decoder,
        "sunk_groups",
        lambda Q, K, V, sink, mask: RIGHT_SUNK(Q, K, V, sink / D_K**0.5, mask=mask),
    ),
}


@pytest.mark.parametrize("mistake", SIGHT_MISTAKES)
def test_a_planted_mistake_of_sight_is_found(mistake, monkeypatch):
    owner, attribute, instead = SIGHT_MISTAKES[mistake]
    layer = sighted("2 KV heads, halves rotated", 3, "sinks")
    module, right = made(layer), {pad: plain_rows(layer, pad) for pad in PADS}
    monkeypatch.setattr(owner, attribute, instead)
    found = [
        np.abs(fed(cached(module), pad, n) - right[pad])[right[pad] != 0].max()
        for pad in PADS
        for n in CHUNKS
    ]
    assert max(found) > 1e-3


# --- QK-norm ---


@dataclass(frozen=True)
class Normed(Patterned):
    """Heads in groups whose queries and keys have one length before they are rotated."""

    qk_norm: np.ndarray = field(default_factory=lambda: np.ones((2, D_K)))
    eps: float = 0.0

    def normed(self, A, gain):
        """Queries or keys of one length, √d_k, times their gains."""
        return A / np.sqrt((A**2).mean(axis=-1, keepdims=True) + self.eps) * gain

    def project(self, X, positions):
        """The queries, and what is cached of the new tokens."""
        p, gains = self.params, self.qk_norm
        Q, K = (
            self.with_rope(self.normed(project_heads(X, W), gain), positions)
            for W, gain in zip((p.W_Q, p.W_K), gains, strict=True)
        )
        return Q, (K, project_heads(X, p.W_V))


def with_norm(name, **options):
    """A composition that norms queries and keys, with a gain for each of their entries."""
    gains = np.random.default_rng(7).uniform(0.5, 3, (2, D_K))
    return Normed(**vars(LAYERS[name]), qk_norm=gains, **options)


NORMED = {
    "rotated": lambda: with_norm("2 KV heads, halves rotated"),
    "in part": lambda: with_norm("1 KV heads, interleaved pairs rotated in part"),
    "no positions": lambda: with_norm(f"{H} KV heads, no positions"),
    "window and sinks": lambda: with_norm("2 KV heads, halves rotated", window=3, sink=SINK),
    "a large eps": lambda: with_norm("2 KV heads, halves rotated", eps=0.3),
}


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", NORMED)
def test_qk_norm_is_that_of_numpy_in_forward_and_in_steps(name, pad):
    layer = NORMED[name]()
    module, right = made(layer), fed(layer, pad, T)
    real = (right != 0).any(axis=-1)
    assert_equal(module(X_T, pad=pad_of(pad)).numpy()[real], right[real])
    for n in CHUNKS:
        assert_equal(fed(cached(module), pad, n), right)


def test_with_qk_norm_the_length_of_queries_and_keys_does_not_matter():
    layer = NORMED["rotated"]()
    p = layer.params
    longer = replace(layer, params=replace(p, W_Q=3 * p.W_Q, W_K=7 * p.W_K))
    assert_equal(made(longer)(X_T).numpy(), made(layer)(X_T).numpy())
    apart = made(replace(longer, qk_norm=layer.qk_norm[::-1]))(X_T) - made(layer)(X_T)
    assert apart.abs().max() > 1e-3, "queries have gains of their own"


def test_qk_norm_trains_its_gains_and_is_stored():
    module = DecoderAttention(D_MODEL, H, sight=Sight(qk_norm=np.ones((2, 3))))
    module(torch.ones(T, D_MODEL).cumsum(0)).square().sum().backward()
    assert module.qk_norm.grad.abs().min() > 0
    assert module.state_dict()["qk_norm"].shape == (2, 3)
    assert "qk_norm=True" in repr(module)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_qk_norm_keeps_the_precision_and_rounds_once(dtype):
    A, gain = torch.randn(50, 64, generator=torch.Generator().manual_seed(0)).to(dtype), 1.7
    found = decoder.normed(A, torch.tensor(gain, dtype=dtype), 1e-6)
    wide = decoder.normed(A.double(), torch.tensor(gain, dtype=dtype).double(), 1e-6)
    assert found.dtype == dtype
    assert ((found - wide).abs() <= 1.001 * torch.finfo(dtype).eps / 2 * wide.abs()).all()
    module = DecoderAttention(64, 2, sight=Sight(qk_norm=np.ones((2, 32)))).requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(A.float()).dtype == torch.bfloat16
    assert module.to(dtype)(A).dtype == dtype


# --- the reserved buffers ---


class Watch(TorchDispatchMode):
    """Count the numbers of the largest tensor that an operation makes anew."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        """Run it, and look at what it makes."""
        known = {A.untyped_storage().data_ptr() for A in tensors((arguments, options))}
        made = function(*arguments, **(options or {}))
        new = [A for A in tensors(made) if A.untyped_storage().data_ptr() not in known]
        self.largest = max([self.largest, *(A.numel() for A in new)])
        return made


def tensors(tree):
    """The tensors among some arguments."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def largest_of_a_step(module, kept, T=1):
    """How many numbers the largest new tensor of a step has."""
    with Watch() as watch:
        module.step(torch.ones(T, D_MODEL, dtype=torch.float64), kept)
    return watch.largest


@pytest.mark.parametrize("name", [name for name in HELD if "2 KV" in name])
def test_no_step_copies_cached_rows(name, monkeypatch):
    module = made(narrow(LAYERS[name]))
    kept = DecoderCache.empty(module, 2_000)
    _, kept = module.step(torch.ones(1_900, D_MODEL, dtype=torch.float64), kept)
    start = kept.K.data_ptr(), kept.V.data_ptr()
    assert largest_of_a_step(module, kept.fork()) < kept.K.numel() / 10
    _, kept = module.step(torch.ones(3, D_MODEL, dtype=torch.float64), kept)
    assert (kept.K.data_ptr(), kept.V.data_ptr()) == start
    monkeypatch.setattr(decoder, "fused_groups", tiled)
    assert largest_of_a_step(module, kept) > kept.K.numel() / 2, "it would have been noticed"


@pytest.mark.parametrize("sink", SINKS)
def test_no_word_copies_its_window(sink):
    sight = Sight(1_000, SINKS[sink])
    module = DecoderAttention(D_MODEL, H, n_kv_heads=2, sizes=(32, 32), sight=sight).double()
    kept = DecoderCache.empty(module.requires_grad_(False), 5_000)
    _, kept = module.step(torch.ones(2_345, D_MODEL, dtype=torch.float64), kept)
    assert kept.K.shape[-2] == 1_000
    assert largest_of_a_step(module, kept.fork()) <= H * 1_001  # the scores and the sinks
    assert largest_of_a_step(module, kept.fork(), 2) > kept.K.numel(), "a chunk copies it"


COSTLY = {"n_kv_heads": 2, "sizes": (8, 8)}
LENGTH, WINDOW = 1_000, 100


def costly(window, sink):
    """A layer for the memory of a long sequence, and that sequence."""
    module = DecoderAttention(D_MODEL, H, **COSTLY, sight=Sight(window, SINKS[sink]))
    return module.requires_grad_(False), torch.ones(LENGTH, D_MODEL)


def largest_of(module, tokens):
    """How many entries the largest new tensor has when the layer reads a sequence."""
    with Watch() as watch:
        module(tokens)
    return watch.largest


def fused_calls(call, monkeypatch):
    """Of each fused call: whether it has a mask, the flag `is_causal`, the number of keys."""
    calls, real = [], F.scaled_dot_product_attention

    def watch(Q, K, V, attn_mask=None, is_causal=False, **options):
        calls.append((attn_mask is not None, is_causal, K.shape[-2]))
        return real(Q, K, V, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watch)
    call()
    monkeypatch.undo()
    return calls


KEYS = WINDOW + decoder.BLOCK - 1  # of a block


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_mask_is_made_only_where_a_key_is_out_of_sight(window, monkeypatch):
    module, tokens = costly(window, "no sink")
    whole = fused_calls(lambda: module(tokens), monkeypatch)
    if window is None:
        assert whole == [(False, True, LENGTH)]
    else:
        blocks = [min(KEYS, end) for end in range(decoder.BLOCK, LENGTH, decoder.BLOCK)]
        assert whole[:-1] == [(True, False, n) for n in blocks]
        assert whole[-1] == (True, False, WINDOW + (LENGTH - 1) % decoder.BLOCK)
    assert fused_calls(lambda: module(tokens[:WINDOW]), monkeypatch) == [(False, True, WINDOW)]
    pad = torch.tensor(1)
    assert fused_calls(lambda: module(tokens[:WINDOW], pad=pad), monkeypatch) == [
        (True, False, WINDOW)
    ]
    _, kept = module.step(tokens[:-1], DecoderCache.empty(module, LENGTH))
    call = fused_calls(lambda: module.step(tokens[-1:], kept), monkeypatch)
    assert call == [(False, False, window or LENGTH)]


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_sink_takes_no_fused_call(window, monkeypatch):
    module, tokens = costly(window, "sinks")
    assert fused_calls(lambda: module(tokens), monkeypatch) == []


PROJECTED = (H + 2 * 2) * 8 * LENGTH  # queries, keys and values: what every layer needs
BLOCKS = -(-LENGTH // decoder.BLOCK)


@pytest.mark.parametrize(
    ("window", "sink", "most"),
    [
        (WINDOW, "no sink", PROJECTED),
        (WINDOW, "sinks", PROJECTED),
        (None, "no sink", PROJECTED),
        (None, "sinks", H * decoder.BLOCK * (LENGTH + 1)),
    ],
)
def test_a_loop_over_blocks_holds_the_scores_of_one_block(window, sink, most):
    assert largest_of(*costly(window, sink)) <= most


@pytest.mark.parametrize(
    ("window", "sink", "entries"),
    [
        (WINDOW, "no sink", H // 2 * BLOCKS * decoder.BLOCK * KEYS),
        (WINDOW, "sinks", H * BLOCKS * decoder.BLOCK * (KEYS + 1)),
        (None, "sinks", H * LENGTH * (LENGTH + 1)),
    ],
)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_holds_masks_or_scores_of_all_blocks(graph, window, sink, entries, monkeypatch):
    take_the_path_of(graph, monkeypatch)
    if graph == "export":
        entries = H * LENGTH * (LENGTH + 1) if sink == "sinks" else H // 2 * LENGTH**2
    assert largest_of(*costly(window, sink)) == entries


@pytest.mark.parametrize("window", [1, 7, 64, 255, 256, 257, 259, 300, 999])
def test_in_blocks_copies_no_key_more_than_five_times(window):
    tokens = torch.arange(1_000.0)[:, None]  # one head, one number for each token
    Q, K, V, mask = decoder.in_blocks(*tokens.expand(3, 1, 1_000, 1), None, window)
    assert K.shape == V.shape == (*Q.shape[:-2], mask.shape[-1], 1)
    assert K.numel() <= 5 * Q.numel()
    numbers, copies = K.unique(return_counts=True)
    assert len(numbers) == 1_000
    assert copies[1:].max() <= 5, "token 0 takes the place of what precedes the sequence"


def test_values_of_another_width_take_the_path_that_copies_the_keys():
    module = made(LAYERS["2 KV heads, no positions"])
    kept = DecoderCache.empty(module, 2_000)
    _, kept = module.step(torch.ones(1_900, D_MODEL, dtype=torch.float64), kept)
    assert largest_of_a_step(module, kept) >= kept.K.numel()


def test_a_shorter_view_goes_on_showing_what_it_showed():
    module = made(LAYERS["2 KV heads, halves rotated"])
    _, short = module.step(X_T[:, :3], DecoderCache.empty(module, T, batch=(B,)))
    shown = short.K.clone()
    _, long = module.step(X_T[:, 3:], short)
    assert torch.equal(short.K, shown)
    assert torch.equal(long.K[..., :3, :], shown)
    assert (short.length, short.written, long.length) == (3, T, T)


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("window", [None, 2])
def test_a_step_that_fails_behind_the_keys_can_be_taken_again(pad, window):
    name = "2 KV heads, halves rotated"
    layer = LAYERS[name] if window is None else sighted(name, window, "sinks")
    module, Y = made(layer), []
    kept = DecoderCache.empty(module, T, batch=(B,), pad=PADS[pad])
    for start, end in ((0, 3), (3, 4), (4, T)):
        broken = module.out_proj.register_forward_pre_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            module.step(X_T[:, start:end].flip(0), kept)
        broken.remove()
        assert (kept.length, kept.written) == (start, start)
        rows, kept = module.step(X_T[:, start:end], kept)
        Y.append(rows)
    assert_equal(torch.cat(Y, dim=1).numpy(), fed(layer, pad, T))


def test_after_a_step_that_fails_in_a_full_window_every_key_in_sight_is_there():
    module = sighted_module("window and sinks")
    _, kept = module.step(X_T[:, :5], DecoderCache.empty(module, T, batch=(B,)))
    before = kept.fork()
    broken = module.out_proj.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module.step(-X_T[:, :1], kept)
    broken.remove()
    assert (kept.length, kept.written) == (5, 5)
    for each in ("K", "V"):
        found, right = getattr(kept, each), getattr(before, each)
        assert torch.equal(found[..., 1:, :], right[..., 1:, :])
        assert not torch.equal(found[..., 0, :], right[..., 0, :]), "the oldest is overwritten"
    for n in (1, 2, 3):
        rows = [module.step(X_T[:, 5 : 5 + n], cache.fork())[0] for cache in (kept, before)]
        assert_equal(*(row.numpy() for row in rows))


def test_rows_of_weights_that_have_changed_stay_in_the_cache():
    module = made(LAYERS["2 KV heads, halves rotated"])
    _, kept = module.step(X_T[:, :3], DecoderCache.empty(module, T, batch=(B,)))
    before = kept.K.clone()
    module.qkv_proj.weight.mul_(2)
    _, longer = module.step(X_T[:, 3:], kept)
    assert torch.equal(longer.K[..., :3, :], before)
    fresh, _ = module.step(X_T, DecoderCache.empty(module, T, batch=(B,)))
    assert_equal(fresh.numpy(), module(X_T).numpy())


def test_a_cache_is_equal_only_to_itself():
    module, pad = made(LAYERS["2 KV heads, halves rotated"]), np.arange(B)
    one, other = (DecoderCache.empty(module, T, batch=(B,), pad=pad) for _ in range(2))
    assert one == one
    assert one != other
    assert one != one.fork()
    assert len({one, other, one}) == 2


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("sight", EVERY_SIGHT)
def test_a_cache_may_enter_and_leave_inference_mode(sight, pad):
    module, modes = sighted_module(sight), itertools.product([False, True], repeat=4)
    right = module(X_T, pad=pad_of(pad))[:, 5:]
    for made_in, begun_in, forked_in, ended_in in modes:
        with torch.inference_mode(made_in):
            kept = DecoderCache.empty(module, T, batch=(B,), pad=PADS[pad])
        with torch.inference_mode(begun_in):
            _, kept = module.step(X_T[:, :5], kept)
        with torch.inference_mode(forked_in):
            kept = kept.fork()
        with torch.inference_mode(ended_in):
            Y, kept = module.step(X_T[:, 5:-1], kept)
            last, kept = module.step(X_T[:, -1:], kept)
            assert_equal(torch.cat((Y, last), dim=1).numpy(), right.numpy())


@pytest.mark.parametrize("pad", PADS)
def test_a_fork_goes_on_by_itself_from_any_view(pad):
    layer = LAYERS["2 KV heads, halves rotated"]
    module, right = made(layer), fed(layer, pad, T)
    _, short = module.step(X_T[:, :3], DecoderCache.empty(module, T, batch=(B,), pad=pad_of(pad)))
    fork = short.fork()
    Y, long = module.step(X_T[:, 3:5], short)
    other, _ = module.step(-X_T[:, 3:5], fork)
    rest, _ = module.step(X_T[:, 5:], long)
    again, _ = module.step(X_T[:, 3:], short.fork())  # behind a view that has gone on: rewound
    for rows in (torch.cat([Y, rest], dim=1), again):
        assert_equal(rows.numpy(), right[:, 3:])
    assert (other - Y).abs().max() > 1e-3
    assert (short.written, fork.written) == (5, 5)


@pytest.mark.parametrize("pad", PADS)
def test_a_fork_of_a_window_goes_on_by_itself(pad):
    layer = sighted("2 KV heads, halves rotated", 3, "sinks")
    module, right = made(layer), fed(layer, pad, T)
    _, short = module.step(X_T[:, :5], DecoderCache.empty(module, T, batch=(B,), pad=pad_of(pad)))
    fork = short.fork()
    one, _ = module.step(X_T[:, 5:], short)
    module.step(-X_T[:, 5:6], fork.fork())
    other, _ = module.step(X_T[:, 5:], fork)
    for rows in (one, other):
        assert_equal(rows.numpy(), right[:, 5:])


# --- training ---


def test_gradients_of_a_layer_with_all_its_keys_are_those_of_numpy():
    layer = LAYERS["4 KV heads, no positions"]
    module, given = made(layer).requires_grad_(), X_T.clone().requires_grad_()
    dY = np.random.default_rng(10).standard_normal(X.shape)
    module(given).backward(torch.from_numpy(dY))
    record = trace(X, layer.params.expanded(), mask=causal_mask(T))
    right = multi_head_attention_backward(record, dY)
    assert_equal(given.grad.numpy(), right.dX)
    for name, W in weights_of(module).items():
        assert_equal(W, getattr(right, f"d{name}"))


GRADED = {
    "2 KV heads, halves rotated": LAYERS["2 KV heads, halves rotated"],
    "1 KV heads, interleaved pairs rotated": LAYERS["1 KV heads, interleaved pairs rotated"],
    "2 KV heads, halves rotated, a window": sighted("2 KV heads, halves rotated", 3, "no sink"),
    "2 KV heads, halves rotated, sinks": sighted("2 KV heads, halves rotated", 3, "sinks"),
}


@pytest.mark.parametrize("name", GRADED)
@pytest.mark.parametrize("pad", PADS)
def test_gradients_are_those_of_small_changes(name, pad, monkeypatch):
    monkeypatch.setattr(decoder, "BLOCK", 3)
    layer = GRADED[name]
    module = made(layer).requires_grad_()
    dY = np.random.default_rng(10).standard_normal(X.shape)
    module(X_T, pad=pad_of(pad)).backward(torch.from_numpy(dY))
    grads = weights_of(module)
    if module.sink is not None:
        grads["sink"] = module.sink.grad.numpy()
    for weight, found in grads.items():

        def loss(W, weight=weight):
            if weight == "sink":
                return (fed(replace(layer, sink=W), pad, T) * dY).sum()
            params = GroupedParams(**vars(layer.params) | {weight: W})
            return (fed(replace(layer, params=params), pad, T) * dY).sum()

        W = layer.sink if weight == "sink" else getattr(layer.params, weight)
        way = 1e-5 * np.random.default_rng(11).standard_normal(W.shape)
        slope = (loss(W + way) - loss(W - way)) / 2
        np.testing.assert_allclose((found * way).sum(), slope, rtol=1e-6)


def weights_of(module):
    """The gradients of a module, in the layout of GroupedParams."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for weight, own in zip(other.parameters(), module.parameters(), strict=True):
            weight.copy_(own.grad)
    return vars(params_from_decoder(other))


@pytest.mark.parametrize(
    ("pad", "sight"),
    [*((pad, Sight()) for pad in PADS), ("padded", Sight(window=3, sink=np.zeros(H, np.float32)))],
)
def test_it_trains(pad, sight):
    torch.manual_seed(0)
    options = {
        "n_kv_heads": 2,
        "sizes": (D_K, D_K),
        "rotation": Rotation(FREQUENCIES),
        "bias": True,
    }
    module = DecoderAttention(D_MODEL, H, **options, sight=sight)
    target = X_T.float().roll(1, dims=1)  # the token before, which a rotated query can find
    optimiser, losses = torch.optim.Adam(module.parameters(), lr=0.03), []
    for _ in range(60):
        optimiser.zero_grad()
        error = (module(X_T.float(), pad=pad_of(pad)) - target)[:, 5:]
        losses.append(error.square().mean())
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < 0.2 * losses[0]
    assert module.sink is None or (module.sink.abs() > 0.02).all()
    assert sight.sink is None or not sight.sink.any(), "the array that was given stays"


# --- compiled, saved, copied, printed ---


@pytest.fixture
def compiled():
    """`compiled(function, backend)`: traced as a whole; a break is an error."""
    torch.compiler.reset()
    yield lambda function, backend="eager": torch.compile(function, fullgraph=True, backend=backend)
    torch.compiler.reset()


@pytest.mark.parametrize("pad", ["no padding", *long("padded")])
def test_compiles_without_a_graph_break_for_every_length(pad, compiled):
    layer = narrow(LAYERS["2 KV heads, halves rotated"])
    module = made(layer)
    step = compiled(module.step)
    kept, rows, start = DecoderCache.empty(module, T, batch=(B,), pad=PADS[pad]), [], 0
    for n in (2, 3, 1, 1, 1):
        Y, kept = step(X_T[:, start : start + n], kept)
        rows, start = [*rows, Y], start + n
    assert_equal(torch.cat(rows, dim=1).numpy(), fed(layer, pad, 3))
    assert (kept.length, kept.written) == (T, T)
    whole = compiled(module)(X_T, pad=pad_of(pad))
    assert_equal(whole.numpy(), fed(layer, pad, 3))


OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)
LENGTHS = 5, 40, 64, 65, 100, 128, 129, 200, 256, 300, 333


def graphs_of(function, options, calls):
    """How many graphs `torch.compile` makes of a function for some calls, one after the other."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend=keep, **options)
    for call in calls:
        call(compiled)
    torch.compiler.reset()
    return len(graphs)


@pytest.mark.parametrize(
    ("sight", "dynamic", "padded"),
    [
        ("window and sinks", True, True),
        *long(*((sight, True, False) for sight in ("all keys", "window", "sinks"))),
        *long(("window and sinks", None, True)),
    ],
)
def test_few_graphs_serve_every_length(sight, dynamic, padded):
    module, pad = sighted_module(sight), torch.arange(B) if padded else None
    tokens = torch.randn(B, max(LENGTHS), D_MODEL, dtype=torch.float64)

    def call(compiled, n):
        assert_equal(
            compiled(tokens[:, :n].clone(), pad=pad).numpy(), module(tokens[:, :n], pad=pad).numpy()
        )

    calls = [partial(call, n=n) for n in LENGTHS]
    assert graphs_of(module, {"dynamic": dynamic}, calls) <= 3


@pytest.mark.long
@pytest.mark.parametrize("sight", EVERY_SIGHT)
@pytest.mark.parametrize("pad", PADS)
def test_few_graphs_serve_every_step(sight, pad):
    module, chunks = sighted_module(sight), (5, *7 * (1,), 3, 4, 6, *9 * (1,), 20, 2, 1, 70, 1, 1)
    tokens = torch.randn(B, sum(chunks), D_MODEL, dtype=torch.float64)
    right, kept = module(tokens, pad=pad_of(pad)), None
    kept = [DecoderCache.empty(module, sum(chunks), batch=(B,), pad=PADS[pad])]

    def call(compiled, chunk, rows):
        Y, longer = compiled(chunk.clone(), kept.pop())
        kept.append(longer)
        real = rows.abs().sum(-1) > 0
        assert_equal(Y[real].numpy(), rows[real].numpy())

    pairs = zip(tokens.split(chunks, 1), right.split(chunks, 1), strict=True)
    calls = [partial(call, chunk=chunk, rows=rows) for chunk, rows in pairs]
    assert graphs_of(module.step, {"dynamic": True}, calls) <= 7


@pytest.mark.skipif(
    OLD, reason="PyTorch 2.12 exports some layers for the length of the sample only"
)
@pytest.mark.parametrize("sight", EVERY_SIGHT)
@pytest.mark.parametrize("padded", [False, True])
def test_an_export_serves_every_length(sight, padded):
    module, pad = sighted_module(sight), torch.arange(B) if padded else None
    tokens = torch.randn(B, max(LENGTHS), D_MODEL, dtype=torch.float64)
    shapes = {"X": {1: torch.export.Dim("T", min=2, max=5_000)}, "pad": {} if padded else None}
    program = torch.export.export(
        module, (tokens[:, :70].clone(),), {"pad": pad}, dynamic_shapes=shapes
    ).module()
    for n in LENGTHS:
        right = module(tokens[:, :n], pad=pad)
        assert_equal(program(tokens[:, :n], pad=pad).numpy(), right.numpy())


@pytest.mark.long
@pytest.mark.parametrize("pad", PADS)
def test_a_window_and_sinks_compile_without_a_graph_break(pad, compiled):
    layer = sighted("2 KV heads, halves rotated", 3, "sinks")
    module = made(layer)
    step, rows, start = compiled(module.step), [], 0
    kept = DecoderCache.empty(module, T, batch=(B,), pad=PADS[pad])
    for n in (5, 1, 1, 1):  # longer than the window; around the ring
        Y, kept = step(X_T[:, start : start + n], kept)
        rows, start = [*rows, Y], start + n
    assert_equal(torch.cat(rows, dim=1).numpy(), fed(layer, pad, 1))


@pytest.mark.parametrize("name", ["1 KV heads, interleaved pairs rotated", list(GRADED)[-1]])
def test_a_compiled_layer_trains_as_any(name, compiled):
    layer, grads = GRADED[name], []
    for compile in (lambda module: module, compiled):
        module = made(layer).requires_grad_()
        compile(module)(X_T).square().sum().backward()
        grads.append([weight.grad for weight in module.parameters()])
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
@pytest.mark.skipif(cxx() == "no C++ compiler", reason="torch.compile needs a C++ compiler")
def test_a_compiled_kernel_gives_the_same(compiled):
    layer = narrow(LAYERS["2 KV heads, halves rotated"])
    assert_equal(compiled(made(layer), "inductor")(X_T).numpy(), fed(layer, "no padding", T))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
@pytest.mark.skipif(cxx() == "no C++ compiler", reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("window", [None, 3])
def test_compiled_kernels_give_the_same_step_by_step(window, pad, compiled):
    name = "2 KV heads, halves rotated"
    layer = narrow(LAYERS[name] if window is None else sighted(name, window, "sinks"))
    module = made(layer)
    for n in (3, 1):
        step = compiled(module.step, "inductor")
        each = cached(SimpleNamespace(step=step))
        each.empty = cached(module).empty
        assert_equal(fed(each, pad, n), fed(layer, pad, n))


def test_state_dict_round_trips_and_holds_only_weights():
    module = made(LAYERS["2 KV heads, halves rotated"])
    assert list(module.state_dict()) == ["qkv_proj.weight", "out_proj.weight"]
    module, other = (made(sighted("2 KV heads, halves rotated", 3, "sinks")) for _ in range(2))
    assert list(module.state_dict()) == ["sink", "qkv_proj.weight", "out_proj.weight"]
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
    stored = io.BytesIO()
    torch.save(module.state_dict(), stored)
    stored.seek(0)
    other.load_state_dict(torch.load(stored, weights_only=True))
    torch.testing.assert_close(other(X_T), module(X_T), rtol=1e-12, atol=1e-12)


def everything():
    """A decoder with groups, a rotation, a window, sinks, QK-norm and biases."""
    sight = Sight(window=3, sink=SINK, qk_norm=np.ones((2, D_K)))
    options = {"n_kv_heads": 2, "sizes": (D_K, 7), "bias": True, "sight": sight}
    return DecoderAttention(D_MODEL, H, rotation=Rotation(FREQUENCIES), **options)


MODULES = {
    MultiHeadAttention: lambda: MultiHeadAttention(D_MODEL, H, bias=True),
    DecoderAttention: everything,
    Rotation: lambda: Rotation(FREQUENCIES, half=True),
}


def on_meta(make):
    """A module whose parameters have no numbers."""
    with torch.device("meta"):
        return make()


DEFERRED = {
    "emptied": (lambda make: make().to_empty(device="cpu"), False),
    "made on meta": (lambda make: on_meta(make).to_empty(device="cpu"), False),
    "moved to meta": (lambda make: make().to("meta").to_empty(device="cpu"), False),
    "made on meta, assigned": (on_meta, True),
    "moved to meta, assigned": (lambda make: make().to("meta"), True),
    "copied on meta": (lambda make: copy.deepcopy(on_meta(make)).to_empty(device="cpu"), False),
}


def test_every_module_of_the_library_is_made_without_numbers_below():
    library = tutorial_lib.pytorch
    exported = (getattr(library, name) for name in library.__all__)
    modules = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, nn.Module)}
    assert modules == set(MODULES)


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("way", DEFERRED)
def test_a_module_made_without_numbers_is_whole_once_its_state_is_loaded(kind, way):
    torch.manual_seed(0)
    defer, assign = DEFERRED[way]
    module, other = MODULES[kind](), defer(MODULES[kind])
    other.load_state_dict(module.state_dict(), strict=True, assign=assign)
    X = torch.randn(B, T, D_K if kind is Rotation else D_MODEL)
    positions = (torch.arange(T),) if kind is Rotation else ()
    torch.testing.assert_close(other(X, *positions), module(X, *positions))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_is_the_same_layer(copied):
    module = made(LAYERS["2 KV heads, halves rotated in part"])
    torch.testing.assert_close(copied(module)(X_T), module(X_T), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [None, 3])
def test_under_autocast_a_step_keeps_the_precision_of_the_weights(window):
    name = "2 KV heads, halves rotated"
    layer = LAYERS[name] if window is None else sighted(name, window, "sinks")
    module, right = made(layer).float(), fed(layer, "no padding", T)
    kept, start = DecoderCache.empty(module, T, batch=(B,)), 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for n in (4, 1, 3):
            Y, kept = module.step(X_T[:, start : start + n].float(), kept)
            close = right[:, start : start + n]
            np.testing.assert_allclose(Y.float().numpy(), close, rtol=0, atol=0.1)
            start += n
    assert (Y.dtype, kept.K.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(kept.V, kept.V.bfloat16().float()), "computed in bfloat16"


@pytest.mark.parametrize("name", ["DecoderAttention", "fused_groups", "normed", "sunk_groups"])
def test_the_example_of_a_docstring_runs(name):
    [found] = doctest.DocTestFinder(recurse=False).find(getattr(decoder, name), name, decoder)
    said = []
    doctest.DocTestRunner().run(found, out=said.append)
    assert (said, bool(found.examples)) == ([], True)


def test_printed_layer_names_its_sizes():
    text = repr(made(LAYERS["2 KV heads, halves rotated in part"]))
    assert "d_model=12, n_heads=4, n_kv_heads=2, d_k=6, d_v=7, window=None, sink=False" in text
    assert "qk_norm=False" in text
    assert "(rotation): Rotation(4 entries of each head, half=True)" in text
    assert "(qkv_proj): Linear(in_features=12, out_features=50, bias=False)" in text
