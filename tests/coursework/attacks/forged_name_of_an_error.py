"""Tells the grader that it raised an error whose name is a number of the input, and HTML.

Earns: 0
Says: it raised an exception of its own
"""

import sys


def outermost():
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    return frame


worker = outermost().f_globals
honest = worker["call"]


def forged(function, arguments):
    kind, words = honest(lambda *arguments: 1 / 0, arguments)
    return kind, words.replace(b"ZeroDivision", b"<script>Q_was_0_25")


worker["call"] = forged


def attend_at_scales(Q, K, V):
    return worker
