"""What the page of the evening says of its stations."""

import re
from dataclasses import replace

from tests.chapters.named import read
from tutorial_lib import running_example, trace


def minutes_of_the_stations():
    """The minutes that the stations name, together."""
    return sum(map(int, re.findall(r"\*\* \(about (\d+) minutes\)", read("book/one_evening.md"))))


def cats_that_bark():
    """The way of *cats that bark* through the layer of the running example."""
    example = replace(running_example(), tokens=("cats", "that", "bark"))
    return trace(example.X, example.params, mask=example.mask)
