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
    loop_rows,
    rows_in_chunks,
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

DECODER_LAYER_NAMES = [name for name, layer in LAYERS.items() if type(layer) is Grouped]
DECODER_LAYER_NAMES = [name for name in DECODER_LAYER_NAMES if LAYERS[name].slopes is None]
ROPE_LAYER = "2 KV heads, halves rotated"
X_T = torch.from_numpy(X)
NO_SINK = -np.inf
SINK = np.array([0.5, -1.0, 2.0, 0.0])
LOW_DTYPES = torch.float32, torch.bfloat16, torch.float16
WINDOWS = 1, 3, 5, T + 9  # only one; shorter than a chunk; longer; longer than the sequence
SINKS = {"no sink": None, "sinks": SINK}


def layer_with_sight(layer_name, window, sink_name):
    """A composition with a window and sinks, on keys that are all cached."""
    return Patterned(**vars(LAYERS[layer_name]), window=window, sink=SINKS[sink_name])


SIGHTED_LAYER_NAMES = (
    ROPE_LAYER,
    *long("4 KV heads, no positions", "1 KV heads, interleaved pairs rotated"),
)


def decoder_of(layer):
    """The decoder of a composition."""
    rotation = None if layer.frequencies is None else Rotation(layer.frequencies, half=layer.half)
    options = {field: getattr(layer, field, None) for field in ("window", "sink", "qk_norm")}
    sight = Sight(**options, eps=getattr(layer, "eps", 0.0))
    return decoder_from_params(layer.params, rotation=rotation, sight=sight).requires_grad_(False)


def with_narrow_values(layer):
    """The composition with values as wide as its keys, which PyTorch's fast kernels expect."""
    full_params = layer.params
    W_O = full_params.W_O.reshape(H, -1, D_MODEL)[:, :D_K].reshape(-1, D_MODEL)
    params = GroupedParams(full_params.W_Q, full_params.W_K, full_params.W_V[..., :D_K], W_O)
    return replace(layer, params=params)


def as_numpy_layer(module):
    """A decoder as a layer of arrays."""

    def step(X, cache):
        Y, cache = module.step(torch.from_numpy(X), cache)
        return Y.numpy(), cache

    return SimpleNamespace(empty=partial(DecoderCache.empty, module), step=step)


def decoder_rows(module, pad_name, n):
    """The rows of a decoder that processes n tokens at a time."""
    return rows_in_chunks(as_numpy_layer(module), pad_name, n)


def empty_cache(module, pad_name):
    """A cache for the tokens of X."""
    return DecoderCache.empty(module, T, batch=(B,), pad=PADS[pad_name])


def pad_tensor(pad_name, sequence=...):
    """Numbers of padding tokens as a tensor, of all sequences or of one."""
    return None if PADS[pad_name] is None else torch.as_tensor(PADS[pad_name][sequence])


def assert_equal(actual, expected):
    """Compare to twelve digits."""
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


# --- equal to loops and to NumPy ---


@pytest.mark.parametrize("n", CHUNKS)
@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("name", DECODER_LAYER_NAMES)
def test_every_chunk_gives_what_numpy_gives(name, pad_name, n):
    for layer in (LAYERS[name], with_narrow_values(LAYERS[name])):
        rows = decoder_rows(decoder_of(layer), pad_name, n)
        assert_equal(rows, rows_in_chunks(layer, pad_name, n))


@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("name", DECODER_LAYER_NAMES)
def test_whole_sequences_give_the_rows_of_plain_loops(name, pad_name):
    Y = decoder_of(LAYERS[name])(X_T, pad=pad_tensor(pad_name))
    np.testing.assert_allclose(Y.numpy(), loop_rows(name, pad_name), rtol=1e-10, atol=1e-12)


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
    whole_Y, chunk_Ys = module(tokens, pad=pad), []
    cache = DecoderCache.empty(module, 300, batch=(B,), pad=pad)
    for chunk in tokens.split((100, 199, 1), dim=1):
        Y, cache = module.step(chunk, cache)
        chunk_Ys.append(Y)
    for b, n_padding in enumerate(range(5, 5 + B)):
        unpadded_rows = module(tokens[b, n_padding:])
        for Y in (whole_Y, torch.cat(chunk_Ys, dim=1)):
            assert_equal(Y[b, n_padding:].numpy(), unpadded_rows.numpy())


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", SIGHTED_LAYER_NAMES)
def test_windows_and_sinks_are_those_of_numpy_and_of_plain_loops(name, window, sink, monkeypatch):
    layer = layer_with_sight(name, window, sink)
    module = decoder_of(layer)
    for pad_name in PADS:
        expected = rows_in_chunks(layer, pad_name, T)
        np.testing.assert_allclose(expected, rows_by_loops(layer, pad_name), rtol=1e-10, atol=1e-12)
        for block_size in (2, 64):
            monkeypatch.setattr(decoder, "BLOCK", block_size)
            assert_equal(module(X_T, pad=pad_tensor(pad_name)).numpy(), expected)
            for n in CHUNKS:
                assert_equal(decoder_rows(module, pad_name, n), expected)


