"""The layer's heads split over processes, and the processes: started, watched, ended.

Imported by its own name: who stays in one process has no use for torch.distributed.tensor.

    python -m tutorial_lib.pytorch.parallel --processes 2
    torchrun --standalone --nproc-per-node 2 -m tutorial_lib.pytorch.parallel
"""

import argparse
import contextlib
import datetime
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.utils._python_dispatch import TorchDispatchMode

from tutorial_lib.errors import (
    ShapeError,
    require_divisible,
    require_floats,
    require_length,
    require_one_precision,
    require_shape,
)
from tutorial_lib.projection import Params, init_params
from tutorial_lib.pytorch.bridge import module_from_params, require_params
from tutorial_lib.pytorch.device import best_device, to_float64

LOOK_EVERY_S = 0.02
START = "from tutorial_lib.pytorch.parallel import work; work()"
TORCHRUN = {
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT"),
}  # what torchrun tells a process, which is not for those that it starts itself
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def shard_params(params, rank, world_size):
    """Cut out the heads of one process: its W_Q, W_K and W_V, and its rows of W_O.

    Built in chapter 13. Side by side as one wide matrix, a head's W_Q is d_k columns: so the first
    three are cut by columns, and W_O by rows.

    Parameters
    ----------
    params : Params
    rank : which process, from 0
    world_size : number of processes

    Returns
    -------
    shard : Params with H / world_size heads; views, no copies

    Raises
    ------
    TypeError : no Params, or no whole numbers
    ShapeError : H does not split into world_size equal parts
    ValueError : a rank outside 0 to world_size - 1

    Source: Shoeybi et al. (2019), section 3.
    """
    require_params(params)
    require_divisible("n_heads", params.n_heads, "world_size", world_size)
    require_rank(rank, world_size)
    arrays = params.W_Q, params.W_K, params.W_V, params.W_O
    return Params(*(np.split(W, world_size)[rank] for W in arrays))


def parallelize_heads(params, mesh, *, dtype=torch.float64):
    """Make this process's part of the layer: its own heads, and one sum over all processes.

    Introduced in chapter 13. Every process calls this, and the layer, together. Each holds the
    parameters of its own heads alone. Those of `qkv_proj` are pieces along axis 0, (out, in), so
    columns of W_Q, W_K and W_V; those of `out_proj` are pieces along axis 1, so rows of W_O.
    Joined, the pieces of `qkv_proj` are not `packed_weight(params)`: each has its own queries, keys
    and values. There is no bias and no dropout.

    Parameters
    ----------
    params : Params, the whole layer
    mesh : DeviceMesh with one axis, as a worker of `run_parallel` is given
    dtype : torch's name of a precision of floats

    Returns
    -------
    layer : MultiHeadAttention with H / n heads, whose parameters are DTensors. Given the same
        X (..., T, d_model) in every process it returns the same Y (..., T, d_model) in all;
        there is no context, and a mask for single heads is one for this process's heads

    Raises
    ------
    TypeError : no Params, or a dtype that is no precision of floats
    ShapeError : H does not split into equal parts
    ValueError : when called, a context

    Source: Shoeybi et al. (2019), section 3; PyTorch's documentation of
    torch.distributed.tensor.parallel.
    """
    shard = shard_params(params, mesh.get_local_rank(), mesh.size())
    layer = module_from_params(shard, dtype=dtype).to(mesh.device_type)
    for linear, axis in ((layer.qkv_proj, 0), (layer.out_proj, 1)):
        piece = DTensor.from_local(linear.weight.detach(), mesh, [Shard(axis)])
        linear.weight = nn.Parameter(piece)
    layer.register_forward_pre_hook(_require_no_context, with_kwargs=True)
    plan = {"qkv_proj": ColwiseParallel(), "out_proj": RowwiseParallel()}
    return parallelize_module(layer, mesh, plan)


