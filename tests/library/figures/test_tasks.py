"""Heads against a fixed-offset baseline, task by task."""

import re

import numpy as np
import pytest

from tests.library.figures.drawing import SVG, cell_colours, parsed, texts
from tutorial_lib import figures
from tutorial_lib.figures import ink

SCORES = np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.5]])  # (heads, tasks)
BASELINE = np.array([0.3, 0.6, 0.5])
NAMES = {"heads": ["1.0", "1.1"], "tasks": ["bracket", "pronoun", "surname"]}


def task_map(scores=SCORES, baseline=BASELINE, **names):
    """One map of two heads and three tasks."""
    return figures.task_maps({"layer 1": scores}, baseline, **(NAMES | names), caption="")


def frames(figure):
    """The middle of each frame of each picture, once for the rim and once for the line."""
    for picture in parsed(figure).iter(f"{SVG}svg"):
        paths = [p for p in picture.iter(f"{SVG}path") if p.get("style").startswith("fill:none")]
        closed = [path.get("d") for path in paths if path.get("d").endswith("z")]
        points = [np.array(re.findall(r"([\d.]+) ([\d.]+)", d), float) for d in closed]
        yield [tuple((p.min(axis=0) + p.max(axis=0)) / 2) for p in points]


def middles(figure):
    """Where each number and each head is written, by its text."""
    placed = [t for t in texts(figure) if t.get("x")]  # "fixed offset", in two lines, has none
    return {t.text: (float(t.get("x")), float(t.get("y"))) for t in placed}


def test_what_is_above_the_fixed_offset_is_framed_and_what_equals_it_is_not():
    figure = task_map()
    (found, _) = frames(figure)  # of the map, and of the key
    place = middles(figure)
    assert len(found) == 4, "a rim and a line for each"
    for number, pair in zip(("0.9", "0.7"), (found[:2], found[2:]), strict=True):
        for middle in pair:
            np.testing.assert_allclose(middle[0], place[number][0], atol=0.3)
            assert abs(middle[1] - place[number][1]) < 8


def test_tasks_run_down_heads_across_and_the_fixed_offset_is_last():
    (table,) = task_map().tables
    assert table.rows == NAMES["tasks"]
    assert table.columns == ["1.0", "1.1", "fixed offset"]
    np.testing.assert_array_equal(table.cells.astype(float), np.vstack([SCORES, BASELINE]).T)


def test_heads_and_the_fixed_offset_are_named_level_below_their_columns():
    figure = task_map()
    turned = [t.text for t in texts(figure) if "rotate" in t.get("transform", "")]
    assert turned == []
    assert [t.text for t in texts(figure) if t.text in ("fixed", "offset")] == ["fixed", "offset"]
    numbers = middles(figure)
    for head, number in (("1.0", "0.7"), ("1.1", "0.9")):
        assert abs(numbers[head][0] - numbers[number][0]) < 0.5


def test_a_map_in_which_nothing_is_framed_says_so():
    figure = figures.task_maps(
        {"layer 0": SCORES / 10, "layer 1": SCORES}, BASELINE, **NAMES, caption=""
    )
    shown = {t.text for t in texts(figure)}
    assert {"layer 0, no frame", "layer 1"} < shown
    assert "layer 0: no head is framed; bracket, best head 1.1" in figure.alt
    assert figure.alt.count("no head is framed") == 1


def test_colours_run_from_0_to_1_whatever_the_scores_are():
    scale = [ink.STAND_INS[cell][0] for cell in ink.SEQUENTIAL.cells]
    (colours, _) = cell_colours(task_map())
    levels = np.rint(100 * np.vstack([SCORES, BASELINE]).T).astype(int)
    assert colours == [scale[level] for level in levels.ravel()]


def test_a_frame_is_seen_on_every_colour_of_both_pages():
    styles = [p.get("style") for p in parsed(task_map()).iter(f"{SVG}path")]
    drawn = [style for style in styles if style.startswith("fill:none")]
    assert any("stroke:light-dark(#fff,#000)" in style for style in drawn), "the rim"
    assert any("stroke:currentColor" in style for style in drawn), "the line"


def test_up_to_two_maps_carry_their_numbers_and_more_are_small():
    two = figures.task_maps({f"layer {n}": SCORES for n in range(2)}, BASELINE, **NAMES, caption="")
    seeds = {f"seed {n}": SCORES for n in range(3)}
    three = figures.task_maps(seeds, BASELINE, **NAMES, caption="")
    assert "0.9" in middles(two)
    assert "0.9" not in middles(three)
    assert "0.9" in three.text()
    assert [len(found) for found in frames(three)] == [4, 4, 4, 0]


def test_maps_may_have_their_own_heads_and_baselines():
    figure = figures.task_maps(
        {"layer 0": SCORES[:1], "layer 1": SCORES},
        {"layer 0": BASELINE, "layer 1": np.ones(3)},
        heads={"layer 0": ["0.0"], "layer 1": ["1.0", "1.1"]},
        tasks=NAMES["tasks"],
        caption="",
    )
    assert [table.columns[0] for table in figure.tables] == ["0.0", "1.0"]
    assert [len(found) for found in frames(figure)] == [2, 0, 0]


def test_words_say_of_each_task_which_head_is_best_and_whether_it_is_above():
    assert task_map().alt.endswith(
        "layer 1: bracket, best head 1.1 with 0.9, above the fixed offset with 0.3; "
        "pronoun, best head 1.0 with 0.7, above the fixed offset with 0.6; "
        "surname, best head 1.0 with 0.5, not above the fixed offset with 0.5."
    )


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (
            ValueError,
            ["scores is []", "at least one"],
            lambda: figures.task_maps([], BASELINE, **NAMES, caption=""),
        ),
        (TypeError, ["layer 1 is a list", "asarray"], lambda: task_map([[0.5]])),
        (ValueError, ["layer 1", "(3, 2)", "heads=2"], lambda: task_map(SCORES.T)),
        (ValueError, ["baseline", "(2,)", "tasks=3"], lambda: task_map(baseline=BASELINE[:2])),
        (ValueError, ["baseline", "(2, 3)", "(tasks)"], lambda: task_map(baseline=SCORES)),
        (
            ValueError,
            ["layer 1 is nan at position (0, 1)", "finite"],
            lambda: task_map(np.where(SCORES == 0.7, np.nan, SCORES)),
        ),
        (
            ValueError,
            ["'layer 1' has 1.9 for 1.1 on bracket", "0 to 1", "signed_maps"],
            lambda: task_map(np.where(SCORES == 0.9, 1.9, SCORES)),
        ),
        (
            ValueError,
            ["-0.3 for fixed offset on bracket", "0 to 1"],
            lambda: task_map(baseline=-BASELINE),
        ),
        (
            ValueError,
            ["heads has no 'layer 1'", "['layer 0']", "Give"],
            lambda: task_map(heads={"layer 0": ["1.0", "1.1"]}),
        ),
        (ValueError, ["layer 1", "tasks=2"], lambda: task_map(tasks=["a", "b"])),
    ],
)
def test_what_is_no_score_is_refused(error, parts, call):
    with pytest.raises(error) as refused:
        call()
    for part in parts:
        assert part in str(refused.value)
