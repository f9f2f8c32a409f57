"""The softmax in one pass: twin, kernel and way back, against loops, autograd and memory."""

import math
import os
import subprocess
import sys
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import oracle
from tutorial_lib import ShapeError, attention_backward, causal_mask
from tutorial_lib.pytorch import flash
from tutorial_lib.pytorch.flash import (
    attend_rows,
    flash_attention,
    flash_backward,
    flash_forward,
    fold_block,
    last_keys,
)
from tutorial_lib.pytorch.timing import peak_mib

BLOCKS = (1, 2, 3, 5, 6, 7, 128)
LENGTHS = [(5, 6), (5, 5), (6, 5), (1, 6), (5, 1)]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
# One rounding of the powers and one of the output, each of at most eps / 2. Float32 rounds the
# score of a wide head to some 1e-7 of its size, which makes that error of the weight.
TOLERANCE = {dtype: torch.finfo(dtype).eps for dtype in (torch.float16, torch.bfloat16)}
TOLERANCE[torch.float32] = 1e-6


def mask_for(causal, T, S):
    """The mask that means the same, None for no mask."""
    return causal_mask(T, S) if causal else None


@pytest.fixture
def qkv(normal):
    """`qkv(T, S)`: arrays (2, 3, T, 4), (2, 3, S, 4), (2, 3, S, 7)."""
    return lambda T, S: (normal(1, 2, 3, T, 4), normal(2, 2, 3, S, 4), normal(3, 2, 3, S, 7))


def test_a_row_folds_one_key_at_a_time_as_by_hand():
    scores, V = math.log(2) * np.array([[1.0, -1.0, 0.0]]), np.array([[1.0], [7.0], [14.0]])
    state, seen = (-1e30, 0.0, 0.0), []
    for key in range(3):
        state = fold_block(state, scores[:, key : key + 1], V[key : key + 1])
        seen.append([float(part.item()) for part in state])
    ln2 = math.log(2)
    expected = [[ln2, 1, 1], [ln2, 1.25, 1 + 7 / 4], [ln2, 1.75, 1 + 7 / 4 + 7]]
    np.testing.assert_allclose(seen, expected, rtol=1e-14)
    np.testing.assert_allclose(state[2] / state[1], 4 / 7 * 1 + 1 / 7 * 7 + 2 / 7 * 14, rtol=1e-14)


def test_a_larger_score_shrinks_what_was_summed_before(normal, assert_close):
    scores = np.sort(normal(1, 3, 5, 6), axis=-1)  # every key raises the maximum
    V, state = normal(2, 3, 6, 7), (-1e30, 0.0, 0.0)
    for key in range(6):
        state = fold_block(state, scores[..., key : key + 1], V[:, key : key + 1])
    assert_close(state[2] / state[1], oracle.mix(oracle.attention_weights(scores), V))


