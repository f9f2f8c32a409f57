"""Tensor networks."""

from tests.library.figures.drawing import figure_of
from tests.library.figures.reading import texts
from tutorial_lib import figures


def test_a_network_says_of_every_index_which_arrays_have_it_and_whether_it_is_open():
    scores, layer = figure_of("network").tables
    assert scores.rows == list("tmhdns")
    assert scores.columns == ["X", "W_Q", "W_K", "X", "scores"]
    assert dict(zip(scores.rows, scores.cells.tolist(), strict=True)) == {
        "t": ["●", "", "", "", "open"],
        "m": ["●", "●", "", "", "summed"],
        "h": ["", "●", "●", "", "open"],
        "d": ["", "●", "●", "", "summed"],
        "n": ["", "", "●", "●", "summed"],
        "s": ["", "", "", "●", "open"],
    }
    assert [*layer.cells[:, -1]] == ["summed", "open", "summed", "summed", "summed", "open"]
    assert (
        "Summed over: m, d, n. Open: t, h, s. Then softmax over s. Y: " in figure_of("network").alt
    )


def test_an_index_is_written_once_where_its_line_runs():
    places = {}
    for text in texts(figure_of("network")):
        places.setdefault(text.text, []).append((float(text.get("x")), float(text.get("y"))))
    assert set(places) == {
        *("scores", "Y", "X", "W_Q", "W_K", "weights", "W_V", "W_O"),
        *("t", "m", "h", "d", "n", "s", "v", "h, summed", "softmax over s"),
    }
    assert len(places["X"]) == 3
    assert len(places["h"]) == 1, "open below the scores, summed below Y"
    between_boxes = places["m"][0]
    assert places["X"][0][0] < between_boxes[0] < places["W_Q"][0][0]
    assert places["W_Q"][0][0] < places["h"][0][0] < places["W_K"][0][0]
    assert places["h"][0][1] < places["softmax over s"][0][1] < places["weights"][0][1]


def test_a_chain_of_one_array_and_a_chain_without_open_ends_can_be_drawn():
    figure = figures.tensor_network({"trace": ("ii->", ["A"]), "sum": ("i->", ["a"])}, caption="")
    assert figure.alt == (
        "Tensor network. trace: A in a row. Summed over: i. Open: nothing. "
        "sum: a in a row. Summed over: i. Open: nothing."
    )
