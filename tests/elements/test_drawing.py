"""The mask to draw on, as bytes: a named pattern is what it says, pair by pair."""

import json
import re

import numpy as np
import pytest

from tests.elements.test_elements import Tree
from tutorial_lib.elements.exhibits import mask_drawing

HTML = mask_drawing().html
GIVEN = json.loads(next(a["data-given"] for _, a in Tree(HTML).tags if "data-given" in a))
PAIRS = [(t, s) for t in range(16) for s in range(16)]
# What each pattern says, pair by pair.
PUBLISHED = {
    "window": lambda t, s: 0 <= t - s < 4,
    "strided": lambda t, s: 0 <= t - s < 4 or (t > s and (t - s) % 4 == 0),
    "longformer": lambda t, s: abs(t - s) <= 2 or 0 in (t, s),
    "bigbird": lambda t, s: abs(t - s) <= 1 or min(t, s) <= 1,
    "all": lambda t, s: s <= t,
}


def unpacked(digits):
    """The mask that 64 digits of base 16 write, four for each row."""
    assert re.fullmatch("[0-9a-f]{64}", digits)
    rows = [f"{int(digits[i : i + 4], 16):016b}" for i in range(0, 64, 4)]
    return np.array([[digit == "1" for digit in row] for row in rows])


PATTERNS = {key: unpacked(digits) for key, digits, _ in GIVEN["patterns"]}


@pytest.mark.parametrize("key", PUBLISHED)
def test_pattern_is_what_it_says_pair_by_pair(key):
    mask = PATTERNS[key]
    others = {(t, s) for t, s in PAIRS if mask[t, s] != PUBLISHED[key](t, s)}
    if key == "bigbird":  # two keys per row are sampled, some of them in the window or global
        assert all(mask[pair] for pair in others)
        assert all(sum(t == row for t, _ in others) <= 2 for row in range(16))
        assert len(others) > 16
    else:
        assert others == set()
