"""Block diagrams."""

import re

import numpy as np
import pytest

from tests.library.figures.drawing import PAIR, SVG, diagram, parsed, texts
from tutorial_lib import figures
from tutorial_lib.figures import Block, Diagram, ink


def points_of(path):
    """The points of a path."""
    return np.array(re.findall(r"([-\d.]+) ([-\d.]+)", path.get("d")), dtype=float)


def is_block(path):
    """Whether a path is closed and has four corners; a head has three."""
    return path.get("d").endswith("z") and len(points_of(path)) > 3


def blocks_of(figure):
    """The paths of the blocks, in the order in which they are given."""
    return list(filter(is_block, parsed(figure).iter(f"{SVG}path")))


def frames(figure):
    """The left, top, right and bottom edge of each block."""
    points = [points_of(path) for path in blocks_of(figure)]
    return np.array([[*corners.min(axis=0), *corners.max(axis=0)] for corners in points])


def lines_and_heads(figure):
    """The points of each arrow's line, and of its head."""
    points = [points_of(p) for p in parsed(figure).iter(f"{SVG}path") if not is_block(p)]
    return list(zip(points[::2], points[1::2], strict=True))


def test_blocks_stand_where_their_units_say():
    figure = diagram(PAIR | {"c": Block(-1, 3, "c")}, unit=(60, 40))
    a, b, c = frames(figure)
    np.testing.assert_allclose(b[:2] - a[:2], (120, 0), atol=0.2)
    np.testing.assert_allclose(c[:2] - a[:2], (-60, 120), atol=0.2)
    np.testing.assert_allclose(a[2:] - a[:2], (57, 37), atol=0.2)  # neighbours stay apart
    np.testing.assert_allclose(b[2:] - b[:2], (27, 77), atol=0.2)


def test_a_unit_may_be_less_than_a_pixel():
    wide = {"a": Block(0, 0, "a", width=120, height=80)}
    small, large = diagram(wide, unit=(0.5, 0.5)), diagram({"a": Block(0, 0, "a")}, unit=(60, 40))
    assert frames(small)[0].tolist() == frames(large)[0].tolist()


def test_the_lines_of_a_text_stand_in_the_middle_of_their_block():
    figure = diagram({"dY": Block(0, 0, "dY\n(3, 4)"), "dX": Block(2, 1, "dX")})
    first, second = frames(figure)
    place = {t.text: (float(t.get("x")), float(t.get("y"))) for t in texts(figure)}
    assert {"dY", "(3, 4)", "dX", "map"} == set(place)
    assert place["dY"][0] == place["(3, 4)"][0] == pytest.approx(first[[0, 2]].mean(), abs=0.2)
    assert first[1] < place["dY"][1] < place["(3, 4)"][1] < first[3]
    assert second[1] < place["dX"][1] < second[3]


@pytest.mark.parametrize(
    ("to", "start", "end"),
    [
        ((2, 0), (1, 0.5), (2, 0.5)),
        ((-2, 0), (0, 0.5), (-1, 0.5)),
        ((0, 2), (0.5, 1), (0.5, 2)),
        ((0, -3), (0.5, 0), (0.5, -2)),
        ((2, 0.5), (1, 0.75), (2, 0.75)),  # in the middle of what both have in common
        ((2, 2), (1, 0.82), (2, 2.18)),  # not quite from corner to corner
        ((2, -2), (1, 0.18), (2, -1.18)),
        ((1.2, 3), (0.82, 1), (1.38, 3)),
        ((2, 1), (1, 0.82), (2, 1.18)),
    ],
)
def test_an_arrow_takes_the_shortest_way_from_edge_to_edge(to, start, end):
    figure = diagram({"a": Block(0, 0, "a"), "b": Block(*to, "b")}, ("a", "b"), unit=(50, 50))
    ((line, head),) = lines_and_heads(figure)
    corner = frames(figure)[0][:2] - 1.5
    np.testing.assert_allclose((line[0] - corner) / 50, start, atol=0.03)
    tip = head[np.argmin(np.linalg.norm(head - (np.array(end) * 50 + corner), axis=1))]
    np.testing.assert_allclose((tip - corner) / 50, end, atol=0.06)
    assert np.ptp(head, axis=0).max() > 6, "the head is large enough to see"


def test_an_arrow_from_corner_to_corner_leaves_by_the_edge_that_is_free():
    blocks = {"a": Block(0, 0, "a"), "b": Block(2, 2, "b")}
    ((right, _),) = lines_and_heads(diagram(blocks, ("a", "b"), unit=(50, 50)))
    ((down, _),) = lines_and_heads(diagram(blocks | {"c": Block(1, 0)}, ("a", "b"), unit=(50, 50)))
    left, top, *_ = frames(diagram(blocks, unit=(50, 50)))[0] - 1.5
    np.testing.assert_allclose(right[0], (left + 50, top + 41), atol=0.2)
    np.testing.assert_allclose(down[0], (left + 41, top + 50), atol=0.2)


