"""Arcs between the words of a sentence."""

import re

import numpy as np

from tests.library.figures.reading import paths, points_of, text_xy, words
from tutorial_lib import figures

WORDS = ["those", "dogs", "that", "the", "cat", "sees", "bark"]


def draw(arc_kinds, tokens=WORDS):
    """The figure of these arcs."""
    return figures.arcs(tokens, arc_kinds, caption="")


def test_an_arc_leaves_one_word_and_leads_to_the_other_beside_the_column():
    figure = draw({"far": [(6, 1)], "near": [(5, 4)]})
    places = text_xy(figure)
    curves = [points_of(p)[:4] for p in paths(figure) if "C" in p.get("d")]
    for points, (start, end) in zip(curves, [(6, 1), (5, 4)], strict=True):
        ends = [places[WORDS[n]][1] for n in (start, end)]
        np.testing.assert_allclose(points[[0, -1], 1], ends, atol=9)  # the head's length
        assert points[1:3, 0].min() > points[[0, -1], 0].max() > places["those"][0]
    assert curves[0][1, 0] > curves[1][1, 0] + 20, "an arc over more words is wider"
    assert {"far", "near"} < {*words(figure)}


def test_five_kinds_have_five_hues_and_of_eight_no_two_share_hue_and_dashes():
    figure = draw({f"kind {n}": [(n + 1, n)] for n in range(8)}, range(900, 909))
    arc_styles = [path.get("style") for path in paths(figure) if "C" in path.get("d")]
    hues = [re.search("stroke:([^;]+)", style)[1] for style in arc_styles]
    dashes = [re.search("dasharray:([^;]+)|$", style)[1] for style in arc_styles]
    assert len(set(zip(hues, dashes, strict=True))) == len(arc_styles) == 8
    assert len(set(hues[:5])) == 5


def test_table_and_words_name_both_ends_of_each_arc():
    figure = draw({"far": [(6, 1)], "near": [(5, 4)]})
    (table,) = figure.tables
    assert table.rows == ["far", "near"]
    assert table.cells.tolist() == [["bark (6)", "dogs (1)"], ["sees (5)", "cat (4)"]]
    assert figure.alt == (
        "Arcs between the words those dogs that the cat sees bark "
        "far: from bark to dogs. near: from sees to cat."
    )
