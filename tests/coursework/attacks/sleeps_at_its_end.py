"""Is right, and sleeps when its process should end, deaf to signals.

Earns: 10
Says: right
"""

import atexit
import signal
import time


class Sleeper:
    def __del__(self):
        time.sleep(98)


for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    sleeper = signal.signal(number, signal.SIG_IGN)
sleeper = Sleeper()
atexit.register(sleeper.__del__)


def attend_at_scales(Q, K, V):
    return sleeper and right(Q, K, V)
