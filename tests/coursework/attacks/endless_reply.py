"""Announces a reply of a terabyte, with the right token.

Earns: 0
Says: it sent more than 33 MiB
"""

import os
import struct
import sys


def attend_at_scales(Q, K, V):
    frame = sys._getframe()
    while "replies" not in frame.f_locals:
        frame = frame.f_back
    main = frame.f_locals
    os.write(main["replies"].fileno(), struct.pack(">16scQ", main["token"], b"v", 2**40))
