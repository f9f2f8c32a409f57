"""Sends arrays whose headers cannot be read, or promise a petabyte, or numbers of no kind.

Earns: 0
Says: it sent something that is not an array of numbers
"""

import sys

DEEP = b"'<f8', 'shape': (" + b"-" * 9000 + b"1,)"
HEADERS = [DEEP, b"'<f8', 'shape': (4611686018427387904, 4)", b"'|V2147483647', 'shape': (-1,)"]


def reply(function, arguments):
    header = b"{'fortran_order': False, 'descr': " + HEADERS[arguments[0].ndim % 3] + b"}\n"
    return b"v", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


def outermost():
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    return frame


worker = outermost().f_globals
worker["call"] = reply


def attend_at_scales(Q, K, V):
    return worker
