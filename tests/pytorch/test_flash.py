"""The kernel of the softmax in one pass, and its way back: against SDPA, autograd and memory."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.sampling import long
from tutorial_lib.errors import ShapeError
from tutorial_lib.onepass import flash_forward
from tutorial_lib.pytorch import flash
from tutorial_lib.pytorch.flash import flash_attention
from tutorial_lib.pytorch.timing import peak_mib

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
each_device = pytest.mark.parametrize("device", ["cpu", CUDA])
# One rounding of the powers and one of the output, each of at most eps / 2. Float32 rounds the
# score of a wide head to some 1e-7 of its size, which makes that error of the weight.
TOLERANCE = {dtype: torch.finfo(dtype).eps for dtype in (torch.float16, torch.bfloat16)}
TOLERANCE[torch.float32] = 1e-6


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
    mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool)
    mask = mask.tril(K.shape[-2] - Q.shape[-2]) if is_causal else mask
    seen_rows = mask.any(dim=-1, keepdim=True)
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | ~seen_rows)
    return torch.where(seen_rows, heads, 0.0)


def relative_error(actual, expected):
    return ((actual.detach().cpu().double() - expected).norm() / expected.norm()).item()


def gradient_pairs(Q, K, V, dheads, is_causal=False, **options):
    """The gradients of the kernel, each with that of the reference."""
    leaves = [A.requires_grad_() for A in (Q, K, V)]
    exact = [A.detach().cpu().double().requires_grad_() for A in leaves]
    heads = flash_attention(*leaves, is_causal=is_causal, **options)
    gradients = torch.autograd.grad(heads, leaves, dheads)
    expected = torch.autograd.grad(reference(*exact, is_causal), exact, dheads.cpu().double())
    return [*zip(gradients, expected, strict=True)]


@each_device
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
    assert relative_error(heads, reference(Q, K, V, is_causal)) <= TOLERANCE[dtype]


@pytest.mark.parametrize(
    ("cuda_compute_capability", "dtype", "d", "launch_options"),
    [
        ((7, 5), torch.float16, 64, (32, 32, 8, 1)),
        ((8, 0), torch.float16, 64, (128, 64, 4, 2)),
        ((8, 9), torch.bfloat16, 128, (128, 64, 8, 2)),
        ((9, 0), torch.bfloat16, 64, (128, 64, 4, 3)),
        ((9, 0), torch.float32, 128, (32, 32, 8, 1)),
    ],
)
def test_blocks_are_those_that_a_device_has_matrix_units_and_memory_for(
    monkeypatch, cuda_compute_capability, dtype, d, launch_options
):
    monkeypatch.setattr(flash, "COMPILED", True)  # a stand-in for a GPU
    monkeypatch.setattr(flash, "cuda_compute_capability", lambda device: cuda_compute_capability)
    assert flash._kernel_launch_options(torch.ones(1, 1, 1, d, dtype=dtype)) == launch_options


@each_device
def test_every_block_size_of_the_kernel_gives_the_twins_numbers(device):
    Q, K, V = draw(device, torch.float32, *3 * [(1, 1, 70, 64)])
    twin_trace = flash_forward(*(A.cpu().double().numpy() for A in (Q, K, V)), causal=True, block=8)
    for blocks in [(16, 16), (16, 64), (64, 16), (128, 32), (np.int64(32), np.uint8(128))]:
        heads = flash_attention(Q, K, V, is_causal=True, blocks=blocks)
        assert relative_error(heads, torch.from_numpy(twin_trace.heads)) <= 1e-6


@each_device
def test_tensors_may_lie_in_memory_in_any_order(device):
    shapes = (2, 40, 3, 64), (3, 40, 2, 64), (1, 1, 64, 40)
    Q, K, V = draw(device, torch.float32, *shapes)
    Q, K = Q.transpose(1, 2), K.permute(2, 0, 1, 3)  # (2, 3, 40, 64)
    V = V.transpose(-1, -2).expand(2, 3, 40, 64)
    expected = flash_attention(*(A.contiguous() for A in (Q, K, V)), is_causal=True)
    heads = flash_attention(Q, K, V, is_causal=True)
    assert relative_error(heads, expected.cpu().double()) <= 1e-6
    assert heads.transpose(1, 2).is_contiguous(), "lies as Q does"
    strided_Q = torch.cat([Q, Q], dim=-1)[..., ::2]
    strided_heads = flash_attention(strided_Q, K, V)
    assert relative_error(strided_heads, reference(strided_Q, K, V, False)) <= 1e-6


def test_rows_may_lie_farther_apart_than_32_bits_count(tmp_path):
    T, stride = 32, 2**27
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2 * T * stride)  # 8 GiB of nothing, which take no room
    sparse_storage = torch.from_file(file.name, shared=True, size=T * stride, dtype=torch.float16)
    Q = sparse_storage.as_strided((1, 1, T, 16), (0, 0, stride, 1))
    dense_Q, K, V = draw("cpu", torch.float16, *[(1, 1, T, 16)] * 3)
    Q.copy_(dense_Q)
    torch.testing.assert_close(flash_attention(Q, K, V), flash_attention(dense_Q, K, V))


@each_device
def test_large_scores_of_the_kernel_do_not_overflow(device):
    Q, K, V = draw(device, torch.float32, *3 * [(1, 1, 40, 64)])
    heads = flash_attention(1e3 * Q, K, V)
    assert relative_error(heads, reference(1e3 * Q, K, V, False)) <= 1e-3, "float32 scores near 1e3"
    expected = V.cpu().double().mean(dim=-2, keepdim=True).expand(V.shape)
    for power in (10, 56):  # scores of -8e6 and of -4e34
        low = flash_attention(torch.full_like(Q, -(2.0**power)), torch.full_like(K, 2.0**power), V)
        assert relative_error(low, expected) <= 1e-6


def dV_error(device, score_spread):
    """The error of dV for scores of a standard deviation."""
    Q, *other_inputs = draw(device, torch.float32, *4 * [(1, 2, 128, 64)])
    return relative_error(*gradient_pairs(Q * score_spread, *other_inputs)[2])


ALIKE = {1: 1e-6, 900: 3e-5, 10_000: 2e-4}
OTHER_ROUNDING = {1: 1e-6, 900: 1e-3, 10_000: 1e-2}


def rounds_alike(device):
    """Whether the scores of both ways have the same bits.

    On a CPU the way forward is interpreted, so NumPy multiplies, and PyTorch does on the way back:
    their bits agree with some kernels of OpenBLAS (SkylakeX) and not with others (Haswell).
    """
    Q, K = draw("cpu", torch.float32, (128, 64), (128, 64))
    return device != "cpu" or np.array_equal(Q.numpy() @ K.numpy().T, (Q @ K.T).numpy())


@each_device
@pytest.mark.parametrize("spread", ALIKE)
def test_large_scores_are_rounded_alike_on_both_ways(device, spread):
    assert dV_error(device, spread) <= (ALIKE if rounds_alike(device) else OTHER_ROUNDING)[spread]


@pytest.mark.parametrize("spread", OTHER_ROUNDING)
def test_large_scores_of_the_twin_are_rounded_otherwise_on_the_way_back(monkeypatch, spread):
    monkeypatch.setattr(flash, "triton", None)
    assert dV_error("cpu", spread) <= OTHER_ROUNDING[spread]


@each_device
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("T", "S"), [(200, 200), (16, 2048), (200, 37)])
def test_gradients_are_those_of_autograd(device, dtype, is_causal, T, S):
    Q, K, V, dheads = draw(device, dtype, *((1, 2, n, 16) for n in (T, S, S, T)))
    for gradient, expected in gradient_pairs(Q, K, V, dheads, is_causal, blocks=(128, 128)):
        assert gradient.dtype == dtype
        rounding = torch.finfo(dtype).eps / 2 if dtype != torch.float32 else 1e-6
        assert relative_error(gradient, expected) <= rounding, "and rounded once, at the end"


@each_device
def test_memory_is_linear_in_the_number_of_tokens(device):
    peaks = {}
    for T in (128, 512):
        inputs = [A.requires_grad_() for A in draw(device, torch.float32, *3 * [(1, 1, T, 16)])]

        def forward_and_backward(inputs=inputs):
            heads = flash_attention(*inputs, is_causal=True, blocks=(64, 64))
            return torch.autograd.grad(heads, inputs, torch.ones_like(heads))

        peaks[T] = peak_mib(forward_and_backward, device=device)
    assert peaks[512] < 4.2 * peaks[128]


def small_qkv():
    return draw("cpu", torch.float32, *3 * [(1, 2, 20, 16)])


def equal_qkv(tensor):
    return dict.fromkeys("QKV", tensor)


ONES_TENSOR = torch.ones(1, 2, 5, 64)


@pytest.mark.parametrize(
    ("replaced_inputs", "error", "message"),
    [
        (equal_qkv(ONES_TENSOR.double()), TypeError, "Q, K and V are in torch.float64"),
        (equal_qkv(ONES_TENSOR[..., :48]), ShapeError, "d=48; expected a width that the kernel"),
        (equal_qkv(ONES_TENSOR.to("meta")), ValueError, "on meta, which holds no numb"),
        (equal_qkv(ONES_TENSOR[:, :1, :1].expand(256, 256, 1, 64)), ValueError, "65536 heads"),
        *(
            ({"blocks": blocks}, ValueError, re.escape(f"blocks is {blocks!r}; expected two pow"))
            for blocks in [(64, 48), (8, 16), 64, (np.int64(48), 16), (32.0, 16), (16, 16, 16)]
        ),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(replaced_inputs, error, message):
    with pytest.raises(error, match=message):
        flash_attention(**equal_qkv(ONES_TENSOR) | replaced_inputs)


def test_autocast_converts_nothing_for_the_kernel():
    Q, K, V = small_qkv()
    message = "are in torch.float32, torch.bfloat16 and torch.float32; expected one of"
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(TypeError, match=message):
        flash_attention(Q, K.bfloat16(), V)


class Doubling(torch.nn.Module):
    """The kernel between two operations that a graph can hold."""

    def forward(self, Q, K, V):
        return 2 * flash_attention(Q + Q, K, V, is_causal=True)


@pytest.fixture
def fresh_compiler():
    """`torch.compile` without what other tests compiled."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("program", ["kernel", *long("twin")])
