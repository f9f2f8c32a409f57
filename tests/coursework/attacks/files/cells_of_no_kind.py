"""Cells that are numbers, lists and texts of numbers.

Earns: 0
Says: there is no function
"""

import json


def hand_in(folder, content):
    cells = [1, None, [], {"cell_type": "code", "source": [1, 2]}, {"cell_type": "code"}]
    (folder / "no cells.ipynb").write_text(json.dumps({"cells": cells, "metadata": 3}))
