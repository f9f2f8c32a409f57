"""Bad input of a decoder is refused: what was given, what was expected, how to mend it."""

import math

import numpy as np
import pytest
import torch

from tests.pytorch.layers import D_MODEL, B, NoArithmetic, S, T, draw, make
from tutorial_lib import ShapeError
from tutorial_lib.pytorch import (
    DecoderAttention,
    DecoderCache,
    Rotation,
    Sight,
)
from tutorial_lib.variants.positions import rope_frequencies


def assert_message(refusal, error, fragments):
    """Require this very class of error, with what was given, what was expected, how to mend it."""
    assert refusal.type is error
    for fragment in fragments:
        assert fragment in str(refusal.value)


def ones(dtype):
    """Ones of a batch of sequences."""
    return torch.ones(B, T, D_MODEL).to(dtype)


BAD_SEQUENCES = [
    (np.ones((T, 12)), TypeError, ("is a ndarray", "a tensor of floats", "torch.as_tensor(")),
    ([[1.0] * 12], TypeError, ("is a list", "a tensor of floats", "dtype=torch.float64)")),
    (ones(torch.int64), TypeError, ("a tensor of torch.int64", "of floats", "torch.as_tensor(")),
    (ones(torch.bool), TypeError, ("a tensor of torch.bool", "of floats", "torch.as_tensor(")),
    (ones(torch.complex64), TypeError, ("a tensor of torch.complex64", "of floats", "Convert it")),
    (ones(torch.float32), TypeError, ("is in torch.float32", "one precision", "torch.float64)")),
    (ones(torch.bfloat16), TypeError, ("is in torch.bfloat16", "one precision", "module.to(")),
    (draw(12), ShapeError, ("has shape (12,)", "d_model=12", "Make the two agree")),
    (draw(B, T, 13), ShapeError, ("has shape (2, 5, 13)", "d_model=12", "Make the two agree")),
    (draw(B, 0, 12), ShapeError, ("has shape (2, 0, 12)", "at least one token", "Make the two")),
    (draw(T, 12).float().to("meta"), TypeError, ("is in torch.float32", "one precision", ".to(")),
    (draw(T, 12).to("meta"), ValueError, ("is on meta", "one device", ".to('cpu')")),
]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_kv_heads": 12}, ShapeError, ("n_heads=6", "n_kv_heads=12 equal", "Choose n_kv_heads")),
        ({"n_kv_heads": 4}, ShapeError, ("n_heads=6", "n_kv_heads=4 equal", "from [1, 2, 3, 6]")),
        ({"n_kv_heads": 0}, ValueError, ("n_kv_heads=0", "at least 1", "positive length")),
        ({"n_kv_heads": 2.0}, TypeError, ("n_kv_heads is 2.0", "whole number", "Give an int")),
        ({"n_heads": 5}, ShapeError, ("d_model=12", "n_heads=5 equal parts", "Choose n_heads")),
        ({"sizes": (0, 4)}, ValueError, ("d_k=0", "at least 1", "positive length")),
        ({"sizes": (4, 2.5)}, TypeError, ("d_v is 2.5", "a whole number", "Give an int")),
        ({"sizes": 4}, TypeError, ("sizes is 4", "expected (d_k, d_v)", "Give a pair")),
        ({"sizes": (4, 4, 4)}, TypeError, ("sizes is (4, 4, 4)", "(d_k, d_v)", "Give a pair")),
        ({"sizes": (3, 4)}, ShapeError, ("d_k=3", "expected an even width", "Choose 2 or 4")),
        ({"sizes": (2, 4)}, ShapeError, ("2 frequencies", "d_k=2 has 1", "rope_frequencies(2)")),
        ({"sight": 128}, TypeError, ("sight is a int", "expected a Sight", "Sight(window=128)")),
        (
            {"sight": Sight(sink=np.zeros(5))},
            ShapeError,
            ("sink has 5 entries for 6 heads", "expected one for each", "np.zeros(6)"),
        ),
        (
            {"sight": Sight(qk_norm=np.ones((2, 5)))},
            ShapeError,
            ("qk_norm has shape (2, 5)", "expected (2, d_k) with d_k=4", "np.ones((2, 4))"),
        ),
        (
            {"rotation": rope_frequencies(4)},
            TypeError,
            ("is a ndarray", "expected a Rotation", "Make one: Rotation("),
        ),
    ],
)
def test_decoder_refuses_bad_sizes(changes, error, message):
    options = {
        "d_model": 12,
        "n_heads": 6,
        "sizes": (4, 4),
        "rotation": Rotation(rope_frequencies(4)),
    }
    options |= {"sizes": None} if "n_heads" in changes else {}
    with pytest.raises(error) as refusal:
        DecoderAttention(**options | changes)
    assert_message(refusal, error, message)


