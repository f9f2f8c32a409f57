"""The tiles in Chromium: what is said, and that any order ends as plain attention does."""

import pytest

from tests.site.browsing import RECALL, press, said
from tests.site.showing import assert_shows
from tutorial_lib.elements.exhibits import fold_tiles
from tutorial_lib.elements.exhibits.tiles.element import draw_tiles

BARK = "(6/7, 3/7, 4/7, 1/7)"


@pytest.fixture
def tiles(show):
    """The tiles on a page of their own."""
    return show(fold_tiles().html).locator("tl-tiles")


def test_each_step_is_told_and_the_end_answers_the_question(tiles):
    press(tiles, "Start over")
    told = []
    for _ in range(6):
        press(tiles, "Next tile")
        told.append(said(tiles))
    held = "16 numbers are held, the table has 36."
    assert told[0] == f"Queries 0–1, keys 0–1: no old maximum rises; {held}"
    assert told[4] == (
        "Queries 4–5, keys 2–3: a higher maximum for query 4, so old total and mixed are "
        f"multiplied by 1/2; {held}"
    )
    assert told[5] == (
        f"After 6 tiles, 3 more skipped, bark ends at {BARK}, and all outputs are plain "
        "attention's; at most 16 numbers were held, the table has 36."
    )
    assert_shows(tiles, draw_tiles(tiles="0.3.4.6.7.8"))
    press(tiles, "Next tile")
    assert said(tiles) == "All pairs are in: start over, or choose anew."
    press(tiles, "Start over")
    assert said(tiles) == (
        "9 tiles of 2 queries by 2 keys, row by row: 3 of them wholly beyond the mask."
    )
    assert_shows(tiles, draw_tiles(tiles=""))


@pytest.mark.parametrize(
    ("name", "order", "end"),
    [("By columns", "columns", "0.3.6.4.7.8"), ("Last keys first", "last", "0.4.3.8.7.6")],
)
def test_another_order_begins_anew_and_takes_the_tiles_so(tiles, name, order, end):
    press(tiles, "All the rest", name)
    assert_shows(tiles, draw_tiles(order=order, tiles=""))
    press(tiles, "All the rest")
    link = tiles.get_by_role("link", name="Link to these tiles").get_attribute("href")
    assert link == f"#tiles=0&order={order}&tiles={end}"


@pytest.mark.parametrize(
    ("rows", "keys", "held"),  # column by column, all queries wait with what they have so far
    [(1, 1, (7, 31, 7)), (3, 5, (33, 33, 33)), (4, 3, (36, 36, 36))],
)
def test_no_size_and_no_order_ends_elsewhere_than_plain_attention(tiles, rows, keys, held):
    for order, most in zip(("rows", "columns", "last"), held, strict=True):
        tiles.evaluate(RECALL, f"rows={rows}&keys={keys}&order={order}&tiles=")
        press(tiles, "All the rest")
        assert f"bark ends at {BARK}, and all outputs are plain attention's" in said(tiles)
        assert f"at most {most} numbers were held" in said(tiles)
        assert tiles.locator(".tl-held .tl-right").count() == 6


def test_without_the_factor_outputs_are_wrong_and_it_is_said(tiles):
    press(tiles, "Last keys first", "No factor")
    assert said(tiles).endswith("beyond the mask, and what is old will not be shrunk.")
    tiles.evaluate(RECALL, "rows=1&keys=1&order=last&factor=no&tiles=")
    press(tiles, "All the rest")
    assert said(tiles) == (
        "All pairs are in, but 5 of 6 outputs are wrong: query 2, bark, ends at "
        f"(4/5, 3/5, 2/5, 1/5) in place of {BARK}."
    )


def test_worked_by_keys_alone_and_tiles_are_taken_in_any_order(tiles):
    page = tiles.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert said(tiles).startswith("6 tiles of 3 queries by 2 keys, row by row: 1 of them wholly")
    for key in ("Tab", "Home", *["Tab"] * 9, *["ArrowDown"] * 2, "ArrowRight", "Enter"):
        page.keyboard.press(key)
    label = "() => document.activeElement.ariaLabel"
    assert page.evaluate(label) == "query 2 bark, key 1 that: score −1, just folded in"
    for key in ("ArrowRight", "Space", "ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert_shows(tiles, draw_tiles(rows=3, keys=1, tiles="1.2.0"))
    assert said(tiles) == (
        "Queries 0–2, key 0: a higher maximum for query 1 and query 2, so old total and mixed "
        "are multiplied by 1/4 and 1/2; 21 numbers are held, the table has 36."
    )
    page.keyboard.press("Enter")
    assert said(tiles) == "The tile of queries 0–2, key 0 is in already."
    rows = tiles.locator(".tl-scores tbody tr")
    rows.nth(0).locator("td").nth(5).click()
    assert said(tiles) == (
        "The tile of queries 0–2, key 5 lies wholly beyond the mask, so it is skipped."
    )
    rows.nth(5).locator("td").nth(5).click()
    assert_shows(tiles, draw_tiles(rows=3, keys=1, tiles="1.2.0.11"))
