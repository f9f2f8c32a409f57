"""A file with nothing in it.

Earns: 0
Says: it is not a notebook
"""


def hand_in(folder, content):
    (folder / "empty.ipynb").write_bytes(b"")
