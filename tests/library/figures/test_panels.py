"""Panels of bars."""

import re

import numpy as np
import pytest

from tests.library.figures.drawing import TOKENS
from tests.library.figures.reading import paths, pictures, spots, texts, words
from tutorial_lib import figures

PENCIL = {"score s": np.array([1, -1, 0]), "share": np.array([4, 1, 2]) / 7}


def upright(figure):
    """The top and the bottom of each bar, panel after panel."""
    spans = []
    for picture in pictures(figure):
        boxes = [p for p in paths(picture) if "fill-opacity" in p.get("style")]
        ys = [[float(y) for y in re.findall(r"[ V]([\d.]+)", p.get("d"))] for p in boxes]
        spans.append([(min(y), max(y)) for y in ys])
    return np.array(spans)


def test_bars_rise_and_fall_from_0_as_far_as_their_numbers_on_a_scale_of_each_panel():
    spans = upright(figures.bar_panels(PENCIL, TOKENS, caption=""))
    heights = spans[..., 1] - spans[..., 0]
    np.testing.assert_allclose(heights[0] / heights[0].max(), [1, 1, 0], atol=0.02)
    np.testing.assert_allclose(heights[1] / heights[1].max(), [1, 0.25, 0.5], atol=0.02)
    (rising, falling, none), shares = spans
    assert rising[1] == falling[0] == none[0] == none[1]  # they meet at 0
    assert len(set(shares[:, 1])) == 1
    assert heights[0].max() > 40
    assert 80 < heights[1].max() < 120  # a scale of its own, from 0, and inside the panel


def test_the_number_of_a_bar_stands_beyond_its_end():
    figure = figures.bar_panels({"s": np.array([2, -3])}, "ab", caption="")
    (rising, falling) = upright(figure)[0]
    place = {text: y for text, (_, y) in spots(figure).items()}
    assert place["s"] < place["2"] < rising[0]
    assert falling[1] < place["−3"] < place["a"] == place["b"]


def test_fractions_are_written_as_show_fractions_writes_them():
    figure = figures.bar_panels(PENCIL, TOKENS, fractions=True, caption="")
    assert figure.tables[0].cells.tolist() == [["1", "4/7"], ["-1", "1/7"], ["0", "2/7"]]
    assert {"4/7", "1/7", "2/7", "−1"} < {*words(figure)}
    assert figure.alt == (
        "Bars. score s: <BOS> 1, dogs -1, $bark$ 0. share: <BOS> 4/7, dogs 1/7, $bark$ 2/7."
    )
    assert {"0.5714", "−1"} < {*words(figures.bar_panels(PENCIL, TOKENS, caption=""))}


def test_a_panel_of_a_head_has_its_colour_and_others_the_page_s():
    figure = figures.bar_panels({"head 2": np.ones(2), "share": np.ones(2)}, "ab", caption="")
    styles = [p.get("style") for p in paths(figure) if "fill-" in p.get("style")]
    assert [figures.HEAD_COLOURS[2] in style for style in styles] == [True, True, False, False]
    assert [style.count("fill:currentColor") for style in styles] == [0, 0, 1, 1]
    assert "head 2" in figure.text()


@pytest.mark.parametrize(
    ("letters", "turned"), [(1, False), (8, False), (11, False), (12, True), (21, True)]
)
def test_names_below_bars_have_room_up_to_eleven_letters_and_are_turned_beyond(letters, turned):
    names = ["n" * letters, "m" * letters, ""]
    figure = figures.bar_panels({"s": np.zeros(3)}, names, caption="")
    assert words(figure).count("0") == 3
    one, other = (t for t in texts(figure) if t.text and t.text[0] in "nm")
    assert ("rotate(-45" in one.get("transform", "")) == turned
    if not turned:
        assert float(other.get("x")) - float(one.get("x")) >= 7.5 * letters
