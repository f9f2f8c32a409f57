"""The softmax in one pass: a kernel in Triton that never holds the scores, and its backward pass.

Without a GPU it runs in Triton's interpreter, without Triton `tutorial_lib.onepass` replaces it.
"""

import inspect
import math
import os
import sys
from types import SimpleNamespace

import numpy as np
import torch

from tutorial_lib.contract import require
from tutorial_lib.errors import ShapeError
from tutorial_lib.onepass import flash_forward
from tutorial_lib.pytorch.device import cuda_compute_capability, find_device, to_float64
from tutorial_lib.pytorch.tensors import TensorContract

WIDTHS, DTYPES = (16, 32, 64, 128), (torch.float32, torch.float16, torch.bfloat16)
HAS_GPU, LOADED_BEFORE = torch.cuda.is_available(), "triton" in sys.modules
if not HAS_GPU and not LOADED_BEFORE:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton reads it once, when it is imported
try:
    import triton
    import triton.language as tl
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=None)
_jit = triton.jit if triton else lambda kernel: kernel


@_jit
def rows_at(tensor, H, rows, WIDTH: tl.constexpr):
    """Return the addresses of the entries of rows of the program's head, (rows, WIDTH)."""
    start, strides = tensor
    # program_id(1) counts the heads of all sequences: sequence = head // H
    # int64, since an address can be more than 2**31 entries away
    head, columns = tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    start = start + head // H * strides[0] + head % H * strides[1]
    rows = rows.to(tl.int64)
    return start + rows[:, None] * strides[2] + columns[None, :] * strides[3]


@_jit
def load_rows(tensor, H, rows, length, WIDTH: tl.constexpr):
    """Load rows of the program's head; those after the last are 0."""
    return tl.load(rows_at(tensor, H, rows, WIDTH), rows[:, None] < length, 0.0)


@_jit
def score_keys(Q, K, seen, scale):
    """`score_tile` in Triton, with scores in units of ln 2; the root of d_k is in the scale."""
    scores = tl.dot(Q, tl.trans(K), input_precision="ieee") * scale
    return tl.where(seen, scores, float("-inf"))


@_jit
def fold_scores(maximum, total, mixed, scores, V):
    """`fold_block` in Triton, with 2 ** score for exp(score)."""
    raised = tl.maximum(maximum, tl.max(scores, axis=1))
    shrink, exponentials = tl.exp2(maximum - raised), tl.exp2(scores - raised[:, None])
    total = shrink * total + tl.sum(exponentials, axis=1)
    mixed = shrink[:, None] * mixed
    mixed = tl.dot(exponentials.to(V.dtype), V, mixed, input_precision="ieee")
    return raised, total, mixed


@_jit
def divide_out(maximum, total, mixed):
    """The end of `attend_rows` in Triton: heads, and logsumexp in units of ln 2."""
    total = tl.where(total > 0, total, 1.0)
    return mixed / total[:, None], maximum + tl.log2(total)


