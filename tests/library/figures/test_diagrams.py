"""Block diagrams."""

import numpy as np
import pytest

from tests.library.figures.drawing import PAIR, diagram
from tests.library.figures.reading import colours_of, paths, pictures, points_of, spots, texts
from tutorial_lib import figures
from tutorial_lib.figures import Block, Diagram, ink


def is_block(path):
    """Whether a path is closed and has four corners; a head has three."""
    return path.get("d").endswith("z") and len(points_of(path)) > 3


def blocks_of(figure):
    """The paths of the blocks, in the order in which they are given."""
    return list(filter(is_block, paths(figure)))


def frames(figure):
    """The left, top, right and bottom edge of each block."""
    points = [points_of(path) for path in blocks_of(figure)]
    return np.array([[*corners.min(axis=0), *corners.max(axis=0)] for corners in points])


def lines_and_heads(figure):
    """The points of each arrow's line, and of its head."""
    points = [points_of(path) for path in paths(figure) if not is_block(path)]
    return list(zip(points[::2], points[1::2], strict=True))


def test_blocks_stand_where_their_units_say():
    figure = diagram(PAIR | {"c": Block(-1, 3, "c")}, unit=(60, 40))
    a, b, c = frames(figure)
    np.testing.assert_allclose(b[:2] - a[:2], (120, 0), atol=0.2)
    np.testing.assert_allclose(c[:2] - a[:2], (-60, 120), atol=0.2)
    np.testing.assert_allclose(a[2:] - a[:2], (57, 37), atol=0.2)  # neighbours stay apart
    np.testing.assert_allclose(b[2:] - b[:2], (27, 77), atol=0.2)
    small = frames(diagram({"a": Block(0, 0, width=120, height=80)}, unit=(0.5, 0.5)))
    assert small.tolist() == frames(diagram({"a": Block(0, 0)}, unit=(60, 40))).tolist()


def test_the_lines_of_a_text_stand_in_the_middle_of_their_block():
    figure = diagram({"dY": Block(0, 0, "dY\n(3, 4)"), "dX": Block(2, 1, "dX")})
    dY, dX = frames(figure)
    place = spots(figure)
    assert {"dY", "(3, 4)", "dX", "map"} == set(place)
    assert place["dY"][0] == place["(3, 4)"][0] == pytest.approx(dY[[0, 2]].mean(), abs=0.2)
    assert dY[1] < place["dY"][1] < place["(3, 4)"][1] < dY[3]
    assert dX[1] < place["dX"][1] < dX[3]


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
    place = spots(figure)
    assert place["to"][1] < to[0][1] < back[0][1] < place["back"][1]


def test_an_arrow_walks_around_the_blocks_between():
    row = {name: Block(2 * n, 0, name) for n, name in enumerate("abc")}
    column = {name: Block(0, 2 * n, name) for n, name in enumerate("abc")}
    floor = {f"below {name}": Block(2 * n, 1.2, name) for n, name in enumerate("abc")}
    ways = {}
    for way, blocks in {"below": row, "beside": column, "above": row | floor}.items():
        figure = diagram(blocks, ("c", "a", "again"))
        ((ways[way], _),) = lines_and_heads(figure)
        assert len(ways[way]) == 4
        assert len(set(ways[way][1:3, 0 if way == "beside" else 1])) == 1
    assert spots(figure)["again"][1] < ways["above"][1][1] < frames(figure)[:, 1].min() - 10
    assert ways["below"][1][1] > frames(diagram(row))[:, 3].max() + 10
    assert ways["beside"][1][0] > frames(diagram(column))[:, 2].max() + 10
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
    figure, head = diagram(blocks), figures.HEAD_COLOURS[1]
    pale, strong = colours_of(ink.SEQUENTIAL, (25, 100))
    styles = [path.get("style") for path in blocks_of(figure)]
    for style, fill in zip(styles, ("none", head, pale, strong, "none"), strict=True):
        assert f"fill:{fill}" in style
    assert "stroke:currentColor" in styles[0]
    assert f"stroke:{head}" in styles[3]
    assert ["dasharray" in style for style in styles] == [False] * 4 + [True]
    fills = {t.text: t.get("style") for t in texts(figure)}
    assert fills["own"].endswith("fill:#fff")
    assert "fill:#000" in fills["tint"]
    assert head in fills["later"]


def test_tables_of_a_diagram_say_texts_tints_and_arrows():
    blocks = {"Q": Block(0, 0, "Q of\nbark", shade=0.25), "K": Block(2, 0), "S": Block(4, 0, "S")}
    table = diagram(blocks, ("Q", "K", "@"), ("Q", "S"), ("K", "S")).tables[0]
    assert table.columns == ["text", "tint", "arrows to"]
    assert table.rows == ["Q", "K", "S"]
    assert table.cells.tolist() == [["Q of bark", "0.25", "K (@), S"], ["", "", "S"], ["S", "", ""]]
    assert diagram(PAIR).tables[0].columns == ["text"]


def test_a_phone_has_narrower_blocks_on_one_scale_for_all_panels_and_as_wide_as_their_texts():
    short = {n: Block(n, 0, "1234") for n in range(3)}
    long = {n: Block(n, 0, "1234") for n in range(9)}
    panels = {"short": Diagram(short), "long": Diagram(long)}
    figure = figures.block_diagram(panels, unit=(76, 40), caption="", alt="Two rows.")
    assert [table.title for table in figure.tables] == ["short", "long"]
    assert figure.alt == "Two rows."
    for phone, width in ((False, 76), (True, 76 * 0.5)):
        for picture, count in zip(pictures(figure, phone=phone), (3, 9), strict=True):
            lefts = frames(picture)[:, 0]
            assert len(lefts) == count
            np.testing.assert_allclose(np.diff(lefts), width, atol=0.2)
