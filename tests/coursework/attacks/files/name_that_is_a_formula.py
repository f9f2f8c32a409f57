"""A name that a spreadsheet would take for a formula; the work is right.

Earns: 10
Says: right
"""


def hand_in(folder, content):
    (folder / "=HYPERLINK(A1).ipynb").write_bytes(content)
