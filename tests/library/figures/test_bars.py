"""Bars."""

import re

import numpy as np

from tests.library.figures.reading import paths, words
from tutorial_lib import figures


def rects(figure):
    """The bars in the order of columns, without those of the key."""
    coloured_paths = [path for path in paths(figure) if "color-mix" in path.get("style")]
    return coloured_paths[: figure.tables[0].cells.size]


def test_bars_are_as_long_as_their_numbers():
    bar_values = np.array([[1.0, 4.0], [2.0, 0.5], [0.0, 3.0]])
    figure = figures.bar_chart(bar_values, "abc", ["x", "y"], label="ms", caption="")
    bar_ends = [[float(x) for x in re.findall(r"[MLH]([\d.]+)", p.get("d"))] for p in rects(figure)]
    bar_lengths = np.ptp([(min(x), max(x)) for x in bar_ends], axis=1).reshape(2, 3).T
    np.testing.assert_allclose(bar_lengths / bar_lengths.max(), bar_values / 4, atol=0.01)
    assert figure.alt == "Bar chart of ms. x: longest for b, 2.0. y: longest for a, 4.0."


def test_bars_of_a_group_differ_in_black_and_white_too():
    figure = figures.bar_chart(np.ones((1, 3)), "a", "xyz", label="ms", caption="")
    fills = [re.search("fill:none|fill-opacity|$", bar.get("style"))[0] for bar in rects(figure)]
    assert fills == ["", "fill:none", "fill-opacity"]


def test_one_bar_in_each_group_needs_no_key():
    figure = figures.bar_chart(np.ones((2, 1)), "ab", ["only"], label="ms", caption="")
    assert "only" not in words(figure)
    assert "only" in figure.text()
