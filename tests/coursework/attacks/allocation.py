"""Asks for 200 GB where there are two batch axes, and would answer nothing from then on.

Earns: 9
Says: it raised MemoryError
"""

import numpy as np

exhausted = False


def attend_at_scales(Q, K, V):
    global exhausted
    if exhausted:
        return None
    if K.shape[-2] == 10:
        exhausted = True
        np.ones(25_000_000_000)
    return right(Q, K, V)
