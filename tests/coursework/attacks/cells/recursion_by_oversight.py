"""Calls itself for ever, as Python notices.

Earns: 0
Says: it raised RecursionError
"""


def attend_in_groups(Q, K, V):
    return attend_in_groups(Q, K, V)
