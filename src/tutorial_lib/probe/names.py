"""The mistakes that the probe can name, from two tables, which the page on the probe prints, too.

names.csv holds mistakes. Such a name is given only where two witnesses agree: what was seen first,
and one prediction that this mistake makes and its like do not. With the first alone, a report lists
it as what would show this, too. places.csv holds names that say where something is wrong, and no
more: they are given where none of the mistakes at this place is the one.
"""

import csv
from importlib.resources import files
from typing import NamedTuple


class Name(NamedTuple):
    """A mistake, or the place of one.

    Parameters
    ----------
    meaning : what is wrong, as the end of "the mistake is that …"
    section : where the book explains it
    witness : the second witness: what only this predicts
    """

    meaning: str
    section: str
    witness: str


def _names(table):
    text = files("tutorial_lib.probe").joinpath(table).read_text(encoding="utf-8")
    return {name: Name(*row) for name, *row in list(csv.reader(text.splitlines()))[1:]}


PLACES = _names("places.csv")
NAMES = _names("names.csv") | PLACES
