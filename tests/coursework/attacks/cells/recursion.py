"""Calls itself without end where one group serves all heads: memory or time runs out.

Earns: 8
Says: | 0 of 2 |
"""

import sys

import numpy as np


def attend_in_groups(Q, K, V):
    if K.shape[-3] == 1:
        sys.setrecursionlimit(10**9)
        return attend_in_groups(Q, K, V)
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
