"""The layer's heads, or its sequence, split over processes; imported by its own name."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode

from tutorial_lib.contract import MADE_BY, checked, require
from tutorial_lib.errors import require_divisible, require_float_array, require_one_precision
from tutorial_lib.projection import Params
from tutorial_lib.pytorch.bridge import module_from_params
from tutorial_lib.pytorch.device import to_float64
from tutorial_lib.pytorch.mha import MultiHeadAttention
from tutorial_lib.pytorch.processes import run_parallel as run_parallel
from tutorial_lib.pytorch.tensors import checked as checked_tensors

MADE_BY[DeviceMesh] = "a DeviceMesh. Pass on the one that run_parallel gives a worker."


@checked
def shard_params(params: Params, rank: "integer", world_size: "length") -> Params:
    """Return the shard of one process: W_Q, W_K and W_V of its heads, and its rows of W_O.

    Built in chapter 13. In one wide matrix a head's W_Q is d_k columns, so the first three are
    column-parallel, and W_O is row-parallel. The shard is of views, no copies. Ranks count from 0.
    Raises ShapeError where H does not split into equal parts.

    Source: Shoeybi et al. (2019), section 3.

    >>> shard_params(Params(*np.ones((3, 4, 12, 3)), np.ones((12, 12))), 0, 2).W_Q.shape
    (2, 12, 3)
    """
    require_divisible("n_heads", params.n_heads, "world_size", world_size)
    require(
        0 <= rank < world_size,
        ValueError,
        f"rank={rank}; expected 0 to {world_size - 1}, one of {world_size} processes. "
        f"The first process has rank 0.",
    )
    arrays = params.W_Q, params.W_K, params.W_V, params.W_O
    return Params(*(np.split(W, world_size)[rank] for W in arrays))


@checked
def parallelize_heads(
    params: Params, mesh: DeviceMesh, *, dtype: torch.dtype = torch.float64
) -> MultiHeadAttention:
    """Make this process's part of the layer: its own heads, and one sum over all processes.

    Introduced in chapter 13. Every process calls this, and the layer, together. Each holds only the
    parameters of its own H / n heads, as DTensors: those of `qkv_proj` are shards along axis 0,
    (out, in), so columns of W_Q, W_K and W_V; those of `out_proj` along axis 1, so rows of W_O.
    Concatenated, the shards of `qkv_proj` are not `packed_weight(params)`: each has its own
    queries, keys and values. There is no bias, no dropout and, when called, no context; a mask for
    single heads is one for this process's heads. The same X in every process gives the same Y in
    all. The mesh has one axis, as that of `run_parallel`. Raises as `shard_params`.

    Source: Shoeybi et al. (2019), section 3; PyTorch's documentation of
    torch.distributed.tensor.parallel.
    """
    shard = shard_params(params, mesh.get_local_rank(), mesh.size())
    layer = module_from_params(shard, dtype=dtype).to(mesh.device_type)
    for linear, axis in ((layer.qkv_proj, 0), (layer.out_proj, 1)):
        weight = DTensor.from_local(linear.weight.detach(), mesh, [Shard(axis)])
        linear.weight = nn.Parameter(weight)
    layer.register_forward_pre_hook(_require_no_context, with_kwargs=True)
    plan = {"qkv_proj": ColwiseParallel(), "out_proj": RowwiseParallel()}
    return parallelize_module(layer, mesh, plan)


def _require_no_context(layer, inputs, options):
    if options.get("context") is not None:
        raise ValueError(
            "context is given; expected None, since a layer whose heads are split over processes "
            "attends only to X. Leave it out, or run the layer in one process."
        )


class CommunicationLog(TorchDispatchMode):
    """Log what this process sends to others, while the block below `with` runs, in `calls`.

    Introduced in chapter 13. Backward passes count too. A call is ``("all_reduce", 84)``: the
    operation, and how many entries its tensor has. What a process sends for it is up to the library
    below: 2 (n - 1)/n times as many in a ring. Of two that send and receive, the sender logs it.
    """

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation of torch, and log it if it sends to other processes."""
        if any(issubclass(tensor_class, DTensor) for tensor_class in types):
            return NotImplemented  # called again, with what it does to the local tensors
        operation = func.overloadpacket.__name__.rstrip("_")
        is_sent = not operation.startswith(("_", "wait_tensor", "recv"))
        if func.namespace in ("_c10d_functional", "c10d") and is_sent:
            tensors = [args[0]] if isinstance(args[0], torch.Tensor) else args[0]
            self.calls.append((operation, sum(tensor.numel() for tensor in tensors)))
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class RankResult:
    """What one process has after the forward and the backward pass of the layer (chapter 13)."""

    Y: np.ndarray  # (..., T, d_model), the whole output
    dX: np.ndarray  # (..., T, d_model), the whole gradient
    dW_qkv: np.ndarray  # (H/n*(2*d_k + d_v), d_model), of its own rows of `qkv_proj`
    dW_out: np.ndarray  # (d_model, H/n*d_v), of its own columns of `out_proj`
    forward: list  # of (name, entries), see `CommunicationLog`
    backward: list


