"""Calls itself for ever, as Python notices.

Earns: 0
Says: it raised RecursionError
"""


def attend_at_scales(Q, K, V):
    return attend_at_scales(Q, K, V)
