"""A name that is HTML, Markdown and a path; the work is right.

Earns: 10
Says: right
"""


def hand_in(folder, content):
    name = r"<script>alert(1)<\script>..\..\x|`[a](b)*.ipynb"
    (folder / name).write_bytes(content)
