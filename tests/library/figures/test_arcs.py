"""Arcs between the words of a sentence."""

import re

import numpy as np
import pytest

from tests.library.figures.drawing import SVG, parsed, texts
from tutorial_lib import figures
from tutorial_lib.errors import ShapeError

WORDS = ["the", "dogs", "that", "the", "cat", "sees", "bark"]
INKED = "fill:currentColor"  # of the words; names of the first four kinds have hues
KINDS = {"far": [(6, 1)], "near": [(5, 4)]}


def draw(kinds=KINDS, words=WORDS):
    """The figure of these arcs."""
    return figures.arcs(words, kinds, caption="")


def curves(figure, **options):
    """The points of each arc in the picture of the sentence: its ends, and two between."""
    picture = next(parsed(figure, **options).iter(f"{SVG}svg"))
    paths = [path.get("d") for path in picture.iter(f"{SVG}path")]
    found = [np.array(re.findall(r"([-\d.]+) ([-\d.]+)", d), float) for d in paths if "C" in d]
    return [points[:4] for points in found]


def spots(figure, **options):
    """The texts of the picture, each with its place and its colour."""
    picture = next(parsed(figure, **options).iter(f"{SVG}svg"))
    for t in picture.iter(f"{SVG}text"):
        yield t.text, np.array([float(t.get("x")), float(t.get("y"))]), t.get("style")


def places(figure, **options):
    """Where each word is written, in their order."""
    return np.array([xy for _, xy, style in spots(figure, **options) if INKED in style])


def names(figure, **options):
    """Where the names of kinds are written, those of colour alone, and that colour."""
    return [spot for spot in spots(figure, **options) if INKED not in spot[2]]


def test_an_arc_leaves_one_word_and_leads_to_the_other_above_the_row():
    figure = draw()
    words = places(figure)
    assert len(set(words[:, 1])) == 1
    for points, (start, end) in zip(curves(figure), [(6, 1), (5, 4)], strict=True):
        np.testing.assert_allclose(points[0, 0], words[start, 0], atol=0.2)
        np.testing.assert_allclose(points[-1, 0], words[end, 0], atol=9)  # the head's length
        assert points[1:3, 1].max() < points[[0, -1], 1].min() < words[0, 1]


def test_an_arc_over_more_words_is_higher():
    far, near = curves(draw())
    assert far[1, 1] < near[1, 1] - 20


def test_words_without_room_in_a_row_run_down_the_page_with_arcs_beside_them():
    words = [f"word {n}" for n in range(17)]
    figure = draw({"far": [(16, 0)]}, words)
    column = places(figure)
    assert len(set(column[:, 0])) == 1
    assert (np.diff(column[:, 1]) > 20).all()
    ((start, *middle, end),) = curves(figure)
    assert min(point[0] for point in middle) > start[0] > column[0, 0]
    np.testing.assert_allclose([start[1], end[1]], column[[16, 0], 1], atol=9)


def test_a_phone_shows_a_column_where_a_desk_shows_a_row():
    words = [f"word {n}" for n in range(8)]
    figure = draw({"far": [(7, 0)]}, words)
    assert len(set(places(figure)[:, 1])) == 1
    assert len(set(places(figure, phone=True)[:, 0])) == 1


def looks(figure):
    """The hue and the dashes of each arc."""
    lines = [p.get("style") for p in parsed(figure).iter(f"{SVG}path") if "C" in p.get("d")]
    parts = [dict(re.findall(r"(stroke|stroke-dasharray):([^;]+)", style)) for style in lines]
    return [(part["stroke"], part.get("stroke-dasharray", "")) for part in parts]


def test_five_kinds_have_five_hues_and_of_eight_no_two_share_hue_and_dashes():
    pairs = looks(draw({f"kind {n}": [(n + 1, n)] for n in range(8)}, range(900, 909)))
    assert len(set(pairs)) == len(pairs) == 8
    assert len({hue for hue, _ in pairs[:5]}) == 5
    assert len({dashes for _, dashes in pairs}) == 4


