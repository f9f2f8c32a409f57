"""Never comes back where there are two batch axes; the other tests count.

Earns: 9
Says: it did not come back within
"""


def attend_at_scales(Q, K, V):
    while K.shape[-2] == 10:
        pass
    return right(Q, K, V)
