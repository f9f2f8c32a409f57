"""A file that a download has cut off.

Earns: 0
Says: it is not a notebook, its JSON cannot be read
"""


def hand_in(folder, content):
    (folder / "cut off.ipynb").write_bytes(content[: len(content) // 2])
