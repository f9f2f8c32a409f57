"""A wrong hand-in, and an hour later a right one, which counts.

Earns: 10
Says: There were 2 hand-ins; the one with the highest number counts: `twice (1).ipynb`
"""

import os


def hand_in(folder, content):
    (folder / "twice.ipynb").write_bytes(b"{}")
    (folder / "twice (1).ipynb").write_bytes(content)
    os.utime(folder / "twice.ipynb", (1_000_000_000, 1_000_000_000))
    os.utime(folder / "twice (1).ipynb", (1_000_003_600, 1_000_003_600))
