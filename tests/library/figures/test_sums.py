"""The sum over heads."""

import numpy as np

from tests.library.figures.drawing import (
    OUT,
    SVG,
    TOKENS,
    H,
    cell_colours,
    drawn,
    parsed,
    ramp,
    texts,
)
from tutorial_lib import figures
from tutorial_lib.figures import ink


def titled(figure):
    """The tables of a figure as arrays of numbers, by title."""
    return {table.title: table.cells.astype(float) for table in figure.tables}


def test_parts_of_the_heads_are_their_columns_of_concat_times_their_rows_of_w_o():
    numbers = titled(drawn("sum_over_heads"))
    concat = numbers["concat"]
    np.testing.assert_allclose(numbers["part of head 0"], concat[:, :2] @ OUT[:2], atol=1e-9)
    np.testing.assert_allclose(numbers["part of head 1"], concat[:, 2:] @ OUT[2:], atol=1e-9)
    np.testing.assert_allclose(numbers["Y"], concat @ OUT, atol=1e-9)
    np.testing.assert_array_equal(numbers["W_O"], OUT)


def test_tables_of_the_sum_may_be_in_fractions():
    heads, W_O = np.array([[[6 / 7]], [[4 / 13]]]), np.array([[1.0], [1.0]])
    figure = figures.sum_over_heads(heads, W_O, ["bark"], fractions=True, caption="")
    assert [table.cells.tolist() for table in figure.tables] == [
        [["6/7", "4/13"]],
        [["1"], ["1"]],
        [["6/7"]],
        [["4/13"]],
        [["106/91"]],
    ]


def test_each_head_frames_its_columns_its_rows_and_its_part_in_its_colour():
    paths = list(parsed(drawn("sum_over_heads")).iter(f"{SVG}path"))
    for h in range(H):
        frames = [p for p in paths if f"stroke:{figures.HEAD_COLOURS[h]}" in p.get("style")]
        assert len(frames) == 5  # in concat and W_O, and its own line: head, rows, part
    titles = {t.text: t.get("style") for t in texts(drawn("sum_over_heads"))}
    for title in ("head 1", "rows 2 to 3", "part 1"):
        assert figures.HEAD_COLOURS[1] in titles[title]


def test_each_line_of_the_sum_stands_below_what_it_repeats():
    place = {t.text: (float(t.get("x")), float(t.get("y"))) for t in texts(drawn("sum_over_heads"))}
    columns = (("concat", "head 0"), ("W_O", "rows 0 to 1", "rows 2 to 3"))
    for names in (*columns, ("Y", "part 0", "part 1")):
        assert len({place[name][0] for name in names}) == 1
        assert np.all(np.diff([place[name][1] for name in names]) > 0)
    assert place["head 1"][0] > place["head 0"][0]  # below its own columns of concat


def test_the_sum_of_two_heads_fits_a_phone_and_a_larger_one_leaves_its_names_to_the_table():
    heads, W_O = ramp(2, 3, 4), np.eye(8)
    figure = figures.sum_over_heads(heads, W_O, TOKENS, caption="")
    assert "ahh-wide" not in figure.svg
    larger = figures.sum_over_heads(ramp(2, 3, 8), np.eye(16), TOKENS, caption="")
    assert "ahh-wide" not in larger.svg
    assert not {t.text for t in texts(larger)} & set(TOKENS)
    assert TOKENS[1] in larger.text()


def test_every_matrix_of_the_sum_has_a_place_of_its_own_and_all_share_one_scale():
    heads, W_O = np.array([[[1.0]]]), np.array([[-2.0, 1.0]])
    picture, _ = cell_colours(figures.sum_over_heads(heads, W_O, ["a"], caption=""))
    colours = [ink.STAND_INS[ink.DIVERGING.cells[level]][0] for level in range(101)]
    line = [colours[75], colours[0], colours[75], colours[0], colours[75]]  # 1 @ -2 1 = -2 1
    assert picture == line + line


def test_features_are_numbered_below_y_and_below_each_part():
    picture = next(parsed(drawn("sum_over_heads")).iter(f"{SVG}svg"))
    labels = [t.text for t in picture.iter(f"{SVG}text")]
    assert [labels.count(str(feature)) for feature in range(5)] == [3, 3, 3, 3, 0]


def test_features_of_two_digits_have_room_on_a_phone_too():
    figure = figures.sum_over_heads(ramp(2, 3, 1), np.ones((2, 12)), TOKENS, caption="")
    for phone, seen in ((False, range(12)), (True, range(0, 12, 3))):
        picture = next(parsed(figure, phone=phone).iter(f"{SVG}svg"))
        labels = [t.text for t in picture.iter(f"{SVG}text") if t.text.isdigit()]
        assert sorted(labels) == sorted(3 * [str(feature) for feature in seen])


def test_the_signs_of_the_sum():
    signs = [t.text for t in texts(drawn("sum_over_heads")) if t.text in "@=+"]
    assert sorted(signs) == ["+", *"===", *"@@@"]
