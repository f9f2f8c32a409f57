"""An expression deeper than Python can read; the other cells count.

Earns: 10
Says: cannot be read as Python
"""

import json


def hand_in(folder, content):
    notebook = json.loads(content)
    cell = dict(notebook["cells"][1], source="-" * 1_000_000 + "1", id="deep")
    notebook["cells"].insert(0, cell)
    (folder / "deep code.ipynb").write_text(json.dumps(notebook))
