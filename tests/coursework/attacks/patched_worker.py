"""Puts a function of its own where the worker calls the hand-in's.

Earns: 0
Says: it sent something that is not an array of numbers
"""

import sys


def outermost():
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    return frame


worker = outermost().f_globals
worker["call"] = lambda function, arguments: (b"v", b"10 of 10 points")


def attend_at_scales(Q, K, V):
    return worker