@pytest.mark.parametrize(("T", "S"), [(5, 6), (5, 5), (6, 5), (1, 6), (5, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_last_key_is_that_of_the_causal_mask(T, S, causal):
    seen = np.arange(S) <= last_keys(T, S, causal=causal)
    np.testing.assert_array_equal(seen, causal_mask(T, S) if causal else np.ones((T, S), bool))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("T", "S"), LENGTHS)
def test_every_block_size_equals_the_loops(qkv, T, S, block, causal, assert_close):
    Q, K, V = qkv(T, S)
    trace = flash_forward(Q, K, V, causal=causal, block=block)
    mask = mask_for(causal, T, S)
    assert_close(trace.heads, oracle.scaled_dot_product_attention(Q, K, V, mask))
    seen = np.broadcast_to(True if mask is None else mask, (T, S))
    powers = np.where(seen, np.exp(oracle.scores(Q, K)), 0).sum(axis=-1, keepdims=True)
    logsumexp = np.where(powers > 0, trace.logsumexp, -np.inf)  # a row that sees nothing
    np.testing.assert_allclose(np.exp(logsumexp), powers, rtol=1e-12)


@pytest.mark.parametrize("axes", [(), (3,), (8, 2, 3)])
def test_leading_axes_may_be_many_or_none(normal, axes, assert_close):
    Q, K, V = normal(1, *axes, 5, 4), normal(2, *axes, 6, 4), normal(3, *axes, 6, 7)
    heads = flash_forward(Q, K, V, causal=True, block=2).heads
    assert_close(heads, oracle.scaled_dot_product_attention(Q, K, V, causal_mask(5, 6)))


@pytest.mark.parametrize("block", [1, 2, 128])
def test_large_scores_do_not_overflow(qkv, block):
    Q, K, V = qkv(5, 6)
    for factor in (1e4, 1e6):
        heads = flash_forward(factor * Q, K, V, block=block).heads
        expected = oracle.scaled_dot_product_attention(factor * Q, K, V)
        np.testing.assert_allclose(heads, expected, rtol=1e-6, atol=1e-6)
    for size in (1e9, 1e16, 1e150):  # scores of -2e18, -2e32 and -2e300
        low = flash_forward(np.full((1, 4), -size), np.full((6, 4), size), V[0, 0], block=block)
        np.testing.assert_allclose(low.heads[0], V[0, 0].mean(axis=0), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_that_sees_nothing_gets_zeros_and_the_lowest_logsumexp(normal, dtype):
    Q, K, V = (normal(seed, 3, n, 4).astype(dtype) for seed, n in ((1, 5), (2, 3), (3, 3)))
    trace = flash_forward(Q, K, V, causal=True, block=2)
    np.testing.assert_array_equal(trace.heads[:, :2], 0)
    np.testing.assert_array_equal(trace.logsumexp[:, :2], np.finfo(dtype).min)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_that_overflow_are_refused_and_not_returned_as_nan_or_zeros(normal, sign, causal):
    Q, K, V = (normal(seed, 2, 5, 4).copy() for seed in (1, 2, 3))
    Q[1, 3:], K[1] = sign * 1e200, 1e200
    with pytest.raises(ValueError, match=r"the scores of query \(1, 3\) overflow float64"):
        flash_forward(Q, K, V, causal=causal, block=2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [1, 7, 64, 100, 128])
def test_float32_is_within_a_millionth_for_every_block_size(normal, block, causal):
    Q, K, V = (normal(seed, 2, 100, 64) for seed in (1, 2, 3))
    singles = (array.astype(np.float32) for array in (Q, K, V))
    trace = flash_forward(*singles, causal=causal, block=block)
    assert trace.heads.dtype == trace.logsumexp.dtype == np.float32
    expected = flash_forward(Q, K, V, causal=causal, block=100).heads
    assert np.linalg.norm(trace.heads - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("T", "S"), LENGTHS)
def test_recomputed_gradients_equal_those_of_kept_weights(qkv, normal, T, S, block, causal):
    Q, K, V = qkv(T, S)
    dheads = normal(4, 2, 3, T, 7)
    weights = oracle.attention_weights(oracle.scores(Q, K), mask_for(causal, T, S))
    trace = flash_forward(Q, K, V, causal=causal, block=3)
    actual = flash_backward(trace, dheads, block=block)
    expected = attention_backward(Q, K, V, weights, dheads)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_inputs_stay_as_they_are(qkv, normal, assert_untouched):
    Q, K, V = qkv(5, 6)
    assert_untouched(flash_forward, Q, K, V, causal=True, block=2)
    assert_untouched(attend_rows, Q, K, V, last_keys(5, 6, causal=True), 2)
    trace = flash_forward(Q, K, V, causal=True, block=2)
    before = {name: array.copy() for name, array in vars(trace).items() if name != "causal"}
    assert_untouched(flash_backward, trace, normal(4, 2, 3, 5, 7), block=2)
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(trace, name), array)


def peak_bytes(call):
    """The most that a call holds at once in NumPy arrays, its result included."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("causal", [False, True])
def test_memory_of_the_twin_is_linear_in_the_number_of_tokens(causal):
    ways = {256: [], 1024: []}
    for T, peaks in ways.items():
        Q, K, V = np.random.default_rng(0).standard_normal((3, T, 8))
        trace = flash_forward(Q, K, V, causal=causal, block=16)
        peaks += [
            peak_bytes(partial(flash_forward, Q, K, V, causal=causal, block=16)),
            peak_bytes(partial(flash_backward, trace, V, block=16)),
        ]
    for short, long in zip(*ways.values(), strict=True):
        assert long < 4.2 * short
        assert long < 1024 * 1024 * 8 / 10, "far below one (T, S) array"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"Q": np.ones((3, 5, 4), dtype=int)}, TypeError, "Q is int64"),
        ({"Q": np.ones((3, 5, 4), dtype=np.float16)}, TypeError, "expected float32 throughout"),
        ({"Q": np.ones((3, 5, 4), dtype=np.float32)}, TypeError, "Q is float32, K is float64"),
        ({"Q": torch.ones(3, 5, 4)}, TypeError, "Q is a Tensor; expected a NumPy array"),
        ({"K": np.ones((3, 6, 5))}, ShapeError, "d_k=4"),
        ({"V": np.ones((3, 5, 7))}, ShapeError, "S=6"),
        ({"V": np.ones((1, 6, 7))}, ShapeError, r"V has the leading axes \(1,\), and Q has \(3,\)"),
        ({"K": np.ones((3, 0, 4))}, ShapeError, "empty"),
        ({"Q": np.full((3, 5, 4), np.nan)}, ValueError, "Q is nan at position"),
        ({"causal": causal_mask(5, 6)}, TypeError, "causal is a ndarray; expected True or False"),
        ({"block": 0}, ValueError, "block=0; expected at least 1"),
        ({"block": 2.0}, TypeError, "block is 2.0"),
    ],
)
def test_bad_input_of_the_twin_is_turned_down_at_the_door(normal, change, error, words):
    given = {"Q": normal(1, 3, 5, 4), "K": normal(2, 3, 6, 4), "V": normal(3, 3, 6, 7)} | change
    with pytest.raises(error, match=words):
        flash_forward(**given)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"trace": np.ones(3)}, TypeError, "trace is a ndarray; expected a FlashTrace"),
        ({"dheads": np.ones((3, 5, 4))}, ShapeError, r"expected \(3, 5, 7\), the shape of heads"),
        ({"dheads": np.ones((3, 5, 7), dtype=np.float32)}, TypeError, "dheads is float32"),
        ({"dheads": np.full((3, 5, 7), np.inf)}, ValueError, "dheads is inf at position"),
        ({"block": 0}, ValueError, "block=0"),
    ],
)
def test_bad_input_of_the_way_back_is_turned_down(normal, change, error, words):
    trace = flash_forward(normal(1, 3, 5, 4), normal(2, 3, 6, 4), normal(3, 3, 6, 7))
    with pytest.raises(error, match=words):
        flash_backward(**{"trace": trace, "dheads": np.ones((3, 5, 7))} | change)


@pytest.mark.parametrize(
    ("scores", "V", "words"),
    [((5, 6), (5, 7), "keys=6"), ((6,), (6, 7), "scores has shape"), ((5, 0), (0, 7), "empty")],
)
def test_a_block_that_does_not_fit_is_turned_down(scores, V, words):
    with pytest.raises(ShapeError, match=words):
        fold_block((-1e30, 0.0, 0.0), np.ones(scores), np.ones(V))


def test_pytorch_lists_the_variants_that_chapter_12_names():
    if not hasattr(torch.nn.attention, "list_flash_attention_impls"):
        pytest.skip("a PyTorch without a list of variants")
    assert {"FA3", "FA4"} <= set(torch.nn.attention.list_flash_attention_impls())


def draw(device, dtype, *shapes):
    """Normal tensors of these shapes, the same for every device."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(device, dtype) for shape in shapes]


def reference(Q, K, V, is_causal):
    """SDPA in float64 on the CPU; a query that sees nothing gets zeros."""
    Q, K, V = (tensor.cpu().double() for tensor in (Q, K, V))
    seen = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool)
    seen = seen.tril(K.shape[-2] - Q.shape[-2]) if is_causal else seen
    some = seen.any(dim=-1, keepdim=True)
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=seen | ~some)
    return torch.where(some, heads, 0.0)


