"""What the page of the evening says of its stations."""

import re

from tests.chapters.named import read


def minutes_of_the_stations():
    """The minutes that the stations name, together."""
    return sum(map(int, re.findall(r"\*\* \(about (\d+) minutes\)", read("book/one_evening.md"))))
