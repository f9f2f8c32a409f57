"""What the tests of processes share: who is alive, and through what processes talk."""

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
