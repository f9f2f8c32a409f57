"""The second map."""

import functools
import re

import numpy as np

from tests.library.figures.reading import paths, points_of, text_xy, texts, words
from tutorial_lib import figures


@functools.cache
def block_map(*absent, layers=2):
    """The map of one model."""
    return figures.block_map({"model": absent}, layers=layers, caption="")


def labels(figure):
    """The texts of a picture with their places, from the top down."""
    return sorted((float(t.get("y")), float(t.get("x")), t.text) for t in texts(figure))


def n_dashed_shapes(figure):
    """How many shapes of a picture are dashed."""
    return sum("stroke-dasharray" in path.get("style") for path in paths(figure))


def test_the_steps_run_down_in_their_order():
    names = [name for *_, name in labels(block_map()) if not re.search(r"\(|blocks", name)]
    attention_steps = ["norm", "attend", "project", "score", "mix", "concat", "project out", "add"]
    assert names == ["model", "embed", *attention_steps, "norm", "MLP", "add", "norm", "unembed"]


def test_the_stream_is_a_thick_line_from_embed_to_the_end_parted_by_each_add():
    for absent, n_lines in (((), 3), (("MLP",), 2), (("norm", "MLP"), 2)):
        thick_paths = [p for p in paths(block_map(*absent)) if "stroke-width:4" in p.get("style")]
        line_points = np.array([*map(points_of, thick_paths)])
        assert len(line_points) == n_lines
        assert len(set(line_points[..., 0].ravel())) == 1, "straight down"
        places = text_xy(block_map(*absent))
        assert places["embed"][1] < line_points.min(axis=(0, 1))[1]
        assert line_points.max(axis=(0, 1))[1] < places["unembed"][1]


def test_lines_carry_their_shapes_and_the_block_its_count():
    names = words(block_map(layers=2))
    assert names.count("(T, d_model)") == 3
    shape_labels = {"residual stream (T, d_model)", "(T, vocabulary)", "ids (T,)", "× 2 blocks"}
    assert shape_labels < set(names)
    assert "× 1 block" in words(block_map(layers=1))


def test_what_a_model_lacks_is_dashed_with_pale_names_and_the_table_says_so():
    assert n_dashed_shapes(block_map()) == 0
    assert n_dashed_shapes(block_map("norm")) == 3
    assert n_dashed_shapes(block_map("norm", "MLP")) > n_dashed_shapes(block_map("MLP")) > 3
    (table,) = block_map("norm", "MLP").tables
    kept = [name for name, row in zip(table.rows, table.cells, strict=True) if row[-1] == "yes"]
    assert kept == ["embed", "attend", "add", "unembed"]
    assert block_map("norm", "MLP").alt.endswith("model: without norm and MLP.")
    assert {*block_map().tables[0].cells[:, -1]} == {"yes"}
    mlp_free_column = block_map("MLP").tables[0].cells[:, -1].tolist()
    assert mlp_free_column == ["yes"] * 4 + ["no"] * 3 + ["yes"] * 2
    for absent, faded in (((), []), (("norm",), ["norm"] * 3), (("MLP",), ["MLP", "add", "norm"])):
        names = [t.text for t in texts(block_map(*absent)) if "opacity" in t.get("style")]
        assert sorted(names) == ["(T, d_model)"] * ("MLP" in absent) + faded


def test_the_count_of_blocks_stands_free_of_their_parts():
    [y] = [y for y, _, text in labels(block_map(layers=2)) if text == "× 2 blocks"]
    line_texts = [text for v, u, text in labels(block_map(layers=2)) if abs(v - y) < 17 and u > 120]
    assert line_texts == ["× 2 blocks"], "no name on its line to the right of the stream"


def test_two_models_stand_beside_each_other_on_a_desk():
    figure = figures.block_map({"a block": (), "TinyModel": ("norm", "MLP")}, layers=2, caption="")
    assert 2 * int(re.search(r"min\(100%,(\d+)px", figure.svg)[1]) + 16 <= 692
    assert {"a block", "TinyModel"} < {*words(figure)}
