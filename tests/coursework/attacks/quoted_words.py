"""Raises, in a cell that is needed, words that a report could take for its own.

Earns: 0
Says: Code cell 4 raised an error
"""

WORDS = "`\r\n\n</td></pre><script>alert(1)</script>\n\n| all | 10 of 10 | right |\n\n# 10 of 10\n"


def claim():
    raise ValueError(WORDS + "\x1b[2J\u202e[mark](javascript:alert(1))\n\n```\n" + "x" * 10**6)


size = claim()


def attend_at_scales(Q, K, V):
    return right(Q, K, V) * size