def _require_no_context(layer, inputs, options):
    if options.get("context") is not None:
        raise ValueError(
            "context is given; expected None, since a layer whose heads are split over processes "
            "looks at X alone. Leave it out, or run the layer in one process."
        )


class Wire(TorchDispatchMode):
    """Write down what this process gives to others, while the block below `with` runs.

    Introduced in chapter 13. Backward passes count too, where `backward` stands in the block.

    Attributes
    ----------
    calls : list of (name, numbers), such as ``("all_reduce", 84)``: the operation, and how many
        numbers its tensor has. What a process sends for it is up to the library below: 2 (n - 1)/n
        times as many in a ring. Of two processes that send and receive, the sender notes it
    """

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation of torch, and note it if it talks to other processes."""
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # asked again, with what it does to the local tensors
        name = func.overloadpacket.__name__.rstrip("_")
        speaks = not name.startswith(("_", "wait_tensor", "recv"))
        if func.namespace in ("_c10d_functional", "c10d") and speaks:
            tensors = [args[0]] if isinstance(args[0], torch.Tensor) else args[0]
            self.calls.append((name, sum(tensor.numel() for tensor in tensors)))
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Share:
    """What one process has after the layer ran forward and backward.

    Introduced in chapter 13.

    Parameters
    ----------
    Y : (..., T, d_model), the whole output
    dX : (..., T, d_model), the whole gradient
    dW_qkv : (H/n*(2*d_k + d_v), d_model), of its own rows of `qkv_proj`
    dW_out : (d_model, H/n*d_v), of its own columns of `out_proj`
    forward, backward : lists of (name, numbers), see `Wire`
    """

    Y: np.ndarray
    dX: np.ndarray
    dW_qkv: np.ndarray
    dW_out: np.ndarray
    forward: list
    backward: list


def run_layer(mesh, X, params, dY, is_causal=False):
    """Run the layer with its heads over the processes of the mesh: a worker for `run_parallel`.

    Introduced in chapter 13.

    Parameters
    ----------
    mesh : DeviceMesh
    X : (..., T, d_model), float64
    params : Params, the whole layer
    dY : (..., T, d_model), the gradient that comes back
    is_causal : as `MultiHeadAttention.forward`

    Returns
    -------
    share : Share, in float64

    Raises
    ------
    TypeError : no arrays of floats, no Params
    ShapeError : H does not split into equal parts, another width, a dY of another shape than X
    """
    layer = parallelize_heads(params, mesh)
    require_gradient_of(X, dY, params)
    X = torch.tensor(X, device=mesh.device_type, requires_grad=True)
    with Wire() as there:
        Y = layer(X, is_causal=is_causal)
    with Wire() as back:
        Y.backward(torch.tensor(dY, device=mesh.device_type))
    grads = (linear.weight.grad.to_local() for linear in (layer.qkv_proj, layer.out_proj))
    arrays = (to_float64(tensor).numpy() for tensor in (Y, X.grad, *grads))
    return Share(*arrays, there.calls, back.calls)


def ring_attention(Q, K, V, *, is_causal=False):
    """Attend over a sequence that is cut into blocks, one in each process.

    Introduced in chapter 13. Queries stay. Keys and values go round: while a process works on the
    block it has, it sends that block on and receives the next. Each block rescales what was summed
    before it to the new largest score, so no process ever holds a whole row of scores. This is the
    way forward alone: a block that was received has no graph for gradients. Divides by the root of
    d_k itself.

    Parameters
    ----------
    Q, K : (..., T/n, d_k), this process's tokens, floats; all blocks of one length
    V : (..., T/n, d_v)
    is_causal : no token looks at one behind it in the whole sequence

    Returns
    -------
    heads : (..., T/n, d_v), for this process's tokens

    Raises
    ------
    TypeError : no tensors of floats of one precision
    ShapeError : other numbers of keys or values than of queries, widths that differ
    ValueError : a tensor that asks for gradients, outside torch.no_grad()

    Source: Liu et al. (2024), section 3; Milakov and Gimelshein (2018), algorithm 3.
    """
    require_ring_blocks(Q, K, V)
    require_no_gradients(Q, K, V)
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
        powers, shrink = (scores - top).exp(), (old - top).exp()
        total = total * shrink + powers.sum(dim=-1, keepdim=True)
        mixed = mixed * shrink + powers @ V
        K, V = passing() if passing else (K, V)
    return mixed / total


def require_gradient_of(X, dY, params):
    """Require arrays of floats of the layer's width, and a gradient of the shape of X.

    Raises
    ------
    TypeError : no arrays of floats
    ShapeError : another width, an empty axis, two shapes
    """
    for name, array in {"X": X, "dY": dY}.items():
        require_shape(name, array, "... T d_model", d_model=params.d_model)
        require_floats(name, array)
    if X.shape != dY.shape:
        raise ShapeError(
            f"dY has shape {dY.shape}; expected {X.shape}, the shape of X and so of Y: a gradient "
            f"has one number for each number of its array. Take it from the loss of Y."
        )


def require_ring_blocks(Q, K, V):
    """Require tensors of floats of one precision: as many keys and values as queries.

    Raises
    ------
    TypeError : no tensors of floats of one precision
    ShapeError : other numbers of keys or values than of queries, widths that differ
    """
    for name, tensor in {"Q": Q, "K": K, "V": V}.items():
        kind = getattr(tensor, "dtype", type(tensor).__name__)
        floats = isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
        if not floats or kind != Q.dtype:
            raise TypeError(
                f"{name} is of type {kind}; expected tensors of floats of one precision. "
                f"Convert it, for example torch.as_tensor({name}).to(torch.float64)."
            )
        axes = slice(-1 if name == "V" else None)  # values have a width of their own
        fits = tensor.ndim >= 2 and tensor.shape[axes] == Q.shape[axes]
        if not fits or 0 in tensor.shape:
            raise ShapeError(
                f"{name} has shape {tuple(tensor.shape)} and Q has {tuple(Q.shape)}; expected as "
                f"many keys and values as queries, (..., T/n, width), since every process holds a "
                f"block of one sequence. Cut Q, K and V at the same tokens."
            )


def require_no_gradients(*tensors):
    """Require tensors of which nobody wants a gradient.

    Raises
    ------
    ValueError : one that asks for gradients, outside torch.no_grad()
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise ValueError(
            "Q, K or V asks for gradients; expected none, since blocks that were received have no "
            "graph, and dK and dV would be wrong. Call it under torch.no_grad()."
        )


