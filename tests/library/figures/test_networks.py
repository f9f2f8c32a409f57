"""Tensor networks."""

from tests.library.figures.drawing import figure_of
from tests.library.figures.reading import texts
from tutorial_lib import figures


def test_a_network_says_of_every_index_which_arrays_have_it_and_whether_it_is_open():
    scores_table, layer_table = figure_of("network").tables
    assert scores_table.rows == list("tmhdns")
    assert scores_table.columns == ["X", "W_Q", "W_K", "X", "scores"]
    assert dict(zip(scores_table.rows, scores_table.cells.tolist(), strict=True)) == {
        "t": ["●", "", "", "", "open"],
        "m": ["●", "●", "", "", "summed"],
        "h": ["", "●", "●", "", "open"],
        "d": ["", "●", "●", "", "summed"],
        "n": ["", "", "●", "●", "summed"],
        "s": ["", "", "", "●", "open"],
    }
    assert [*layer_table.cells[:, -1]] == ["summed", "open", "summed", "summed", "summed", "open"]
    assert (
        "Summed over: m, d, n. Open: t, h, s. Then softmax over s. Y: " in figure_of("network").alt
    )


def test_an_index_is_written_once_where_its_line_runs():
    xy_by_text = {}
    for text in texts(figure_of("network")):
        xy_by_text.setdefault(text.text, []).append((float(text.get("x")), float(text.get("y"))))
    assert set(xy_by_text) == {
        *("scores", "Y", "X", "W_Q", "W_K", "weights", "W_V", "W_O"),
        *("t", "m", "h", "d", "n", "s", "v", "h, summed", "softmax over s"),
    }
    assert len(xy_by_text["X"]) == 3
    assert len(xy_by_text["h"]) == 1, "open below the scores, summed below Y"
    between_boxes = xy_by_text["m"][0]
    assert xy_by_text["X"][0][0] < between_boxes[0] < xy_by_text["W_Q"][0][0]
    assert xy_by_text["W_Q"][0][0] < xy_by_text["h"][0][0] < xy_by_text["W_K"][0][0]
    assert xy_by_text["h"][0][1] < xy_by_text["softmax over s"][0][1] < xy_by_text["weights"][0][1]


def test_a_chain_of_one_array_and_a_chain_without_open_ends_can_be_drawn():
    figure = figures.tensor_network({"trace": ("ii->", ["A"]), "sum": ("i->", ["a"])}, caption="")
    assert figure.alt == (
        "Tensor network. trace: A in a row. Summed over: i. Open: nothing. "
        "sum: a in a row. Summed over: i. Open: nothing."
    )
