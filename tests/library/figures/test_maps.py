"""Attention maps and signed maps."""

import numpy as np
import pytest

from tests.library.figures.drawing import KEYS, TOKENS, ramp
from tests.library.figures.reading import cell_colours, colours_of, pictures, text_xy, texts, words
from tutorial_lib import figures
from tutorial_lib.figures import ink

# Attention maps.


def test_queries_run_down_and_keys_across():
    figure = figures.attention_maps(ramp(3, 4), TOKENS, key_tokens=KEYS, caption="")
    places = text_xy(figure)
    assert np.all(np.diff([places[token][1] for token in TOKENS]) > 0)
    assert np.all(np.diff([places[key][0] for key in KEYS]) > 0)
    assert [t.text for t in texts(figure) if "rotate(-90" in t.get("transform", "")] == ["query"]
    assert places["key"][1] > places["qui"][1]
    assert places["query"][0] < places["dogs"][0]
    figure = figures.attention_maps(ramp(3, 4), ("head", TOKENS), key_tokens=KEYS, caption="")
    assert {"head", *TOKENS} <= {*words(figure)} - {"query"} == {*words(figure)}, "no queries"


def test_colours_of_weights_run_from_0_to_1_whatever_the_largest_is():
    weights = np.array([[0.0, 0.25], [0.5, 0.25]])
    figure = figures.attention_maps(weights, ["a", "b"], caption="Look.")
    cells, _ = cell_colours(figure)
    assert cells == colours_of(ink.SEQUENTIAL, (0, 25, 50, 25))
    table = "weights   (2, 2)\n      a     b\na  0.00  0.25\nb  0.50  0.25"
    assert figure.text() == f"Look.\n{table}", "a sole head may come without its axis"


def test_all_heads_share_one_colour_bar_and_automatic_words_name_their_largest_weights():
    weights = np.array([[[1, 0], [0.25, 0.75]], [[0.5, 0.5], [0.125, 0.875]]])
    figure = figures.attention_maps(weights, ["dogs", "bark"], caption="")
    assert words(figure).count("weight") == 1
    assert words(figure)[-4:] == ["0", "0.5", "1", "weight"]
    assert "head 0: largest weight 1.000, from dogs to dogs." in figure.alt
    assert "head 1: largest weight 0.875, from bark to bark." in figure.alt


@pytest.mark.parametrize(("size", "is_written"), [(8, True), (9, False)])
def test_small_maps_have_their_weights_written_into_the_cells(size, is_written):
    figure = figures.attention_maps(np.full((size, size), 0.375), range(size), caption="")
    assert words(figure).count("0.375") == is_written * size * size


@pytest.mark.parametrize("n_keys", [9, 10, 24, 40, 60, 90, 200])
def test_numbered_keys_are_thinned_out_by_a_round_step_and_no_more_than_they_need(n_keys):
    weights, key_numbers = np.full((9, n_keys), 0.125), range(n_keys)
    figure = figures.attention_maps(weights, "abcdefghi", key_tokens=key_numbers, caption="")
    number_texts = [t for t in texts(pictures(figure)[0]) if t.text.isdigit()]
    number_step = int(number_texts[1].text)
    assert [t.text for t in number_texts] == [str(n) for n in key_numbers[::number_step]]
    round_steps = (0, 1, 2, 5, 10)
    finer_step = round_steps[round_steps.index(number_step) - 1]
    text_gaps = np.diff([float(t.get("x")) for t in number_texts])
    needed_gap = 8.75 * len(str(n_keys - 1)) + 4
    assert text_gaps.min() >= needed_gap > text_gaps.max() * finer_step / number_step


def test_numbers_that_are_fractions_are_written_as_fractions():
    weights = np.array([[1, 0, 0], [4 / 5, 1 / 5, 0], [4 / 7, 1 / 7, 2 / 7]])
    figure = figures.attention_maps(weights, TOKENS, fractions=True, caption="")
    cells = figure.tables[0].cells.tolist()
    assert cells == [["1", "0", "0"], ["4/5", "1/5", "0"], ["4/7", "1/7", "2/7"]]
    assert {"4/7", "1/7", "2/7"} < {*words(figure)}
    assert "largest weight 1, from" in figure.alt
    decimal_figure = figures.attention_maps(weights, TOKENS, caption="")
    assert [*cell_colours(figure)] == [*cell_colours(decimal_figure)]


# Signed maps.


def key_texts(figure):
    """The texts of the key to the colours, the last picture."""
    return words(pictures(figure)[-1])


