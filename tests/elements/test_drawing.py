"""The mask to draw on, as bytes: without a script it is the library's mask and receptive field."""

import json
import re

import numpy as np
import pytest

from tests.elements.test_elements import Tree
from tutorial_lib.elements.exhibits import mask_drawing
from tutorial_lib.variants.patterns import receptive_field, window_mask

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


def test_form_without_a_script_is_the_librarys_mask_and_receptive_field():
    mask = window_mask(16, 16, 4)
    grid = HTML.split('class="tl-mask"')[1].split("</table>")[0]
    grid = re.sub("</?b>", "", grid.split("<tbody>")[1])
    cells = re.findall(r"<td( data-on| data-out)?>(\d?)</td>", grid)
    for (t, s), (mark, digit) in zip(PAIRS, cells, strict=True):
        assert mark == (" data-on" if mask[t, s] else " data-out" if s > t else "")
        assert digit == ("1" if receptive_field(mask, 1)[t, s] else "")
    for n in range(1, 7):
        depends = f"row 15 depends on {receptive_field(mask, n)[15].sum()} of 16 tokens"
        assert f"after {n} layer{'s' * (n > 1)} {depends}" in mask_drawing().text