@_jit
def flash_kernel(QKV, outputs, numbers, CAUSAL: tl.constexpr, SIZES: tl.constexpr):
    """`attend_rows` in Triton: a program lets one block of queries of one head attend.

    Introduced in chapter 12. Scores and logsumexp are in units of ln 2, since a GPU raises 2 to a
    power and not e. Blocks of keys that all rows see need no mask: they come first, with edge 0.

    Parameters
    ----------
    QKV : Q, (B, H, T, WIDTH), K and V, (B, H, S, WIDTH), each with its strides
    outputs : heads, (B, H, T, WIDTH), with its strides, and logsumexp, a contiguous (B, H, T)
    numbers : H, T, S, and the factor from a product of two vectors to a score
    CAUSAL : apply `causal_mask(T, S)`
    SIZES : WIDTH, BLOCK_Q and BLOCK_K
    """
    H, T, S, scale = numbers
    WIDTH: tl.constexpr = SIZES[0]
    BLOCK_Q: tl.constexpr = SIZES[1]
    BLOCK_K: tl.constexpr = SIZES[2]
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # the longest rows first
    rows = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    last = rows + S - T if CAUSAL else rows * 0 + S - 1
    Q = load_rows(QKV[0], H, rows, T, WIDTH)
    maximum = tl.full((BLOCK_Q,), -3.4e38, tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    mixed = tl.zeros((BLOCK_Q, WIDTH), tl.float32)
    whole = tl.maximum(tl.min(last, axis=0) + 1, 0) // BLOCK_K * BLOCK_K
    end = tl.max(last, axis=0) + 1
    for edge in tl.static_range(2):
        for start in range(whole if edge else 0, end if edge else whole, BLOCK_K):
            keys = start + tl.arange(0, BLOCK_K)
            K = load_rows(QKV[1], H, keys, S, WIDTH)
            V = load_rows(QKV[2], H, keys, S, WIDTH)
            seen = keys[None, :] <= last[:, None] if edge else True
            scores = score_keys(Q, K, seen, scale)
            maximum, total, mixed = fold_scores(maximum, total, mixed, scores, V)
    heads, logsumexp = divide_out(maximum, total, mixed)
    tl.store(rows_at(outputs[0], H, rows, WIDTH), heads, rows[:, None] < T)
    tl.store(outputs[1] + tl.program_id(1).to(tl.int64) * T + rows, logsumexp, rows < T)


COMPILED = triton is not None and isinstance(flash_kernel, triton.JITFunction)


def which_flash(device="cpu") -> str:
    """Say in a line what `flash_attention` runs on a device, and why (chapter 12)."""
    device = find_device(device)
    if reason := _reason_without_kernel(device):
        return f"{device}: the NumPy twin, because {reason}"
    run_mode = "compiled by" if COMPILED else "in the interpreter of"
    return f"{device}: the kernel, {run_mode} Triton {triton.__version__}"


def _reason_without_kernel(device):
    if triton is None:
        return "Triton is not installed"
    if not COMPILED or device.type == "cuda":
        return None
    return "Triton compiles for the GPU" if HAS_GPU else "Triton was imported before the book was"


def flash_attention(
    Q: "B H T d", K: "B H S d", V: "B H S d", *, is_causal: bool = False, blocks: object = None
) -> "B H T d":
    """Score and mix without ever holding the scores, forwards and backwards.

    Introduced in chapter 12. Sums are in float32, and so are the kernel's scores: we do not check
    whether one overflows, and a query whose largest does gets NaN, as in PyTorch. A fully masked
    row gives zeros. Strides may be any, and `is_causal` applies `causal_mask(T, S)`. `blocks` are
    the numbers of queries and of keys that are scored at once, powers of 2 from 16 on, which a
    GPU's registers and fast memory limit; None leaves them to the library.

    In the backward pass weights are computed again from scores of float32. With scores of standard
    deviation 1, 900 and 10,000 (128 tokens, d = 64, in the interpreter) dV is off by 4e-7, 1.3e-5
    and 4e-5 of its length; F.scaled_dot_product_attention by 4e-7, 9e-6 and 6e-5. Where the NumPy
    twin runs, it scores in float64 and only the backward pass is in float32: 4e-7, 3e-4 and 4e-3.

    It cannot be part of a graph: `torch.compile` calls it between two graphs, so `fullgraph=True`
    is refused, and so is `torch.export`. Gradients of gradients, `create_graph=True`, are refused
    too, and the transforms of `torch.func` (vmap, grad, jvp) by PyTorch itself.

    Raises
    ------
    TypeError : a precision other than float16, bfloat16 and float32
    ShapeError : a d other than 16, 32, 64 and 128
    ValueError : the meta device, other blocks, more than 65,535 heads in the batch, or as above

    Source: Dao (2024), algorithms 1 and 2.
    """
    require(
        not torch.compiler.is_compiling(),
        ValueError,
        "flash_attention is called inside of a graph; expected a call between graphs, since its "
        "kernel is none of PyTorch's operations. Leave out fullgraph=True, or use "
        "F.scaled_dot_product_attention.",
    )
    attend = _checked_flash_attention
    if "torch._dynamo" in sys.modules:  # then torch.compile may be at work, and must not look in
        attend = torch.compiler.disable(attend)
    return attend(Q, K, V, is_causal, blocks)


# Checked by hand: torch.compile cannot break its graph inside a function that a decorator wraps.
flash_attention.contract = TensorContract(inspect.signature(flash_attention).parameters)


def _checked_flash_attention(Q, K, V, is_causal, blocks):
    flash_attention.contract.check_arguments((Q, K, V), {"is_causal": is_causal})
    B, H, _, d = Q.shape
    require(
        Q.dtype in DTYPES and Q.dtype == K.dtype == V.dtype,
        TypeError,
        f"Q, K and V are in {Q.dtype}, {K.dtype} and {V.dtype}; expected one of float16, bfloat16 "
        f"and float32. Convert them, for example Q.to({DTYPES[0]}).",
    )
    require(
        d in WIDTHS,
        ShapeError,
        f"Q has d={d}; expected a width that the kernel is written for, one of {WIDTHS}. "
        f"For others use F.scaled_dot_product_attention.",
    )
    require(
        B * H <= 65_535,
        ValueError,
        f"Q has {B * H} heads in its batch; expected at most 65535, a GPU's grid. Cut it in two.",
    )
    return _FlashAttention.apply(Q, K, V, (bool(is_causal), _checked_block_sizes(blocks)))


def _checked_block_sizes(blocks):
    sizes = blocks if isinstance(blocks, tuple) else ()
    are_powers = [isinstance(n, int | np.integer) and n >= 16 and n & (n - 1) == 0 for n in sizes]
    require(
        blocks is None or are_powers == [True, True],
        ValueError,
        f"blocks is {blocks!r}; expected two powers of 2 from 16 on, the numbers of queries "
        f"and of keys that are scored at once. Give for example (64, 32), or leave it out.",
    )
    return blocks and [int(length) for length in blocks]


class _FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, options):
        require(
            not Q.is_meta,
            ValueError,
            "Q is on meta, which holds no numbers; expected the CPU or a GPU, where the kernel can "
            "read them. For only the shapes use F.scaled_dot_product_attention.",
        )
        run_forward = (
            _flash_forward_numpy if _reason_without_kernel(Q.device) else _flash_forward_kernel
        )
        heads, logsumexp = run_forward(Q, K, V, *options)
        ctx.save_for_backward(Q, K, V, heads, logsumexp)
        ctx.is_causal, _ = options
        return heads

    @staticmethod
    def backward(ctx, dheads):
        require(
            not torch.is_grad_enabled(),
            ValueError,
            "create_graph=True asks flash_attention for gradients of its gradients; expected first "
            "gradients only, since its way back has no graph. Use F.scaled_dot_product_attention "
            "within torch.nn.attention.sdpa_kernel(SDPBackend.MATH).",
        )
        return *_flash_backward_torch(ctx.saved_tensors, dheads, ctx.is_causal), None


