"""The board of all heads in Chromium: its maps and rings are the record's, by any means."""

import re

import numpy as np
import pytest

from tests.elements.test_heads import FOUND, HEADS, weights
from tests.sampling import long
from tests.site.browsing import PHONE, RECALL, SET, said
from tutorial_lib.elements.exhibits import head_maps

WEIGHTS = weights()
GROUPS = {name: [f"{x}.{h}" for x, h in g["heads"]] for name, g in FOUND["groups"].items()}
FIRST = {"head": "16.0", "group": ""}
# Of the large map its title and, of each cell, tint and number; the rings; the switch; the line.
SEEN = """(root) => {
  const those = (selector) => [...root.querySelectorAll(selector)];
  const names = (selector) => those(selector).map((c) => c.ariaLabel.match(/\\d+/g).join("."));
  return {
    title: root.querySelector(".tl-large b").textContent,
    cells: those(".tl-large tbody td").map((c) => [c.style.getPropertyValue("--n"), c.textContent]),
    large: names("[aria-selected=true]"),
    rings: names("[role=row] > [data-on]"),
    group: root.querySelector("[aria-pressed=true]")?.textContent ?? "",
    about: root.querySelector(".tl-group").textContent,
  };
}"""
TELL = "() => { told = []; addEventListener('tl-work', (e) => told.push(e.detail)); }"


def agrees(board, state):
    """Compare all that is seen with the record."""
    seen, (layer, head) = board.evaluate(SEEN), map(int, state["head"].split("."))
    percent = ["" if np.isnan(n) else f"{100 * n:.0f}" for n in WEIGHTS[layer, head].flat]
    assert seen["cells"] == [[n, n if n != "0" else ""] for n in percent]
    assert (seen["title"], seen["group"]) == (f"Layer {layer}, head {head}", state["group"])
    assert seen["large"] == [state["head"]]
    assert sorted(seen["rings"]) == sorted(GROUPS.get(state["group"], []))
    about = FOUND["groups"].get(state["group"], {"about": "No group is ringed."})["about"]
    assert seen["about"] == re.sub(r"[*`]", "", about)


def follow(board, query, words):
    """Follow a link, and wait for what is said of it."""
    board.page.evaluate(SET, f"#{query}")
    board.locator("[aria-live]").get_by_text(words).wait_for()


@pytest.fixture
def board(show):
    """The board on a page of its own."""
    return show(head_maps().html).locator("tl-heads")


@pytest.mark.parametrize("count", [4, *long(60)])
def test_every_map_and_ring_is_the_records_and_a_state_is_put_back_in_silence(board, count):
    rng = np.random.default_rng(25)
    heads = [f"{rng.integers(30)}.{rng.integers(HEADS)}" for _ in range(count)]
    states = [{"head": h, "group": [*GROUPS, ""][(i - 2) % 6]} for i, h in enumerate(heads)]
    queries = ["&".join(f"{key}={text}" for key, text in s.items() if text) for s in states]
    for state, query in zip([*states, FIRST], [*queries, ""], strict=True):
        assert board.evaluate(RECALL, query) is True
        agrees(board, state)
        assert board.get_by_role("link").get_attribute("href") == f"#heads=0&{query}".rstrip("&")
    assert board.locator("[aria-live]").text_content() == ""
    for state, query in zip(states, queries, strict=True):
        size = len(GROUPS.get(state["group"], []))
        ringed = f"{size} of 270 heads are ringed: those of the group {state['group']}."
        title = "Layer {}, head {}".format(*state["head"].split("."))
        follow(board, f"heads=0&{query}", ringed if size else title)
        agrees(board, state)


def test_worked_only_by_keys_and_the_page_is_told_of_each_change(board):
    page, press = board.page, board.page.keyboard.press
    page.evaluate(TELL)
    for key in ["Tab", "Enter", *["Tab"] * 7, "ArrowDown"]:  # five groups, Reset, link, large map
        press(key)
    assert said(board) == f"“Mary” gives “When” a weight of {WEIGHTS[16, 0, 1, 0]:.2f}."
    for key in ("Tab", "End", "ArrowDown"):
        press(key)
    agrees(board, {"head": "16.0", "group": "sink"})
    assert said(board).startswith("Layer 1, head 8: Enter")
    press("Enter")
    agrees(board, {"head": "1.8", "group": "sink"})
    most = f"“to (13)” gives the most, {WEIGHTS[1, 8, -1].max():.2f}, to “"
    assert said(board).startswith(f"Layer 1, head 8: {most}")
    assert board.locator("[role=grid]:has([tabindex='0'])").count() == 2
    assert board.locator("[role=grid] [tabindex='0']").count() == 2
    board.get_by_role("button", name="Reset").press("Enter")
    agrees(board, FIRST)
    states = [change["state"] for change in page.evaluate("() => told")]
    assert states == ["group=sink", "head=1.8&group=sink", ""]


@pytest.mark.long
def test_worked_by_touch(show):
    board = show(head_maps().html, **PHONE).locator("tl-heads")
    board.get_by_label(re.compile("^Layer 29, head 8")).tap()
    agrees(board, FIRST | {"head": "29.8"})
    assert board.locator(".tl-large").bounding_box()["y"] >= 0  # in sight, above what was touched
