"""What the first page says of the chapters."""

import re

from tests.chapters.named import read
from tests.chapters.pages import NAMES


def a_chapter_takes_an_hour_to_an_hour_and_a_half():
    """The minutes of reading and doing of each chapter round to two or three half-hours."""
    pattern = r"(\d+) minutes of reading and (\d+) of doing"
    texts = [read(f"notebooks/{name}.ipynb") for name in NAMES if name[:2].isdigit()]
    minutes = [map(int, found) for text in texts for found in re.findall(pattern, text)]
    return {round(sum(both) / 30) for both in minutes} == {2, 3}
