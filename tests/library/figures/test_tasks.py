"""Heads against a fixed-offset baseline, task by task."""

import numpy as np

from tests.library.figures.reading import (
    cell_colours,
    colours_of,
    paths,
    pictures,
    points_of,
    text_xy,
    texts,
    words,
)
from tutorial_lib import figures
from tutorial_lib.figures import ink

SCORES = np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.5]])  # (heads, tasks)
BASELINE = np.array([0.3, 0.6, 0.5])
NAMES = {"heads": ["1.0", "1.1"], "tasks": ["bracket", "pronoun", "surname"]}


FIGURE = figures.task_maps({"layer 1": SCORES}, BASELINE, **NAMES, caption="")


def frame_middles(figure):
    """The middle of each frame of each picture, once for the rim and once for the line."""
    for picture in pictures(figure):
        line_paths = [path for path in paths(picture) if path.get("style").startswith("fill:none")]
        closed_paths = [path for path in line_paths if path.get("d").endswith("z")]
        frame_points = map(points_of, closed_paths)
        yield [tuple((p.min(axis=0) + p.max(axis=0)) / 2) for p in frame_points]


def test_what_is_above_the_fixed_offset_is_framed_in_words_too_and_what_equals_it_is_not():
    (middles, _) = frame_middles(FIGURE)  # of the map, and of the key
    places = text_xy(FIGURE)
    assert len(middles) == 4, "a rim and a line for each"
    for number, middle_pair in zip(("0.9", "0.7"), (middles[:2], middles[2:]), strict=True):
        for middle in middle_pair:
            np.testing.assert_allclose(middle[0], places[number][0], atol=0.3)
            assert abs(middle[1] - places[number][1]) < 8
    path_styles = [path.get("style") for path in paths(FIGURE)]
    for stroke in ("light-dark(#fff,#000)", "currentColor"):  # seen on every colour of both pages
        assert any(s.startswith("fill:none") and f"stroke:{stroke}" in s for s in path_styles)
    assert FIGURE.alt.endswith(
        "layer 1: bracket, best head 1.1 with 0.9, above the fixed offset with 0.3; "
        "pronoun, best head 1.0 with 0.7, above the fixed offset with 0.6; "
        "surname, best head 1.0 with 0.5, not above the fixed offset with 0.5."
    )


def test_tasks_run_down_heads_across_and_the_fixed_offset_is_last_with_level_names():
    (table,) = FIGURE.tables
    assert table.rows == NAMES["tasks"]
    assert table.columns == ["1.0", "1.1", "fixed offset"]
    np.testing.assert_array_equal(table.cells.astype(float), np.vstack([SCORES, BASELINE]).T)
    assert not [t for t in texts(FIGURE) if "rotate" in t.get("transform", "")]
    assert [word for word in words(FIGURE) if word in ("fixed", "offset")] == ["fixed", "offset"]
    places = text_xy(FIGURE)
    for head, number in (("1.0", "0.7"), ("1.1", "0.9")):
        assert abs(places[head][0] - places[number][0]) < 0.5
    colour_levels = np.rint(100 * np.vstack([SCORES, BASELINE]).T).astype(int)
    assert next(cell_colours(FIGURE)) == colours_of(ink.SEQUENTIAL, colour_levels.ravel())


def test_up_to_two_maps_carry_their_numbers_and_more_are_small():
    two = figures.task_maps({f"layer {n}": SCORES for n in range(2)}, BASELINE, **NAMES, caption="")
    seed_scores = {f"seed {n}": SCORES for n in range(3)}
    three_maps = figures.task_maps(seed_scores, BASELINE, **NAMES, caption="")
    assert "0.9" in text_xy(two)
    assert "0.9" not in text_xy(three_maps)
    assert "0.9" in three_maps.text()
    assert [*map(len, frame_middles(three_maps))] == [4, 4, 4, 0]


def test_maps_may_have_their_own_heads_and_baselines_and_say_where_nothing_is_framed():
    scores = {"layer 0": SCORES[:1], "layer 1": SCORES}
    heads = {"layer 0": ["0.0"], "layer 1": ["1.0", "1.1"]}
    baselines = {"layer 0": BASELINE, "layer 1": np.ones(3)}
    figure = figures.task_maps(scores, baselines, heads=heads, tasks=NAMES["tasks"], caption="")
    assert [table.columns[0] for table in figure.tables] == ["0.0", "1.0"]
    assert [*map(len, frame_middles(figure))] == [2, 0, 0]
    assert {"layer 0", "layer 1, no frame"} < {*words(figure)}
    assert "layer 1: no head is framed; bracket, best head 1.1" in figure.alt
    assert figure.alt.count("no head is framed") == 1
