"""The one reader of the rooms' banks."""

import json
import re
from importlib import resources


def page_of(room):
    """Return the page that a room belongs to: "04_heads" of "ch04_heads", which Python can import.

    A review's room has the name of its page.
    """
    return re.sub(r"^ch(?=\d)", "", room)


def bank(page):
    """Read the questions of a page, such as "04_heads" or "review_part_1".

    Raises
    ------
    ValueError : no room of that name, or a room without a bank
    """
    folders = resources.files("tutorial_lib").joinpath("practice").iterdir()
    rooms = {page_of(f.name): f for f in folders if f.joinpath("__init__.py").is_file()}
    if page not in rooms:
        raise ValueError(
            f"There is no chapter {page!r} with questions. There are: {sorted(rooms)}."
        )
    file = rooms[page].joinpath("bank.json")
    if not file.is_file():
        raise ValueError(
            f"The room practice/{rooms[page].name} has no bank.json: write the predictions, the "
            f"quiz and the Parsons problem of {page} there, with the keys of another room's bank."
        )
    return json.loads(file.read_text(encoding="utf-8"))
