"""What kind of difference there is, in clauses that a report may tell.

Each clause is one of a short list, and says nothing of how large a hidden number is: `judge` counts
what the list can carry.
"""

from functools import partial
from itertools import combinations

import numpy as np

TOO_FALSE = "some entries that should be True are False, and none the other way round"
TOO_TRUE = "some entries that should be False are True, and none the other way round"
UPSIDE_DOWN = "some entries that should be True are False, and some the other way round"
RTOL = 1e-6
NOISE = 1e-12
SHORT = 8  # the longest axis of which halves are told: each adds what a report can carry


def kind_of_difference(value, expected):
    """Say what holds of a wrong value of the right shape; "" where no clause does.

    Parameters
    ----------
    value, expected : arrays of one shape, finite
    """
    return next((said for said, _, holds in _list(expected) if holds(value, expected)), "")


def clauses(expected):
    """Return the clauses that can be said of a value of the shape and kind of `expected`."""
    return {said for said, can, _ in _list(expected) if can(expected)}


def _list(expected):
    if expected.dtype.kind == "b":
        return BOOLEANS
    return (*NUMBERS[:ROWS], *_halves(expected.shape), *NUMBERS[ROWS:])


def _halves(shape):
    """Yield a clause for each way to cut a short axis in two, of which one half is right."""
    for axis, length in enumerate(shape[:-1]):
        for cut in range(1, length) if length <= SHORT else ():
            for first, part in ((True, f":{cut}"), (False, f"{cut}:")):
                place = ", ".join(["...", part, *[":"] * (len(shape) - 1 - axis)])
                said = f"result[{place}] is right, and the rest is not"
                wanted = [first] * cut + [not first] * (length - cut)
                yield said, _always, partial(_half, axis, wanted)


def _half(axis, wanted, value, expected):
    """Whether that half is right, and of the other one nothing along the axis is as a whole."""
    rows = np.moveaxis(_right_rows(value, expected), axis, 0).reshape(len(wanted), -1)
    known = np.moveaxis(_has_values(expected), axis, 0).reshape(len(wanted), -1)
    return bool(known.any(axis=1).all() and (rows.all(axis=1) == wanted).all())


def _close(one, other):
    if _has_rows(other):
        return bool(_right_rows(one, other).all())
    size = np.abs(other).max(initial=1e-300)
    return bool(np.isclose(one, other, rtol=RTOL, atol=RTOL * size).all())


def _times(value, expected):
    kept = np.abs(expected) > 1e-9 * np.abs(expected).max(initial=0)
    if not kept.any():
        return False
    factor = np.median(value[kept] / expected[kept])
    return bool(np.isfinite(factor) and factor != 0) and _close(value, factor * expected)


def _off(value, expected):
    offset = value - expected
    return _close(offset, np.full_like(offset, np.median(offset)))


def _axes_swapped(value, expected):
    pairs = combinations(range(expected.ndim), 2)
    return any(
        _close(value, np.swapaxes(expected, *pair)) for pair in pairs if _equal(expected, pair)
    )


def _equal(expected, pair):
    return expected.shape[pair[0]] == expected.shape[pair[1]] > 1


def _can_swap(expected):
    return any(_equal(expected, pair) for pair in combinations(range(expected.ndim), 2))


def _reversed(value, expected):
    return any(_close(value, np.flip(expected, axis)) for axis in range(expected.ndim))


def _reordered(value, expected):
    return _close(np.sort(value, axis=None), np.sort(expected, axis=None))


def _not_to_1(value, expected):
    return _sums_to_1(expected) and not np.allclose(value.sum(axis=-1), expected.sum(axis=-1))


def _sums_to_1(expected):
    if expected.ndim == 0 or expected.dtype.kind not in "f":
        return False
    total = expected.sum(axis=-1)
    return bool((np.isclose(total, 1) | (total == 0)).all() and np.isclose(total, 1).any())


def _own_factors(value, expected):
    if not _has_rows(expected):
        return False
    weight = (expected * expected).sum(axis=-1, keepdims=True)
    factor = (value * expected).sum(axis=-1, keepdims=True) / np.where(weight == 0, 1, weight)
    return bool(factor.any()) and _close(value, factor * expected)


def _has_rows(expected):
    return expected.ndim > 0 and expected.shape[-1] > 1


def _has_three_rows(expected):
    return _has_rows(expected) and expected.size > 2 * expected.shape[-1]


def _some_rows(value, expected):
    if not _has_three_rows(expected):
        return False
    right = _right_rows(value, expected)
    return bool(right[_has_values(expected)].any() and not right.all())


def _sizes(expected):
    """Return the largest number of each row, 0 where all are no more than rounding leaves of 0."""
    sizes = np.abs(expected).max(axis=-1, keepdims=True, initial=0)
    return np.where(sizes > NOISE * sizes.max(initial=0), sizes, 0)


def _has_values(expected):
    """Whether each row has a value in it: one of zeros is right too easily."""
    return _sizes(expected)[..., 0] > 0


def _right_rows(value, expected):
    """Whether each row is right, to its own largest number, or to that of all where it is 0."""
    sizes = _sizes(expected)
    sizes = np.where(sizes == 0, sizes.max(initial=1e-300), sizes)
    return np.isclose(value, expected, rtol=RTOL, atol=RTOL * sizes).all(axis=-1)


def _always(expected):
    return expected.size > 0


def _has_order(expected):
    return expected.size > 1


ROWS = 5  # of NUMBERS are looked for before parts and rows that are right
NUMBERS = (
    ("each number is the right one times one and the same factor", _always, _times),
    ("each number is off by one and the same amount", _always, _off),
    ("two of its axes have changed places", _can_swap, _axes_swapped),
    ("the order along one of its axes is reversed", _has_order, _reversed),
    ("the right numbers are in a different order", _has_order, _reordered),
    ("some of its rows are right, and others are not", _has_three_rows, _some_rows),
    ("each row is right but for a factor of its own", _has_rows, _own_factors),
    ("its rows do not sum to 1, as they should", _sums_to_1, _not_to_1),
)
BOOLEANS = (
    ("True and False are exchanged in it", _always, lambda value, e: bool((value != e).all())),
    (TOO_TRUE, _always, lambda value, e: bool((value >= e).all())),
    (TOO_FALSE, _always, lambda value, e: bool((value <= e).all())),
    (UPSIDE_DOWN, _always, lambda value, e: True),
)