@pytest.mark.parametrize(
    ("panel_values", "scale_name", "colour_levels", "tick_texts"),
    [
        ([[-1.0, 0, 1], [-1.0, 0, 2]], "DIVERGING", [(25, 50, 75), (25, 50, 100)], "−2 0 2"),
        ([[0, 1], [2.0, 4.0]], "SEQUENTIAL", [(0, 25), (50, 100)], "0 2 4"),
        ([[0, 1], [4.0, -1e-3]], "DIVERGING", [(50, 62), (100, 50)], "−4 0 4"),
        ([[0, 0]], "SEQUENTIAL", [(0, 0)], "0 0.5 1"),
        ([[True, False], [0.5, 0.25]], "SEQUENTIAL", [(100, 0), (50, 25)], "0 0.5 1"),
    ],
)
def test_all_panels_have_one_scale_symmetric_about_0_where_a_number_is_negative(
    panel_values, scale_name, colour_levels, tick_texts
):
    figure = figures.signed_maps({f"{p}": np.array([p]) for p in panel_values}, caption="")
    expected = [colours_of(getattr(ink, scale_name), levels_row) for levels_row in colour_levels]
    assert [*cell_colours(figure)][:-1] == expected
    assert key_texts(figure) == [*tick_texts.split(), "value"]
    assert ("signed" in figure.alt) == (scale_name == "DIVERGING")


def test_booleans_are_light_or_dark():
    mask = np.tri(3, dtype=bool)
    figure = figures.signed_maps({"mask": mask}, caption="")
    cells, key_colours = cell_colours(figure)
    hidden_colour, seen_colour = colours_of(ink.SEQUENTIAL, (0, 100))
    assert cells == [seen_colour if cell else hidden_colour for cell in mask.ravel()]
    assert key_colours == [hidden_colour, seen_colour]
    assert key_texts(figure) == ["False ·", "True ✓"]
    assert figure.tables[0].cells.tolist() == [["✓", "·", "·"], ["✓", "✓", "·"], ["✓", "✓", "✓"]]
    assert figure.alt == "Grid of cells. mask: 3 rows, 3 columns, 6 of 9 True."


@pytest.mark.parametrize(
    ("shape", "is_written"),
    [((12, 18), True), ((13, 18), False), ((12, 19), False), ((2, 40), False), ((2, 70), False)],
)
def test_numbers_are_written_where_twelve_rows_and_480_pixels_hold_them_or_it_fits_a_phone(
    shape, is_written
):
    figure = figures.signed_maps({"W": np.full(shape, -7)}, caption="")
    assert words(figure).count("−7") == is_written * np.prod(shape) + 1  # the key
    assert ("ahh-wide" in figure.svg) == is_written


@pytest.mark.parametrize(("n_columns", "desk", "phone"), [(2, 64, 64), (8, 64, 37), (18, 37, 26)])
def test_cells_are_as_wide_as_the_room_allows_and_their_numbers_need(n_columns, desk, phone):
    names = [chr(ord("a") + n) for n in range(n_columns)]
    figure = figures.signed_maps({"W": np.full((2, n_columns), -7)}, columns=names, caption="")
    for is_phone, cell_width in ((False, desk), (True, phone)):
        places = text_xy(figure, phone=is_phone)
        assert places["b"][0] - places["a"][0] == pytest.approx(cell_width, abs=1)
    assert ("ahh-wide" in figure.svg) == (n_columns == 18)


def test_axes_of_signed_maps_may_be_named_for_all_or_one_by_one():
    arrays, letters = {"X": np.eye(2), "scores": np.eye(3)}, ["a", "b", "c"]
    rows, columns = {"X": ["a", "b"], "scores": ("query", letters)}, {"scores": ("key", letters)}
    figure = figures.signed_maps(arrays, rows=rows, columns=columns, caption="")
    assert words(figure).count("query") == words(figure).count("key") == 1
    assert [table.columns for table in figure.tables] == [["0", "1"], letters]


def test_signed_maps_are_written_in_fractions_too():
    shares = {"score": np.array([[1, -1, 0]]), "share": np.array([[4, 1, 2]]) / 7}
    figure = figures.signed_maps(shares, fractions=True, caption="")
    assert [table.cells.tolist() for table in figure.tables] == [
        [["1", "-1", "0"]],
        [["4/7", "1/7", "2/7"]],
    ]
    assert {"4/7", "−1"} < {*words(figure)}
