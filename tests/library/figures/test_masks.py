"""Masks: what is painted is what is allowed, in one path each."""

import re

import numpy as np

from tests.library.figures.reading import paths, words
from tutorial_lib.figures import mask_panels, mask_svg

SPREAD = np.random.default_rng(17).random((5, 8)) < 0.4
SPREAD[2] = False
CAUSAL = np.tri(16, dtype=bool)
FIGURE = mask_panels({"a < b": SPREAD, "causal": CAUSAL}, caption="Which?")


def painted(path, cell, shape):
    """The cells that a path paints: a dash for each, from the start of a line on."""
    cells = np.zeros(shape, dtype=bool)
    for x, y, length in re.findall(r"M(\S+) (\S+)h([\d.]+)", path.get("d")):
        key, query = (int(float(place) // cell) for place in (x, y))
        cells[query, key : key + round(float(length) / cell + 0.14)] = True
    return cells


def test_each_mask_is_one_path_that_paints_what_may_be_looked_at():
    spread, causal = paths(FIGURE)
    assert (painted(spread, 18, (5, 8)) == SPREAD).all()
    assert (painted(causal, 9, (16, 16)) == CAUSAL).all()
    assert causal.get("style").endswith("stroke-dasharray:7.74 1.26")  # of cells of 9 pixels
    assert len(FIGURE.svg) < 4_000


def test_a_mask_without_words_is_as_wide_as_its_room():
    svg = mask_svg(SPREAD)
    assert 'viewBox="0 0 8 5"' in svg
    assert "<text" not in svg
    [lines] = re.findall(r' d="(.*?)"', svg)
    assert (painted({"d": lines}, 1, (5, 8)) == SPREAD).all()


def test_names_of_the_axes_and_the_numbers_in_words():
    assert words(FIGURE) == ["a < b", "query", "key", "causal", "query", "key"]
    assert FIGURE.alt.endswith(f"a < b: {SPREAD.sum()} of 40 pairs. causal: 136 of 256 pairs.")
    assert FIGURE.text().startswith("Which?\na < b, ")
    for query, mask in enumerate(SPREAD):
        [count, which] = FIGURE.tables[0].cells[query]
        spans = [span.split("–") for span in which.split(", ") if span != "none"]
        keys = [k for start, *end in spans for k in range(int(start), int([start, *end][-1]) + 1)]
        assert keys == np.flatnonzero(mask).tolist()
        assert int(count) == len(keys)
