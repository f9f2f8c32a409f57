"""Changes the arrays that it is given, and is right.

Earns: 10
Says: right
"""

import numpy as np


def attend_in_groups(Q, K, V):
    keep = Q.copy()
    Q[:] = 0
    Q = keep
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
