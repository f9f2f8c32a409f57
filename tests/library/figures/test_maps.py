"""Attention maps and signed maps."""

import numpy as np
import pytest

from tests.library.figures.drawing import (
    KEYS,
    SVG,
    TOKENS,
    H,
    S,
    T,
    cell_colours,
    parsed,
    ramp,
    shown,
    texts,
)
from tutorial_lib import figures
from tutorial_lib.figures import ink

# Attention maps.


def test_queries_run_down_and_keys_across():
    figure = figures.attention_maps(ramp(T, S), TOKENS, key_tokens=KEYS, caption="")
    place = {
        t.text: (float(t.get("x")), float(t.get("y")), t.get("transform")) for t in texts(figure)
    }
    assert np.all(np.diff([place[token][1] for token in TOKENS]) > 0)
    assert np.all(np.diff([place[key][0] for key in KEYS]) > 0)
    assert place["query"][2].startswith("rotate(-90")
    assert place["key"][1] > place["qui"][1]
    assert place["query"][0] < place["dogs"][0]


def test_rows_that_are_no_queries_say_what_they_are():
    figure = figures.attention_maps(ramp(T, S), ("head", TOKENS), key_tokens=KEYS, caption="")
    assert {"head", *TOKENS} <= {t.text for t in texts(figure)}
    assert "query" not in {t.text for t in texts(figure)}


def test_colours_of_weights_run_from_0_to_1_whatever_the_largest_is():
    weights = np.array([[0.0, 0.25], [0.5, 0.25]])
    cells, _ = cell_colours(figures.attention_maps(weights, ["a", "b"], caption=""))
    expected = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in (0, 25, 50, 25)]
    assert cells == expected


def test_all_heads_share_one_colour_bar():
    labels = [t.text for t in texts(figures.attention_maps(ramp(H, T, T), TOKENS, caption=""))]
    assert labels.count("weight") == 1
    assert labels[-4:] == ["0", "0.5", "1", "weight"]


@pytest.mark.parametrize(("size", "written"), [(8, True), (9, False)])
def test_small_maps_have_their_weights_written_into_the_cells(size, written):
    figure = figures.attention_maps(np.full((size, size), 0.375), range(size), caption="")
    assert [t.text for t in texts(figure)].count("0.375") == written * size * size


def test_a_sole_head_may_come_without_its_axis():
    figure = figures.attention_maps(np.eye(2), ["a", "b"], caption="Look.")
    assert figure.text() == "Look.\nweights   (2, 2)\n   a  b\na  1  0\nb  0  1"


@pytest.mark.parametrize("outside", [-9e-10, 1 + 9e-10])
def test_a_rounding_error_outside_0_to_1_is_drawn_as_0_or_1(outside):
    near, exact = (
        figures.attention_maps(np.array([[weight, 0.5]]), "a", key_tokens="ab", caption="")
        for weight in (outside, round(outside))
    )
    assert shown(near) == shown(exact)


@pytest.mark.parametrize("outside", [-1.1e-9, 1 + 1.1e-9])
def test_more_than_a_rounding_error_outside_0_to_1_is_refused(outside):
    with pytest.raises(ValueError, match="expected 0 to 1"):
        figures.attention_maps(np.array([[outside, 0.5]]), "a", key_tokens="ab", caption="")


@pytest.mark.parametrize("n_keys", [9, 10, 24, 40, 60, 90, 200])
def test_numbered_keys_are_thinned_out_by_a_round_step_and_no_more_than_they_need(n_keys):
    keys = range(n_keys)
    figure = figures.attention_maps(
        np.full((9, n_keys), 0.125), "abcdefghi", key_tokens=keys, caption=""
    )
    picture = next(parsed(figure).iter(f"{SVG}svg"))
    numbers = [t for t in picture.iter(f"{SVG}text") if t.text.isdigit()]
    step = int(numbers[1].text)
    assert [t.text for t in numbers] == [str(n) for n in keys[::step]]
    steps = (0, 1, 2, 5, 10)
    finer = steps[steps.index(step) - 1]
    apart = np.diff([float(t.get("x")) for t in numbers])
    needed = 8.75 * len(str(n_keys - 1)) + 4
    assert apart.min() >= needed > apart.max() * finer / step


def test_weights_that_are_fractions_are_written_as_fractions_and_others_are_refused():
    weights = np.array([[1, 0, 0], [4 / 5, 1 / 5, 0], [4 / 7, 1 / 7, 2 / 7]])
    figure = figures.attention_maps(weights, TOKENS, fractions=True, caption="")
    assert figure.tables[0].cells.tolist() == [
        ["1", "0", "0"],
        ["4/5", "1/5", "0"],
        ["4/7", "1/7", "2/7"],
    ]
    assert {"4/7", "1/7", "2/7"} < {t.text for t in texts(figure)}
    assert "largest weight 1, from" in figure.alt
    assert cell_colours(figure) == cell_colours(figures.attention_maps(weights, TOKENS, caption=""))
    with pytest.raises(ValueError, match="not a fraction with a denominator up to 1000"):
        figures.attention_maps(np.array([[0.123456]]), "a", fractions=True, caption="")


# Signed maps.


