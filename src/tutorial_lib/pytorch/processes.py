"""Start, watch and end the processes of a call, or join those that torchrun has started."""

import contextlib
import datetime
import os
import pickle
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn

from tutorial_lib.contract import checked, require
from tutorial_lib.pytorch.device import best_device

POLL_INTERVAL_S = 0.1
# What torchrun sets for a process, and what the processes that it starts must not inherit.
TORCHRUN = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


@checked
def run_parallel(
    worker: object, n_processes: "length", *arguments: object, timeout_s: float = 90
) -> list:
    """Call a function in several new processes at once, and return what each of them returns.

    Introduced in chapter 13. The result of rank 0 comes first. Each process has one thread. They
    find each other by a file, and talk through NCCL where there is a CUDA device for each of them,
    else through gloo on the CPU. When this call ends, by an error or an interrupt too, all of them
    are ended. Started by `torch.multiprocessing.spawn`, so a script calls this below
    `if __name__ == "__main__":`.

    Parameters
    ----------
    worker : function of an importable .py file, called as `worker(mesh, *arguments)`, results and
        arguments such as pickle can copy; `mesh.get_local_rank()` says which process it is in,
        `mesh.size()` how many there are. What it prints is shown only if it fails
    timeout_s : seconds for all of it

    Raises
    ------
    TypeError : a worker that another process cannot import
    ProcessRaisedException : of torch.multiprocessing; a worker raised, its traceback is the message
    ProcessExitedException : a process died, and the message has its rank and its exit code or
        signal. As with the other, a note has what it printed
    RuntimeError : a process ended without an error and without a result
    TimeoutError : not done in time
    """
    _require_importable(worker)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_name:
        folder, job = Path(folder_name), (worker, arguments)
        options = n_processes, folder, timeout_s, job
        context = spawn(_run_worker, options, n_processes, join=False, daemon=True)
        try:
            _wait_for_all(context, timeout_s)
        except (ProcessExitedException, ProcessRaisedException) as error:
            log = (folder / f"log{error.error_index}").read_text("utf-8", errors="replace")
            error.add_note(f"The last that it printed: {log[-2000:].strip() or 'nothing'}")
            raise
        finally:
            for process in context.processes:
                process.kill()
                process.join()
        return _results([folder / f"result{rank}" for rank in range(n_processes)])


def _require_importable(worker):
    module, name = (getattr(worker, field, None) for field in ("__module__", "__qualname__"))
    require(
        callable(worker) and module not in (None, "__main__") and name and "<" not in name,
        TypeError,
        f"worker is {worker!r}; expected a function at the top level of a .py file, since "
        f"the new processes import it by name. Write it to a file beside the notebook or "
        f"script, such as my_workers.py, and import it: from my_workers import my_worker.",
    )


def _results(paths):
    missing = [rank for rank, path in enumerate(paths) if not path.exists()]
    require(
        not missing,
        RuntimeError,
        f"ranks {missing} of {len(paths)} processes ended before they gave a result; expected one "
        f"of each. Look for what ends the process, such as os._exit or an interrupt.",
    )
    return [pickle.loads(path.read_bytes()) for path in paths]


def _wait_for_all(context, timeout_s):
    deadline = time.monotonic() + timeout_s
    while not context.join(POLL_INTERVAL_S):
        running = [rank for rank, process in enumerate(context.processes) if process.is_alive()]
        require(
            time.monotonic() < deadline,
            TimeoutError,
            f"ranks {running} of {len(context.processes)} processes gave no result within "
            f"{timeout_s} s; all are ended. Give more time, timeout_s=..., or look for a step that "
            f"not every process takes: the others wait for it.",
        )


def _run_worker(rank, n_processes, folder, timeout_s, job):
    """Be one of the processes of `run_parallel`: do the job, write the result."""
    with (folder / f"log{rank}").open("wb") as log_file:
        for output in (sys.stdout, sys.stderr):
            os.dup2(log_file.fileno(), output.fileno())
    for name in TORCHRUN:
        os.environ.pop(name, None)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    (worker, arguments), meeting_file = job, (folder / "meet").as_uri()
    with process_group(rank, n_processes, init_method=meeting_file, timeout_s=timeout_s) as mesh:
        result_bytes = pickle.dumps(worker(mesh, *arguments))
    (folder / f"result{rank}").write_bytes(result_bytes)


@contextlib.contextmanager
def process_group(rank, world_size, *, init_method="env://", timeout_s=90):
    """Join the other processes, and leave when all are done.

    Introduced in chapter 13. Yields a DeviceMesh with one axis, of CUDA devices where each process
    has its own, else of CPUs. After an error no process waits for the others: the process that
    started them ends them. Arguments as `torch.distributed.init_process_group`; env:// is
    torchrun's, and `timeout_s` how long a process waits for another one.
    """
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    has_cuda = best_device().type == "cuda" and torch.cuda.device_count() >= n_local
    if has_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if has_cuda else "gloo",
        init_method=init_method,
        rank=rank,
        world_size=world_size,
        timeout=datetime.timedelta(seconds=timeout_s),
    )
    yield init_device_mesh("cuda" if has_cuda else "cpu", (world_size,))
    dist.barrier()  # a process that leaves early breaks connections that others still use
    dist.destroy_process_group()