def test_in_torch_compile_it_is_a_break_between_two_graphs(fresh_compiler, monkeypatch, program):
    if program == "twin":
        monkeypatch.setattr(flash, "triton", None)
    module, module_results = Doubling(), []
    for function in (module, torch.compile(module, backend="aot_eager")):
        inputs = [A.requires_grad_() for A in small_qkv()]
        heads = function(*inputs)
        module_results.append([heads, *torch.autograd.grad(heads.square().sum(), inputs)])
    torch.testing.assert_close(*module_results, rtol=0, atol=0)


def test_no_graph_can_hold_it_whole(fresh_compiler):
    message = "flash_attention is called inside of a graph; expected a call between graphs"
    with pytest.raises(torch._dynamo.exc.Unsupported, match=message):
        torch.compile(Doubling(), backend="eager", fullgraph=True)(*small_qkv())
    with pytest.raises(ValueError, match=message):
        torch.export.export(Doubling(), tuple(small_qkv()))


@pytest.mark.parametrize("exponent", [1, 2])
def test_gradients_of_gradients_are_refused(exponent):
    inputs = [A.requires_grad_() for A in small_qkv()]
    loss = flash_attention(*inputs).pow(exponent).sum()
    with pytest.raises(ValueError, match="create_graph=True asks flash_attention for gradients of"):
        torch.autograd.grad(loss, inputs, create_graph=True)