def test_colours_of_signed_numbers_are_symmetric_about_0_and_mean_the_same_in_all_panels():
    arrays = {"small": np.array([[-1.0, 0.0, 1.0]]), "large": np.array([[-1.0, 0.0, 2.0]])}
    small, large, _ = cell_colours(figures.signed_maps(arrays, caption=""))
    colours = [ink.STAND_INS[ink.DIVERGING.cells[level]][0] for level in range(101)]
    assert small == [colours[25], colours[50], colours[75]]
    assert large == [colours[25], colours[50], colours[100]]


def keys(figure):
    """The texts of the key to the colours, the last picture."""
    *_, key = parsed(figure).iter(f"{SVG}svg")
    return [text.text for text in key.iter(f"{SVG}text")]


def test_colours_of_numbers_none_of_which_is_negative_run_from_0_to_the_largest_of_all_panels():
    arrays = {"small": np.array([[0, 1]]), "large": np.array([[2.0, 4.0]])}
    figure = figures.signed_maps(arrays, caption="")
    small, large, _ = cell_colours(figure)
    colours = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in range(101)]
    assert small == [colours[0], colours[25]]
    assert large == [colours[50], colours[100]]
    assert keys(figure) == ["0", "2", "4", "value"]
    signed = figures.signed_maps(arrays | {"one": np.array([[-1e-3]])}, caption="")
    assert keys(signed) == ["−4", "0", "4", "value"]
    assert "signed" not in figure.alt
    assert "signed" in signed.alt


def test_booleans_are_seen_or_hidden():
    mask = np.tri(3, dtype=bool)
    figure = figures.signed_maps({"mask": mask}, caption="")
    cells, key = cell_colours(figure)
    hidden, seen = (ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in (0, 100))
    assert cells == [seen if cell else hidden for cell in mask.ravel()]
    assert key == [hidden, seen]
    assert keys(figure) == ["hidden ·", "seen ✓"]
    assert figure.tables[0].cells.tolist() == [["✓", "·", "·"], ["✓", "✓", "·"], ["✓", "✓", "✓"]]
    assert figure.alt == "Grid of cells. mask: 3 rows, 3 columns, 6 of 9 seen."


def test_booleans_beside_numbers_are_1_and_0_on_their_scale():
    arrays = {"mask": np.array([[True, False]]), "weights": np.array([[0.5, 0.25]])}
    figure = figures.signed_maps(arrays, caption="")
    mask, weights, _ = cell_colours(figure)
    colours = [ink.STAND_INS[ink.SEQUENTIAL.cells[level]][0] for level in range(101)]
    assert mask == [colours[100], colours[0]]
    assert weights == [colours[50], colours[25]]
    assert keys(figure) == ["0", "0.5", "1", "value"]


@pytest.mark.parametrize(
    ("shape", "written"), [((12, 18), True), ((13, 18), False), ((12, 19), False)]
)
def test_numbers_are_written_where_twelve_rows_and_480_pixels_hold_them(shape, written):
    figure = figures.signed_maps({"W": np.full(shape, -7)}, caption="")
    assert [t.text for t in texts(figure)].count("−7") == written * np.prod(shape) + 1  # the key


@pytest.mark.parametrize("n_columns", [19, 40, 70])
def test_a_map_without_numbers_fits_a_phone(n_columns):
    figure = figures.signed_maps({"W": np.ones((2, n_columns))}, caption="")
    assert "ahh-wide" not in figure.svg


def test_signed_numbers_that_are_fractions_are_written_as_fractions():
    figure = figures.signed_maps({"Y": np.array([[-8 / 13, 106 / 91]])}, fractions=True, caption="")
    assert figure.tables[0].cells.tolist() == [["-8/13", "106/91"]]
    assert {"−8/13", "106/91"} < {t.text for t in texts(figure)}
    assert "from -8/13 to 106/91" in figure.alt


@pytest.mark.parametrize(("n_columns", "desk", "phone"), [(2, 64, 64), (8, 64, 37), (18, 37, 26)])
def test_cells_are_as_wide_as_the_room_allows_and_their_numbers_need(n_columns, desk, phone):
    names = [chr(ord("a") + n) for n in range(n_columns)]
    figure = figures.signed_maps({"W": np.full((2, n_columns), -7)}, columns=names, caption="")
    for is_phone, width in ((False, desk), (True, phone)):
        place = {t.text: float(t.get("x")) for t in texts(figure, phone=is_phone)}
        assert place["b"] - place["a"] == pytest.approx(width, abs=1)
    assert ("ahh-wide" in figure.svg) == (n_columns == 18)


def test_an_array_of_zeros_can_be_drawn():
    assert "0" in figures.signed_maps({"P": np.zeros((2, 3))}, caption="").text()


def test_axes_of_signed_maps_may_be_named_for_all_or_one_by_one():
    pair = {"X": np.eye(2), "scores": np.eye(3)}
    rows = {"X": ["a", "b"], "scores": ("query", ["a", "b", "c"])}
    figure = figures.signed_maps(
        pair, rows=rows, columns={"scores": ("key", ["a", "b", "c"])}, caption=""
    )
    labels = [t.text for t in texts(figure)]
    assert labels.count("query") == labels.count("key") == 1
    assert figure.tables[0].columns == ["0", "1"]
    assert figure.tables[1].columns == ["a", "b", "c"]
