"""Curves."""

import re

import numpy as np
import pytest

from tests.library.figures.reading import coloured_paths, texts, words
from tutorial_lib import figures


def test_curves_differ_in_black_and_white_too():
    series = {f"curve {n}": np.arange(3) + n for n in range(8)}
    figure = figures.line_chart(np.arange(3), series, labels=("x", "y"), caption="")
    assert len({marker.get("d") for marker in coloured_paths(figure, marks=True)}) == 8
    line_styles = [line.get("style") for line in coloured_paths(figure, marks=False)]
    assert len({re.search(r"stroke-dasharray:([^;]+)|$", dash)[1] for dash in line_styles}) == 6


def test_the_legend_stands_above_the_curves():
    series = {"low": np.array([0.0, 1.0]), "high": np.array([5.0, 9.0])}
    figure = figures.line_chart(np.array([0, 1]), series, labels=("x", "y"), caption="")
    legend = max(float(t.get("y")) for t in texts(figure) if t.text in series)
    curve_paths = coloured_paths(figure, marks=False)[:2]  # before the lines of the legend
    assert legend < min(float(y) for c in curve_paths for y in re.findall(r" ([\d.]+)", c.get("d")))


def test_places_of_few_points_are_marked_and_logarithms_have_powers():
    x = np.array([4, 16, 64, 512])
    series = {"error": np.array([2e-9, 3e-7, 1e-5, 0.25])}
    figure = figures.line_chart(x, series, labels=("d_k", "error"), log=("x", "y"), caption="")
    assert {"4", "16", "64", "512", "10⁻⁸"} < {*words(figure)}
    assert figure.tables[0].cells[:, 0].tolist() == ["2.000e-09", "3.000e-07", "1.000e-05", "0.25"]


@pytest.mark.parametrize(
    ("log", "y", "shown_ticks", "hidden_ticks"),
    [
        ("y", [2e9, 1e8, 3e5, 2e4], "10⁹ 10⁸ 10⁷ 10⁶ 10⁵", "1000000 100000"),
        ("y", [1e-5, 1e-3, 0.1, 1], "10⁻⁵ 10⁻³ 10⁻¹ 10⁰", "0.1 0.001 1"),
        ("y", [1, 10, 1000, 100], "1 10 100 1,000", "10³ 1000"),
        ("y", [1, 1000, 1e6, 2e7], "1 1,000 1,000,000", "1000 10⁶"),
        ("", [0, 0.0002, 0.0012, 0], "0 0.0002 0.001", "2·10⁻⁴ 10⁻³"),
        ("", [0.0, 1.0, 2.0, 2.0], "0 1 2", "0.5 1.5"),
        ("", [0.0, 0.5, 1.0, 1.0], "0 0.2 1", ""),
    ],
)
def test_ticks_of_an_axis_have_one_notation_and_are_whole_where_all_values_are(
    log, y, shown_ticks, hidden_ticks
):
    series = {"bytes": np.array(y)}
    figure = figures.line_chart(np.arange(4) * 3, series, labels=("T", ""), log=log, caption="")
    tick_labels = {*words(figure)}
    assert tick_labels > set(shown_ticks.split())
    assert not tick_labels & set(hidden_ticks.split())


def test_a_chart_may_have_one_point_or_one_value():
    figures.line_chart(np.array([3]), {"y": np.array([0.0])}, labels=("x", "y"), caption="")
    figures.line_chart(np.arange(3), {"y": np.ones(3)}, labels=("x", "y"), log=("y",), caption="")
