"""The notebook as it was given out.

Earns: 0
Says: not done yet
"""

import json


def hand_in(folder, content):
    notebook = json.loads(content)
    cells = notebook["cells"]
    notebook["cells"] = [c for c in cells if "solution" not in c["metadata"].get("tags", [])]
    (folder / "untouched.ipynb").write_text(json.dumps(notebook))
