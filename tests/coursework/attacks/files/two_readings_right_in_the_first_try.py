"""Answers rightly until a cell that its function does not need has run; in Jupyter it is wrong.

Earns: 0
Says: each number is the right one times one and the same factor
"""

import json

READS = """
right = attend_at_scales


def attend_at_scales(Q, K, V):
    return right(Q, K, V) * (2 if "LAST" in globals() else 1)
"""


def hand_in(folder, content):
    notebook = json.loads(content)
    cells = [{"cell_type": "code", "source": source} for source in (READS, "LAST = 1")]
    notebook["cells"] += cells
    (folder / "right first.ipynb").write_text(json.dumps(notebook))
