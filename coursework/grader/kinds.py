"""What kind of difference there is, in clauses that a report may tell.

Each clause is one of a short list, and says nothing of how large a hidden number is; what the list
can carry is counted in `tests/capacity.py`. A clause holds for every number of which it speaks.
"""

import re
from itertools import combinations

import numpy as np

ONLY = ", and none the other way round"
TOO_FALSE = f"it hides too much: some entries that should be True are False{ONLY}"
TOO_TRUE = f"it shows too much: some entries that should be False are True{ONLY}"
UPSIDE_DOWN = "some entries that should be True are False, and some the other way round"
RTOL = 1e-6
NOISE = 1e-12
NONE = "no {} is right"  # no row of the last axis is, to one digit
SHORT = 4  # the longest axis of which any part may be told: each adds what a report can carry
LONG = 12  # the longest one of which is told how far it is right


def kind_of_difference(value, expected, axes=()):
    """Say what holds of a wrong value of the right shape; "" where no clause does.

    `value`, `expected` : arrays of one shape, finite
    `axes` : nouns for the last axes of the two, such as ("head", "query", ""); "": none is told
    """

    def first(kinds):
        return next((said for said, holds in kinds if holds(value, expected)), "")

    if expected.dtype.kind == "b":
        said, where = first(BOOLEANS), _right_part_text(value == expected, True, axes)
        return f"{said}; {where}" if where else said
    where = _right_part_text(*_right_entries(value, expected), axes)
    nouns = [noun for *_, noun in _named_axes(expected.shape[:-1], axes[:-1])]
    none = nouns and not np.isclose(value, expected, rtol=0.1).all(axis=-1).any()
    said = NONE.format(nouns[-1]) if none else ""  # and so none of the axes above
    return first(NUMBERS[:ROWS]) or where or first(NUMBERS[ROWS:]) or said


def _right_part_text(right, known, axes):
    """Say which part of a named axis is right; "" where that can be said of none.

    `right` : whether each number is
    `known` : whether that says something: zeros are right too easily
    """
    known = np.broadcast_to(known, right.shape)
    for axis, _, noun in _named_axes(right.shape, axes):
        others = tuple(i for i in range(right.ndim) if i != axis)
        parts = right.all(axis=others)
        if (known.any(axis=others) | ~parts).all() and (said := _parts_text(noun, parts.tolist())):
            return said
    return ""


def _named_axes(shape, axes):
    """Yield (axis, length, noun) of each axis of which a part may be told."""
    for axis, noun in enumerate(axes, start=len(shape) - len(axes)):
        if axis >= 0 and noun and 1 < shape[axis] <= LONG:
            yield axis, shape[axis], noun


def _parts_text(noun, right):
    """Say which parts of an axis are right and which are not; of a long one how far from an end."""
    n = len(right)
    good = [i for i in range(n) if right[i]]
    bad = [i for i in range(n) if not right[i]]
    if n > SHORT and good and bad:
        first, last = bad[0], bad[-1]
        good, bad = (good[:first], [first]) if first else ([i for i in good if i > last], [last])
    return f"{_items_text(noun, good)} right, {_items_text(noun, bad)} not" if good and bad else ""


def _items_text(noun, indices):
    """Name parts of an axis: "head 2 is", "heads 0 and 2 are", "heads 1 to 4 are"."""
    *before, last = indices
    if not before:
        return f"{noun} {last} is"
    in_a_row = len(before) > 1 and last - before[0] == len(before)
    told = f"{before[0]} to {last}" if in_a_row else f"{', '.join(map(str, before))} and {last}"
    return f"{re.sub('(?<=[^aeiou])y$', 'ie', noun)}s {told} are"


def _all_close(value, expected):
    return bool(_right_entries(value, expected)[0].all())


def _is_multiple(value, expected):
    kept = np.abs(expected) > 1e-9 * np.abs(expected).max(initial=0)
    if not kept.any():
        return False
    factor = np.median(value[kept] / expected[kept])
    return bool(np.isfinite(factor) and factor != 0) and _all_close(value, factor * expected)


def _axes_swapped(value, expected):
    n, pairs = expected.shape, combinations(range(expected.ndim), 2)
    swapped = (np.swapaxes(expected, i, j) for i, j in pairs if n[i] == n[j])
    return any(_all_close(value, other) for other in swapped)


def _sums_to_1(expected):
    if expected.ndim == 0 or expected.dtype.kind not in "f":
        return False
    total = expected.sum(axis=-1)
    return bool((np.isclose(total, 1) | (total == 0)).all() and np.isclose(total, 1).any())


def _has_factor_per_row(value, expected):
    if expected.ndim == 0 or expected.shape[-1] <= 1:
        return False
    weight = (expected * expected).sum(axis=-1, keepdims=True)
    factor = (value * expected).sum(axis=-1, keepdims=True) / np.where(weight == 0, 1, weight)
    return bool(factor.any()) and _all_close(value, factor * expected)


def _some_rows_right(value, expected):
    right, known = _right_entries(value, expected)
    has_three = expected.ndim > 0 and expected.size > 2 * expected.shape[-1] > 2
    return has_three and bool((right.all(axis=-1) & known[..., 0]).any() and not right.all())


def _right_entries(value, expected):
    """Whether each number is right, and whether its row has values: zeros are right too easily.

    By the largest number of its row, or by that of all where the row is no more than rounding
    leaves of 0.
    """
    value, expected = np.atleast_1d(value, expected)
    sizes = np.abs(expected).max(axis=-1, keepdims=True, initial=0)
    sizes = np.where(sizes > NOISE * sizes.max(initial=0), sizes, 0)
    scales = np.where(sizes == 0, sizes.max(initial=1e-300), sizes)
    return np.isclose(value, expected, rtol=RTOL, atol=RTOL * scales), sizes > 0


ROWS = 6  # of NUMBERS are looked for before parts that are right
NUMBERS = (  # what is said, and when it is so
    (
        "each number has the opposite sign",
        lambda value, e: e.size > 7 and bool(((value * e < 0) == (e != 0)).all()),
    ),
    ("each number is the right one times one and the same factor", _is_multiple),
    (
        "each number is off by one and the same amount",
        lambda value, e: _all_close(value - e, np.full_like(value - e, np.median(value - e))),
    ),
    ("two of its axes have changed places", _axes_swapped),
    (
        "the order along one of its axes is reversed",
        lambda value, e: any(_all_close(value, np.flip(e, axis)) for axis in range(e.ndim)),
    ),
    (
        "the right numbers are in a different order",
        lambda value, e: _all_close(np.sort(value, axis=None), np.sort(e, axis=None)),
    ),
    ("some of its rows are right, and others are not", _some_rows_right),
    ("each row is right but for a factor of its own", _has_factor_per_row),
    (
        "its columns sum to 1, where its rows should",
        lambda value, e: _sums_to_1(e) and _sums_to_1(np.swapaxes(np.atleast_2d(value), -1, -2)),
    ),
    (
        "its rows do not sum to 1, as they should",
        lambda value, e: _sums_to_1(e) and not np.allclose(value.sum(axis=-1), e.sum(axis=-1)),
    ),
)
BOOLEANS = (
    ("True and False are exchanged in it", lambda value, e: bool((value != e).all())),
    (TOO_TRUE, lambda value, e: bool((value >= e).all())),
    (TOO_FALSE, lambda value, e: bool((value <= e).all())),
    (UPSIDE_DOWN, lambda value, e: True),
)
