"""The mistakes that the probe can name, from names.csv, which the page on the probe prints, too.

A name is given only where two witnesses agree: what was seen first, and one prediction that this
mistake makes and its like do not. With the first alone, a report lists it as what would show this,
too.
"""

import csv
from importlib.resources import files
from typing import NamedTuple


class Name(NamedTuple):
    """A mistake.

    Parameters
    ----------
    meaning : what is wrong, as the end of "the mistake is that …"
    section : where the book explains it
    witness : the second witness: what only this mistake predicts
    """

    meaning: str
    section: str
    witness: str


def _names():
    text = files("tutorial_lib.probe").joinpath("names.csv").read_text(encoding="utf-8")
    return {name: Name(*row) for name, *row in list(csv.reader(text.splitlines()))[1:]}


NAMES = _names()