def _pass_on(*tensors):
    rank, n = dist.get_rank(), dist.get_world_size()
    tensors = [tensor.contiguous() for tensor in tensors]
    received = [torch.empty_like(tensor) for tensor in tensors]
    sends = [dist.P2POp(dist.isend, tensor, (rank + 1) % n) for tensor in tensors]
    receives = [dist.P2POp(dist.irecv, tensor, (rank - 1) % n) for tensor in received]
    pending = dist.batch_isend_irecv(sends + receives)

    def arrive():
        for work in pending:
            work.wait()
        return received

    return arrive


def run_ring(mesh, Q, K, V, is_causal=False):
    """Cut the sequence into a block for each process and send keys and values round: a worker.

    Introduced in chapter 13.

    Parameters
    ----------
    mesh : DeviceMesh
    Q, K : (..., T, d_k), the whole sequence, float32 or float64
    V : (..., T, d_v)
    is_causal : as `ring_attention`

    Returns
    -------
    heads : (..., T/n, d_v), of this process's tokens
    calls : list of (name, numbers), see `Wire`

    Raises
    ------
    TypeError : integers, half precision, two precisions
    ShapeError : T does not split into equal parts, other numbers of keys or values than of queries
    """
    require_shape("Q", Q, "... T d_k")
    require_shape("K", K, "... T d_k", T=Q.shape[-2], d_k=Q.shape[-1])
    require_shape("V", V, "... T d_v", T=Q.shape[-2])
    require_one_precision(Q=Q, K=K, V=V)
    require_divisible("T", Q.shape[-2], "world_size", mesh.size())
    blocks = (np.split(A, mesh.size(), axis=-2)[mesh.get_local_rank()] for A in (Q, K, V))
    with Wire() as wire:
        heads = ring_attention(
            *(torch.tensor(A, device=mesh.device_type) for A in blocks), is_causal=is_causal
        )
    return to_float64(heads).numpy(), wire.calls


