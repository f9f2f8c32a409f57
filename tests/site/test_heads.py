"""The board of all heads in Chromium: its maps and rings are the record's, by any means."""

import re

import pytest

from tests.elements.test_heads import FOUND, weights
from tests.site.browsing import PHONE, said
from tests.site.showing import assert_shows
from tutorial_lib.elements.exhibits import head_maps
from tutorial_lib.elements.exhibits.heads.element import draw_attention_map_atlas

WEIGHTS = weights()
GROUPS = {name: [f"{x}.{h}" for x, h in g["heads"]] for name, g in FOUND["groups"].items()}
RINGS = """(root) => [...root.querySelectorAll("[role=row] > [data-on]")]
  .map((cell) => cell.ariaLabel.match(/\\d+/g).join("."))"""
TELL = "() => { told = []; addEventListener('tl-work', (e) => told.push(e.detail)); }"


def agrees(board, **state):
    """Compare all that is seen with Python's, and the rings with the record's."""
    assert_shows(board, draw_attention_map_atlas(**state))
    assert sorted(board.evaluate(RINGS)) == sorted(GROUPS.get(state.get("group"), []))


@pytest.fixture
def board(show):
    """The board on a page of its own."""
    return show(head_maps().html).locator("tl-heads")


def test_a_group_is_ringed_and_counted(board):
    for name, heads in GROUPS.items():
        board.get_by_role("button", name=name, exact=True).click()
        agrees(board, group=name)
        assert said(board) == f"{len(heads)} of 270 heads are ringed: those of the group {name}."
    board.get_by_role("button", name=name, exact=True).click()
    agrees(board)


def test_worked_only_by_keys_and_the_page_is_told_of_each_change(board):
    page, press = board.page, board.page.keyboard.press
    page.evaluate(TELL)
    for key in ["Tab", "Enter", *["Tab"] * 7, "ArrowDown"]:  # five groups, Reset, link, large map
        press(key)
    assert said(board) == f"“Mary” gives “When” a weight of {WEIGHTS[16, 0, 1, 0]:.2f}."
    for key in ("Tab", "End", "ArrowDown"):
        press(key)
    agrees(board, group="sink")
    assert said(board).startswith("Layer 1, head 8: Enter")
    press("Enter")
    agrees(board, head="1.8", group="sink")
    most = f"“to (13)” gives the most, {WEIGHTS[1, 8, -1].max():.2f}, to “"
    assert said(board).startswith(f"Layer 1, head 8: {most}")
    assert board.locator("[role=grid]:has([tabindex='0'])").count() == 2
    assert board.locator("[role=grid] [tabindex='0']").count() == 2
    board.get_by_role("button", name="Reset").press("Enter")
    agrees(board)
    states = [change["state"] for change in page.evaluate("() => told")]
    assert states == ["group=sink", "head=1.8&group=sink", ""]


@pytest.mark.long
def test_worked_by_touch(show):
    board = show(head_maps().html, **PHONE).locator("tl-heads")
    board.get_by_label(re.compile("^Layer 29, head 8")).tap()
    agrees(board, head="29.8")
    assert board.locator(".tl-large").bounding_box()["y"] >= 0  # in sight, above what was touched