@pytest.mark.parametrize(
    ("frequencies", "half", "error", "message"),
    [
        ([1.0, 0.1], False, TypeError, "frequencies is a list; expected a NumPy array"),
        (torch.ones(2), False, TypeError, "frequencies is a Tensor; expected a NumPy array"),
        (np.ones((2, 2)), False, ShapeError, r"frequencies has shape \(2, 2\), 2 axes; expected"),
        (np.array([1, 2]), False, TypeError, "frequencies is an array of int64; expected floats"),
        (np.array([1.0, np.nan]), False, ValueError, "frequencies is nan at position"),
        (np.ones(2), "llama", TypeError, "half is 'llama'; expected True or False"),
    ],
)
def test_rotation_refuses_bad_frequencies(frequencies, half, error, message):
    with pytest.raises(error, match=message):
        Rotation(frequencies, half=half)


@pytest.mark.parametrize(
    ("X", "positions", "error", "message"),
    [
        (
            np.ones((T, 4)),
            torch.arange(T),
            TypeError,
            "X is a ndarray; expected a tensor of floats",
        ),
        (torch.ones(T, 4).int(), torch.arange(T), TypeError, "X is a tensor of torch.int32"),
        (torch.ones(T, 5), torch.arange(T), ShapeError, "d_k=5; expected an even width"),
        (torch.ones(T, 2), torch.arange(T), ShapeError, "2 frequencies, and a key of d_k=2 has 1"),
        (torch.ones(T, 4), list(range(T)), TypeError, "positions is a list; expected a tensor"),
        (torch.ones(T, 4), torch.ones(T) > 0, TypeError, "positions is a tensor of torch.bool"),
        (torch.ones(T, 4), torch.ones(T).bfloat16(), TypeError, "is a tensor of torch.bfloat16"),
        (torch.ones(T, 4), torch.ones(T).to(torch.uint8), TypeError, "is a tensor of torch.uint8"),
        (torch.ones(T, 4), torch.arange(1), ShapeError, r"positions has shape \(1,\); expected"),
        (torch.ones(1, 4), torch.ones(9, 1).int(), ShapeError, r"positions has shape \(9, 1\)"),
        (torch.ones(B, T, 4), torch.ones(3, T), ShapeError, r"to the tokens' \(2, 5\)"),
        (torch.ones(1, 4), torch.tensor([math.nan]), ValueError, "positions is nan at position"),
        (torch.ones(T, 4), torch.arange(S), ShapeError, r"positions has shape \(6,\); expected"),
        (
            torch.ones(T, 4),
            torch.tensor([0, 1, 2, 0, 1]),
            ValueError,
            "positions go backwards, from 2 to 0 at token 3",
        ),
    ],
)
def test_rotation_refuses_bad_input_before_any_arithmetic(X, positions, error, message):
    rotation = Rotation(rope_frequencies(4))
    with NoArithmetic(), pytest.raises(error, match=message):
        rotation(X, positions)


