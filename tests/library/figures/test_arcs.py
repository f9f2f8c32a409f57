"""Arcs between the words of a sentence."""

import re

import numpy as np
import pytest

from tests.library.figures.reading import paths, pictures, points_of, texts, words
from tutorial_lib import figures

WORDS = ["the", "dogs", "that", "the", "cat", "sees", "bark"]
EIGHT_WORDS = [f"word {n}" for n in range(8)]


def draw(arc_kinds, tokens=WORDS):
    """The figure of these arcs."""
    return figures.arcs(tokens, arc_kinds, caption="")


def curves(figure, **options):
    """The points of each arc: its ends, and two between."""
    return [points_of(p)[:4] for p in paths(figure, **options) if "C" in p.get("d")]


def text_labels(figure, *, names=False, **options):
    """What is written in the picture, and where: the words, or the coloured names of arcs."""
    picture = pictures(figure, **options)[0]
    kind = [t for t in texts(picture) if names == ("color-mix" in t.get("style"))]
    return [t.text for t in kind], np.array([[t.get("x"), t.get("y")] for t in kind], dtype=float)


def is_word_row(figure, **options):
    """Whether all words stand on one line, and not below each other."""
    _, label_places = text_labels(figure, **options)
    distinct_xs, distinct_ys = (len(set(coordinates)) for coordinates in label_places.T)
    assert (distinct_xs == 1) != (distinct_ys == 1)
    return distinct_ys == 1


def test_an_arc_leaves_one_word_and_leads_to_the_other_above_the_row():
    figure = draw({"far": [(6, 1)], "near": [(5, 4)]})
    _, label_places = text_labels(figure)
    assert is_word_row(figure)
    for points, (start, end) in zip(curves(figure), [(6, 1), (5, 4)], strict=True):
        np.testing.assert_allclose(points[0, 0], label_places[start, 0], atol=0.2)
        np.testing.assert_allclose(points[-1, 0], label_places[end, 0], atol=9)  # the head's length
        assert points[1:3, 1].max() < points[[0, -1], 1].min() < label_places[0, 1]
    far_arc, near_arc = curves(figure)
    assert far_arc[1, 1] < near_arc[1, 1] - 20, "an arc over more words is higher"
    first_arc, second_arc = curves(draw({"one": [(6, 1)], "other": [(6, 1)]}))
    assert abs(first_arc[1, 1] - second_arc[1, 1]) > 4, "two kinds between the same words lie apart"


def test_words_without_room_in_a_row_run_down_the_page_with_arcs_beside_them():
    figure = draw({"far": [(16, 0)]}, [f"word {n}" for n in range(17)])
    _, label_places = text_labels(figure)
    assert not is_word_row(figure)
    assert (np.diff(label_places[:, 1]) > 20).all()
    ((start, *inner_points, end),) = curves(figure)
    assert min(point[0] for point in inner_points) > start[0] > label_places[0, 0]
    np.testing.assert_allclose([start[1], end[1]], label_places[[16, 0], 1], atol=9)


SENTENCE = "<bos> the dogs that the cat sees bark . they help Anna Kern . Anna Kern sleeps ."


def test_a_phone_shows_a_column_where_a_desk_shows_a_row():
    figure = draw({"inside clause": [(6, 5)], "attractor": [(7, 2)]}, SENTENCE.split())
    assert is_word_row(figure)
    assert not is_word_row(figure, phone=True)


def test_five_kinds_have_five_hues_and_of_eight_no_two_share_hue_and_dashes():
    figure = draw({f"kind {n}": [(n + 1, n)] for n in range(8)}, range(900, 909))
    arc_styles = [path.get("style") for path in paths(figure) if "C" in path.get("d")]
    hues = [re.search("stroke:([^;]+)", style)[1] for style in arc_styles]
    dashes = [re.search("dasharray:([^;]+)|$", style)[1] for style in arc_styles]
    assert len(set(zip(hues, dashes, strict=True))) == len(arc_styles) == 8
    assert len(set(hues[:5])) == 5
    assert len(set(dashes)) == 4


@pytest.mark.parametrize("phone", [False, True])
def test_a_name_stands_free_at_the_bend_of_each_arc_of_its_kind(phone):
    figure = draw({"far": [(6, 1), (3, 0)], "agreement": [(7, 6)]}, EIGHT_WORDS)
    assert is_word_row(figure, phone=phone) != phone
    names, label_places = text_labels(figure, names=True, phone=phone)
    assert sorted(names) == ["agreement", "far", "far"]
    assert figure.svg.count("<svg") == 2, "a picture for a desk, one for a phone, no key"
    middles = [arc[1:3].mean(axis=0) for arc in curves(figure, phone=phone)]  # beyond by a third
    assert (abs(label_places - middles)[:, 1 if phone else 0] <= 60).all()
    for n, place in enumerate(label_places):
        is_apart = abs(label_places[:n] - place) > (24, 15)
        assert is_apart.any(axis=1).all(), "two names lie on each other"
    t = np.linspace(0, 1, 99)[:, None]
    for a, b, c, d in curves(figure, phone=phone):
        arc = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t * t * (1 - t) + d * t**3
        for name, place in zip(names, label_places, strict=True):
            extent = 3.7 * len(name), 5  # half of it, a little less than is written
            assert (abs(arc - place - (0, -4)) > extent).any(axis=1).all(), "an arc crosses a name"


def test_kinds_whose_names_have_no_room_have_a_key():
    arc_kinds = {f"a kind with a very long name {n}": [(6, 0), (5, 1), (4, 2)] for n in range(6)}
    assert {*words(draw(arc_kinds))} >= set(arc_kinds)


def test_table_and_words_name_both_ends_of_each_arc():
    figure = draw({"far": [(6, 1)], "near": [(5, 4)]})
    (table,) = figure.tables
    assert table.rows == ["far", "near"]
    assert table.cells.tolist() == [["bark (6)", "dogs (1)"], ["sees (5)", "cat (4)"]]
    assert figure.alt == (
        "Arcs between the words the dogs that the cat sees bark "
        "far: from bark to dogs. near: from sees to cat."
    )
