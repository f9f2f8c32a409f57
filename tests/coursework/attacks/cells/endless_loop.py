"""Never comes back where there are two batch axes; the other tests count.

Earns: 9
Says: it did not come back within
"""

import numpy as np


def attend_in_groups(Q, K, V):
    while Q.ndim == 5:
        pass
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
