"""A link to a file of the machine.

Earns: 0
Says: it is a link: hand in the file itself
"""


def hand_in(folder, content):
    (folder / "link.ipynb").symlink_to("/etc/passwd")
