"""What the first page says of the chapters."""

from tests.chapters.pages import NAMES, written
from tools.minutes import count


def minutes_of_most_chapters():
    """More than three quarters of them take one and a half to two hours, without Deeper."""
    chapters = [written(name).cells for name in NAMES if name[:2].isdigit()]
    minutes = [sum(count(cells, deeper=False).minutes) for cells in chapters]
    return 4 * sum(90 <= each <= 120 for each in minutes) > 3 * len(chapters)