def test_an_arrow_and_the_arrow_back_lie_beside_each_other():
    figure = diagram(PAIR, ("a", "b", "to"), ("b", "a", "back"))
    (to, _), (back, _) = lines_and_heads(figure)
    assert to[0][1] < back[0][1] - 8
    place = {t.text: float(t.get("y")) for t in texts(figure)}
    assert place["to"] < to[0][1] < back[0][1] < place["back"]


def test_an_arrow_walks_around_the_blocks_between():
    row = {name: Block(2 * n, 0, name) for n, name in enumerate("abc")}
    column = {name: Block(0, 2 * n, name) for n, name in enumerate("abc")}
    ((below, _),) = lines_and_heads(diagram(row, ("c", "a", "again")))
    assert len(below) == 4
    assert below[1][1] == below[2][1] > frames(diagram(row))[:, 3].max() + 10
    ((beside, _),) = lines_and_heads(diagram(column, ("a", "c")))
    assert len(beside) == 4
    assert beside[1][0] == beside[2][0] > frames(diagram(column))[:, 2].max() + 10
    floor = {f"below {name}": Block(2 * n, 1.2, name) for n, name in enumerate("abc")}
    figure = diagram(row | floor, ("c", "a", "again"))
    ((above, _),) = lines_and_heads(figure)
    assert above[1][1] == above[2][1] < frames(figure)[:, 1].min() - 10
    place = {t.text: float(t.get("y")) for t in texts(figure)}
    assert place["again"] < above[1][1]
    ((straight, _),) = lines_and_heads(diagram(row, ("c", "b")))
    assert len(straight) == 2


def test_heads_tints_and_dashes_of_blocks():
    blocks = {
        "plain": Block(0, 0, "plain"),
        "own": Block(1, 0, "own", head=5),
        "tint": Block(2, 0, "tint", shade=0.25),
        "both": Block(3, 0, "both", head=1, shade=1),
        "later": Block(4, 0, "later", head=1, dashed=True),
    }
    figure = diagram(blocks)
    styles = [path.get("style") for path in blocks_of(figure)]
    plain, own, tint, both, later = styles
    assert "fill:none" in plain
    assert "stroke:currentColor" in plain
    assert f"fill:{figures.HEAD_COLOURS[1]}" in own
    assert f"fill:{ink.STAND_INS[ink.SEQUENTIAL.cells[25]][0]}" in tint
    assert f"fill:{ink.STAND_INS[ink.SEQUENTIAL.cells[100]][0]}" in both
    assert f"stroke:{figures.HEAD_COLOURS[1]}" in both
    assert "fill:none" in later
    assert ["dasharray" in style for style in styles] == [False] * 4 + [True]
    fills = {t.text: re.sub(r".*\bfill:", "", t.get("style")) for t in texts(figure)}
    assert fills["own"] == "#fff"
    assert "#000" in fills["tint"]
    assert figures.HEAD_COLOURS[1] in {t.text: t.get("style") for t in texts(figure)}["later"]


def test_tables_of_a_diagram_say_texts_tints_and_arrows():
    blocks = {"Q": Block(0, 0, "Q of\nbark", shade=0.25), "K": Block(2, 0), "S": Block(4, 0, "S")}
    table = diagram(blocks, ("Q", "K", "@"), ("Q", "S"), ("K", "S")).tables[0]
    assert table.columns == ["text", "tint", "arrows to"]
    assert table.rows == ["Q", "K", "S"]
    assert table.cells.tolist() == [["Q of bark", "0.25", "K (@), S"], ["", "", "S"], ["S", "", ""]]
    assert diagram(PAIR).tables[0].columns == ["text"]


def test_panels_of_a_diagram_stand_side_by_side_each_with_its_table():
    panels = {"step 0": Diagram(PAIR), "step 1": Diagram(PAIR, [("a", "b")])}
    figure = figures.block_diagram(panels, caption="", alt="Two steps.")
    assert len(list(parsed(figure).iter(f"{SVG}svg"))) == 2
    assert [table.title for table in figure.tables] == ["step 0", "step 1"]
    assert figure.alt == "Two steps."


def test_a_phone_has_narrower_blocks_on_one_scale_for_all_panels_and_as_wide_as_their_texts():
    short = {n: Block(n, 0, "1234") for n in range(3)}
    long = {n: Block(n, 0, "1234") for n in range(9)}
    panels = {"short": Diagram(short), "long": Diagram(long)}
    figure = figures.block_diagram(panels, unit=(76, 40), caption="", alt="Blocks.")
    for phone, width in ((False, 76), (True, 76 * 0.5)):
        pictures = list(parsed(figure, phone=phone).iter(f"{SVG}svg"))
        for picture, count in zip(pictures, (3, 9), strict=True):
            boxes = [points_of(p) for p in picture.iter(f"{SVG}path") if is_block(p)]
            lefts = [points[:, 0].min() for points in boxes]
            assert len(lefts) == count
            np.testing.assert_allclose(np.diff(lefts), width, atol=0.2)
