"""What the first page says of the chapters."""

from tests.chapters.pages import NAMES, written
from tools.minutes import count


def minutes_of_most_chapters():
    """Most take an hour and a half, to the half hour; with Deeper two or three, to the hour."""
    chapters = [written(name).cells for name in NAMES if name[:2].isdigit()]
    hours = {d: [sum(count(c, deeper=d).minutes) / 60 for c in chapters] for d in (False, True)}
    main = sum(round(2 * each) == 3 for each in hours[False])
    whole = sum(round(each) in (2, 3) for each in hours[True])
    return 2 * min(main, whole) > len(chapters)
