"""Start, watch and end the processes of a call, or join those that torchrun has started."""

import contextlib
import datetime
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
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from tutorial_lib.contract import checked, require
from tutorial_lib.pytorch.device import best_device

POLL_INTERVAL_S = 0.02
WORKER_CODE = "from tutorial_lib.pytorch.processes import run_worker_process; run_worker_process()"
# What torchrun sets for a process, and what the processes that it starts must not inherit.
TORCHRUN = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


@checked
def run_parallel(
    worker: object,
    n_processes: "length",
    *arguments: object,
    port: "length" = None,
    timeout_s: float = 90,
) -> list:
    """Call a function in several new processes at once, and return what each of them returns.

    Introduced in chapter 13. The result of rank 0 comes first. Each process has one thread. They
    talk through NCCL where there is a CUDA device for each of them, else through gloo on the CPU.
    However this call ends, by an error, an interrupt or the end of this process too, all of them
    are ended with it (unless a process that was forked from this one lives on).

    Parameters
    ----------
    worker : function of an importable .py file, called as `worker(mesh, *arguments)`, results and
        arguments such as pickle can copy; `mesh.get_local_rank()` says which process it is in,
        `mesh.size()` how many there are. What it prints is shown only if it fails
    port : TCP port on which they find each other; None: a file, so that no port can be taken
    timeout_s : seconds for all of it

    Raises
    ------
    TypeError : a worker that another process cannot import
    ValueError : a port above 65535
    RuntimeError : the port is taken; a process died, and the message names its rank and exit code
    TimeoutError : not done in time; names the ranks that are still at work
    Exception : what a worker raised, with a note that names its rank
    """
    module, name = (getattr(worker, field, None) for field in ("__module__", "__qualname__"))
    require(
        callable(worker) and module not in (None, "__main__") and name and "<" not in name,
        TypeError,
        f"worker is {worker!r}; expected a function at the top level of a .py file, since "
        f"the new processes import it by name. Write it to a file beside the notebook or "
        f"script, such as my_workers.py, and import it: from my_workers import my_worker.",
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, _Workers() as workers:
        folder = Path(name)
        with (folder / "job").open("wb") as job_file:
            pickle.dump(sys.path, job_file)
            pickle.dump((worker, arguments, _rendezvous_url(folder, port), timeout_s), job_file)
        workers.start_processes(folder, n_processes)
        workers.wait_for_results(folder, timeout_s)
        result_paths = (folder / f"result{rank}" for rank in range(n_processes))
        return [pickle.loads(path.read_bytes()) for path in result_paths]


def _rendezvous_url(folder, port):
    if port is None:
        return (folder / "meet").as_uri()
    port_message = f"port={port}; expected 1 to 65535. Leave port out, and none is needed."
    require(port <= 65_535, ValueError, port_message)
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise RuntimeError(
            f"port={port} cannot be had: {error.strerror}; expected one that no program listens "
            f"on. Leave port out, and none is needed; with torchrun, say --standalone."
        ) from None
    return f"tcp://127.0.0.1:{port}"


class _Workers(contextlib.AbstractContextManager):
    """Processes that end when the `with` block does. Each leads its group and reads our pipe."""

    def __init__(self):
        self.processes = []

    def __exit__(self, *_):
        for process in self.processes:
            if self.poll_exit_code(process) is None:
                _kill_group(process.pid)
                process.kill()
        for process in self.processes:
            process.wait()
            process.stdin.close()

    @staticmethod
    def poll_exit_code(process):
        """Return the exit code, or None; end at once what a process that has ended left behind."""
        if process.returncode is None and process.poll() is not None:
            _kill_group(process.pid)  # later the system may give its number to another
        return process.returncode

    def start_processes(self, folder, n_processes):
        inherited = {name: value for name, value in os.environ.items() if name not in TORCHRUN}
        environment = {"GLOO_SOCKET_IFNAME": LOOPBACK, **inherited}
        for rank in range(n_processes):
            command = [sys.executable, "-c", WORKER_CODE, str(folder), str(rank), str(n_processes)]
            with (folder / f"log{rank}").open("wb") as log_file:
                popen_options = {"env": environment, "start_new_session": True, "stdout": log_file}
                popen_options |= {"stdin": subprocess.PIPE, "stderr": subprocess.STDOUT}
                self.processes.append(subprocess.Popen(command, **popen_options))

    def wait_for_results(self, folder, timeout_s):
        deadline = time.monotonic() + timeout_s
        while True:
            codes = [self.poll_exit_code(process) for process in self.processes]
            failed = [rank for rank, exit_code in enumerate(codes) if exit_code not in (None, 0)]
            finished_ranks = [rank for rank, exit_code in enumerate(codes) if exit_code == 0]
            failed += [rank for rank in finished_ranks if not (folder / f"result{rank}").exists()]
            if failed:
                raise _error_of_failed_workers(folder, failed, codes)
            running_ranks = [rank for rank, exit_code in enumerate(codes) if exit_code is None]
            if not running_ranks:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"ranks {running_ranks} of {len(codes)} processes gave no result within "
                    f"{timeout_s} s; all are ended. Give more time, timeout_s=..., or look for "
                    f"a step that not every process takes: the others wait for it."
                )
            time.sleep(POLL_INTERVAL_S)


