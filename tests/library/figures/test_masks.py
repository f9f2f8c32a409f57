"""Masks: what is painted is what is allowed, in one path each."""

import re

import numpy as np

from tests.library.figures.reading import paths, words
from tutorial_lib.figures import mask_panels, mask_svg

RANDOM = np.random.default_rng(17).random((5, 8)) < 0.4
RANDOM[2] = False
CAUSAL_MASK = np.tri(16, dtype=bool)
MASK_FIGURE = mask_panels({"a < b": RANDOM, "causal": CAUSAL_MASK}, caption="Which?")


def painted_cells(path, cell_size, shape):
    """The cells that a path paints: a dash for each, from the start of a line on."""
    cells = np.zeros(shape, dtype=bool)
    for x, y, length in re.findall(r"M(\S+) (\S+)h([\d.]+)", path.get("d")):
        key, query = (int(float(coordinate) // cell_size) for coordinate in (x, y))
        cells[query, key : key + round(float(length) / cell_size + 0.14)] = True
    return cells


def test_each_mask_is_one_path_that_paints_what_may_be_looked_at():
    scattered_path, causal_path = paths(MASK_FIGURE)
    assert (painted_cells(scattered_path, 18, (5, 8)) == RANDOM).all()
    assert (painted_cells(causal_path, 9, (16, 16)) == CAUSAL_MASK).all()
    assert causal_path.get("style").endswith("stroke-dasharray:7.74 1.26")  # of cells of 9 pixels
    assert len(MASK_FIGURE.svg) < 4_000


def test_a_mask_without_words_is_as_wide_as_its_room():
    svg_text = mask_svg(RANDOM)
    assert 'viewBox="0 0 8 5"' in svg_text
    assert "<text" not in svg_text
    [path_data] = re.findall(r' d="(.*?)"', svg_text)
    assert (painted_cells({"d": path_data}, 1, (5, 8)) == RANDOM).all()


def test_names_of_the_axes_and_the_numbers_in_words():
    assert words(MASK_FIGURE) == ["a < b", "query", "key", "causal", "query", "key"]
    assert MASK_FIGURE.alt.endswith(f"a < b: {RANDOM.sum()} of 40 pairs. causal: 136 of 256 pairs.")
    assert MASK_FIGURE.text().startswith("Which?\na < b, ")
    for query, mask in enumerate(RANDOM):
        [n_keys, key_text] = MASK_FIGURE.tables[0].cells[query]
        spans = [span.split("–") for span in key_text.split(", ") if span != "none"]
        keys = [k for start, *end in spans for k in range(int(start), int([start, *end][-1]) + 1)]
        assert keys == np.flatnonzero(mask).tolist()
        assert int(n_keys) == len(keys)
