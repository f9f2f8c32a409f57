"""A notebook for R.

Earns: 0
Says: its kernel is for another language
"""

import json


def hand_in(folder, content):
    notebook = json.loads(content)
    notebook["metadata"]["kernelspec"] = {"name": "ir", "language": "R", "display_name": "R"}
    (folder / "kernel.ipynb").write_text(json.dumps(notebook))
