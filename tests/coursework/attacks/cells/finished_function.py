"""Asks the library, its checks and its mistakes for a finished function.

Earns: 0
Says: it raised
"""

from tutorial_lib import checks, mistakes


def attend_in_groups(Q, K, V):
    return checks.account.check(Q) or mistakes.MISTAKES
