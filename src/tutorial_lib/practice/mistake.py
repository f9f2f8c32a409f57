"""The record of one wrong implementation."""

from collections.abc import Callable
from dataclasses import dataclass


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
