"""A limit of time for functions that may never come back."""

import signal
import sys
from contextlib import contextmanager

AGAIN_S = 3  # seconds until the alarm rings again


class Late(BaseException):
    """A call has had its time; no function of ours catches this."""


@contextmanager
def limited(seconds, again=AGAIN_S):
    """Raise `Late` in whatever still runs after so many seconds, again and again.

    Once is not enough: the alarm may ring in the callback of a weak reference or in a `__del__`,
    where Python drops every exception, and in a function that catches it and goes on.
    """

    def stop(*_):
        raise Late

    def unraisable(what):
        if what.exc_type is not Late:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
