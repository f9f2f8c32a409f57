"""The launcher: real processes, real deaths, and nothing left behind.

The functions that run in the new processes stand first: those import this file.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch.distributed as dist

from tests.pytorch.launching import ROOT, child_pids, is_alive, torchrun
from tests.sampling import long
from tutorial_lib.pytorch import processes
from tutorial_lib.pytorch.processes import run_parallel

WAITS_S = 600  # how long a process sleeps that nobody ends
DEADLINE_S = WAITS_S / 2  # so whoever comes back within this has not waited for it


def end(mesh, exit_mode, folder):
    """Leave a child and its number behind and end in rank 1, while rank 0 waits for it."""
    (folder / f"{os.getpid()}").touch()
    (folder / f"{subprocess.Popen(['sleep', str(WAITS_S)]).pid}").touch()
    print("last words", flush=True)
    dist.barrier()
    if mesh.get_local_rank() == 1:
        end_this_process(exit_mode)
    dist.barrier()


def end_this_process(exit_mode):
    if exit_mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif exit_mode == "leave":
        sys.exit(3)
    elif exit_mode != "wait":
        os._exit(int(exit_mode))
    time.sleep(WAITS_S)


class Unportable(Exception):
    """An error that pickle can write and not read."""

    def __init__(self, text):
        super().__init__(text, "more")


def surviving_pids(folder):
    """The processes noted in a folder that nobody ends; by themselves they would much later."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        pids = [path.name for path in folder.iterdir() if is_alive(path.name)]
        if not pids or time.monotonic() > deadline:
            return pids
        time.sleep(0.02)


def seconds_since_last_file(folder):
    """How long ago the last file of a folder was made: the deaths come right after it."""
    return time.time() - max(path.stat().st_mtime for path in folder.iterdir())


@pytest.mark.parametrize(
    ("exit_mode", "message"),
    [
        *long(("0", "rank 1 of 2 processes died, exit code 0, before it gave a result")),
        ("kill", "rank 1 of 2 processes was killed by SIGKILL, exit code -9, before it gave"),
        *long(("leave", "rank 1 of 2 processes ended itself:\nTraceback")),
    ],
)
def test_a_dead_worker_is_named_and_nothing_is_left(tmp_path, exit_mode, message):
    pids_before = child_pids()
    with pytest.raises(RuntimeError) as refusal:
        run_parallel(end, 2, exit_mode, tmp_path, timeout_s=WAITS_S)
    assert message in str(refusal.value)
    assert seconds_since_last_file(tmp_path) < DEADLINE_S
    assert ("last words" in str(refusal.value)) == (exit_mode != "leave")
    assert len(list(tmp_path.iterdir())) == 4
    assert surviving_pids(tmp_path) == []
    assert child_pids() == pids_before


@pytest.mark.parametrize("error", [Unportable("far away"), KeyboardInterrupt("far away")])
def test_an_error_that_cannot_travel_is_put_into_words(error):
    copied_error = pickle.loads(processes._pickled_error(error, 3, 5))
    assert type(copied_error) is RuntimeError
    assert str(copied_error).startswith("rank 3 of 5 processes ended itself:")
    assert "far away" in str(copied_error)


def test_of_several_errors_the_first_is_raised(tmp_path):
    for rank, raised_at in enumerate((20, 10)):
        error = processes._pickled_error(ValueError(f"of rank {rank}"), rank, 2)
        (tmp_path / f"error{rank}").write_bytes(pickle.dumps((raised_at, error)))
    assert str(processes._error_of_failed_workers(tmp_path, [0, 1], [1, 1])) == "of rank 1"


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    pids_before = child_pids()
    with pytest.raises(TimeoutError, match=r"ranks \[0, 1\] of 2 processes gave no result"):
        run_parallel(end, 2, "wait", tmp_path, timeout_s=0.3)
    assert child_pids() == pids_before


@pytest.mark.long
def test_an_interrupt_ends_the_workers(tmp_path, monkeypatch):
    real_sleep, pids_before = time.sleep, child_pids()

    def interrupt(seconds):
        if len(list(tmp_path.iterdir())) == 4:
            raise KeyboardInterrupt
        real_sleep(seconds)

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_parallel(end, 2, "wait", tmp_path, timeout_s=WAITS_S)
    monkeypatch.undo()
    assert surviving_pids(tmp_path) == []
    assert child_pids() == pids_before


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    script = (
        "import pathlib, sys, tests.pytorch.test_processes as t;"
        "t.run_parallel(t.end, 2, 'wait', pathlib.Path(sys.argv[1]), timeout_s=t.WAITS_S)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT)
    while len(list(tmp_path.iterdir())) < 4 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    orphans = surviving_pids(tmp_path)
    for pid in orphans:
        os.kill(int(pid), signal.SIGKILL)
    assert orphans == []


def failing_worker(mesh, folder):
    """Leave a child and its number behind, and raise."""
    (folder / f"{subprocess.Popen(['sleep', str(WAITS_S)]).pid}").touch()
    raise ValueError


def test_a_worker_that_fails_ends_what_it_has_started_by_itself(tmp_path):
    (folder := tmp_path / "run").mkdir()
    (pid_folder := tmp_path / "children").mkdir()
    job = failing_worker, (pid_folder,), (folder / "meet").as_uri(), WAITS_S
    (folder / "job").write_bytes(pickle.dumps(sys.path) + pickle.dumps(job))
    with processes._Workers() as workers:
        workers.start_processes(folder, 1)
        workers.processes[0].wait()  # its parent is not asked to kill anything
        assert surviving_pids(pid_folder) == []
    _, error = pickle.loads((folder / "error0").read_bytes())
    assert isinstance(pickle.loads(error), ValueError)


def test_a_taken_port_is_an_error_before_anything_starts(monkeypatch):
    monkeypatch.setattr(processes._Workers, "start_processes", None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"port={port} cannot be had: Address already in"):
            run_parallel(failing_worker, 2, port=port)
    with pytest.raises(ValueError, match="expected 1 to 65535"):
        run_parallel(failing_worker, 2, port=65536)


@pytest.mark.long
def test_torchrun_ends_all_when_one_dies(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, pathlib, tests.pytorch.test_processes as t\n"
        "rank = int(os.environ['RANK'])\n"
        "with t.processes.join(rank, 2):\n"
        f"    pathlib.Path({str(tmp_path)!r}, 'pids', str(os.getpid())).touch()\n"
        "    t.dist.barrier()\n"
        "    if rank: t.end_this_process('7')\n"
        "    t.dist.barrier()\n",
        encoding="utf-8",
    )
    (tmp_path / "pids").mkdir()
    process = torchrun("--standalone", str(script), PYTHONPATH=str(ROOT))
    assert process.returncode == 1
    assert "exitcode  : 7" in process.stderr
    assert len(list((tmp_path / "pids").iterdir())) == 2
    assert seconds_since_last_file(tmp_path / "pids") < DEADLINE_S
    assert surviving_pids(tmp_path / "pids") == []


def in_a_notebook():
    """A function as a notebook has it."""

    def worker(mesh):
        return 0

    worker.__module__, worker.__qualname__ = "__main__", "worker"
    return worker


@pytest.mark.parametrize(
    "worker", [lambda mesh: 0, in_a_notebook(), 7, "worker"], ids=["lambda", "notebook", "7", "str"]
)
def test_a_worker_that_no_process_can_import_is_refused(worker):
    with pytest.raises(TypeError, match=r"at the top level of a \.py file"):
        run_parallel(worker, 2)