def take_graph_path(tracer, monkeypatch):
    """Run what a graph of torch.compile or of torch.export runs, without one."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: tracer == "export")


TRACERS = "compile", "export"


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("tracer", TRACERS)
def test_rows_of_a_graph_are_those_of_the_loop_over_blocks(tracer, window, sink, monkeypatch):
    take_graph_path(tracer, monkeypatch)
    layer = layer_with_sight(ROPE_LAYER, window, sink)
    module = decoder_of(layer)
    for pad_name, block_size in itertools.product(PADS, (2, 64)):
        monkeypatch.setattr(decoder, "BLOCK", block_size)
        expected = rows_in_chunks(layer, pad_name, T)
        assert_equal(module(X_T, pad=pad_tensor(pad_name)).numpy(), expected)
        assert_equal(module(X_T[0], pad=pad_tensor(pad_name, 0)).numpy(), expected[0])
        for n in CHUNKS:
            assert_equal(decoder_rows(module, pad_name, n), expected)


@pytest.mark.parametrize("sight_name", ["window", "window and sinks"])
@pytest.mark.parametrize("tracer", TRACERS)
def test_gradients_of_a_graph_are_those_of_the_loop_over_blocks(tracer, sight_name, monkeypatch):
    module, gradients = module_with_sight(sight_name).requires_grad_(), []
    monkeypatch.setattr(decoder, "BLOCK", 2)
    for choose_path in (lambda *_: None, take_graph_path):
        choose_path(tracer, monkeypatch)
        loss = module(X_T, pad=pad_tensor("padded")).square().sum()
        gradients.append(torch.autograd.grad(loss, list(module.parameters())))
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def rows_by_loops(layer, pad_name):
    """The rows of each sequence by itself, in plain loops; zeros for its padding."""
    rows = np.zeros(X.shape)
    for b in range(B):
        n_padding = 0 if PADS[pad_name] is None else PADS[pad_name][b]
        rows[b, n_padding:] = layer.loops(X[b, n_padding:])
    return rows


def test_a_window_of_all_keys_and_sinks_that_take_nothing_are_the_layer():
    layer = replace(layer_with_sight(ROPE_LAYER, T, "no sink"), sink=np.full(H, NO_SINK))
    assert_equal(decoder_of(layer)(X_T).numpy(), loop_rows(ROPE_LAYER, "no padding"))


def test_a_row_of_padding_is_zero_where_no_head_has_a_sink():
    layer = replace(layer_with_sight(ROPE_LAYER, 3, "no sink"), sink=np.full(H, NO_SINK))
    Y = decoder_of(layer)(X_T, pad=torch.tensor(PADS["padded"]))
    for b, n_padding in enumerate(PADS["padded"]):
        assert not Y[b, :n_padding].any()
        assert Y[b, n_padding:].isfinite().all()
        assert (Y[b, n_padding:] != 0).any()


@pytest.mark.parametrize(("sink_score", "is_half"), [(1e39, False), (1e5, True)])
def test_a_sink_too_large_for_its_precision_takes_everything(sink_score, is_half):
    module = DecoderAttention(D_MODEL, H, sight=Sight(sink=np.full(H, sink_score)))
    module = (module.half() if is_half else module).requires_grad_(False)
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
    exact_heads = F.scaled_dot_product_attention(*(A.double() for A in (Q, K, V)), is_causal=True)
    mask, no_sink = torch.ones(300, 300, dtype=torch.bool).tril(), torch.full((4,), NO_SINK)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        heads = sunk_groups(Q, K, V, no_sink, mask=mask)
    # Each of the two roundings costs at most half an eps of the largest value: with rounded scores
    # it would be 0.098, and the bound is 0.07.
    assert (heads - exact_heads).abs().max() <= torch.finfo(torch.bfloat16).eps * V.abs().max()


def test_a_sink_is_a_key_of_zeros_under_a_mask_of_floats():
    torch.manual_seed(0)
    Q, K, V = torch.randn(3, 1, H, 9, D_K, dtype=torch.float64)
    causal, sink = torch.ones(9, 9, dtype=torch.bool).tril(), torch.from_numpy(SINK)
    scores = torch.zeros(1, H, 9, 9, dtype=torch.float64).masked_fill(~causal, -torch.inf)
    scores = torch.cat((scores, sink[:, None, None].expand(1, H, 9, 1)), dim=-1)
    padded_K, padded_V = (F.pad(A, (0, 0, 0, 1)) for A in (K, V))
    fused_heads = F.scaled_dot_product_attention(Q, padded_K, padded_V, attn_mask=scores)
    torch.testing.assert_close(sunk_groups(Q, K, V, sink, mask=causal), fused_heads)


@pytest.mark.filterwarnings("ignore:Flash attention:UserWarning", "ignore:Both fused:UserWarning")
def test_a_flash_kernel_takes_no_mask_on_cuda_and_none_that_is_learned_on_the_cpu():
    cuda_schema = torch.ops.aten._scaled_dot_product_flash_attention.default._schema
    assert {argument.name for argument in cuda_schema.arguments} == {
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
    long_X = torch.randn(200, D_MODEL, dtype=torch.float64)
    for sink in SINKS:
        layer = layer_with_sight(ROPE_LAYER, 70, sink)
        Y = decoder_of(layer)(long_X).numpy()
        cache = layer.empty(200)
        assert_equal(Y, layer.step(long_X.numpy(), cache)[0])


@pytest.mark.parametrize("pad_name", PADS)
def test_a_window_keeps_as_many_tokens_as_it_looks_at_however_many_come(pad_name):
    layer = layer_with_sight(ROPE_LAYER, 3, "sinks")
    module, numpy_cache = decoder_of(layer), layer.empty(40 * T, batch=(B,), pad=PADS[pad_name])
    cache = DecoderCache.empty(module, 9, batch=(B,), pad=PADS[pad_name])
    addresses = [buffer.data_ptr() for buffer in cache.buffers]
    for n in (2, 5, 1, 1, T, 3, 1, 2, 2) * 4:  # across the ring's end, and around it
        Y, cache = module.step(X_T[:, -n:], cache)
        expected, numpy_cache = layer.step(X[:, -n:], numpy_cache)
        assert_equal(Y.numpy(), expected)
        assert_equal(cache.K.numpy(), numpy_cache.K[..., -3:, :])
        assert_equal(cache.V.numpy(), numpy_cache.V[..., -3:, :])
        assert_equal(cache.positions(2).numpy(), numpy_cache.positions(2))
        assert_equal(cache.mask(2).numpy(), layer.mask(numpy_cache, 2))
    assert (cache.length, cache.capacity, cache.buffers[0].shape[-2]) == (100, 3, 3)
    assert [buffer.data_ptr() for buffer in cache.buffers] == addresses


@pytest.mark.long
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("window", WINDOWS)
def test_check_of_the_chapter_finds_nothing_in_a_window(window, sink, capsys):
    layer = as_numpy_layer(decoder_of(layer_with_sight(ROPE_LAYER, window, sink)))
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


@pytest.mark.long
@pytest.mark.parametrize("name", DECODER_LAYER_NAMES)
def test_check_of_the_chapter_finds_nothing(name, capsys):
    layer = as_numpy_layer(decoder_of(LAYERS[name]))
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("is_padded", [False, True])
def test_any_batch_axes_are_those_of_numpy(batch, is_padded):
    layer = LAYERS[ROPE_LAYER]
    tokens = np.random.default_rng(7).standard_normal((*batch, T, D_MODEL))
    pad = np.arange(np.prod(batch, dtype=int)).reshape(batch) % 3 if is_padded else None
    decoder_layer = as_numpy_layer(decoder_of(layer))
    cache, numpy_cache = (twin.empty(T, batch=batch, pad=pad) for twin in (decoder_layer, layer))
    for start, end in ((0, 3), (3, 4), (4, T)):
        Y, cache = decoder_layer.step(tokens[..., start:end, :], cache)
        expected, numpy_cache = layer.step(tokens[..., start:end, :], numpy_cache)
        assert_equal(Y, expected)
        assert_equal(cache.K, numpy_cache.K)
        assert_equal(cache.V, numpy_cache.V)
        assert_equal(cache.mask(2).numpy(), numpy_cache.mask(2))
        assert_equal(cache.positions(2).numpy(), numpy_cache.positions(2))
    for size in ("batch", "capacity", "length"):
        assert getattr(cache, size) == getattr(numpy_cache, size)


SIGHTS = {
    "all keys": Sight(),
    "window": Sight(window=3),
    "sinks": Sight(sink=SINK),
    "window and sinks": Sight(window=3, sink=SINK),
}


def module_with_sight(sight_name):
    """A float64 decoder of two KV heads with a rotation and a sight."""
    options = {"n_kv_heads": 2, "sizes": (D_K, D_K), "rotation": Rotation(FREQUENCIES)}
    module = DecoderAttention(D_MODEL, H, **options, sight=SIGHTS[sight_name])
    return module.double().requires_grad_(False)


@pytest.mark.parametrize("sight_name", SIGHTS)
@pytest.mark.parametrize("is_padded", [False, True])
def test_an_empty_batch_stays_empty(sight_name, is_padded):
    module, tokens = module_with_sight(sight_name), X_T[:0]
    pad = torch.zeros(0, dtype=torch.int64) if is_padded else None
    assert module(tokens, pad=pad).shape == (0, T, D_MODEL)
    assert module(tokens[:, :1], pad=pad).shape == (0, 1, D_MODEL)


@pytest.mark.parametrize("sight_name", SIGHTS)
@pytest.mark.parametrize("pad", PADS)
def test_shapes_can_be_asked_for_without_numbers(sight_name, pad):
    module, tokens = module_with_sight(sight_name).to("meta"), X_T.to("meta")
    pad = None if PADS[pad] is None else pad_tensor(pad).to("meta")
    cache = DecoderCache.empty(module, T, batch=(B,), pad=pad)
    Y, cache = module.step(tokens[:, :5], cache)
    for output, n in (
        (module(tokens, pad=pad), T),
        (Y, 5),
        (module.step(tokens[:, 5:], cache)[0], T - 5),
    ):
        assert (output.shape, output.device.type) == ((B, n, D_MODEL), "meta")


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
    **{f"to {dtype}": (dtype, lambda module, dtype: module.to(dtype)) for dtype in LOW_DTYPES},
    **{f"type {dtype}": (dtype, lambda module, dtype: module.type(dtype)) for dtype in LOW_DTYPES},
    "half and back": (torch.float64, lambda module, _: module.half().double()),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_frequencies_are_not_rounded_with_the_weights(conversion):
    dtype, convert = CONVERSIONS[conversion]
    module = convert(decoder_of(LAYERS[ROPE_LAYER]), dtype)
    assert module.qkv_proj.weight.dtype == dtype
    Q = torch.ones(1, D_K, dtype=dtype)
    rotated = module.rotation(Q, torch.tensor([50_000]))
    expected = rotate(np.ones((1, D_K)), np.array([50_000]), FREQUENCIES, half=True)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(rotated.double(), expected, rtol=0, atol=2 * eps)


@pytest.mark.parametrize("G", GROUPS)
@pytest.mark.parametrize("mask_name", [None, "causal", "per sequence"])
def test_groups_are_those_of_numpy(G, mask_name):
    rng = np.random.default_rng(9)
    Q, K, V = (rng.standard_normal((B, n, T, d)) for n, d in ((H, D_K), (G, D_K), (G, 7)))
    masks = {"causal": causal_mask(T), "per sequence": rng.random((B, 1, T, T)) < 0.5}
    mask_tensor = None if mask_name is None else torch.from_numpy(masks[mask_name])
    heads = fused_groups(*map(torch.from_numpy, (Q, K, V)), mask=mask_tensor)
    assert_equal(heads.numpy(), grouped_attention(Q, K, V, mask=masks.get(mask_name)))


# --- mistakes, each in a function of the module ---


def attend_top_left(Q, K, V, *, mask=None, is_causal=False):
    """PyTorch's flag, which aligns the mask at the top left."""
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)


