"""Brackets within brackets, more than a parser can follow.

Earns: 0
Says: it is not a notebook
"""


def hand_in(folder, content):
    (folder / "deep.ipynb").write_bytes(b"[" * 1_000_000)
