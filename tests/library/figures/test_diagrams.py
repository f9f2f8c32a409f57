"""Block diagrams."""

import numpy as np
import pytest

from tests.library.figures.drawing import PAIR, diagram
from tests.library.figures.reading import colours_of, paths, pictures, points_of, text_xy, texts
from tutorial_lib import figures
from tutorial_lib.figures import Block, Diagram, ink


def is_block(path):
    """Whether a path is closed and has four corners; a head has three."""
    return path.get("d").endswith("z") and len(points_of(path)) > 3


def blocks_of(figure):
    """The paths of the blocks, in the order in which they are given."""
    return list(filter(is_block, paths(figure)))


def edges(figure):
    """The left, top, right and bottom edge of each block."""
    path_points = [points_of(path) for path in blocks_of(figure)]
    return np.array([[*vertices.min(axis=0), *vertices.max(axis=0)] for vertices in path_points])


def lines_and_heads(figure):
    """The points of each arrow's line, and of its head."""
    path_points = [points_of(path) for path in paths(figure) if not is_block(path)]
    return list(zip(path_points[::2], path_points[1::2], strict=True))


def test_blocks_stand_where_their_units_say():
    figure = diagram(PAIR | {"c": Block(-1, 3, "c")}, unit=(60, 40))
    a, b, c = edges(figure)
    np.testing.assert_allclose(b[:2] - a[:2], (120, 0), atol=0.2)
    np.testing.assert_allclose(c[:2] - a[:2], (-60, 120), atol=0.2)
    np.testing.assert_allclose(a[2:] - a[:2], (57, 37), atol=0.2)  # neighbours stay apart
    np.testing.assert_allclose(b[2:] - b[:2], (27, 77), atol=0.2)
    small_frames = edges(diagram({"a": Block(0, 0, width=120, height=80)}, unit=(0.5, 0.5)))
    assert small_frames.tolist() == edges(diagram({"a": Block(0, 0)}, unit=(60, 40))).tolist()


def test_the_lines_of_a_text_stand_in_the_middle_of_their_block():
    figure = diagram({"dY": Block(0, 0, "dY\n(3, 4)"), "dX": Block(2, 1, "dX")})
    dY, dX = edges(figure)
    places = text_xy(figure)
    assert {"dY", "(3, 4)", "dX", "map"} == set(places)
    assert places["dY"][0] == places["(3, 4)"][0] == pytest.approx(dY[[0, 2]].mean(), abs=0.2)
    assert dY[1] < places["dY"][1] < places["(3, 4)"][1] < dY[3]
    assert dX[1] < places["dX"][1] < dX[3]


