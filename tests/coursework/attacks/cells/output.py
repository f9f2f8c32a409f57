"""Prints 1 GB, in two ways, and is right.

Earns: 10
Says: right
"""

import os

import numpy as np


def attend_in_groups(Q, K, V):
    if Q.ndim == 5:
        print("x" * 2**25)
        for _ in range(31):
            os.write(1, bytes(2**25))
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
