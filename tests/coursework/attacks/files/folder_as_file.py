"""A folder that is called a notebook.

Earns: 0
Says: there is no .ipynb file
"""


def hand_in(folder, content):
    (folder / "folder.ipynb").mkdir()
