"""What the page for teachers says of the assignments and of the minutes."""

import re

from coursework.grader.assignment import read_notebook, without_solutions
from tests.chapters.named import points, read
from tests.chapters.noted_minutes import NOTED, fit
from tools.minutes import count


def points_of_the_assignments():
    """The assignments in the page's table have these points, each named once."""
    named = re.findall(r"^\| `(\w+)` \|", read("book/teaching.md"), re.MULTILINE)
    return sorted({points(name) for name in named})


def minutes_of(assignment):
    """The minutes of reading and doing that an assignment takes, by the rule of the chapters."""
    return sum(count(without_solutions(read_notebook(assignment)).cells).minutes)


def pages_with_noted_minutes():
    """The pages on which readers noted their minutes."""
    return len(NOTED)


def median_errors_of_the_minutes():
    """Of the rule on the pages left out: of reading, then of doing."""
    return [one.median for one in fit()]


def largest_error_of_the_minutes():
    """Of the rule on a page left out, of reading or of doing."""
    return max(one.worst for one in fit())
