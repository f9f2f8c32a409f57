"""The second map."""

import functools
import re

import numpy as np
import pytest

from tests.library.figures.drawing import SVG, parsed, texts
from tutorial_lib import figures

STEPS = ["norm", "attend", "add", "norm", "MLP", "add"]


@functools.cache
def block_map(*lacks, layers="L"):
    """The map of one model."""
    return figures.block_map({"model": lacks}, layers=layers, caption="")


def written(figure):
    """The texts of a picture with their places, from the top down."""
    found = [(float(t.get("y")), float(t.get("x")), t.text) for t in texts(figure)]
    return sorted(found)


def dashed(figure):
    """How many shapes of a picture are dashed."""
    styles = [p.get("style") for p in parsed(figure).iter(f"{SVG}path")]
    return sum("stroke-dasharray" in style for style in styles)


def test_the_steps_run_down_in_their_order():
    names = [text for *_, text in written(block_map()) if not text.startswith(("(", "ids"))]
    kept = [name for name in names if name in ("embed", *STEPS, "unembed")]
    assert kept == ["embed", *STEPS, "norm", "unembed"]
    assert names[names.index("attend") + 1 : names.index("attend") + 6] == [
        "project",
        "score",
        "mix",
        "concat",
        "project out",
    ]


def test_the_stream_is_a_thick_line_from_embed_to_the_end_parted_by_each_add():
    for lacks, parts in (((), 3), (("MLP",), 2), (("norm", "MLP"), 2)):
        paths = parsed(block_map(*lacks)).iter(f"{SVG}path")
        thick = [p.get("d") for p in paths if "stroke-width:4" in p.get("style")]
        points = np.array([re.findall(r"([\d.]+) ([\d.]+)", d) for d in thick], float)
        assert len(points) == parts
        assert len(set(points[..., 0].ravel())) == 1, "straight down"
        place = {text: y for y, _, text in written(block_map(*lacks))}
        assert place["embed"] < points.min(axis=(0, 1))[1]
        assert points.max(axis=(0, 1))[1] < place["unembed"]


def test_lines_carry_their_shapes_and_the_block_its_count():
    shown = [text for *_, text in written(block_map(layers=2))]
    assert shown.count("(T, d_model)") == 3
    assert {"residual stream (T, d_model)", "(T, vocabulary)", "ids (T,)", "× 2 blocks"} < set(
        shown
    )
    assert "× L blocks" in [text for *_, text in written(block_map())]


def test_what_a_model_lacks_is_dashed_and_the_table_says_so():
    assert dashed(block_map()) == 0
    assert dashed(block_map("norm")) == 3
    assert dashed(block_map("norm", "MLP")) > dashed(block_map("MLP")) > 3
    (table,) = block_map("norm", "MLP").tables
    there = dict(zip(enumerate(table.rows), table.cells[:, -1].tolist(), strict=True))
    assert [name for (_, name), word in there.items() if word == "yes"] == [
        "embed",
        "attend",
        "add",
        "unembed",
    ]
    assert block_map("norm", "MLP").alt.endswith("model: without norm and MLP.")
    (whole,) = block_map().tables
    assert set(whole.cells[:, -1].tolist()) == {"yes"}
    (fed,) = block_map("MLP").tables
    assert fed.cells[:, -1].tolist() == ["yes"] * 4 + ["no"] * 3 + ["yes"] * 2


def test_names_of_what_a_model_lacks_are_pale_and_no_others():
    faint = [t.text for t in texts(block_map("MLP")) if "opacity" in t.get("style")]
    assert sorted(faint) == ["(T, d_model)", "MLP", "add", "norm"]
    ends = [t.text for t in texts(block_map("norm")) if "opacity" in t.get("style")]
    assert ends == ["norm"] * 3
    assert not [t for t in texts(block_map()) if "opacity" in t.get("style")]


def test_the_count_of_blocks_stands_free_of_their_parts():
    [y] = [y for y, _, text in written(block_map(layers=2)) if text == "× 2 blocks"]
    near = [text for v, u, text in written(block_map(layers=2)) if abs(v - y) < 17 and u > 120]
    assert near == ["× 2 blocks"], "no name on its line to the right of the stream"
    assert "× 1 block" in [text for *_, text in written(block_map(layers=1))]


def test_two_models_stand_beside_each_other_on_a_desk():
    figure = figures.block_map({"a block": (), "TinyModel": ("norm", "MLP")}, caption="")
    assert 2 * int(re.search(r"min\(100%,(\d+)px", figure.svg)[1]) + 16 <= 692
    assert {"a block", "TinyModel"} < {text.text for text in texts(figure)}


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (ValueError, ["models is {}", "one"], lambda: figures.block_map({}, caption="")),
        (
            TypeError,
            ["'a' lacks 'norm'", "a tuple of names", "Give ()"],
            lambda: figures.block_map({"a": "norm"}, caption=""),
        ),
        (
            ValueError,
            ["'model' lacks 'add'", "norm, attend, MLP", "correct the name"],
            lambda: block_map("norm", "add"),
        ),
        (
            TypeError,
            ["layers is 2.0", "whole number"],
            lambda: figures.block_map({"a": ()}, layers=2.0, caption=""),
        ),
        (ValueError, ["layers=0", "at least 1"], lambda: block_map(layers=0)),
    ],
)
def test_what_is_no_part_is_refused(error, parts, call):
    with pytest.raises(error) as refused:
        call()
    for part in parts:
        assert part in str(refused.value)
