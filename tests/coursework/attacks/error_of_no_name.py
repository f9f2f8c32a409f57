"""Raises an error of a name that is a list.

Earns: 10
Says: right
"""


def attend_at_scales(Q, K, V):
    return right(Q, K, V)


raise NameError("x", name=["x"])