def attend_tiled_groups(Q, K, V, *, mask=None, is_causal=False):
    """Head h attends to KV head h % G."""
    K, V = (torch.cat([A] * (Q.shape[-3] // A.shape[-3]), dim=-3) for A in (K, V))
    return fused_groups(Q, K, V, mask=mask, is_causal=is_causal)


def append_rotated_again(self, K, V):
    """The cached keys are rotated at each step, and cached so."""
    if self.length:
        unrotated = DecoderCache.empty(self.layer, self.capacity, batch=self.batch, pad=self.pad)
        positions = unrotated.positions(self.length)[..., None, :]
        self.K.copy_(self.layer.rotation(self.K, positions))
    return ORIGINAL_APPEND(self, K, V)


def append_over_last_token(self, K, V):
    """New tokens are written over the last one."""
    if not self.length:
        return ORIGINAL_APPEND(self, K, V)
    for buffer, rows in zip(self.buffers, (K, V), strict=True):
        buffer[..., self.length - 1 : self.length - 1 + K.shape[-2], :] = rows
    return decoder.replace(self, length=self.length + K.shape[-2], continued=[])


def visible_with_padding(T, distance, *, lengths=None, window=None):
    """Tokens attend to padding."""
    return ORIGINAL_VISIBLE(T, distance, window=window)


def rotate_other_layout(self, X, positions):
    """Halves for interleaved pairs, and the other way round."""
    frequencies = self.bits.view(torch.float64).numpy()
    return ORIGINAL_ROTATION(Rotation(frequencies, half=not self.half), X, positions)


ORIGINAL_APPEND, ORIGINAL_ROTATION = DecoderCache._append, Rotation.forward
ORIGINAL_VISIBLE, ORIGINAL_POSITIONS = decoder.visible, decoder.token_positions
MISTAKES = {
    "is_causal of PyTorch in every chunk": (decoder, "fused_groups", attend_top_left, ""),
    "group tiled": (decoder, "fused_groups", attend_tiled_groups, "2 KV"),
    "mask without offset": (
        decoder,
        "visible",
        lambda T, distance, **_: torch.ones(T, len(distance), dtype=torch.bool).tril(),
        "",
    ),
    "mask one ahead": (
        decoder,
        "visible",
        lambda T, distance, **_: torch.ones(T, len(distance), dtype=torch.bool).tril(
            len(distance) - T + 1
        ),
        "",
    ),
    "padding seen": (decoder, "visible", visible_with_padding, ""),
    "positions that restart": (
        decoder,
        "token_positions",
        lambda start, T, pad, device: ORIGINAL_POSITIONS(0, T, None, device),
        "rotated",
    ),
    "positions that count padding from the first step on": (
        decoder,
        "token_positions",
        lambda start, T, pad, device: ORIGINAL_POSITIONS(start, T, None if start else pad, device),
        "rotated",
    ),
    "keys rotated again at each step": (DecoderCache, "_append", append_rotated_again, "rotated"),
    "the other layout of pairs": (Rotation, "forward", rotate_other_layout, "rotated"),
    "cached rows are overwritten": (DecoderCache, "_append", append_over_last_token, ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found_in_every_combination_that_can_make_it(mistake, monkeypatch):
    owner, attribute, replacement, name_part = MISTAKES[mistake]
    monkeypatch.setattr(owner, attribute, replacement)
    for name in (name for name in DECODER_LAYER_NAMES if name_part in name):
        expected = {pad_name: loop_rows(name, pad_name) for pad_name in PADS}
        assert max_row_error(decoder_of(LAYERS[name]), expected) > 1e-3, name


def max_row_error(module, expected):
    """How far the rows of real tokens are from the expected ones of each padding."""
    cases = itertools.product(expected.items(), CHUNKS)
    return max(
        np.abs(decoder_rows(module, pad_name, n) - rows)[rows != 0].max()
        for (pad_name, rows), n in cases
    )


# --- mistakes with windows and sinks ---


def step_dropping_keys(self, X, cache):
    """A chunk overwrites keys that its first tokens still attend to."""
    T, end = X.shape[-2], cache.length + X.shape[-2]
    Q, K, V = self._project(X, cache.positions(T))
    longer_cache = cache._append(K, V)
    lengths = None if cache.pad is None else end - cache.pad
    distance = longer_cache._distances()
    Q = Q[..., -len(distance) :, :]
    Y = self._attend(Q, *longer_cache._rows(), distance, lengths)
    return F.pad(Y, (0, 0, T - Y.shape[-2], 0)), longer_cache


def resized_window(change):
    """The window is wider by so many keys."""
    return lambda T, distance, lengths, window: ORIGINAL_VISIBLE(
        T, distance, lengths=lengths, window=window + change
    )


def visible_forgetting_window(T, distance, *, lengths=None, window=None):
    """The window is applied only to a whole sequence."""
    applied_window = window if len(distance) == T else None
    return ORIGINAL_VISIBLE(T, distance, lengths=lengths, window=applied_window)


def unordered_ring_rows(self, n):
    """The ring is read from its first row, not from its oldest."""
    return self._rows()[n]


def ordered_ring_distances(self):
    """Distances as if the ring began with the oldest."""
    return ORIGINAL_DISTANCES(self).sort(descending=True).values


def sink_per_block(Q, K, V, sink, *, mask):
    """Each block of two keys has a sink of its own."""
    n_blocks = torch.tensor(-(-K.shape[-2] // 2))
    return ORIGINAL_SUNK(Q, K, V, sink + n_blocks.log(), mask=mask)


def sink_with_value(Q, K, V, sink, *, mask):
    """The sink's weight goes to the first key's value."""
    heads = ORIGINAL_SUNK(Q, K, V, sink, mask=mask)
    sink_weight = 1 - ORIGINAL_SUNK(Q, K, torch.ones_like(V), sink, mask=mask)
    return heads + sink_weight * V[..., :1, :].repeat_interleave(H // V.shape[-3], -3)


def sink_without_cache(Q, K, V, sink, *, mask):
    """New tokens behind old ones have no sink."""
    is_whole = Q.shape[-2] == K.shape[-2]
    return ORIGINAL_SUNK(Q, K, V, sink if is_whole else sink - 1e4, mask=mask)


ORIGINAL_DISTANCES, ORIGINAL_SUNK = DecoderCache._distances, decoder.sunk_groups
SIGHT_MISTAKES = {
    "window wider by one": (decoder, "visible", resized_window(1)),
    "window narrower by one": (decoder, "visible", resized_window(-1)),
    "window forgotten behind a cache": (decoder, "visible", visible_forgetting_window),
    "dropped before attended to": (DecoderAttention, "step", step_dropping_keys),
    "ring read from its first row": (DecoderCache, "_in_order", unordered_ring_rows),
    "distances of a ring in order": (DecoderCache, "_distances", ordered_ring_distances),
    "positions that stop at the window": (
        DecoderCache,
        "positions",
        lambda self, T: ORIGINAL_POSITIONS(min(self.length, self.capacity), T, self.pad, "cpu"),
    ),
    "sink once a block of keys": (decoder, "sunk_groups", sink_per_block),
    "sink with a value": (decoder, "sunk_groups", sink_with_value),
    "sink forgotten behind a cache": (decoder, "sunk_groups", sink_without_cache),
    "sinks of other heads": (
        decoder,
        "sunk_groups",
        lambda Q, K, V, sink, mask: ORIGINAL_SUNK(Q, K, V, sink.flip(0), mask=mask),
    ),
    "sink divided by the root of d_k": (
        decoder,
        "sunk_groups",
        lambda Q, K, V, sink, mask: ORIGINAL_SUNK(Q, K, V, sink / D_K**0.5, mask=mask),
    ),
}


@pytest.mark.parametrize("mistake", SIGHT_MISTAKES)
def test_a_planted_mistake_of_sight_is_found(mistake, monkeypatch):
    owner, attribute, replacement = SIGHT_MISTAKES[mistake]
    layer = layer_with_sight(ROPE_LAYER, 3, "sinks")
    expected = {pad_name: rows_by_loops(layer, pad_name) for pad_name in PADS}
    monkeypatch.setattr(owner, attribute, replacement)
    assert max_row_error(decoder_of(layer), expected) > 1e-3


# --- QK-norm ---


@dataclass(frozen=True)
class NormedLayer(Patterned):
    """Heads in groups whose queries and keys have one length before they are rotated."""

    qk_norm: np.ndarray = field(default_factory=lambda: np.ones((2, D_K)))
    eps: float = 0.0

    def normed(self, A, gain):
        """Queries or keys of one length, √d_k, times their gains."""
        return A / np.sqrt((A**2).mean(axis=-1, keepdims=True) + self.eps) * gain

    def project(self, X, positions):
        """The queries, and what is cached of the new tokens."""
        params, gains = self.params, self.qk_norm
        Q, K = (
            self.with_rope(self.normed(project_heads(X, W), gain), positions)
            for W, gain in zip((params.W_Q, params.W_K), gains, strict=True)
        )
        return Q, (K, project_heads(X, params.W_V))


def normed_layer(layer_name, **options):
    """A composition that norms queries and keys, with a gain for each of their entries."""
    gains = np.random.default_rng(7).uniform(0.5, 3, (2, D_K))
    return NormedLayer(**vars(LAYERS[layer_name]), qk_norm=gains, **options)


NORMED_LAYERS = {
    "rotated": lambda: normed_layer(ROPE_LAYER),
    "in part": lambda: normed_layer("1 KV heads, interleaved pairs rotated in part"),
    "no positions": lambda: normed_layer(f"{H} KV heads, no positions"),
    "window and sinks": lambda: normed_layer(ROPE_LAYER, window=3, sink=SINK),
    "a large eps": lambda: normed_layer(ROPE_LAYER, eps=0.3),
}


@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("name", NORMED_LAYERS)
def test_qk_norm_is_that_of_numpy_in_forward_and_in_steps(name, pad_name):
    layer = NORMED_LAYERS[name]()
    module, expected = decoder_of(layer), rows_in_chunks(layer, pad_name, T)
    is_token = (expected != 0).any(axis=-1)
    assert_equal(module(X_T, pad=pad_tensor(pad_name)).numpy()[is_token], expected[is_token])
    for n in CHUNKS:
        assert_equal(decoder_rows(module, pad_name, n), expected)


def test_with_qk_norm_the_length_of_queries_and_keys_does_not_matter():
    layer = NORMED_LAYERS["rotated"]()
    params = layer.params
    rescaled_layer = replace(layer, params=replace(params, W_Q=3 * params.W_Q, W_K=7 * params.W_K))
    assert_equal(decoder_of(rescaled_layer)(X_T).numpy(), decoder_of(layer)(X_T).numpy())
    other_gains = replace(rescaled_layer, qk_norm=layer.qk_norm[::-1])
    gain_change = decoder_of(other_gains)(X_T) - decoder_of(layer)(X_T)
    assert gain_change.abs().max() > 1e-3, "queries have gains of their own"


def test_qk_norm_trains_its_gains_and_is_stored():
    module = DecoderAttention(D_MODEL, H, sight=Sight(qk_norm=np.ones((2, 3))))
    module(torch.ones(T, D_MODEL).cumsum(0)).square().sum().backward()
    assert module.qk_norm.grad.abs().min() > 0
    assert module.state_dict()["qk_norm"].shape == (2, 3)
    assert "qk_norm=True" in repr(module)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_qk_norm_keeps_the_precision_and_rounds_once(dtype):
    A, gain = torch.randn(50, 64, generator=torch.Generator().manual_seed(0)).to(dtype), 1.7
    rounded = decoder.normed(A, torch.tensor(gain, dtype=dtype), 1e-6)
    exact = decoder.normed(A.double(), torch.tensor(gain, dtype=dtype).double(), 1e-6)
    assert rounded.dtype == dtype
    assert ((rounded - exact).abs() <= 1.001 * torch.finfo(dtype).eps / 2 * exact.abs()).all()
    module = DecoderAttention(64, 2, sight=Sight(qk_norm=np.ones((2, 32)))).requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(A.float()).dtype == torch.bfloat16
    assert module.to(dtype)(A).dtype == dtype


# --- the reserved buffers ---


class AllocationMonitor(TorchDispatchMode):
    """Count the numbers of the largest tensor that an operation makes anew."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        """Run it, and look at what it makes."""
        old_ptrs = {A.untyped_storage().data_ptr() for A in tensors_in((arguments, options))}
        output = function(*arguments, **(options or {}))
        created = [A for A in tensors_in(output) if A.untyped_storage().data_ptr() not in old_ptrs]
        self.largest = max([self.largest, *(A.numel() for A in created)])
        return output


def tensors_in(tree):
    """The tensors among some arguments."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def largest_step_tensor(module, cache, T=1):
    """How many numbers the largest new tensor of a step has."""
    with AllocationMonitor() as monitor:
        module.step(torch.ones(T, D_MODEL, dtype=torch.float64), cache)
    return monitor.largest


@pytest.mark.parametrize("name", [name for name in DECODER_LAYER_NAMES if "2 KV" in name])
def test_no_step_copies_cached_rows(name, monkeypatch):
    module = decoder_of(with_narrow_values(LAYERS[name]))
    cache = DecoderCache.empty(module, 2_000)
    _, cache = module.step(torch.ones(1_900, D_MODEL, dtype=torch.float64), cache)
    addresses = cache.K.data_ptr(), cache.V.data_ptr()
    assert largest_step_tensor(module, cache.fork()) < cache.K.numel() / 10
    _, cache = module.step(torch.ones(3, D_MODEL, dtype=torch.float64), cache)
    assert (cache.K.data_ptr(), cache.V.data_ptr()) == addresses
    monkeypatch.setattr(decoder, "fused_groups", attend_tiled_groups)
    assert largest_step_tensor(module, cache) > cache.K.numel() / 2, "it would have been noticed"


@pytest.mark.parametrize("sink_name", SINKS)
def test_no_word_copies_its_window(sink_name):
    sight = Sight(1_000, SINKS[sink_name])
    module = DecoderAttention(D_MODEL, H, n_kv_heads=2, sizes=(32, 32), sight=sight).double()
    cache = DecoderCache.empty(module.requires_grad_(False), 5_000)
    _, cache = module.step(torch.ones(2_345, D_MODEL, dtype=torch.float64), cache)
    assert cache.K.shape[-2] == 1_000
    assert largest_step_tensor(module, cache.fork()) <= H * 1_001  # the scores and the sinks
    assert largest_step_tensor(module, cache.fork(), 2) > cache.K.numel(), "a chunk copies it"


MEMORY_SIZES = {"n_kv_heads": 2, "sizes": (8, 8)}
LENGTH, WINDOW = 1_000, 100


def memory_case(window, sink_name):
    """A layer for the memory of a long sequence, and that sequence."""
    module = DecoderAttention(D_MODEL, H, **MEMORY_SIZES, sight=Sight(window, SINKS[sink_name]))
    return module.requires_grad_(False), torch.ones(LENGTH, D_MODEL)


def largest_forward_tensor(module, tokens):
    """How many entries the largest new tensor has when the layer reads a sequence."""
    with AllocationMonitor() as monitor:
        module(tokens)
    return monitor.largest


def fused_calls(call, monkeypatch):
    """Of each fused call: whether it has a mask, the flag `is_causal`, the number of keys."""
    calls, original_sdpa = [], F.scaled_dot_product_attention

    def logged_sdpa(Q, K, V, attn_mask=None, is_causal=False, **options):
        calls.append((attn_mask is not None, is_causal, K.shape[-2]))
        return original_sdpa(Q, K, V, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", logged_sdpa)
    call()
    monkeypatch.undo()
    return calls


BLOCK_KEYS = WINDOW + decoder.BLOCK - 1  # of a block


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_mask_is_made_only_where_a_key_is_out_of_sight(window, monkeypatch):
    module, tokens = memory_case(window, "no sink")
    forward_calls = fused_calls(lambda: module(tokens), monkeypatch)
    if window is None:
        assert forward_calls == [(False, True, LENGTH)]
    else:
        n_keys = [min(BLOCK_KEYS, end) for end in range(decoder.BLOCK, LENGTH, decoder.BLOCK)]
        assert forward_calls[:-1] == [(True, False, n) for n in n_keys]
        assert forward_calls[-1] == (True, False, WINDOW + (LENGTH - 1) % decoder.BLOCK)
    assert fused_calls(lambda: module(tokens[:WINDOW]), monkeypatch) == [(False, True, WINDOW)]
    pad = torch.tensor(1)
    assert fused_calls(lambda: module(tokens[:WINDOW], pad=pad), monkeypatch) == [
        (True, False, WINDOW)
    ]
    _, cache = module.step(tokens[:-1], DecoderCache.empty(module, LENGTH))
    step_calls = fused_calls(lambda: module.step(tokens[-1:], cache), monkeypatch)
    assert step_calls == [(False, False, window or LENGTH)]


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_sink_takes_no_fused_call(window, monkeypatch):
    module, tokens = memory_case(window, "sinks")
    assert fused_calls(lambda: module(tokens), monkeypatch) == []


N_PROJECTED = (H + 2 * 2) * 8 * LENGTH  # queries, keys and values: what every layer needs
N_BLOCKS = -(-LENGTH // decoder.BLOCK)


@pytest.mark.parametrize(
    ("window", "sink_name", "max_entries"),
    [
        (WINDOW, "no sink", N_PROJECTED),
        (WINDOW, "sinks", N_PROJECTED),
        (None, "no sink", N_PROJECTED),
        (None, "sinks", H * decoder.BLOCK * (LENGTH + 1)),
    ],
)
def test_a_loop_over_blocks_holds_the_scores_of_one_block(window, sink_name, max_entries):
    assert largest_forward_tensor(*memory_case(window, sink_name)) <= max_entries


@pytest.mark.parametrize(
    ("window", "sink", "n_entries"),
    [
        (WINDOW, "no sink", H // 2 * N_BLOCKS * decoder.BLOCK * BLOCK_KEYS),
        (WINDOW, "sinks", H * N_BLOCKS * decoder.BLOCK * (BLOCK_KEYS + 1)),
        (None, "sinks", H * LENGTH * (LENGTH + 1)),
    ],
)
@pytest.mark.parametrize("tracer", TRACERS)
def test_a_graph_holds_masks_or_scores_of_all_blocks(tracer, window, sink, n_entries, monkeypatch):
    take_graph_path(tracer, monkeypatch)
    if tracer == "export":
        n_entries = H * LENGTH * (LENGTH + 1) if sink == "sinks" else H // 2 * LENGTH**2
    assert largest_forward_tensor(*memory_case(window, sink)) == n_entries


@pytest.mark.parametrize("window", [1, 7, 64, 255, 256, 257, 259, 300, 999])
def test_in_blocks_copies_no_key_more_than_five_times(window):
    tokens = torch.arange(1_000.0)[:, None]  # one head, one number for each token
    Q, K, V, mask = decoder.in_blocks(*tokens.expand(3, 1, 1_000, 1), None, window)
    assert K.shape == V.shape == (*Q.shape[:-2], mask.shape[-1], 1)
    assert K.numel() <= 5 * Q.numel()
    cached_ids, copies = K.unique(return_counts=True)
    assert len(cached_ids) == 1_000
    assert copies[1:].max() <= 5, "token 0 takes the place of what precedes the sequence"


def test_values_of_another_width_take_the_path_that_copies_the_keys():
    module = decoder_of(LAYERS["2 KV heads, no positions"])
    cache = DecoderCache.empty(module, 2_000)
    _, cache = module.step(torch.ones(1_900, D_MODEL, dtype=torch.float64), cache)
    assert largest_step_tensor(module, cache) >= cache.K.numel()


def test_a_shorter_view_goes_on_showing_what_it_showed():
    module = decoder_of(LAYERS[ROPE_LAYER])
    _, prompt_cache = module.step(X_T[:, :3], DecoderCache.empty(module, T, batch=(B,)))
    prompt_K = prompt_cache.K.clone()
    _, longer_cache = module.step(X_T[:, 3:], prompt_cache)
    assert torch.equal(prompt_cache.K, prompt_K)
    assert torch.equal(longer_cache.K[..., :3, :], prompt_K)
    assert (prompt_cache.length, prompt_cache.written, longer_cache.length) == (3, T, T)


@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("window", [None, 2])
def test_a_step_that_fails_behind_the_keys_can_be_taken_again(pad_name, window):
    layer = LAYERS[ROPE_LAYER] if window is None else layer_with_sight(ROPE_LAYER, window, "sinks")
    module, Y = decoder_of(layer), []
    cache = empty_cache(module, pad_name)
    for start, end in ((0, 3), (3, 4), (4, T)):
        failing_hook = module.out_proj.register_forward_pre_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            module.step(X_T[:, start:end].flip(0), cache)
        failing_hook.remove()
        assert (cache.length, cache.written) == (start, start)
        rows, cache = module.step(X_T[:, start:end], cache)
        Y.append(rows)
    assert_equal(torch.cat(Y, dim=1).numpy(), rows_in_chunks(layer, pad_name, T))


def test_after_a_step_that_fails_in_a_full_window_every_key_in_sight_is_there():
    module = module_with_sight("window and sinks")
    _, cache = module.step(X_T[:, :5], DecoderCache.empty(module, T, batch=(B,)))
    fork = cache.fork()
    failing_hook = module.out_proj.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module.step(-X_T[:, :1], cache)
    failing_hook.remove()
    assert (cache.length, cache.written) == (5, 5)
    for actual, expected in ((cache.K, fork.K), (cache.V, fork.V)):
        assert torch.equal(actual[..., 1:, :], expected[..., 1:, :])
        assert not torch.equal(actual[..., 0, :], expected[..., 0, :]), "the oldest is overwritten"
    for n in (1, 2, 3):
        Y, forked_Y = (module.step(X_T[:, 5 : 5 + n], view.fork())[0] for view in (cache, fork))
        assert_equal(Y.numpy(), forked_Y.numpy())


def test_rows_of_weights_that_have_changed_stay_in_the_cache():
    module = decoder_of(LAYERS[ROPE_LAYER])
    _, cache = module.step(X_T[:, :3], DecoderCache.empty(module, T, batch=(B,)))
    old_K = cache.K.clone()
    module.qkv_proj.weight.mul_(2)
    _, longer_cache = module.step(X_T[:, 3:], cache)
    assert torch.equal(longer_cache.K[..., :3, :], old_K)
    fresh_Y, _ = module.step(X_T, DecoderCache.empty(module, T, batch=(B,)))
    assert_equal(fresh_Y.numpy(), module(X_T).numpy())


def test_a_cache_is_equal_only_to_itself():
    module, pad = decoder_of(LAYERS[ROPE_LAYER]), np.arange(B)
    cache, other_cache = (DecoderCache.empty(module, T, batch=(B,), pad=pad) for _ in range(2))
    assert cache == cache
    assert cache != other_cache
    assert cache != cache.fork()
    assert len({cache, other_cache, cache}) == 2


@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("sight_name", SIGHTS)
def test_a_cache_may_enter_and_leave_inference_mode(sight_name, pad_name):
    module, mode_choices = module_with_sight(sight_name), itertools.product([False, True], repeat=4)
    expected = module(X_T, pad=pad_tensor(pad_name))[:, 5:]
    for empty_mode, prompt_mode, fork_mode, step_mode in mode_choices:
        with torch.inference_mode(empty_mode):
            cache = empty_cache(module, pad_name)
        with torch.inference_mode(prompt_mode):
            _, cache = module.step(X_T[:, :5], cache)
        with torch.inference_mode(fork_mode):
            cache = cache.fork()
        with torch.inference_mode(step_mode):
            Y, cache = module.step(X_T[:, 5:-1], cache)
            last_row, cache = module.step(X_T[:, -1:], cache)
            assert_equal(torch.cat((Y, last_row), dim=1).numpy(), expected.numpy())


@pytest.mark.parametrize("pad_name", PADS)
def test_a_fork_goes_on_by_itself_from_any_view(pad_name):
    layer = LAYERS[ROPE_LAYER]
    module, expected = decoder_of(layer), rows_in_chunks(layer, pad_name, T)
    _, prompt_cache = module.step(X_T[:, :3], empty_cache(module, pad_name))
    fork = prompt_cache.fork()
    Y, longer_cache = module.step(X_T[:, 3:5], prompt_cache)
    forked_Y, _ = module.step(-X_T[:, 3:5], fork)
    last_rows, _ = module.step(X_T[:, 5:], longer_cache)
    # behind a view that has gone on: rewound
    rewound_rows, _ = module.step(X_T[:, 3:], prompt_cache.fork())
    for rows in (torch.cat([Y, last_rows], dim=1), rewound_rows):
        assert_equal(rows.numpy(), expected[:, 3:])
    assert (forked_Y - Y).abs().max() > 1e-3
    assert (prompt_cache.written, fork.written) == (5, 5)


@pytest.mark.parametrize("pad_name", PADS)
def test_a_fork_of_a_window_goes_on_by_itself(pad_name):
    layer = layer_with_sight(ROPE_LAYER, 3, "sinks")
    module, expected = decoder_of(layer), rows_in_chunks(layer, pad_name, T)
    _, prompt_cache = module.step(X_T[:, :5], empty_cache(module, pad_name))
    fork = prompt_cache.fork()
    original_Y, _ = module.step(X_T[:, 5:], prompt_cache)
    module.step(-X_T[:, 5:6], fork.fork())
    forked_Y, _ = module.step(X_T[:, 5:], fork)
    for rows in (original_Y, forked_Y):
        assert_equal(rows.numpy(), expected[:, 5:])


# --- training ---


def test_gradients_of_a_layer_with_all_its_keys_are_those_of_numpy():
    layer = LAYERS["4 KV heads, no positions"]
    module, X_leaf = decoder_of(layer).requires_grad_(), X_T.clone().requires_grad_()
    dY = np.random.default_rng(10).standard_normal(X.shape)
    module(X_leaf).backward(torch.from_numpy(dY))
    record = trace(X, layer.params.expanded(), mask=causal_mask(T))
    expected = multi_head_attention_backward(record, dY)
    assert_equal(X_leaf.grad.numpy(), expected.dX)
    for name, W in gradient_arrays(module).items():
        assert_equal(W, getattr(expected, f"d{name}"))


TRAINABLE = {
    ROPE_LAYER: LAYERS[ROPE_LAYER],
    "1 KV heads, interleaved pairs rotated": LAYERS["1 KV heads, interleaved pairs rotated"],
    "2 KV heads, halves rotated, a window": layer_with_sight(ROPE_LAYER, 3, "no sink"),
    "2 KV heads, halves rotated, sinks": layer_with_sight(ROPE_LAYER, 3, "sinks"),
}


@pytest.mark.parametrize("name", TRAINABLE)
@pytest.mark.parametrize("pad_name", PADS)
def test_gradients_are_those_of_small_changes(name, pad_name, monkeypatch):
    monkeypatch.setattr(decoder, "BLOCK", 3)
    layer = TRAINABLE[name]
    module = decoder_of(layer).requires_grad_()
    dY = np.random.default_rng(10).standard_normal(X.shape)
    module(X_T, pad=pad_tensor(pad_name)).backward(torch.from_numpy(dY))
    gradients = gradient_arrays(module)
    if module.sink is not None:
        gradients["sink"] = module.sink.grad.numpy()
    for array_name, gradient in gradients.items():

        def loss(changed_W, array_name=array_name):
            if array_name == "sink":
                return (rows_in_chunks(replace(layer, sink=changed_W), pad_name, T) * dY).sum()
            params = GroupedParams(**vars(layer.params) | {array_name: changed_W})
            return (rows_in_chunks(replace(layer, params=params), pad_name, T) * dY).sum()

        W = layer.sink if array_name == "sink" else getattr(layer.params, array_name)
        change = 1e-5 * np.random.default_rng(11).standard_normal(W.shape)
        slope = (loss(W + change) - loss(W - change)) / 2
        np.testing.assert_allclose((gradient * change).sum(), slope, rtol=1e-6)


def gradient_arrays(module):
    """The gradients of a module, in the layout of GroupedParams."""
    copied = copy.deepcopy(module)
    with torch.no_grad():
        for parameter, original in zip(copied.parameters(), module.parameters(), strict=True):
            parameter.copy_(original.grad)
    return vars(params_from_decoder(copied))


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
    previous_tokens = X_T.float().roll(1, dims=1)  # which a rotated query can find
    optimiser, losses = torch.optim.Adam(module.parameters(), lr=0.03), []
    for _ in range(60):
        optimiser.zero_grad()
        residual = (module(X_T.float(), pad=pad_tensor(pad)) - previous_tokens)[:, 5:]
        losses.append(residual.square().mean())
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < 0.2 * losses[0]
    assert module.sink is None or (module.sink.abs() > 0.02).all()
    assert sight.sink is None or not sight.sink.any(), "the array that was given stays"


# --- compiled, saved, copied, printed ---


@pytest.fixture
def compile_whole():
    """`compile_whole(function, backend)`: traced as a whole; a break is an error."""
    torch.compiler.reset()
    yield lambda function, backend="eager": torch.compile(function, fullgraph=True, backend=backend)
    torch.compiler.reset()


@pytest.mark.parametrize("pad_name", ["no padding", *long("padded")])
def test_compiles_without_a_graph_break_for_every_length(pad_name, compile_whole):
    layer = with_narrow_values(LAYERS[ROPE_LAYER])
    module = decoder_of(layer)
    step = compile_whole(module.step)
    cache, rows, start = empty_cache(module, pad_name), [], 0
    for n in (2, 3, 1, 1, 1):
        Y, cache = step(X_T[:, start : start + n], cache)
        rows, start = [*rows, Y], start + n
    assert_equal(torch.cat(rows, dim=1).numpy(), rows_in_chunks(layer, pad_name, 3))
    assert (cache.length, cache.written) == (T, T)
    whole_Y = compile_whole(module)(X_T, pad=pad_tensor(pad_name))
    assert_equal(whole_Y.numpy(), rows_in_chunks(layer, pad_name, 3))


BEFORE_2_13 = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)
LENGTHS = 5, 40, 64, 65, 100, 128, 129, 200, 256, 300, 333


def count_graphs(function, options, calls):
    """How many graphs `torch.compile` makes of a function for some calls, one after the other."""
    graphs = []

    def log_graph(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled_function = torch.compile(function, fullgraph=True, backend=log_graph, **options)
    for call in calls:
        call(compiled_function)
    torch.compiler.reset()
    return len(graphs)


@pytest.mark.parametrize(
    ("sight_name", "dynamic", "is_padded"),
    [
        ("window and sinks", True, True),
        *long(*((sight, True, False) for sight in ("all keys", "window", "sinks"))),
        *long(("window and sinks", None, True)),
    ],
)
def test_few_graphs_serve_every_length(sight_name, dynamic, is_padded):
    module, pad = module_with_sight(sight_name), torch.arange(B) if is_padded else None
    tokens = torch.randn(B, max(LENGTHS), D_MODEL, dtype=torch.float64)

    def call(compiled_function, n):
        assert_equal(
            compiled_function(tokens[:, :n].clone(), pad=pad).numpy(),
            module(tokens[:, :n], pad=pad).numpy(),
        )

    calls = [partial(call, n=n) for n in LENGTHS]
    assert count_graphs(module, {"dynamic": dynamic}, calls) <= 3


@pytest.mark.long
@pytest.mark.parametrize("sight_name", SIGHTS)
@pytest.mark.parametrize("pad_name", PADS)
def test_few_graphs_serve_every_step(sight_name, pad_name):
    module = module_with_sight(sight_name)
    chunk_lengths = 5, *7 * (1,), 3, 4, 6, *9 * (1,), 20, 2, 1, 70, 1, 1
    tokens = torch.randn(B, sum(chunk_lengths), D_MODEL, dtype=torch.float64)
    expected = module(tokens, pad=pad_tensor(pad_name))
    caches = [DecoderCache.empty(module, sum(chunk_lengths), batch=(B,), pad=PADS[pad_name])]

    def call(compiled_function, chunk, rows):
        Y, longer_cache = compiled_function(chunk.clone(), caches.pop())
        caches.append(longer_cache)
        is_token = rows.abs().sum(-1) > 0
        assert_equal(Y[is_token].numpy(), rows[is_token].numpy())

    chunk_pairs = zip(tokens.split(chunk_lengths, 1), expected.split(chunk_lengths, 1), strict=True)
    calls = [partial(call, chunk=chunk, rows=rows) for chunk, rows in chunk_pairs]
    assert count_graphs(module.step, {"dynamic": True}, calls) <= 7


@pytest.mark.skipif(
    BEFORE_2_13, reason="PyTorch 2.12 exports some layers for the length of the sample only"
)
@pytest.mark.parametrize("sight_name", SIGHTS)
@pytest.mark.parametrize("is_padded", [False, True])
def test_an_export_serves_every_length(sight_name, is_padded):
    module, pad = module_with_sight(sight_name), torch.arange(B) if is_padded else None
    tokens = torch.randn(B, max(LENGTHS), D_MODEL, dtype=torch.float64)
    shapes = {"X": {1: torch.export.Dim("T", min=2, max=5_000)}, "pad": {} if is_padded else None}
    exported = torch.export.export(
        module, (tokens[:, :70].clone(),), {"pad": pad}, dynamic_shapes=shapes
    ).module()
    for n in LENGTHS:
        expected = module(tokens[:, :n], pad=pad)
        assert_equal(exported(tokens[:, :n], pad=pad).numpy(), expected.numpy())


@pytest.mark.long
@pytest.mark.parametrize("pad_name", PADS)
def test_a_window_and_sinks_compile_without_a_graph_break(pad_name, compile_whole):
    layer = layer_with_sight(ROPE_LAYER, 3, "sinks")
    module = decoder_of(layer)
    step, rows, start = compile_whole(module.step), [], 0
    cache = empty_cache(module, pad_name)
    for n in (5, 1, 1, 1):  # longer than the window; around the ring
        Y, cache = step(X_T[:, start : start + n], cache)
        rows, start = [*rows, Y], start + n
    assert_equal(torch.cat(rows, dim=1).numpy(), rows_in_chunks(layer, pad_name, 1))


@pytest.mark.parametrize("name", ["1 KV heads, interleaved pairs rotated", list(TRAINABLE)[-1]])
def test_a_compiled_layer_trains_as_any(name, compile_whole):
    layer, gradients = TRAINABLE[name], []
    for transform in (lambda module: module, compile_whole):
        module = decoder_of(layer).requires_grad_()
        transform(module)(X_T).square().sum().backward()
        gradients.append([weight.grad for weight in module.parameters()])
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
@pytest.mark.skipif(cxx() == "no C++ compiler", reason="torch.compile needs a C++ compiler")
def test_a_compiled_kernel_gives_the_same(compile_whole):
    layer = with_narrow_values(LAYERS[ROPE_LAYER])
    Y = compile_whole(decoder_of(layer), "inductor")(X_T)
    assert_equal(Y.numpy(), rows_in_chunks(layer, "no padding", T))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
@pytest.mark.skipif(cxx() == "no C++ compiler", reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("pad_name", PADS)
@pytest.mark.parametrize("window", [None, 3])
def test_compiled_kernels_give_the_same_step_by_step(window, pad_name, compile_whole):
    layer = with_narrow_values(
        LAYERS[ROPE_LAYER] if window is None else layer_with_sight(ROPE_LAYER, window, "sinks")
    )
    module = decoder_of(layer)
    for n in (3, 1):
        step = compile_whole(module.step, "inductor")
        stepped = as_numpy_layer(SimpleNamespace(step=step))
        stepped.empty = as_numpy_layer(module).empty
        assert_equal(rows_in_chunks(stepped, pad_name, n), rows_in_chunks(layer, pad_name, n))


def test_state_dict_round_trips_and_holds_only_weights():
    module = decoder_of(LAYERS[ROPE_LAYER])
    assert list(module.state_dict()) == ["qkv_proj.weight", "out_proj.weight"]
    module, loaded = (decoder_of(layer_with_sight(ROPE_LAYER, 3, "sinks")) for _ in range(2))
    assert list(module.state_dict()) == ["sink", "qkv_proj.weight", "out_proj.weight"]
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.zero_()
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(loaded(X_T), module(X_T), rtol=1e-12, atol=1e-12)


def decoder_with_all_options():
    """A decoder with groups, a rotation, a window, sinks, QK-norm and biases."""
    sight = Sight(window=3, sink=SINK, qk_norm=np.ones((2, D_K)))
    options = {"n_kv_heads": 2, "sizes": (D_K, 7), "bias": True, "sight": sight}
    return DecoderAttention(D_MODEL, H, rotation=Rotation(FREQUENCIES), **options)


MODULE_MAKERS = {
    MultiHeadAttention: lambda: MultiHeadAttention(D_MODEL, H, bias=True),
    DecoderAttention: decoder_with_all_options,
    Rotation: lambda: Rotation(FREQUENCIES, half=True),
}


def on_meta(builder):
    """A module whose parameters have no numbers."""
    with torch.device("meta"):
        return builder()


DEFERRED_MAKERS = {
    "emptied": (lambda builder: builder().to_empty(device="cpu"), False),
    "made on meta": (lambda builder: on_meta(builder).to_empty(device="cpu"), False),
    "moved to meta": (lambda builder: builder().to("meta").to_empty(device="cpu"), False),
    "made on meta, assigned": (on_meta, True),
    "moved to meta, assigned": (lambda builder: builder().to("meta"), True),
    "copied on meta": (
        lambda builder: copy.deepcopy(on_meta(builder)).to_empty(device="cpu"),
        False,
    ),
}


def test_every_module_of_the_library_is_made_without_numbers_below():
    package = tutorial_lib.pytorch
    exports = (getattr(package, name) for name in package.__all__)
    classes = [export for export in exports if isinstance(export, type)]
    assert {c for c in classes if issubclass(c, nn.Module)} == set(MODULE_MAKERS)


@pytest.mark.parametrize("module_class", MODULE_MAKERS)
@pytest.mark.parametrize("deferral", DEFERRED_MAKERS)
def test_a_module_made_without_numbers_is_whole_once_its_state_is_loaded(module_class, deferral):
    torch.manual_seed(0)
    defer, assign = DEFERRED_MAKERS[deferral]
    module, deferred = MODULE_MAKERS[module_class](), defer(MODULE_MAKERS[module_class])
    deferred.load_state_dict(module.state_dict(), strict=True, assign=assign)
    X = torch.randn(B, T, D_K if module_class is Rotation else D_MODEL)
    positions = (torch.arange(T),) if module_class is Rotation else ()
    torch.testing.assert_close(deferred(X, *positions), module(X, *positions))


@pytest.mark.parametrize("copy_module", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_is_the_same_layer(copy_module):
    module = decoder_of(LAYERS["2 KV heads, halves rotated in part"])
    torch.testing.assert_close(copy_module(module)(X_T), module(X_T), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [None, 3])
def test_under_autocast_a_step_keeps_the_precision_of_the_weights(window):
    layer = LAYERS[ROPE_LAYER] if window is None else layer_with_sight(ROPE_LAYER, window, "sinks")
    module, expected = decoder_of(layer).float(), rows_in_chunks(layer, "no padding", T)
    cache, start = DecoderCache.empty(module, T, batch=(B,)), 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for n in (4, 1, 3):
            Y, cache = module.step(X_T[:, start : start + n].float(), cache)
            exact_rows = expected[:, start : start + n]
            np.testing.assert_allclose(Y.float().numpy(), exact_rows, rtol=0, atol=0.1)
            start += n
    assert (Y.dtype, cache.K.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(cache.V, cache.V.bfloat16().float()), "computed in bfloat16"


@pytest.mark.parametrize("name", ["DecoderAttention", "fused_groups", "normed", "sunk_groups"])
def test_the_example_of_a_docstring_runs(name):
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(decoder, name), name, decoder)
    failures = []
    doctest.DocTestRunner().run(example, out=failures.append)
    assert (failures, bool(example.examples)) == ([], True)


def test_printed_layer_names_its_sizes():
    layer_text = repr(decoder_of(LAYERS["2 KV heads, halves rotated in part"]))
    assert (
        "d_model=12, n_heads=4, n_kv_heads=2, d_k=6, d_v=7, window=None, sink=False" in layer_text
    )
    assert "qk_norm=False" in layer_text
    assert "(rotation): Rotation(4 entries of each head, half=True)" in layer_text
    assert "(qkv_proj): Linear(in_features=12, out_features=50, bias=False)" in layer_text
