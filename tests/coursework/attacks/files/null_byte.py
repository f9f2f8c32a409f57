"""A null byte within the graded cell, which then cannot be read.

Earns: 0
Says: cannot be read as Python
"""

import json


def hand_in(folder, content):
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        if "def attend_at_scales" in "".join(cell["source"]):
            cell["source"] = "\0" + "".join(cell["source"])
    (folder / "null.ipynb").write_text(json.dumps(notebook))