def test_rotation_takes_positions_of_the_widths_that_hold_them():
    rotation, X = Rotation(rope_frequencies(4)), draw(B, T, 4)
    expected = rotation(X, torch.arange(T))
    for dtype in (torch.int32, torch.float32, torch.float64):
        assert torch.equal(rotation(X, torch.arange(T, dtype=dtype)), expected)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"window": 0}, ValueError, "window=0; expected at least 1"),
        ({"window": 2.0}, TypeError, "window is 2.0, a float; expected a whole number"),
        ({"window": True}, TypeError, "window is True"),
        ({"sink": 0.0}, TypeError, "sink is a float; expected a NumPy array"),
        (
            {"sink": np.zeros((2, 3))},
            ShapeError,
            r"sink has shape \(2, 3\), 2 axes; expected \(H\)",
        ),
        ({"sink": np.zeros(6, int)}, TypeError, "sink is an array of int64; expected floats"),
        ({"sink": np.array([0, np.inf])}, ValueError, "sink is inf for head 1; expected a finite"),
        ({"sink": np.array([np.nan, 0])}, ValueError, "sink is nan for head 0"),
        ({"window": 10**30}, ValueError, r"expected less than 2\*\*62"),
        ({"qk_norm": 1.0}, TypeError, "qk_norm is a float; expected a NumPy array"),
        ({"qk_norm": np.ones((2, 4), int)}, TypeError, "qk_norm is an array of int64"),
        ({"qk_norm": np.ones((3, 4))}, ShapeError, r"\(3, 4\); expected \(two, d_k\) with two=2"),
        ({"qk_norm": np.full((2, 4), np.nan)}, ValueError, "qk_norm is nan at position"),
        ({"eps": "1e-6"}, TypeError, "eps is '1e-6', a str; expected a number from 0 on"),
        ({"eps": -1e-6}, ValueError, "eps=-1e-06; expected a number from 0 on"),
        ({"eps": np.nan}, ValueError, "eps=nan; expected a number from 0 on"),
    ],
)
def test_sight_refuses_what_no_query_can_have(changes, error, message):
    with pytest.raises(error, match=message):
        Sight(**changes)


def decoder(**changes):
    """A decoder of six query heads and two KV heads, with RoPE."""
    torch.manual_seed(0)
    options = {
        "n_kv_heads": 2,
        "sizes": (4, 4),
        "rotation": Rotation(rope_frequencies(4)),
        "bias": True,
    }
    return DecoderAttention(D_MODEL, 6, **options | changes).double()


PADS = [
    (3, TypeError, "pad is of type int; expected a tensor of integers"),
    (torch.ones(B), TypeError, r"pad is of type (torch\.)?float32; expected "),
    (torch.ones(B) > 0, TypeError, r"pad is of type (torch\.)?bool; expected "),
    (torch.ones(3).long(), ShapeError, r"pad has shape \(3,\); expected \(2,\)"),
    (torch.tensor([0, -1]), ValueError, "pad goes from -1 to 0; expected numbers from 0 to 4"),
    (torch.tensor([0, T]), ValueError, "pad goes from 0 to 5; expected numbers from 0 to 4"),
    (torch.zeros(B, device="meta").long(), ValueError, "pad is on meta and X is on cpu"),
]


@pytest.mark.parametrize(("pad", "error", "message"), PADS)
def test_bad_padding_of_a_sequence_is_refused(pad, error, message):
    module, X = decoder(), draw(B, T, D_MODEL)
    with NoArithmetic(), pytest.raises(error, match=message):
        module(X, pad=pad)


@pytest.mark.parametrize(("pad", "error", "message"), PADS[1:4])
def test_type_and_shape_of_padding_are_known_without_its_numbers(pad, error, message):
    module, X = decoder().to("meta"), draw(B, T, D_MODEL).to("meta")
    with pytest.raises(error, match=message):
        module(X, pad=pad.to("meta"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        *(({"pad": pad}, error, message) for pad, error, message in PADS[1:-1]),
        ({"layer": make()}, TypeError, "is a MultiHeadAttention; expected a DecoderAttention"),
        ({"capacity": 0}, ValueError, "capacity=0; expected at least 1"),
        ({"capacity": 2.5}, TypeError, "capacity is 2.5"),
        ({"batch": 2}, TypeError, r"batch is 2; expected the lengths of the batch axes"),
        ({"batch": (0,)}, ValueError, "a length of batch=0; expected at least 1"),
    ],
)
def test_room_that_cannot_be_reserved_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        DecoderCache.empty(**{"layer": decoder(), "capacity": T, "batch": (B,)} | changes)


@pytest.mark.parametrize(("X", "error", "message"), BAD_SEQUENCES)
@pytest.mark.parametrize("path", ["whole", "step"])
def test_bad_sequences_of_a_decoder_are_turned_down_before_any_arithmetic(path, X, error, message):
    module = decoder().requires_grad_(False)
    cache = DecoderCache.empty(module, T, batch=(B,))
    with NoArithmetic(), pytest.raises(error) as refusal:
        module(X) if path == "whole" else module.step(X, cache)
    assert_message(refusal, error, message)
    assert cache.length == cache.written == 0