def _flash_forward_numpy(Q, K, V, is_causal, blocks):
    arrays = (to_float64(tensor).numpy() for tensor in (Q, K, V))
    block_size, _ = blocks or (64, 64)
    trace = flash_forward(*arrays, causal=is_causal, block=block_size)
    heads, logsumexp = map(torch.from_numpy, (trace.heads, trace.logsumexp[..., 0]))
    float_minimum = torch.finfo(torch.float32).min  # for fully masked rows; -inf would give NaN
    logsumexp = (logsumexp / math.log(2)).clamp(min=float_minimum).float()
    return heads.to(Q.dtype).to(Q.device), logsumexp.to(Q.device)


def _flash_forward_kernel(Q, K, V, is_causal, blocks):
    dtype = Q.dtype
    if dtype == torch.bfloat16 and not COMPILED:  # NumPy, and so the interpreter, has none
        Q, K, V = Q.float(), K.float(), V.float()
    (B, H, T, d), S = Q.shape, K.shape[-2]
    heads, logsumexp = torch.empty_like(Q), Q.new_empty(B, H, T, dtype=torch.float32)
    block_q, block_k, n_warps, n_stages = _kernel_launch_options(Q)
    block_q, block_k = blocks or (block_q, block_k)
    Q, K, V, heads_out = ((tensor, tensor.stride()) for tensor in (Q, K, V, heads))
    with torch.cuda.device_of(heads):
        flash_kernel[triton.cdiv(T, block_q), B * H](
            (Q, K, V),
            (heads_out, logsumexp),
            (H, T, S, _base_2_score_scale(d)),
            is_causal,
            (d, block_q, block_k),
            num_warps=n_warps,
            num_stages=n_stages,
            enable_fp_fusion=True,  # a multiply and an add as one; Triton will change its default
        )
    return heads.to(dtype), logsumexp


def _base_2_score_scale(d):
    """The factor from a product of vectors to a score in units of ln 2; it has the root of d_k."""
    return 1 / (math.sqrt(d) * math.log(2))


def _kernel_launch_options(Q):
    """Rows of queries, rows of keys, warps of a program, blocks that are loaded ahead."""
    if not COMPILED:
        return 64, 64, 4, 1
    compute_capability = cuda_compute_capability(Q.device)
    if Q.dtype == torch.float32 or compute_capability < (8, 0):
        return 32, 32, 8, 1  # Triton has no code for matrix units here: see registers
    return 128, 64, 8 if Q.shape[-1] == 128 else 4, 3 if compute_capability >= (9, 0) else 2


def _flash_backward_torch(saved_tensors, dheads, is_causal, block=128):
    """`flash_backward` in PyTorch; if causal, a block of keys takes only the rows that see it."""
    Q, K, V, heads, logsumexp = saved_tensors
    T, S = Q.shape[-2], K.shape[-2]
    dQ, dK, dV = torch.zeros_like(Q, dtype=torch.float32), torch.empty_like(K), torch.empty_like(V)
    for first_key in range(0, S, block):
        first_row = max(0, first_key + T - S) if is_causal else 0
        rows, keys = np.s_[..., first_row:, :], np.s_[..., first_key : first_key + block, :]
        offset = first_row + S - T - first_key if is_causal else block
        tensors = Q[rows], K[keys], V[keys], heads[rows], logsumexp[..., None][rows], dheads[rows]
        dQ_tile, dK[keys], dV[keys] = _tile_backward([tensor.float() for tensor in tensors], offset)
        dQ[rows] += dQ_tile
    return dQ.to(Q.dtype), dK, dV


def _tile_backward(tile_tensors, offset):
    """`block_backward` in PyTorch, divided by the root of d_k: row i sees keys up to i + diagonal.

    In units of ln 2 and float32, as the kernel, so that both passes round large scores alike.
    """
    Q, K, V, heads, logsumexp, dheads = tile_tensors
    mask = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool, device=Q.device).tril(offset)
    scores = Q @ K.mT * _base_2_score_scale(Q.shape[-1])
    weights = torch.exp2(scores.masked_fill(~mask, -math.inf) - logsumexp)
    row_sum = (dheads * heads).sum(dim=-1, keepdim=True)
    dproducts = weights * (dheads @ V.mT - row_sum) * Q.shape[-1] ** -0.5
    return dproducts @ K, dproducts.mT @ Q, weights.mT @ dheads
