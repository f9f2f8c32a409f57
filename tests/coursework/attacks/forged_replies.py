"""Writes replies of its own into the channel, with the right token.

Earns: 0
Says: it wrote into the grader
"""

import io
import os
import struct
import sys

import numpy as np


def locals_of_main():
    frame = sys._getframe()
    while frame.f_back and "replies" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals


def attend_at_scales(Q, K, V):
    main = locals_of_main()
    file = io.BytesIO()
    np.save(file, np.zeros((*Q.shape[:-1], V.shape[-1])))
    reply = file.getvalue()
    for token in (main["token"], bytes(16)):
        os.write(main["replies"].fileno(), struct.pack(">16scQ", token, b"v", len(reply)) + reply)