def cache_of_other_layer(old_module, cache):
    """An equal layer with a cache of its own."""
    return DecoderCache.empty(decoder().requires_grad_(False), cache.capacity, batch=cache.batch)


def continued_cache(module, cache):
    """The view before the newest."""
    module.step(draw(B, 1, D_MODEL), cache)
    return cache


def stale_cache(module, cache):
    """A cache from before its layer became float32."""
    module.float()
    return cache


@pytest.mark.parametrize(
    ("make_cache", "batch_and_T", "error", "message"),
    [
        (cache_of_other_layer, (B, 1), ValueError, "the cache was made for another layer"),
        (stale_cache, (B, 1), ValueError, "it is in torch.float64 on cpu. Make one for each layer"),
        (continued_cache, (B, 1), ValueError, "this cache of 3 tokens was continued already, to 4"),
        (lambda *_: None, (B, 1), TypeError, "cache is a NoneType; expected a DecoderCache"),
        (
            lambda _, cache: cache,
            (3, 1),
            ShapeError,
            r"a batch of \(3,\), and the cache one of \(2,",
        ),
        (lambda _, cache: cache, (1,), ShapeError, r"a batch of \(\), and the cache one of \(2,\)"),
        (lambda _, cache: cache, (B, 3), ValueError, "3 new tokens after 3 make 6, more than"),
    ],
)
def test_a_step_that_cannot_be_leaves_the_cache_as_it_was(make_cache, batch_and_T, error, message):
    module = decoder().requires_grad_(False)
    _, cache = module.step(draw(B, 3, D_MODEL), DecoderCache.empty(module, T, batch=(B,)))
    bad_cache = make_cache(module, cache)
    buffer_copies, X = [buffer.clone() for buffer in cache.buffers], draw(*batch_and_T, D_MODEL)
    n_written, X = cache.written, X.to(module.qkv_proj.weight)
    with NoArithmetic(), pytest.raises(error, match=message):
        module.step(X, bad_cache)
    assert all(torch.equal(*pair) for pair in zip(cache.buffers, buffer_copies, strict=True))
    assert (cache.length, cache.written) == (3, n_written)
    if n_written == cache.length:
        _, cache = module.double().step(draw(B, 2, D_MODEL), cache)
        assert cache.length == T


@pytest.mark.parametrize(
    "read_view", [lambda cache: cache.fork(), lambda cache: cache.K, lambda cache: cache.V]
)
def test_a_view_whose_keys_may_be_gone_is_refused(read_view):
    module = decoder(sight=Sight(window=2)).requires_grad_(False)
    _, cache = module.step(draw(B, 3, D_MODEL), DecoderCache.empty(module, T, batch=(B,)))
    fork, (_, longer_cache) = cache.fork(), module.step(draw(B, 1, D_MODEL), cache)
    with pytest.raises(ValueError, match=r"of 3 tokens was continued already, to 4; .*Fork before"):
        read_view(cache)
    read_view(fork), read_view(longer_cache)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bad_value", [math.nan, math.inf])
def test_a_step_keeps_nothing_that_is_not_finite(bad_value, dtype):
    module = decoder().requires_grad_(False).to(dtype)
    cache, X = DecoderCache.empty(module, T, batch=(B,)), draw(B, 2, D_MODEL).to(dtype)
    X[1, 0, 3] = bad_value
    with pytest.raises(ValueError, match=rf"X is {bad_value} at position \(1, 0, 3\)"):
        module.step(X, cache)
    assert cache.written == 0
    assert not cache.buffers[0].any()


FULL_SIGHT = Sight(window=2, sink=np.zeros(6), qk_norm=np.ones((2, 4)))


@pytest.mark.parametrize("leaf_name", ["X", *dict(decoder(sight=FULL_SIGHT).named_parameters())])
def test_a_step_refuses_to_lose_gradients(leaf_name):
    module, X = decoder(sight=FULL_SIGHT).requires_grad_(False), draw(B, 1, D_MODEL)
    cache = DecoderCache.empty(module, T, batch=(B,))
    leaf = X if leaf_name == "X" else module.get_parameter(leaf_name)
    leaf.requires_grad_()
    with NoArithmetic(), pytest.raises(ValueError, match="none, since the rows of a reserved"):
        module.step(X, cache)
    assert cache.written == 0
    with torch.no_grad():
        module.step(X, cache)
