"""A named pipe, from which reading never ends.

Earns: 0
Says: it is not a file
"""

import os


def hand_in(folder, content):
    os.mkfifo(folder / "pipe.ipynb")