def run_parallel(worker, n_processes, *arguments, port=None, timeout_s=90):
    """Call a function in several new processes at once, and return what each of them returns.

    Introduced in chapter 13. Each process has one thread. They talk through NCCL where there is a
    CUDA device for each of them, else through gloo on the CPU. However this call ends, by an error,
    an interrupt or the end of this process too, all of them are ended with it (unless a process
    that was forked from this one lives on).

    Parameters
    ----------
    worker : function of an importable .py file, called as `worker(mesh, *arguments)`;
        `mesh.get_local_rank()` says which process it is in, `mesh.size()` how many there are.
        What it prints is shown only if it fails
    n_processes : how many
    arguments : anything that pickle can copy
    port : TCP port on which they find each other; None: a file, so that no port can be taken
    timeout_s : seconds for all of it

    Returns
    -------
    results : list, that of rank 0 first

    Raises
    ------
    TypeError : a worker that another process cannot import, or no whole number
    ValueError : a number of processes below 1
    RuntimeError : the port is taken; a process died, and the message names its rank and exit code
    TimeoutError : not done in time; names the ranks that are still at work
    Exception : what a worker raised, with a note that names its rank
    """
    require_worker(worker)
    require_length("n_processes", n_processes)
    if port is not None:
        require_free_port(port)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, _Workers() as workers:
        folder = Path(name)
        where = (folder / "meet").as_uri() if port is None else f"tcp://127.0.0.1:{port}"
        with (folder / "job").open("wb") as file:
            pickle.dump(sys.path, file)
            pickle.dump((worker, arguments, where, timeout_s), file)
        workers.start(folder, n_processes)
        workers.wait(folder, timeout_s)
        return [pickle.loads((folder / f"result{rank}").read_bytes()) for rank in workers.ranks]


class _Workers:
    """Processes that end when the `with` block does. Each leads its group and reads our pipe."""

    def __init__(self):
        self.processes = []

    @property
    def ranks(self):
        return range(len(self.processes))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if self.look_at(process) is None:
                _kill_group(process.pid)
                process.kill()
        for process in self.processes:
            process.wait()
            process.stdin.close()

    @staticmethod
    def look_at(process):
        """Return the exit code, or None; end at once what a process that has ended left behind."""
        known = process.returncode is not None
        code = process.poll()
        if code is not None and not known:
            _kill_group(process.pid)  # later the system may give its number to another
        return code

    def start(self, folder, n_processes):
        outer = {name: text for name, text in os.environ.items() if name not in TORCHRUN}
        environment = {"GLOO_SOCKET_IFNAME": LOOPBACK, **outer}
        for rank in range(n_processes):
            command = [sys.executable, "-c", START, str(folder), str(rank), str(n_processes)]
            with (folder / f"log{rank}").open("wb") as log:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            self.processes.append(process)

    def wait(self, folder, timeout_s):
        end = time.monotonic() + timeout_s
        while True:
            codes = [self.look_at(process) for process in self.processes]
            failed = [rank for rank in self.ranks if codes[rank] not in (None, 0)]
            done = [rank for rank in self.ranks if codes[rank] == 0]
            failed += [rank for rank in done if not (folder / f"result{rank}").exists()]
            if failed:
                raise _failure(folder, failed, codes)
            running = [rank for rank in self.ranks if codes[rank] is None]
            if not running:
                return
            if time.monotonic() > end:
                raise TimeoutError(
                    f"ranks {running} of {len(codes)} processes gave no result within "
                    f"{timeout_s} s; all are ended. Give more time, timeout_s=..., or look for "
                    f"a step that not every process takes: the others wait for it."
                )
            time.sleep(LOOK_EVERY_S)


