"""Planes."""

import re

import numpy as np

from tests.library.figures.drawing import SVG, coloured, parsed, texts
from tutorial_lib import figures


def test_arrows_of_queries_and_keys_differ_in_line_and_head():
    arrows = {"query a": (1, 0.5), "query b": (-1, 1), "key a": (0.5, -1), "key b": (1, 1)}
    figure = figures.planes({"head 0": arrows}, caption="")
    lines, heads = coloured(figure, marks=False), coloured(figure, marks=True)
    assert ["dasharray" in line.get("style") for line in lines] == [False, False, True, True]
    assert ["fill-opacity:0" in head.get("style") for head in heads] == [False, False, True, True]


def test_arrows_end_where_the_numbers_say_on_one_scale_for_both_axes_and_all_panels():
    panels = {
        "head 0": {"query": (1, 1), "key": (2, -1)},
        "head 1": {"query": (0, 1), "key": (-1, 2)},
    }
    figure = figures.planes(panels, caption="")
    across, *_ = [p for p in parsed(figure).iter(f"{SVG}path") if "opacity:0.6" in p.get("style")]
    left, right, _ = map(float, re.search(r"M(\S+) (\S+)L(\S+) ", across.get("d")).group(1, 3, 2))
    unit = (right - left) / (2 + 1 + 2 * 0.15 * 3)  # from -1 to 2, and room on either side
    heads = [re.findall(r"[-\d.]+", p.get("transform")) for p in coloured(figure, marks=True)]
    for panel, places in zip(panels.values(), (heads[:2], heads[2:]), strict=True):
        query, key = (np.array(place, dtype=float) for place in places)
        given = np.subtract(panel["key"], panel["query"]) * (1, -1)  # pixels count downwards
        apart = (key - query) / unit
        np.testing.assert_allclose(apart, given, atol=5 / unit)  # a query's head is drawn behind


def test_labels_of_arrows_do_not_overlap():
    rng = np.random.default_rng(5)
    for _ in range(5):
        arrows = {f"{side} {t}": rng.normal(size=2) for side in ("query", "key") for t in "abcd"}
        figure = figures.planes({"head 0": arrows}, caption="")
        boxes = [
            (float(t.get("x")), float(t.get("y")), 7 * len(t.text))
            for t in texts(figure)
            if t.text in arrows
        ]
        for i, (x, y, width) in enumerate(boxes):
            for other_x, other_y, other_width in boxes[:i]:
                assert abs(x - other_x) > (width + other_width) / 2 or abs(y - other_y) > 12


def test_an_arrow_may_have_no_length():
    assert "0" in figures.planes({"head 0": {"query a": (0, 0)}}, caption="").text()
