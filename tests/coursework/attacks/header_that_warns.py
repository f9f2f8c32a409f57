"""Answers with `.npy` headers that make Python warn, or that are deep to parse.

Earns: 0
Says: it sent something that is not an array of numbers
"""

import sys


def outermost():
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    return frame


DEEP = "-" * 600 + "1"
HEADERS = (
    r"{'descr': '\d<f8', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }",
    "{'descr': '<f8', 'fortran_order': 1or False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + DEEP + ",), }",
)
sent = []


def answer(function, arguments):
    header = HEADERS[len(sent) % len(HEADERS)].encode() + b"\n"
    sent.append(header)
    return b"v", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)


worker = outermost().f_globals
worker["call"] = answer


def attend_at_scales(Q, K, V):
    return worker
