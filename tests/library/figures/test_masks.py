"""Masks: what is painted is what is allowed, in one path each."""

import re

import numpy as np

from tests.library.figures.drawing import paths, words
from tutorial_lib.figures import mask_panels, mask_svg

SPREAD = np.random.default_rng(17).random((5, 8)) < 0.4
SPREAD[2] = False
CAUSAL = np.tri(16, dtype=bool)


def painted(path, cell, shape):
    """The cells that a path paints: a dash for each, from the start of a line on."""
    found = np.zeros(shape, dtype=bool)
    for x, y, length in re.findall(r"M(\S+) (\S+)h([\d.]+)", path.get("d")):
        first, row = (int(float(place) // cell) for place in (x, y))
        found[row, first : first + round(float(length) / cell + 0.14)] = True
    return found


def test_each_mask_is_one_path_that_paints_what_may_be_looked_at():
    figure = mask_panels({"a < b": SPREAD, "causal": CAUSAL}, caption="Which?")
    first, second = paths(figure)
    assert (painted(first, 18, (5, 8)) == SPREAD).all()
    assert (painted(second, 9, (16, 16)) == CAUSAL).all()
    assert second.get("style").endswith("stroke-dasharray:7.74 1.26")  # of cells of 9 pixels
    assert len(figure.svg) < 4_000


def test_a_mask_without_words_is_as_wide_as_its_room():
    svg = mask_svg(SPREAD)
    assert 'viewBox="0 0 8 5"' in svg
    assert "<text" not in svg
    [lines] = re.findall(r' d="(.*?)"', svg)
    assert (painted({"d": lines}, 1, (5, 8)) == SPREAD).all()


def test_names_the_axes_and_tells_the_numbers():
    figure = mask_panels({"a < b": SPREAD, "causal": CAUSAL}, caption="Which?")
    assert words(figure) == ["a < b", "query", "key", "causal", "query", "key"]
    assert figure.alt.endswith(f"a < b: {SPREAD.sum()} of 40 pairs. causal: 136 of 256 pairs.")
    told = figure.text()
    assert told.startswith("Which?\na < b, ")
    for query, row in enumerate(SPREAD):
        [count, which] = figure.tables[0].cells[query]
        spans = [span.split("–") for span in which.split(", ") if span != "none"]
        keys = [k for first, *last in spans for k in range(int(first), int([first, *last][-1]) + 1)]
        assert keys == np.flatnonzero(row).tolist()
        assert int(count) == len(keys)