def error_of(actual, expected):
    """The length of the difference over that of the expected."""
    return ((actual.detach().cpu().double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("d", "T", "S", "blocks"),
    [
        (64, 96, 96, (32, 32)),
        (64, 37, 90, (16, 64)),
        (128, 90, 37, (64, 16)),
        (128, 65, 65, None),
        (16, 1, 33, (16, 16)),
    ],
)
def test_the_kernel_is_attention(device, dtype, is_causal, d, T, S, blocks):
    Q, K, V = draw(device, dtype, (2, 2, T, d), (2, 2, S, d), (2, 2, S, d))
    heads = flash_attention(Q, K, V, is_causal=is_causal, blocks=blocks)
    assert (heads.dtype, heads.shape, heads.device) == (Q.dtype, Q.shape, Q.device)
    assert error_of(heads, reference(Q, K, V, is_causal)) <= TOLERANCE[dtype]


@pytest.mark.parametrize("device", DEVICES)
def test_every_block_size_of_the_kernel_gives_the_twins_numbers(device):
    Q, K, V = draw(device, torch.float32, (1, 1, 70, 64), (1, 1, 70, 64), (1, 1, 70, 64))
    twin = flash_forward(*(A.cpu().double().numpy() for A in (Q, K, V)), causal=True, block=8)
    for blocks in [(16, 16), (16, 64), (64, 16), (128, 32), (32, 128)]:
        heads = flash_attention(Q, K, V, is_causal=True, blocks=blocks)
        assert error_of(heads, torch.from_numpy(twin.heads)) <= 1e-6


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_may_lie_in_memory_in_any_order(device):
    shapes = (2, 40, 3, 64), (3, 40, 2, 64), (1, 1, 64, 40)
    Q, K, V = draw(device, torch.float32, *shapes)
    Q, K = Q.transpose(1, 2), K.permute(2, 0, 1, 3)  # (2, 3, 40, 64)
    V = V.transpose(-1, -2).expand(2, 3, 40, 64)
    expected = flash_attention(*(A.contiguous() for A in (Q, K, V)), is_causal=True)
    heads = flash_attention(Q, K, V, is_causal=True)
    assert error_of(heads, expected.cpu().double()) == 0
    assert heads.transpose(1, 2).is_contiguous(), "lies as Q does"
    narrow = torch.cat([Q, Q], dim=-1)[..., ::2]
    same = flash_attention(narrow, K, V)
    assert error_of(same, reference(narrow, K, V, False)) <= 1e-6


def test_rows_may_lie_farther_apart_than_32_bits_count(tmp_path):
    T, stride = 32, 2**27
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2 * T * stride)  # 8 GiB of nothing, which take no room
    wide = torch.from_file(file.name, shared=True, size=T * stride, dtype=torch.float16)
    Q = wide.as_strided((1, 1, T, 16), (0, 0, stride, 1))
    near, K, V = draw("cpu", torch.float16, *[(1, 1, T, 16)] * 3)
    Q.copy_(near)
    assert torch.equal(flash_attention(Q, K, V), flash_attention(near, K, V))


