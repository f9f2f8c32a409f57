"""What the page for teachers says of the assignments."""

import re

from tests.chapters.named import points, read


def points_of_the_assignments():
    """The assignments in the page's table have these points, each named once."""
    named = re.findall(r"^\| `(\w+)` \|", read("book/teaching.md"), re.MULTILINE)
    return sorted({points(name) for name in named})
