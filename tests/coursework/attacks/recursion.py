"""Calls itself without end where there are 48 tokens, and asks Python to allow it.

The limit of the sandbox holds all the same, so that no Python fills its memory and ends: this one
test is lost, with the same words on each version, and the nine points beside it are kept.

Earns: 9
Says: ✗ scores of 1,000 and more | 0 of 1 | it raised RecursionError
"""

import sys

import numpy as np


def attend_at_scales(Q, K, V):
    if K.shape[-2] == 48:
        sys.setrecursionlimit(10**9)
        ballast = np.ones((100, 100))
        return attend_at_scales(Q, K, V) + ballast
    return right(Q, K, V)