def _failure(folder, failed, codes):
    paths = {rank: folder / f"error{rank}" for rank in failed}
    errors = [pickle.loads(path.read_bytes()) for path in paths.values() if path.exists()]
    silent = [rank for rank in failed if not paths[rank].exists()]
    if not silent:  # the first may have made the others fail
        return pickle.loads(min(errors)[1])
    rank, code = silent[0], codes[silent[0]]
    by = f"was killed by {signal.Signals(-code).name}" if code < 0 else "died"
    log = (folder / f"log{rank}").read_text(encoding="utf-8", errors="replace").strip()
    return RuntimeError(
        f"rank {rank} of {len(codes)} processes {by}, exit code {code}, before it gave a result; "
        f"the others are ended. Look for what ends the process, such as os._exit or a lack of "
        f"memory. The last it printed: {log[-2000:] or 'nothing'}"
    )


def work():
    """Be one of the processes of `run_parallel`: do the job, write the result or the error."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folder, rank, n_processes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    try:
        with (folder / "job").open("rb") as file:
            sys.path[:] = pickle.load(file)
            worker, arguments, where, timeout_s = pickle.load(file)
        with join(rank, n_processes, init_method=where, timeout_s=timeout_s) as mesh:
            result = pickle.dumps(worker(mesh, *arguments))
    except BaseException as error:
        when = time.monotonic_ns()  # one clock for all processes
        _write(folder / f"error{rank}", pickle.dumps((when, _portable(error, rank, n_processes))))
        os._exit(1)  # and so without a farewell to processes that may never answer
    _write(folder / f"result{rank}", result)


def _end_with_parent():
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written: it returns when the parent is gone
    _kill_group(os.getpid())
    os._exit(1)


def _kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(pid, signal.SIGKILL)


def _write(path, data):
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(path)


def _portable(error, rank, n_processes):
    said = "".join(traceback.format_exception(error)).strip()
    if isinstance(error, Exception):
        error.add_note(f"Raised in rank {rank} of {n_processes} processes:\n{said}")
        with contextlib.suppress(Exception):
            data = pickle.dumps(error)
            pickle.loads(data)
            return data
    return pickle.dumps(
        RuntimeError(f"rank {rank} of {n_processes} processes ended itself:\n{said}")
    )


@contextlib.contextmanager
def join(rank, world_size, *, init_method="env://", timeout_s=90):
    """Meet the other processes, and part from them when all are done.

    Introduced in chapter 13. After an error there is no parting: whoever started the processes
    ends them.

    Parameters
    ----------
    rank : which process this is, from 0
    world_size : how many there are
    init_method : where they meet, as `torch.distributed.init_process_group`; env:// is torchrun's
    timeout_s : how long one waits for another

    Yields
    ------
    mesh : DeviceMesh with one axis, of CUDA devices where each process has its own, else of CPUs
    """
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    cuda = best_device().type == "cuda" and torch.cuda.device_count() >= here
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        init_method=init_method,
        rank=rank,
        world_size=world_size,
        timeout=datetime.timedelta(seconds=timeout_s),
    )
    yield init_device_mesh("cuda" if cuda else "cpu", (world_size,))
    dist.barrier()  # who leaves early breaks connections that others still use
    dist.destroy_process_group()


def require_rank(rank, world_size):
    """Require a whole number from 0 to below `world_size`.

    Raises
    ------
    TypeError : no whole number
    ValueError : outside
    """
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise TypeError(
            f"rank is {rank!r}, a {type(rank).__name__}; expected a whole number. "
            f"Give an int, such as 0."
        )
    if not 0 <= rank < world_size:
        raise ValueError(
            f"rank={rank}; expected 0 to {world_size - 1}, one of {world_size} processes. "
            f"The first process has rank 0."
        )


def require_worker(worker):
    """Require a function that a new process finds by its name.

    Raises
    ------
    TypeError : no function, or one of a notebook, a script, or another function
    """
    module, name = (getattr(worker, key, None) for key in ("__module__", "__qualname__"))
    if not callable(worker) or module in (None, "__main__") or not name or "<" in name:
        raise TypeError(
            f"worker is {worker!r}; expected a function that stands by itself in a .py file, since "
            f"the new processes import it by name. Write it to a file beside the notebook or "
            f"script, such as my_workers.py, and import it: from my_workers import my_worker."
        )


def require_free_port(port):
    """Require a TCP port that can be listened on.

    Raises
    ------
    RuntimeError : it is taken, or the system keeps it
    TypeError, ValueError : no whole number from 1 to 65535
    """
    require_length("port", port)
    if port > 65535:
        raise ValueError(f"port={port}; expected 1 to 65535. Leave port out, and none is needed.")
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise RuntimeError(
            f"port={port} cannot be had: {error.strerror}; expected one that no program listens "
            f"on. Leave port out, and none is needed; with torchrun, say --standalone."
        ) from None


def compare(mesh, n_heads=4):
    """Compare the layer over the processes of the mesh with the layer in one: a worker.

    Introduced in chapter 13.

    Parameters
    ----------
    mesh : DeviceMesh
    n_heads : number of heads

    Returns
    -------
    lines : list of str

    Raises
    ------
    ShapeError : the heads do not split into equal parts
    """
    params = init_params(np.random.default_rng(0), d_model=12, n_heads=n_heads, d_k=3, d_v=5)
    X, dY = np.random.default_rng(1).standard_normal((2, 7, 12))
    share = run_layer(mesh, X, params, dY, is_causal=True)
    one, X = module_from_params(params), torch.tensor(X, requires_grad=True)
    Y = one(X, is_causal=True)
    Y.backward(torch.from_numpy(dY))
    pairs = {"Y": (share.Y, to_float64(Y).numpy()), "dX": (share.dX, X.grad.numpy())}
    return [
        f"{n_heads} heads over {mesh.size()} processes by {dist.get_backend()}",
        *(
            f"{name} as in one process within 1e-12: {np.allclose(a, b, rtol=0, atol=1e-12)}"
            for name, (a, b) in pairs.items()
        ),
        *(
            f"{name}: {operation} of {numbers} numbers"
            for name in ("forward", "backward")
            for operation, numbers in getattr(share, name)
        ),
    ]


def main(arguments=None):
    """Compare several processes with one, started by torchrun or, without it, from here."""
    parser = argparse.ArgumentParser(description="Run the layer with its heads over processes.")
    parser.add_argument("--processes", type=int, default=2, help="without torchrun (default 2)")
    parser.add_argument("--heads", type=int, default=4, help="number of heads (default 4)")
    options = parser.parse_args(arguments)
    by_torchrun = dist.is_torchelastic_launched()
    n_processes = int(os.environ["WORLD_SIZE"]) if by_torchrun else options.processes
    try:
        require_divisible("heads", options.heads, "processes", n_processes)
    except ValueError as error:
        parser.error(str(error))
    if by_torchrun:
        rank = int(os.environ["RANK"])
        with join(rank, n_processes) as mesh:
            lines = compare(mesh, options.heads)
    else:
        rank, lines = 0, run_parallel(compare, n_processes, options.heads)[0]
    if rank == 0:
        print("\n".join(lines))


if __name__ == "__main__":
    from tutorial_lib.pytorch.parallel import main as start  # by a name other processes can import

    start()