RUN_SCRIPT = """
import torch
from tutorial_lib.pytorch.flash import flash_attention, which_flash
print(which_flash("cpu"))
torch.manual_seed(0)
Q, K, V = (torch.randn(1, 2, 20, 64, requires_grad=True) for _ in range(3))
heads = flash_attention(Q, K, V, is_causal=True)
expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
gradients = [torch.autograd.grad(out.sum(), (Q, K, V)) for out in (heads, expected)]
print(all(torch.allclose(a, b, atol=2e-6) for a, b in zip(*gradients)))
print(torch.allclose(heads, expected, atol=2e-6), "triton" in sys.modules)
"""


def run_afresh(preamble, script=RUN_SCRIPT, **environment):
    """The lines that a script prints in a new process, warnings being errors."""
    variables = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    allowed = "ignore:AnnAssign.__init__ missing:DeprecationWarning"  # Triton's, on Python 3.13
    program = f"import sys\n{preamble}\n{script}"
    command = [sys.executable, "-W", "error", "-W", allowed, "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, env=variables | environment)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


needs_triton = pytest.mark.skipif(flash.triton is None, reason="Triton is not installed")


@pytest.mark.parametrize(
    ("preamble", "line"),
    [
        *long(
            ("sys.modules['triton'] = None", "the NumPy twin, because Triton is not installed\n")
        ),
        pytest.param(
            "import triton",
            "the NumPy twin, because Triton was imported before the book was\n",
            marks=(needs_triton, pytest.mark.long),
        ),
        pytest.param("", "the kernel, in the interpreter of Triton ", marks=needs_triton),
    ],
)
def test_without_a_gpu_the_interpreter_runs_and_without_a_triton_for_it_the_twin(preamble, line):
    status, gradients, values = run_afresh(preamble, CUDA_VISIBLE_DEVICES="")
    assert f"{status}\n".startswith(f"cpu: {line}")
    assert (gradients, values) == ("True", "True True"), "or the entry that blocks it"


COMPILE_SCRIPT = """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from tutorial_lib.pytorch import flash

class Absent:
    get_current_device = get_current_stream = lambda self, *arguments: 0
    get_current_target = lambda self: GPUTarget("cuda", self.version, 32)

def compiled(version, dtype, d, is_causal):
    gpu, kernels = Absent(), []
    gpu.version = version
    driver.set_active(gpu)
    flash.cuda_compute_capability = lambda device: divmod(version, 10)
    run = type(flash.flash_kernel).run
    flash.flash_kernel.run = lambda *arguments, warmup, **options: kernels.append(
        run(flash.flash_kernel, *arguments, warmup=True, **options)
    )
    Q, K, V = (torch.ones(2, 200, 3, d, dtype=dtype).transpose(1, 2) for _ in range(3))
    flash._flash_forward_kernel(Q, K, V, is_causal, None)
    return kernels[0]

hopper = compiled(90, torch.bfloat16, 128, True)
print("wgmma.mma_async" in hopper.asm["ptx"], "cp.async" in hopper.asm["ptx"])
turing = compiled(75, torch.float16, 128, False)
print(hopper.metadata.shared <= 227 * 1024, turing.metadata.shared <= 64 * 1024)
"""


@needs_triton
@pytest.mark.long
def test_the_kernel_compiles_for_a_gpu_that_is_not_there(tmp_path):
    """For an H200 with its matrix units and loads that run ahead, and for a T4."""
    lines = run_afresh(
        "import triton", COMPILE_SCRIPT, CUDA_VISIBLE_DEVICES="", TRITON_CACHE_DIR=str(tmp_path)
    )
    assert lines == ["True True", "True True"]