@pytest.mark.parametrize(
    ("xy", "arrow_start", "arrow_end"),
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
def test_an_arrow_takes_the_shortest_way_from_edge_to_edge(xy, arrow_start, arrow_end):
    figure = diagram({"a": Block(0, 0, "a"), "b": Block(*xy, "b")}, ("a", "b"), unit=(50, 50))
    ((line_points, head),) = lines_and_heads(figure)
    frame_corner = edges(figure)[0][:2] - 1.5
    np.testing.assert_allclose((line_points[0] - frame_corner) / 50, arrow_start, atol=0.03)
    tip = head[np.argmin(np.linalg.norm(head - (np.array(arrow_end) * 50 + frame_corner), axis=1))]
    np.testing.assert_allclose((tip - frame_corner) / 50, arrow_end, atol=0.06)
    assert np.ptp(head, axis=0).max() > 6, "the head is large enough to see"


def test_an_arrow_from_corner_to_corner_leaves_by_the_edge_that_is_free():
    blocks = {"a": Block(0, 0, "a"), "b": Block(2, 2, "b")}
    ((right_line, _),) = lines_and_heads(diagram(blocks, ("a", "b"), unit=(50, 50)))
    ((down, _),) = lines_and_heads(diagram(blocks | {"c": Block(1, 0)}, ("a", "b"), unit=(50, 50)))
    frame_left, frame_top, *_ = edges(diagram(blocks, unit=(50, 50)))[0] - 1.5
    np.testing.assert_allclose(right_line[0], (frame_left + 50, frame_top + 41), atol=0.2)
    np.testing.assert_allclose(down[0], (frame_left + 41, frame_top + 50), atol=0.2)


def test_an_arrow_and_the_arrow_back_lie_beside_each_other():
    figure = diagram(PAIR, ("a", "b", "to"), ("b", "a", "back"))
    (forward_line, _), (return_line, _) = lines_and_heads(figure)
    assert forward_line[0][1] < return_line[0][1] - 8
    places = text_xy(figure)
    assert places["to"][1] < forward_line[0][1] < return_line[0][1] < places["back"][1]


def test_an_arrow_walks_around_the_blocks_between():
    block_row = {name: Block(2 * n, 0, name) for n, name in enumerate("abc")}
    stack = {name: Block(0, 2 * n, name) for n, name in enumerate("abc")}
    below = {f"below {name}": Block(2 * n, 1.2, name) for n, name in enumerate("abc")}
    detours = {}
    for side, blocks in {"below": block_row, "beside": stack, "above": block_row | below}.items():
        figure = diagram(blocks, ("c", "a", "again"))
        ((detours[side], _),) = lines_and_heads(figure)
        assert len(detours[side]) == 4
        assert len(set(detours[side][1:3, 0 if side == "beside" else 1])) == 1
    assert text_xy(figure)["again"][1] < detours["above"][1][1] < edges(figure)[:, 1].min() - 10
    assert detours["below"][1][1] > edges(diagram(block_row))[:, 3].max() + 10
    assert detours["beside"][1][0] > edges(diagram(stack))[:, 2].max() + 10
    ((straight_line, _),) = lines_and_heads(diagram(block_row, ("c", "b")))
    assert len(straight_line) == 2


def test_heads_tints_and_dashes_of_blocks():
    blocks = {
        "plain": Block(0, 0, "plain"),
        "own": Block(1, 0, "own", head=5),
        "tint": Block(2, 0, "tint", shade=0.25),
        "both": Block(3, 0, "both", head=1, shade=1),
        "later": Block(4, 0, "later", head=1, dashed=True),
    }
    figure, head_colour = diagram(blocks), figures.HEAD_COLOURS[1]
    pale_colour, shade = colours_of(ink.SEQUENTIAL, (25, 100))
    styles = [path.get("style") for path in blocks_of(figure)]
    for style, fill in zip(styles, ("none", head_colour, pale_colour, shade, "none"), strict=True):
        assert f"fill:{fill}" in style
    assert "stroke:currentColor" in styles[0]
    assert f"stroke:{head_colour}" in styles[3]
    assert ["dasharray" in style for style in styles] == [False] * 4 + [True]
    text_styles = {t.text: t.get("style") for t in texts(figure)}
    assert text_styles["own"].endswith("fill:#fff")
    assert "fill:#000" in text_styles["tint"]
    assert head_colour in text_styles["later"]


def test_tables_of_a_diagram_say_texts_tints_and_arrows():
    blocks = {"Q": Block(0, 0, "Q of\nbark", shade=0.25), "K": Block(2, 0), "S": Block(4, 0, "S")}
    table = diagram(blocks, ("Q", "K", "@"), ("Q", "S"), ("K", "S")).tables[0]
    assert table.columns == ["text", "tint", "arrows to"]
    assert table.rows == ["Q", "K", "S"]
    assert table.cells.tolist() == [["Q of bark", "0.25", "K (@), S"], ["", "", "S"], ["S", "", ""]]
    assert diagram(PAIR).tables[0].columns == ["text"]


def test_a_phone_has_narrower_blocks_on_one_scale_for_all_panels_and_as_wide_as_their_texts():
    short_row = {n: Block(n, 0, "1234") for n in range(3)}
    long_row = {n: Block(n, 0, "1234") for n in range(9)}
    panels = {"short": Diagram(short_row), "long": Diagram(long_row)}
    figure = figures.block_diagram(panels, unit=(76, 40), caption="", alt="Two rows.")
    assert [table.title for table in figure.tables] == ["short", "long"]
    assert figure.alt == "Two rows."
    for phone, block_width in ((False, 76), (True, 76 * 0.5)):
        for picture, n_blocks in zip(pictures(figure, phone=phone), (3, 9), strict=True):
            left_edges = edges(picture)[:, 0]
            assert len(left_edges) == n_blocks
            np.testing.assert_allclose(np.diff(left_edges), block_width, atol=0.2)
