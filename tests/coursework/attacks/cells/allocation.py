"""Asks for 200 GB where there are two batch axes.

Earns: 9
Says: it raised MemoryError
"""

import numpy as np


def attend_in_groups(Q, K, V):
    if Q.ndim == 5:
        np.ones(25_000_000_000)
    return right(Q, K, V)