@checked
def run_layer(
    mesh: DeviceMesh,
    X: "... T d_model",
    params: Params,
    dY: "gradient ... T d_model",
    is_causal: bool = False,
) -> RankResult:
    """Run the layer in float64, its heads over the mesh: a worker of run_parallel (chapter 13)."""
    require_float_array("X", X)
    layer = parallelize_heads(params, mesh)
    X = torch.tensor(X, device=mesh.device_type, requires_grad=True)
    with CommunicationLog() as forward_log:
        Y = layer(X, is_causal=is_causal)
    with CommunicationLog() as backward_log:
        Y.backward(torch.tensor(dY, device=mesh.device_type))
    gradients = (linear.weight.grad.to_local() for linear in (layer.qkv_proj, layer.out_proj))
    arrays = (to_float64(tensor).numpy() for tensor in (Y, X.grad, *gradients))
    return RankResult(*arrays, forward_log.calls, backward_log.calls)


@checked_tensors
def ring_attention(
    Q: "... T d_k", K: "... T d_k", V: "... T d_v", *, is_causal: bool = False
) -> "... T d_v":
    """Attend over a sequence that is split into blocks, one in each process.

    Introduced in chapter 13. Queries stay. Keys and values go round: while a process works on the
    block it has, it sends that block on and receives the next. T here is the length of a block, the
    same in all. Each block rescales what was summed before it to the new largest score, so no
    process ever holds a whole row of scores. There is only a forward pass: a tensor that requires
    gradients is a ValueError. Divides by the root of d_k itself. `is_causal` lets no token attend
    to a later one of the whole sequence.

    Source: Liu et al. (2024), section 3; Milakov and Gimelshein (2018), algorithm 3.
    """
    require(
        not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (Q, K, V))),
        ValueError,
        "Q, K or V asks for gradients; expected none, since blocks that were received have no "
        "graph, and dK and dV would be wrong. Call it under torch.no_grad().",
    )
    rank, n, block = dist.get_rank(), dist.get_world_size(), Q.shape[-2]
    here = torch.arange(block, device=Q.device)
    top, total, mixed = torch.full_like(Q[..., :1], -math.inf), 0.0, 0.0
    for step in range(n):
        passing = _pass_on(K, V) if step < n - 1 else None
        scores = Q @ K.mT / math.sqrt(Q.shape[-1])  # (..., T/n, T/n)
        if is_causal:
            source = (rank - step) % n  # whose block this is
            there = here + (source - rank) * block
            scores = scores.masked_fill(there > here[:, None], -math.inf)
        old, top = top, torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        exponentials, shrink = (scores - top).exp(), (old - top).exp()
        total = total * shrink + exponentials.sum(dim=-1, keepdim=True)
        mixed = mixed * shrink + exponentials @ V
        K, V = passing() if passing else (K, V)
    return mixed / total


def _pass_on(*tensors):
    rank, n = dist.get_rank(), dist.get_world_size()
    tensors = [tensor.contiguous() for tensor in tensors]
    arrivals = [torch.empty_like(tensor) for tensor in tensors]
    send_operations = [dist.P2POp(dist.isend, tensor, (rank + 1) % n) for tensor in tensors]
    receipts = [dist.P2POp(dist.irecv, tensor, (rank - 1) % n) for tensor in arrivals]
    transfers = dist.batch_isend_irecv(send_operations + receipts)

    def wait_for_arrivals():
        for work in transfers:
            work.wait()
        return arrivals

    return wait_for_arrivals


@checked
def run_ring(
    mesh: DeviceMesh, Q: "... T d_k", K: "... T d_k", V: "... T d_v", is_causal: bool = False
) -> tuple:
    """Split the sequence into a block for each process and send keys and values round: a worker.

    Introduced in chapter 13. The sequence is float32 or float64, and T splits into n equal parts.
    Returns heads of this process's tokens, (..., T/n, d_v), and calls of its `CommunicationLog`.
    """
    require_one_precision(Q=Q, K=K, V=V)
    require_divisible("T", Q.shape[-2], "world_size", mesh.size())
    blocks = (np.split(A, mesh.size(), axis=-2)[mesh.get_local_rank()] for A in (Q, K, V))
    with CommunicationLog() as log:
        heads = ring_attention(
            *(torch.tensor(A, device=mesh.device_type) for A in blocks), is_causal=is_causal
        )
    return to_float64(heads).numpy(), log.calls
