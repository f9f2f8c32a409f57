"""Colours are legible on light and dark pages, and a head keeps its own."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tests.library.figures.reading import contrast, luminance, on_both_pages, texts
from tutorial_lib import figures
from tutorial_lib.figures import ink


@pytest.mark.parametrize("colour_scale", [ink.SEQUENTIAL, ink.DIVERGING, ink.HEADS])
def test_numbers_are_legible_on_every_cell_of_light_and_dark_pages(colour_scale):
    for fill, glyph in zip(colour_scale.cells, colour_scale.texts, strict=True):
        for background, foreground in zip(on_both_pages(fill), on_both_pages(glyph), strict=True):
            assert contrast(background, foreground) >= 4.5


def test_larger_weights_stand_out_more_on_light_and_dark_pages():
    light_colours, dark_colours = zip(*map(on_both_pages, ink.SEQUENTIAL.cells), strict=True)
    assert (np.diff([luminance(colour) for colour in light_colours]) < 0).all()
    assert (np.diff([luminance(colour) for colour in dark_colours]) > 0).all()


@pytest.mark.parametrize(("page", "text_colour"), [("#ffffff", "#222832"), ("#121212", "#ced6dd")])
def test_colours_of_heads_are_legible_titles_on_light_and_dark_pages(page, text_colour):
    for code in ink.HEAD_INKS:
        colour, share = re.search(r"(#\w+) (\d+)%,currentColor", ink.CSS_COLOURS[code][-1]).groups()
        mixing_weights = int(share), 100 - int(share)
        mixed = np.average([to_rgb(colour), to_rgb(text_colour)], axis=0, weights=mixing_weights)
        assert contrast(mixed, page) >= 4.5


def test_a_head_keeps_its_number_and_its_colour():
    weights = np.full((6, 1, 1), 1.0)
    figure = figures.attention_maps(weights, ["a"], caption="")
    titles = [text for text in texts(figure) if "head" in text.text]
    assert [title.text for title in titles] == [f"head {h}" for h in range(6)]
    for h, title in enumerate(titles):
        assert figures.HEAD_COLOURS[h % 4] in title.get("style")
    elements = texts(figures.signed_maps({"head 2": np.eye(2)}, caption=""))
    assert any(t.text == "head 2" and figures.HEAD_COLOURS[2] in t.get("style") for t in elements)
