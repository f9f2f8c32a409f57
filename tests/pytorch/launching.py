"""What the tests of processes share: who is alive, and commands from the root."""

import os
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]


def is_alive(pid):
    """Whether there is such a process; one that is dead and not yet waited for is none."""
    try:
        stat_text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat_text.rpartition(")")[2].split()[0] != "Z"


def backend(n):
    """What so many processes talk through on this machine."""
    return "nccl" if torch.cuda.is_available() and torch.cuda.device_count() >= n else "gloo"


def start_and_wait(command, **environment):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env=os.environ | environment,
        check=False,
    )


def torchrun(*arguments, **environment):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *arguments]
    return start_and_wait(command, OMP_NUM_THREADS="1", **environment)
