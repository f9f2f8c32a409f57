"""Y as a sum, as bytes: its form without a script says what each head writes."""

import re
from fractions import Fraction

import numpy as np

from tutorial_lib import running_example, trace
from tutorial_lib.elements.exhibits import heads_sum

HTML = heads_sum().html
BARE = HTML.replace("<wbr>", "")
EXAMPLE = running_example()
RECORD = trace(EXAMPLE.X, EXAMPLE.params, mask=EXAMPLE.mask)
PARTS = RECORD.heads @ EXAMPLE.params.W_O.reshape(2, 4, 8)  # (H, T, d_model)


def rows(html):
    """Each row of a table by its name."""
    lines = re.findall(r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', html)
    return [(name, re.findall("<td>(.*?)</td>", cells)) for name, cells in lines]


def near(texts, numbers):
    """Compare fractions to the numbers that they are."""
    values = [float(Fraction(text.replace("−", "-"))) for text in texts]
    np.testing.assert_allclose(values, numbers, rtol=0, atol=1e-12)


def test_tables_without_a_script_are_complete_and_the_librarys():
    shown, listed = (rows(html) for html in BARE.split("<details"))
    *parts, (name, numbers) = shown
    assert [one for one, _ in parts] == ["head 0", "head 1", "Y"]
    for (_, texts), expected in zip(parts, [*PARTS[:, 2], RECORD.Y[2]], strict=True):
        near(texts, expected)
    assert name == "row 0"
    near(numbers, EXAMPLE.params.W_O[0])
    every = [[*PARTS[:, t], RECORD.Y[t]] for t in range(3)]
    names = [f"{word}, {one}" for word in EXAMPLE.tokens for one in ("head 0", "head 1", "Y")]
    assert [one for one, _ in listed] == names
    for (_, texts), expected in zip(listed, [row for word in every for row in word], strict=True):
        near(texts, expected)


def test_concat_stands_over_its_rows_of_W_O():
    cells = re.findall(r'<span><b data-head="(\d)">(.*?)</b><i data-head="(\d)">(\d)</i>', BARE)
    near([number for _, number, _, _ in cells], RECORD.concat[2])
    places = [(h, owner, row) for h, _, owner, row in cells]
    assert places == [(str(i // 4), str(i // 4), str(i)) for i in range(8)]
