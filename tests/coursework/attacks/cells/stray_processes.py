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


def attend_in_groups(Q, K, V):
    if stray():
        return np.zeros(1)
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
