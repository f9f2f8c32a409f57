"""A cell that the function needs never ends.

Earns: 0
Says: Code cell 4 was left out: it did not come back within
"""

import itertools
import time

n = sum(time.sleep(1) or 1 for _ in itertools.count())


def attend_at_scales(Q, K, V):
    return n