@pytest.mark.parametrize("device", DEVICES)
def test_large_scores_of_the_kernel_do_not_overflow(device):
    Q, K, V = draw(device, torch.float32, (1, 1, 40, 64), (1, 1, 40, 64), (1, 1, 40, 64))
    heads = flash_attention(1e3 * Q, K, V)
    assert error_of(heads, reference(1e3 * Q, K, V, False)) <= 1e-3, "float32 scores near 1e3"
    expected = V.cpu().double().mean(dim=-2, keepdim=True).expand(V.shape)
    for power in (10, 56):  # scores of -8e6 and of -4e34
        low = flash_attention(torch.full_like(Q, -(2.0**power)), torch.full_like(K, 2.0**power), V)
        assert error_of(low, expected) <= 1e-6


def values_off(device, spread):
    """The error of dV for scores of a standard deviation."""
    Q, K, V, dheads = draw(device, torch.float32, *4 * [(1, 2, 128, 64)])
    Q = Q * spread
    exact = [A.cpu().double().requires_grad_() for A in (Q, K, V)]
    expected = torch.autograd.grad(reference(*exact, False), exact, dheads.cpu().double())[2]
    inputs = [A.requires_grad_() for A in (Q, K, V)]
    dV = torch.autograd.grad(flash_attention(*inputs), inputs, dheads)[2]
    return error_of(dV, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spread", [1, 900, 10_000])
def test_large_scores_are_rounded_alike_on_both_ways(device, spread):
    assert values_off(device, spread) <= {1: 1e-6, 900: 3e-5, 10_000: 2e-4}[spread]


@pytest.mark.parametrize("spread", [1, 900, 10_000])
def test_large_scores_of_the_twin_are_rounded_otherwise_on_the_way_back(monkeypatch, spread):
    monkeypatch.setattr(flash, "triton", None)
    assert values_off("cpu", spread) <= {1: 1e-6, 900: 1e-3, 10_000: 1e-2}[spread]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("T", "S"), [(200, 200), (16, 2048), (200, 37)])
