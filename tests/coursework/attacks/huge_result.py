"""Returns 64 MiB, and elsewhere claims to be larger than it is.

Earns: 0
Says: it returned more than 32 MiB
"""

import numpy as np


def attend_at_scales(Q, K, V):
    return np.zeros((8, 2**20))
