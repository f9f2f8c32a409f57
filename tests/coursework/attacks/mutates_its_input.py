"""Changes the arrays that it is given, and is right.

Earns: 10
Says: right
"""


def attend_at_scales(Q, K, V):
    keep = Q.copy()
    Q[:] = 0
    Q = keep
    return right(Q, K, V)
