"""Start, watch and end the processes of a call."""

import datetime
import os
import pickle
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.multiprocessing import spawn

from tutorial_lib.contract import checked, require
from tutorial_lib.pytorch.device import best_device

POLL_INTERVAL_S = 0.1
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
        `mesh.size()` how many there are
    timeout_s : seconds for all of it

    Raises
    ------
    TypeError : a worker that another process cannot import
    ProcessRaisedException : of torch.multiprocessing; a worker raised, its traceback is the message
    ProcessExitedException : a process died, and the message has its rank and its exit code or
        signal
    TimeoutError : not done in time
    """
    _require_importable(worker)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_name:
        folder, job = Path(folder_name), (worker, arguments)
        options = n_processes, folder, timeout_s, job
        context = spawn(_run_worker, options, n_processes, join=False, daemon=True)
        try:
            _wait_for_all(context, timeout_s)
        finally:
            for process in context.processes:
                process.kill()
                process.join()
        paths = [folder / f"result{rank}" for rank in range(n_processes)]
        return [pickle.loads(path.read_bytes()) for path in paths]


def _require_importable(worker):
    module, name = (getattr(worker, field, None) for field in ("__module__", "__qualname__"))
    require(
        callable(worker) and module not in (None, "__main__") and name and "<" not in name,
        TypeError,
        f"worker is {worker!r}; expected a function at the top level of a .py file, since "
        f"the new processes import it by name. Write it to a file beside the notebook or "
        f"script, such as my_workers.py, and import it: from my_workers import my_worker.",
    )


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
    """Be one of the processes of `run_parallel`: join the others, do the job, write the result.

    The mesh is of CUDA devices where each process has its own, else of CPUs. After an error no
    process waits for the others: the process that started them ends them.
    """
    # With spawn's own SIGINT a worker that is in a barrier could outlive the one that started it.
    torch.multiprocessing._prctl_pr_set_pdeathsig(signal.SIGKILL)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    has_cuda = best_device().type == "cuda" and torch.cuda.device_count() >= n_processes
    if has_cuda:
        torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if has_cuda else "gloo",
        init_method=(folder / "meet").as_uri(),
        rank=rank,
        world_size=n_processes,
        timeout=datetime.timedelta(seconds=timeout_s),
    )
    worker, arguments = job
    mesh = init_device_mesh("cuda" if has_cuda else "cpu", (n_processes,))
    (folder / f"result{rank}").write_bytes(pickle.dumps(worker(mesh, *arguments)))
    dist.barrier()  # a process that leaves early breaks connections that others still use
    dist.destroy_process_group()
