"""Calls itself without end where one group serves all heads, until memory runs out.

Earns: 8
Says: | 0 of 2 | it raised
"""

import sys

import numpy as np


def attend_in_groups(Q, K, V):
    if K.shape[-3] == 1:
        sys.setrecursionlimit(10**9)
        ballast = np.ones((100, 100))
        return attend_in_groups(Q, K, V) + ballast
    return right(Q, K, V)
