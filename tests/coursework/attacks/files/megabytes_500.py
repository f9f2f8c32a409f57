"""A notebook of 500 MB.

Earns: 0
Says: the file is larger than 20 MB
"""


def hand_in(folder, content):
    with open(folder / "large.ipynb", "wb") as file:
        file.write(content)
        file.truncate(500_000_000)
