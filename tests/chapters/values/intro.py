"""What the first page says of the chapters."""

from tests.chapters.pages import NAMES, written
from tools.minutes import count


def most_chapters_take_two_to_three_hours():
    """Without Deeper, most chapters take two or three hours of reading and doing."""
    chapters = [name for name in NAMES if name[:2].isdigit()]
    hours = [sum(count(written(name).cells, deeper=False).minutes) / 60 for name in chapters]
    return 2 * sum(round(each) in (2, 3) for each in hours) > len(hours)
