"""Leaves a process and a thread behind; neither is to be had, and the rest is right.

Earns: 10
Says: right
"""

import subprocess
import threading
import time

import numpy as np


def stray():
    started = 0
    for start in (
        lambda: subprocess.Popen(["sleep", "98.765"]),
        threading.Thread(target=time.sleep, args=[98.765], daemon=True).start,
    ):
        try:
            start()
        except (OSError, RuntimeError):
            continue
        started += 1
    return started


def attend_at_scales(Q, K, V):
    if stray():
        return np.zeros(1)
    return right(Q, K, V)
