"""Points of repeated runs."""

import re

import numpy as np

from tests.library.figures.reading import coloured_paths, paths, words
from tutorial_lib import figures

RUN_TIMES = {"one": np.array([3.0, 1.0, 4.0]), "other": np.array([2.0, 2.5, 9.0])}
FIGURE = figures.spread_chart(RUN_TIMES, label="ms", caption="")


def point_places(figure):
    """Where the points are, (rows, runs), from the left and from the top."""
    transforms = (marker.get("transform") for marker in coloured_paths(figure, marks=True))
    spots = np.array([[float(n) for n in re.findall(r"[\d.]+", shift)] for shift in transforms])
    return spots[:, 0].reshape(len(RUN_TIMES), -1), spots[:, 1].reshape(len(RUN_TIMES), -1)


def test_points_lie_where_their_numbers_are_on_a_line_from_the_least_to_the_most():
    x, y = point_places(FIGURE)
    values = np.stack([*RUN_TIMES.values()])
    pixels_per_ms = np.ptp(x) / np.ptp(values)
    np.testing.assert_allclose(x - x.min(), (values - values.min()) * pixels_per_ms, atol=0.1)
    assert np.ptp(y, axis=1).tolist() == [0, 0]
    assert y[0, 0] < y[1, 0]
    line_paths = [p for p in paths(FIGURE) if "opacity:0.5" in p.get("style", "")]
    ends = [[float(n) for n in re.findall(r"[MLH]([\d.]+)", line.get("d"))] for line in line_paths]
    value_ranges = [[row.min(), row.max()] for row in x]
    np.testing.assert_allclose([[min(e), max(e)] for e in ends], value_ranges, atol=0.1)


def test_a_logarithmic_axis_has_marks_inside_a_decade():
    run_times = {name: 10 * values for name, values in RUN_TIMES.items()}
    figure = figures.spread_chart(run_times, label="ms", caption="", log=True)
    assert {"10", "20", "50"} <= {*words(figure)}


def test_a_line_at_a_value_stands_where_a_point_of_that_value_stands():
    marked_figure = figures.spread_chart(RUN_TIMES, label="ms", caption="", at=2.5)
    lines, other_lines = ([p.get("d") for p in paths(figure)] for figure in (marked_figure, FIGURE))
    [new_line] = [d for d in lines if d not in other_lines]
    line_ends = {float(n) for n in re.findall(r"[ML]([\d.]+)", new_line)}
    x, _ = point_places(marked_figure)
    np.testing.assert_allclose(sorted(line_ends), x[1, 1], atol=0.1)


def test_a_long_name_and_a_long_title_take_two_lines_and_are_not_cut():
    run_times = dict.fromkeys(("norm and MLP, equal numbers", "short"), RUN_TIMES["one"])
    label = "thousandths of a nat above the floor"
    figure = figures.spread_chart(run_times, label=label, caption="")
    desk, phone = (words(figure, phone=phone) for phone in (False, True))
    for page_words in (desk, phone):
        assert {"norm and MLP,", "equal numbers", "short"} < set(page_words)
        assert not [text for text in page_words if "…" in text]
    assert label in desk
    assert {"thousandths of a", "nat above the floor"} < set(phone)
    assert "ahh-wide" not in figure.svg, "it does not scroll on a phone"
