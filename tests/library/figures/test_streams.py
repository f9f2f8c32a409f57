"""The second map."""

import functools
import re

import numpy as np

from tests.library.figures.reading import paths, points_of, spots, texts, words
from tutorial_lib import figures


@functools.cache
def block_map(*lacks, layers="L"):
    """The map of one model."""
    return figures.block_map({"model": lacks}, layers=layers, caption="")


def labels(figure):
    """The texts of a picture with their places, from the top down."""
    return sorted((float(t.get("y")), float(t.get("x")), t.text) for t in texts(figure))


def dashed(figure):
    """How many shapes of a picture are dashed."""
    return sum("stroke-dasharray" in path.get("style") for path in paths(figure))


def test_the_steps_run_down_in_their_order():
    names = [name for *_, name in labels(block_map()) if not re.search(r"\(|blocks", name)]
    attend = ["norm", "attend", "project", "score", "mix", "concat", "project out", "add"]
    assert names == ["model", "embed", *attend, "norm", "MLP", "add", "norm", "unembed"]


def test_the_stream_is_a_thick_line_from_embed_to_the_end_parted_by_each_add():
    for lacks, parts in (((), 3), (("MLP",), 2), (("norm", "MLP"), 2)):
        thick = [p for p in paths(block_map(*lacks)) if "stroke-width:4" in p.get("style")]
        points = np.array([*map(points_of, thick)])
        assert len(points) == parts
        assert len(set(points[..., 0].ravel())) == 1, "straight down"
        place = spots(block_map(*lacks))
        assert place["embed"][1] < points.min(axis=(0, 1))[1]
        assert points.max(axis=(0, 1))[1] < place["unembed"][1]


def test_lines_carry_their_shapes_and_the_block_its_count():
    names = words(block_map(layers=2))
    assert names.count("(T, d_model)") == 3
    others = {"residual stream (T, d_model)", "(T, vocabulary)", "ids (T,)", "× 2 blocks"}
    assert others < set(names)
    assert "× L blocks" in words(block_map())
    assert "× 1 block" in words(block_map(layers=1))


def test_what_a_model_lacks_is_dashed_with_pale_names_and_the_table_says_so():
    assert dashed(block_map()) == 0
    assert dashed(block_map("norm")) == 3
    assert dashed(block_map("norm", "MLP")) > dashed(block_map("MLP")) > 3
    (table,) = block_map("norm", "MLP").tables
    steps = [name for name, row in zip(table.rows, table.cells, strict=True) if row[-1] == "yes"]
    assert steps == ["embed", "attend", "add", "unembed"]
    assert block_map("norm", "MLP").alt.endswith("model: without norm and MLP.")
    assert {*block_map().tables[0].cells[:, -1]} == {"yes"}
    without_mlp = block_map("MLP").tables[0].cells[:, -1].tolist()
    assert without_mlp == ["yes"] * 4 + ["no"] * 3 + ["yes"] * 2
    for lacks, pale in (((), []), (("norm",), ["norm"] * 3), (("MLP",), ["MLP", "add", "norm"])):
        names = [t.text for t in texts(block_map(*lacks)) if "opacity" in t.get("style")]
        assert sorted(names) == ["(T, d_model)"] * ("MLP" in lacks) + pale


def test_the_count_of_blocks_stands_free_of_their_parts():
    [y] = [y for y, _, text in labels(block_map(layers=2)) if text == "× 2 blocks"]
    neighbours = [text for v, u, text in labels(block_map(layers=2)) if abs(v - y) < 17 and u > 120]
    assert neighbours == ["× 2 blocks"], "no name on its line to the right of the stream"


def test_two_models_stand_beside_each_other_on_a_desk():
    figure = figures.block_map({"a block": (), "TinyModel": ("norm", "MLP")}, caption="")
    assert 2 * int(re.search(r"min\(100%,(\d+)px", figure.svg)[1]) + 16 <= 692
    assert {"a block", "TinyModel"} < {*words(figure)}
