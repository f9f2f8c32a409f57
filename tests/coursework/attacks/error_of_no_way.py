"""Raises an error that came from nowhere.

Earns: 10
Says: right
"""


class Odd(RuntimeError):
    __traceback__ = None


def attend_at_scales(Q, K, V):
    return right(Q, K, V)


raise Odd
