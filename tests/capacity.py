"""How much the report on a hand-in can carry out of its sandbox: all clauses that it can hold."""

import math
from itertools import product

from coursework.grader import judge, kinds


def outcomes(test):
    """Return all clauses that a report can hold for a test.

    Of a clause with a limit in it, such as "within 5 seconds", only the beginning is given.
    """
    said = {judge.RIGHT, judge.COMPLEX, judge.NUMBERS, judge.NOT_FINITE, *judge.LOST}
    said |= {*judge.SAID.values(), *judge._digits(test.task)}
    said |= {judge._raised(name) for name in (*judge.RAISED, judge.WITHHELD, "")}
    said |= {*judge._shapes(test.expected.shape).values(), *clauses(test.expected, test.task.axes)}
    return said | {judge._axes(n, test.expected.shape) for n in range(judge.MOST_AXES + 2)}


def bits(exam):
    """Return how many bits the results of one hand-in can carry out of its sandbox, at most."""
    places = len(exam.functions) * 2 * math.log2(judge.LAST_PLACE + 1)  # of one error each
    names = sum(math.log2(1 + len(task.mistakes)) for task in exam.assignment.tasks)
    return places + names + sum(math.log2(len(outcomes(test))) for test in exam.tests)


def clauses(expected, axes=()):
    """Return the clauses that can be said of a value of the kind of `expected`, and some more."""
    named = kinds._named_axes(expected.shape, axes)
    where = {said for _, n, noun in named for said in parts(noun, n)}
    if expected.dtype.kind == "b":
        said = {said for said, _ in kinds.BOOLEANS}
        return said | {f"{s}; {w}" for s in said - {kinds.BOOLEANS[0][0]} for w in where}
    nouns = [noun for *_, noun in kinds._named_axes(expected.shape[:-1], axes[:-1])]
    where |= {kinds.NONE.format(noun) for noun in nouns[-1:]}
    return where | {said for said, _ in kinds.NUMBERS}


def parts(noun, n):
    """Return all that can be said of an axis of n parts."""
    patterns = product([True, False], repeat=n)
    if n > kinds.SHORT:
        ends = [[True] * k + [False] * (n - k) for k in range(n)]
        patterns = ends + [end[::-1] for end in ends]
    return {kinds._parts_text(noun, list(pattern)) for pattern in patterns} - {""}
