"""The strip of memory as bytes: without a script it says what NumPy says."""

import re

import numpy as np
import pytest

from tutorial_lib import split_heads
from tutorial_lib.elements.exhibits import memory_strip

PRODUCT = 10 * np.arange(3)[:, None] + np.arange(8)
STARTS = {"heads": ("product", PRODUCT), "concat": ("cut", split_heads(PRODUCT, 2))}


@pytest.fixture(params=STARTS)
def start(request):
    """The word of a start."""
    return request.param


def strides(array):
    """The strides, counted in numbers."""
    return [stride // array.itemsize for stride in array.strides]


def cells(html):
    """The cells of the tables in the form, row by row, without markup."""
    rows = re.findall(r'<tr>(<th scope="row".*?)</tr>', html.split("</summary>")[1], re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_two_on_a_page_share_no_id():
    ids = re.findall(r'id="(.*?)"', "".join(memory_strip(start).html for start in STARTS))
    assert len(ids) == len(set(ids)) == 2


def test_text_says_the_state(start):
    name, array = STARTS[start]
    lines = memory_strip(start).text.splitlines()
    assert lines[0] == f"Strip of memory: {name}, shape {array.shape}, strides {strides(array)}"
    assert [int(n) for n in re.findall(r"\d+", " ".join(lines[1:-1]))] == array.ravel().tolist()
    assert lines[-1] == f"   in memory: {' '.join(map(str, PRODUCT.ravel()))}"


def test_ways_of_the_table_are_numpys(start):
    name, array = STARTS[start]
    ways = cells(memory_strip(start).html)[24:]
    assert len(ways) == 3
    for way, gives in ways:
        before = eval(way.rpartition(".")[0], {name: array})
        after = eval(way, {name: array})
        came, *parts = re.fullmatch(
            r"a (view|copy), shape (.*), strides (.*); 10 is at (.*); \[0\] holds (.*)", gives
        ).groups()
        assert came == ("view" if np.shares_memory(before, after) else "copy")
        shape, said, index, holds = parts
        assert (shape, said) == (str(after.shape), str(strides(after)))
        assert after[tuple(eval(index))] == 10
        assert holds.split() == [str(n) for n in after[0].ravel()]
    right = {"heads": split_heads(PRODUCT, 2), "concat": PRODUCT}[start]
    assert np.array_equal(after, right)  # the last way is the right one


def test_another_start_is_refused():
    with pytest.raises(ValueError, match="start is 'head'; expected one of heads, concat"):
        memory_strip("head")
