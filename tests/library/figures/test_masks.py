"""Masks: what is painted is what is allowed, in one path each."""

import re

import numpy as np

from tutorial_lib.figures import mask_svg

RANDOM = np.random.default_rng(17).random((5, 8)) < 0.4
RANDOM[2] = False


def test_a_mask_is_one_path_that_paints_what_may_be_looked_at():
    svg_text = mask_svg(RANDOM)
    assert 'viewBox="0 0 8 5"' in svg_text
    [path_data] = re.findall(r' d="(.*?)"', svg_text)
    cells = np.zeros(RANDOM.shape, dtype=bool)  # a dash for each, from the start of a line on
    for x, y, length in re.findall(r"M(\S+) (\S+)h([\d.]+)", path_data):
        key, query = int(float(x)), int(float(y))
        cells[query, key : key + round(float(length) + 0.14)] = True
    assert (cells == RANDOM).all()
