"""Calls itself without end where one group serves all heads: memory or time runs out.

Earns: 8
Says: | 0 of 2 |
"""

import sys


def attend_in_groups(Q, K, V):
    if K.shape[-3] == 1:
        sys.setrecursionlimit(10**9)
        return attend_in_groups(Q, K, V)
    return right(Q, K, V)
