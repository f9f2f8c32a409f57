"""A notebook for R.

Earns: 0
Says: its kernel is for a language other than
"""

import json


def hand_in(folder, content):
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = "attend <- function(Q, K, V) { V }"
    notebook["metadata"]["kernelspec"] = {"name": "ir", "language": "R", "display_name": "R"}
    (folder / "kernel.ipynb").write_text(json.dumps(notebook))