@pytest.mark.parametrize("phone", [False, True])
def test_a_name_stands_free_at_the_bend_of_each_arc_of_its_kind(phone):
    words = [f"word {n}" for n in range(8)]
    figure = draw({"far": [(6, 1), (3, 0)], "agreement": [(7, 6)]}, words)
    found = names(figure, phone=phone)
    assert sorted(name for name, *_ in found) == ["agreement", "far", "far"]
    assert figure.svg.count("<svg") == 2, "a picture for a desk, one for a phone, no key"
    bends = [arc[1:3].mean(axis=0) for arc in curves(figure, phone=phone)]  # beyond by a third
    along = 1 if phone else 0
    for (_, place, _), bend in zip(found, bends, strict=True):
        assert abs(place - bend)[along] <= 60
    places_of_names = [place for _, place, _ in found]
    for n, place in enumerate(places_of_names):
        for other in places_of_names[:n]:
            assert (abs(place - other) > (24, 15)).any(), "two names lie on each other"
    t = np.linspace(0, 1, 99)[:, None]
    for a, b, c, d in curves(figure, phone=phone):
        arc = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t * t * (1 - t) + d * t**3
        for name, place, _ in found:
            box = 3.7 * len(name), 5  # half of it, a little less than is written
            assert (abs(arc - place - (0, -4)) > box).any(axis=1).all(), "an arc crosses a name"


def test_kinds_whose_names_have_no_room_have_a_key():
    kinds = {f"a kind with a very long name {n}": [(6, 0), (5, 1), (4, 2)] for n in range(6)}
    assert {t.text for t in texts(draw(kinds))} >= set(kinds)


def test_a_sentence_of_eighteen_short_words_lies_flat_on_a_desk():
    text = "<bos> the dogs that the cat sees bark . they help Anna Kern . Anna Kern sleeps ."
    figure = draw({"inside clause": [(6, 5)], "attractor": [(7, 2)]}, text.split())
    assert len(set(places(figure)[:, 1])) == 1
    assert len(set(places(figure, phone=True)[:, 0])) == 1


def test_two_kinds_between_the_same_words_lie_apart():
    one, other = curves(draw({"one": [(6, 1)], "other": [(6, 1)]}))
    assert abs(one[1, 1] - other[1, 1]) > 4


def test_table_and_words_name_both_ends_of_each_arc():
    figure = draw()
    (table,) = figure.tables
    assert table.rows == ["far", "near"]
    assert table.cells.tolist() == [["bark (6)", "dogs (1)"], ["sees (5)", "cat (4)"]]
    assert figure.alt == (
        "Arcs between the words the dogs that the cat sees bark "
        "far: from bark to dogs. near: from sees to cat."
    )


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (ValueError, ["kinds is {}", "at least one"], lambda: draw({})),
        (ValueError, ["tokens is empty", "at least one word"], lambda: draw(KINDS, [])),
        (ShapeError, ["'far' has an arc (6,)", "two positions"], lambda: draw({"far": [(6,)]})),
        (ShapeError, ["'far' has an arc 6", "two positions"], lambda: draw({"far": (6, 1)})),
        (ValueError, ["'far' has an arc (7, 1)", "from 0 to 6"], lambda: draw({"far": [(7, 1)]})),
        (ValueError, ["'far' has an arc (-1, 1)", "0 to 6"], lambda: draw({"far": [(-1, 1)]})),
        (ValueError, ["'far' has an arc (0.5, 1)", "0 to 6"], lambda: draw({"far": [(0.5, 1)]})),
        (ValueError, ["(1, 1) from a word to itself", "Leave it"], lambda: draw({"a": [(1, 1)]})),
        (ValueError, ["kinds has no arc", "two positions"], lambda: draw({"a": []})),
    ],
)
def test_what_is_no_arc_is_refused(error, parts, call):
    with pytest.raises(error) as refused:
        call()
    for part in parts:
        assert part in str(refused.value)