def test_gradients_are_those_of_autograd(device, dtype, is_causal, T, S):
    Q, K, V, dheads = draw(
        device, dtype, (1, 2, T, 16), (1, 2, S, 16), (1, 2, S, 16), (1, 2, T, 16)
    )
    exact = [A.cpu().double().requires_grad_() for A in (Q, K, V)]
    expected = torch.autograd.grad(reference(*exact, is_causal), exact, dheads.cpu().double())
    inputs = [A.requires_grad_() for A in (Q, K, V)]
    heads = flash_attention(*inputs, is_causal=is_causal, blocks=(128, 128))
    actual = torch.autograd.grad(heads, inputs, dheads)
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == dtype
        summed_in_float32 = torch.finfo(dtype).eps / 2 if dtype != torch.float32 else 1e-6
        assert error_of(one, other) <= summed_in_float32, "and rounded once, at the end"


@pytest.mark.parametrize("device", DEVICES)
def test_memory_is_linear_in_the_number_of_tokens(device):
    peaks = {}
    for T in (128, 512):
        inputs = [A.requires_grad_() for A in draw(device, torch.float32, *3 * [(1, 1, T, 16)])]

        def forward_and_backward(inputs=inputs):
            heads = flash_attention(*inputs, is_causal=True, blocks=(64, 64))
            return torch.autograd.grad(heads, inputs, torch.ones_like(heads))

        peaks[T] = peak_mib(forward_and_backward, device=device)
    assert peaks[512] < 4.2 * peaks[128]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"Q": np.ones((1, 2, 5, 64))}, TypeError, "Q is of type float64; expected tensors of one"),
        ({"Q": torch.ones(1, 2, 5, 64, dtype=torch.float64)}, TypeError, "Q is of type torch.floa"),
        ({"K": torch.ones(1, 2, 6, 64).half()}, TypeError, "K is of type torch.float16; expected"),
        ({"Q": [[1.0]]}, TypeError, "Q is of type list"),
        ({"Q": torch.ones(2, 5, 64)}, ShapeError, r"Q has shape \(2, 5, 64\); expected \(B, H"),
        ({"K": torch.ones(1, 2, 0, 64)}, ShapeError, "at least one entry in each"),
        ({"Q": torch.ones(1, 2, 5, 48)}, ShapeError, "d=48; expected a width that the kernel"),
        ({"V": torch.ones(1, 2, 7, 64)}, ShapeError, r"V has shape .* expected \(1, 2, 6, 64\)"),
        ({"K": torch.ones(1, 1, 6, 64)}, ShapeError, r"K has shape .* expected \(1, 2, 6, 64\)"),
        ({"V": torch.ones(1, 2, 6, 64, device="meta")}, ValueError, "V is on meta and Q is on cpu"),
        ({"is_causal": torch.ones(5, 6) > 0}, TypeError, "is_causal is a Tensor; expected True or"),
        ({"blocks": (64, 48)}, ValueError, r"blocks is \(64, 48\); expected two powers of 2"),
        ({"blocks": (8, 16)}, ValueError, "from 16 on"),
        ({"blocks": 64}, ValueError, "blocks is 64"),
        (
            {name: torch.ones(1, 1, 1, 16).expand(256, 256, 1, 16) for name in "QKV"},
            ValueError,
            "65536 heads",
        ),
    ],
)
def test_bad_input_of_the_kernel_is_turned_down_at_the_door(change, error, words):
    given = {"Q": torch.ones(1, 2, 5, 64), "K": torch.ones(1, 2, 6, 64)}
    given["V"] = torch.ones(1, 2, 6, 64)
    with pytest.raises(error, match=words):
        flash_attention(**given | change)


