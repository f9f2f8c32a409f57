"""The function has another name, which the report tells.

Earns: 0
Says: there is no function `attend_at_scales`; found: `attend_groups`
"""


def attend_groups(Q, K, V):
    return V
