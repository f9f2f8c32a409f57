"""Says what it was given by the name of an exception of its own.

Earns: 0
Says: it raised an exception of its own
"""


def attend_at_scales(Q, K, V):
    raise type(f"Q_was_{Q.flat[0]}", (Exception,), {})(Q)
