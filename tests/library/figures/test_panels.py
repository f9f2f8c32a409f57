"""Panels of bars."""

import re

import numpy as np
import pytest

from tests.library.figures.drawing import TOKENS
from tests.library.figures.reading import paths, pictures, text_xy, texts, words
from tutorial_lib import figures

PENCIL_PANELS = {"score s": np.array([1, -1, 0]), "share": np.array([4, 1, 2]) / 7}


def bar_edges(figure):
    """The top and the bottom of each bar, panel after panel."""
    panel_edges = []
    for picture in pictures(figure):
        bar_paths = [p for p in paths(picture) if "fill-opacity" in p.get("style")]
        bar_ys = [[float(y) for y in re.findall(r"[ V]([\d.]+)", p.get("d"))] for p in bar_paths]
        panel_edges.append([(min(y), max(y)) for y in bar_ys])
    return np.array(panel_edges)


def test_bars_rise_and_fall_from_0_as_far_as_their_numbers_on_a_scale_of_each_panel():
    panel_edges = bar_edges(figures.bar_panels(PENCIL_PANELS, TOKENS, caption=""))
    bar_heights = panel_edges[..., 1] - panel_edges[..., 0]
    np.testing.assert_allclose(bar_heights[0] / bar_heights[0].max(), [1, 1, 0], atol=0.02)
    np.testing.assert_allclose(bar_heights[1] / bar_heights[1].max(), [1, 0.25, 0.5], atol=0.02)
    (rising_bar, falling_bar, empty_bar), share_bars = panel_edges
    assert rising_bar[1] == falling_bar[0] == empty_bar[0] == empty_bar[1]  # they meet at 0
    assert len(set(share_bars[:, 1])) == 1
    assert bar_heights[0].max() > 40
    assert 80 < bar_heights[1].max() < 120  # a scale of its own, from 0, and inside the panel


def test_the_number_of_a_bar_stands_beyond_its_end():
    figure = figures.bar_panels({"s": np.array([2, -3])}, "ab", caption="")
    (rising_bar, falling_bar) = bar_edges(figure)[0]
    text_heights = {text: y for text, (_, y) in text_xy(figure).items()}
    assert text_heights["s"] < text_heights["2"] < rising_bar[0]
    assert falling_bar[1] < text_heights["−3"] < text_heights["a"] == text_heights["b"]


def test_fractions_are_written_as_show_fractions_writes_them():
    figure = figures.bar_panels(PENCIL_PANELS, TOKENS, fractions=True, caption="")
    assert figure.tables[0].cells.tolist() == [["1", "4/7"], ["-1", "1/7"], ["0", "2/7"]]
    assert {"4/7", "1/7", "2/7", "−1"} < {*words(figure)}
    assert figure.alt == (
        "Bars. score s: <BOS> 1, dogs -1, $bark$ 0. share: <BOS> 4/7, dogs 1/7, $bark$ 2/7."
    )
    assert {"0.5714", "−1"} < {*words(figures.bar_panels(PENCIL_PANELS, TOKENS, caption=""))}


def test_a_panel_of_a_head_has_its_colour_and_others_the_page_s():
    figure = figures.bar_panels({"head 2": np.ones(2), "share": np.ones(2)}, "ab", caption="")
    bar_styles = [p.get("style") for p in paths(figure) if "fill-" in p.get("style")]
    assert [figures.HEAD_COLOURS[2] in style for style in bar_styles] == [True, True, False, False]
    assert [style.count("fill:currentColor") for style in bar_styles] == [0, 0, 1, 1]
    assert "head 2" in figure.text()


@pytest.mark.parametrize(
    ("n_letters", "rotated"), [(1, False), (8, False), (11, False), (12, True), (21, True)]
)
def test_names_below_bars_have_room_up_to_eleven_letters_and_are_turned_beyond(n_letters, rotated):
    names = ["n" * n_letters, "m" * n_letters, ""]
    figure = figures.bar_panels({"s": np.zeros(3)}, names, caption="")
    assert words(figure).count("0") == 3
    first_name, second_name = (t for t in texts(figure) if t.text and t.text[0] in "nm")
    assert ("rotate(-45" in first_name.get("transform", "")) == rotated
    if not rotated:
        assert float(second_name.get("x")) - float(first_name.get("x")) >= 7.5 * n_letters
