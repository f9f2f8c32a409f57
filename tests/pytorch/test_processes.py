"""The launcher: real processes, real deaths, and nothing left behind.

The functions that run in the new processes stand first: those import this file.
"""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children

import pytest
import torch.distributed as dist
from torch.multiprocessing import ProcessExitedException

from tests.pytorch.launching import ROOT, is_alive
from tests.sampling import long
from tutorial_lib.pytorch import processes
from tutorial_lib.pytorch.processes import run_parallel

WAITS_S = 600  # how long a process sleeps that nobody ends
DEADLINE_S = WAITS_S / 2  # so whoever comes back within this has not waited for it


def end(mesh, exit_mode, folder):
    """Leave a number behind and end in rank 1, while rank 0 waits for it."""
    (folder / f"{os.getpid()}").touch()
    dist.barrier()
    if mesh.get_local_rank() == 1:
        end_this_process(exit_mode)
    dist.barrier()


def end_this_process(exit_mode):
    if exit_mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif exit_mode == "leave":
        sys.exit(3)
    time.sleep(WAITS_S)


def seconds_since_last_file(folder):
    """How long ago the last file of a folder was made: the deaths come right after it."""
    return time.time() - max(path.stat().st_mtime for path in folder.iterdir())


def running_workers(folder):
    """The processes noted in a folder that nobody ends; by themselves they would much later."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        pids = [path.name for path in folder.iterdir() if is_alive(path.name)]
        if not pids or time.monotonic() > deadline:
            return pids
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("exit_mode", "message"),
    [
        ("kill", "process 1 terminated with signal SIGKILL"),
        *long(("leave", "process 1 terminated with exit code 3")),
    ],
)
def test_a_dead_worker_is_named_and_nothing_is_left(tmp_path, exit_mode, message):
    with pytest.raises(ProcessExitedException, match=message):
        run_parallel(end, 2, exit_mode, tmp_path, timeout_s=WAITS_S)
    assert seconds_since_last_file(tmp_path) < DEADLINE_S
    assert len(list(tmp_path.iterdir())) == 2
    assert running_workers(tmp_path) == []
    assert not active_children()


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    with pytest.raises(TimeoutError, match=r"ranks \[0, 1\] of 2 processes gave no result"):
        run_parallel(end, 2, "wait", tmp_path, timeout_s=0.3)
    assert not active_children()


@pytest.mark.long
def test_an_interrupt_ends_the_workers(tmp_path, monkeypatch):
    def interrupt(context, timeout_s):
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "_wait_for_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_parallel(end, 2, "wait", tmp_path, timeout_s=WAITS_S)
    assert seconds_since_last_file(tmp_path) < DEADLINE_S
    assert not active_children()


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    script = tmp_path / "starts.py"
    script.write_text(
        "import pathlib, sys, tests.pytorch.test_processes as t\n"
        "if __name__ == '__main__':\n"
        "    t.run_parallel(t.end, 2, 'wait', pathlib.Path(sys.argv[1]), timeout_s=t.WAITS_S)\n",
        encoding="utf-8",
    )
    (folder := tmp_path / "pids").mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen([sys.executable, str(script), str(folder)], env=environment)
    while len(list(folder.iterdir())) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    orphans = running_workers(folder)
    for pid in orphans:
        os.kill(int(pid), signal.SIGKILL)
    assert orphans == []


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
