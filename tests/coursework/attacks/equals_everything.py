"""Returns an object that is equal to everything, and says that it is an array.

Earns: 0
Says: it returned something that is not an array of numbers
"""


class Equal:
    shape, dtype, ndim = (), float, 0

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__
    __lt__ = __gt__ = __le__ = __ge__ = __eq__

    def __sub__(self, other):
        return self

    __rsub__ = __abs__ = __sub__


def attend_at_scales(Q, K, V):
    return Equal()