RUN = """
import torch
from tutorial_lib.pytorch.flash import flash_attention, flash_forward, which_flash
print(which_flash("cpu"))
torch.manual_seed(0)
Q, K, V = (torch.randn(1, 2, 20, 64, requires_grad=True) for _ in range(3))
heads = flash_attention(Q, K, V, is_causal=True)
expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
gradients = [torch.autograd.grad(out.sum(), (Q, K, V)) for out in (heads, expected)]
print(all(torch.allclose(a, b, atol=2e-6) for a, b in zip(*gradients)))
print(torch.allclose(heads, expected, atol=2e-6), "triton" in sys.modules)
"""


def run_afresh(before, script=RUN, **environment):
    """The lines that a script prints in a new process, warnings being errors."""
    clean = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    triton = "ignore:AnnAssign.__init__ missing:DeprecationWarning"  # its own, on Python 3.13
    options = ["-W", "error", "-W", triton]
    command = [sys.executable, *options, "-c", f"import sys\n{before}\n{script}"]
    run = subprocess.run(command, capture_output=True, text=True, env=clean | environment)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_without_triton_the_twin_runs_and_says_so():
    line, gradients, values = run_afresh("sys.modules['triton'] = None")
    assert line == "cpu: the NumPy twin, because Triton is not installed"
    assert (gradients, values) == ("True", "True True"), "the entry that blocks it"


needs_triton = pytest.mark.skipif(flash.triton is None, reason="Triton is not installed")


@needs_triton
def test_a_triton_that_was_imported_to_compile_is_left_alone_and_the_twin_runs():
    line, gradients, values = run_afresh("import triton", CUDA_VISIBLE_DEVICES="")
    assert line == "cpu: the NumPy twin, because Triton was imported before the book was"
    assert (gradients, values) == ("True", "True True")


@needs_triton
def test_without_a_gpu_the_kernel_runs_in_the_interpreter():
    line, gradients, values = run_afresh("", CUDA_VISIBLE_DEVICES="")
    assert line.startswith("cpu: the kernel, in the interpreter of Triton ")
    assert (gradients, values) == ("True", "True True")


COMPILE = """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from tutorial_lib.pytorch import flash

class Absent:
    get_current_device = get_current_stream = lambda self, *arguments: 0
    get_current_target = lambda self: GPUTarget("cuda", self.version, 32)

def compiled(version, dtype, d, is_causal):
    gpu, made = Absent(), []
    gpu.version = version
    driver.set_active(gpu)
    flash.capability = lambda device: divmod(version, 10)
    run = type(flash.flash_kernel).run
    flash.flash_kernel.run = lambda *arguments, warmup, **options: made.append(
        run(flash.flash_kernel, *arguments, warmup=True, **options)
    )
    Q, K, V = (torch.ones(2, 200, 3, d, dtype=dtype).transpose(1, 2) for _ in range(3))
    flash._run_kernel(Q, K, V, is_causal, None)
    return made[0]

hopper = compiled(90, torch.bfloat16, 128, True)
print("wgmma.mma_async" in hopper.asm["ptx"], "cp.async" in hopper.asm["ptx"])
turing = compiled(75, torch.float16, 128, False)
print(hopper.metadata.shared <= 227 * 1024, turing.metadata.shared <= 64 * 1024)
"""


@needs_triton
def test_the_kernel_compiles_for_a_gpu_that_is_not_there(tmp_path):
    """For an H200 with its matrix units and loads that run ahead, and for a T4."""
    lines = run_afresh(
        "import triton", COMPILE, CUDA_VISIBLE_DEVICES="", TRITON_CACHE_DIR=str(tmp_path)
    )
    assert lines == ["True True", "True True"]
