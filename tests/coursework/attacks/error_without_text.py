"""Raises an error whose text is none.

Earns: 10
Says: right
"""


class Odd(Exception):
    def __str__(self):
        return self.args


def attend_at_scales(Q, K, V):
    return right(Q, K, V)


raise Odd(1, 2)
