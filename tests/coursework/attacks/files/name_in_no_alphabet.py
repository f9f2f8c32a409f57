"""A name that is not UTF-8; the work is right.

Earns: 10
Says: right
"""

import os


def hand_in(folder, content):
    with open(os.fsencode(folder) + b"/\xff\xfe.ipynb", "wb") as file:
        file.write(content)