def _error_of_failed_workers(folder, failed_ranks, codes):
    error_paths = {rank: folder / f"error{rank}" for rank in failed_ranks}
    errors = [pickle.loads(path.read_bytes()) for path in error_paths.values() if path.exists()]
    silent_ranks = [rank for rank in failed_ranks if not error_paths[rank].exists()]
    if not silent_ranks:  # the first may have made the others fail
        return pickle.loads(min(errors)[1])
    rank, status = silent_ranks[0], codes[silent_ranks[0]]
    ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else "died"
    log_text = (folder / f"log{rank}").read_text(encoding="utf-8", errors="replace").strip()
    return RuntimeError(
        f"rank {rank} of {len(codes)} processes {ending}, exit code {status}, before it gave a "
        f"result; the others are ended. Look for what ends the process, such as os._exit or a lack "
        f"of memory. The last it printed: {log_text[-2000:] or 'nothing'}"
    )


def run_worker_process():
    """Be one of the processes of `run_parallel`: do the job, write the result or the error."""
    threading.Thread(target=_exit_when_parent_ends, daemon=True).start()
    folder, rank, n_processes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    try:
        with (folder / "job").open("rb") as job_file:
            sys.path[:] = pickle.load(job_file)
            worker, arguments, init_method, timeout_s = pickle.load(job_file)
        with process_group(rank, n_processes, init_method=init_method, timeout_s=timeout_s) as mesh:
            result_bytes = pickle.dumps(worker(mesh, *arguments))
    except BaseException as error:
        time_ns = time.monotonic_ns()  # one clock for all processes
        error_bytes = _pickled_error(error, rank, n_processes)
        _write_atomically(folder / f"error{rank}", pickle.dumps((time_ns, error_bytes)))
        _kill_group(os.getpid())  # with what the worker has started, waiting for none of it
        os._exit(1)
    _write_atomically(folder / f"result{rank}", result_bytes)


def _exit_when_parent_ends():
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written: it returns when the parent is gone
    _kill_group(os.getpid())
    os._exit(1)


def _kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(pid, signal.SIGKILL)


def _write_atomically(path, data):
    draft_path = path.with_suffix(".unfinished")
    draft_path.write_bytes(data)
    draft_path.replace(path)


def _pickled_error(error, rank, n_processes):
    report = "".join(traceback.format_exception(error)).strip()
    if isinstance(error, Exception):
        error.add_note(f"Raised in rank {rank} of {n_processes} processes:\n{report}")
        with contextlib.suppress(Exception):
            error_bytes = pickle.dumps(error)
            pickle.loads(error_bytes)
            return error_bytes
    exit_error = RuntimeError(f"rank {rank} of {n_processes} processes ended itself:\n{report}")
    return pickle.dumps(exit_error)


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
