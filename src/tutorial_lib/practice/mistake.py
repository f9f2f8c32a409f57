"""The record of one wrong implementation, and how a whole takes it over from a part."""

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mistake:
    """One wrong implementation.

    Parameters
    ----------
    name : short name, used by the tests
    says : what it does, a clause that a check prints behind the function's name
    mend : one sentence on how to put it right
    function : the wrong implementation
    """

    name: str
    says: str
    mend: str
    function: Callable


def named(mistakes, name):
    """Return the mistake of that name."""
    return next(mistake for mistake in mistakes if mistake.name == name)


def taken_over(mistake, whole):
    """Return a mistake of a part as one of the whole; `whole` makes its function of the part's."""
    return replace(mistake, function=whole(mistake.function))
