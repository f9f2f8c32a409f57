"""The mask to draw on in Chromium: pairs and receptive field are the library's, by any means."""

from itertools import pairwise

import numpy as np
import pytest

from tests.elements.test_drawing import PATTERNS
from tests.site.arrival import BUDGETS, do_references, largest_task, recorded
from tests.site.browsing import PHONE, RECALL, cell, middle, said, swipe
from tests.site.showing import assert_shows
from tutorial_lib.elements.exhibits import mask_drawing
from tutorial_lib.elements.exhibits.drawing.element import draw_drawing
from tutorial_lib.elements.exhibits.pairs import mask_to_hex
from tutorial_lib.variants.patterns import receptive_field

T, LAYERS = 16, 6
FIRST = {"mask": PATTERNS["window"], "causal": True, "layers": 1}
NAMES = dict(
    zip(PATTERNS, ["Window of 4", "Strided", "Longformer", "BigBird", "Full, causal"], strict=True)
)


def agrees(drawing, mask, causal, layers):
    """Compare all that is shown with Python's."""
    state = {"mask": mask_to_hex(mask), "causal": "yes" if causal else "no", "layers": layers}
    assert_shows(drawing, draw_drawing(**state))


def switched(mask, *pairs):
    """The mask with some pairs turned over."""
    mask = mask.copy()
    for pair in pairs:
        mask[pair] ^= True
    return mask


@pytest.fixture
def drawing(show):
    """The mask on a page of its own."""
    return show(mask_drawing().html).locator("tl-drawing")


def test_patterns_are_the_librarys_and_decide_whether_the_future_is_open(drawing):
    for key, name in NAMES.items():
        drawing.get_by_role("button", name=name).click()
        mask = PATTERNS[key]
        agrees(drawing, mask, causal=key not in ("longformer", "bigbird"), layers=1)
        assert f": {mask.sum()} of " in said(drawing)


def test_question_stays_and_the_slider_answers_it(drawing):
    question = drawing.get_by_text("after how many layers does row 15 depend on token 0?")
    drawing.page.mouse.move(*middle(drawing, 9, 2))
    assert question.is_visible()
    assert said(drawing) == ""
    layers, found = 1, []
    drawing.get_by_label("layers").focus()
    while "for the first time on token 0" not in said(drawing):
        drawing.page.keyboard.press("ArrowRight")
        layers += 1
        agrees(drawing, **FIRST | {"layers": layers})
        found.append(said(drawing))
    assert question.is_visible()
    fields = [receptive_field(FIRST["mask"], n)[15] for n in range(1, LAYERS)]
    assert layers == 1 + np.argmax([row[0] for row in fields]) == 5
    assert found[0] == "After 2 layers row 15 depends on 7 of 16 tokens, not on token 0."


def test_click_switches_a_pair_and_a_stroke_paints_all_on_its_way(drawing):
    cell(drawing, 9, 2).click()
    mask = switched(FIRST["mask"], (9, 2))
    agrees(drawing, **FIRST | {"mask": mask})
    depends = "After 1 layer row 15 depends on 4 of 16 tokens, not on token 0."
    assert said(drawing) == f"Query 9 may look at key 2: 59 of 136 pairs. {depends}"
    mouse = drawing.page.mouse
    mouse.move(*middle(drawing, 15, 1))
    mouse.down()
    mouse.move(*middle(drawing, 12, 4))  # in one leap, and between lie two
    mouse.move(*middle(drawing, 12, 6))
    mouse.up()
    mouse.move(*middle(drawing, 8, 0))
    mask = switched(mask, (15, 1), (14, 2), (13, 3), (12, 4), (12, 5), (12, 6))
    agrees(drawing, **FIRST | {"mask": mask})
    mouse.move(*middle(drawing, 5, 5))
    mouse.down()
    mouse.move(*middle(drawing, 5, 0))  # begun on a full pair, a stroke takes away
    mouse.up()
    mask[5] = False
    agrees(drawing, **FIRST | {"mask": mask})
    assert drawing.get_by_text("Row 5 sees nothing.").is_visible()
    mouse.move(*middle(drawing, 8, 0))
    mouse.down()
    mouse.move(*middle(drawing, 8, 1))
    mouse.move(*middle(drawing, 8, 0))  # back where it began, it is no click
    mouse.up()
    mask[8, :2] = True
    agrees(drawing, **FIRST | {"mask": mask})


def test_worked_by_keys_only_and_a_hidden_pair_shows_its_path(drawing):
    page = drawing.page
    for key in ("Tab", "Tab", "Enter", *["Tab"] * 4):
        page.keyboard.press(key)
    assert page.evaluate("() => document.activeElement.ariaLabel") == "query 0, key 0: may look"
    mask = PATTERNS["strided"]
    for key in ("Tab", "ArrowRight", "Shift+Tab", *["ArrowDown"] * 9, "ArrowRight"):
        page.keyboard.press(key)
    agrees(drawing, mask, causal=True, layers=2)
    assert not mask[9, 0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    connected = said(drawing)
    start = "Query 9 may not look at key 3, but layer 2 connects them: 3 → "
    assert connected.startswith(start)
    path = [int(stop) for stop in connected.removesuffix(".").split(": ")[1].split(" → ")]
    assert all(mask[t, s] for s, t in pairwise(path))
    marked = page.locator("[data-hop]").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    assert set(marked) == {f"query {t}, key {s}: may look" for s, t in pairwise(path)}
    page.keyboard.press("Space")
    agrees(drawing, switched(mask, (9, 3)), causal=True, layers=2)
    page.keyboard.press("Enter")
    agrees(drawing, mask, causal=True, layers=2)
    assert said(drawing).endswith(f"Layer 2 still connects them: {' → '.join(map(str, path))}.")


def test_causal_keeps_the_future_out_and_gives_it_back(drawing):
    cell(drawing, 3, 9).click()
    words = "Key 9 comes after query 3, and causal keeps the future out. Nothing has changed."
    assert said(drawing) == words
    agrees(drawing, **FIRST)
    causal = drawing.get_by_role("button", name="Causal", exact=True)
    causal.click()
    cell(drawing, 3, 9).click()
    assert said(drawing).startswith("Query 3 may look at key 9, which is in its future: 59 of 256")
    mask = switched(FIRST["mask"], (3, 9))
    agrees(drawing, mask, causal=False, layers=1)
    causal.click()
    assert said(drawing).startswith("Causal keeps out 1 pair of the drawing: 58 of 136 pairs.")
    agrees(drawing, mask, causal=True, layers=1)
    causal.click()
    agrees(drawing, mask, causal=False, layers=1)
    drawing.get_by_role("button", name="Reset").click()
    assert said(drawing) == "The grid is as it was."
    agrees(drawing, **FIRST)


@pytest.mark.long
def test_finger_taps_and_paints_sideways_and_scrolls_up_and_down(show):
    space = '<div style="height: 1200px"></div>'
    page = show(mask_drawing().html, space, **PHONE)
    drawing = page.locator("tl-drawing")
    cell(drawing, 9, 2).tap()
    mask = switched(FIRST["mask"], (9, 2))
    agrees(drawing, **FIRST | {"mask": mask})
    swipe(drawing, (14, 1), (14, 9))
    mask[14, 1:10] = True
    agrees(drawing, **FIRST | {"mask": mask})
    assert page.evaluate("() => scrollY") == 0
    swipe(drawing, (15, 3), (2, 3))
    page.wait_for_function("() => scrollY > 50")
    agrees(drawing, **FIRST | {"mask": mask})


@pytest.mark.long
def test_cells_are_large_enough_on_a_narrow_screen(show):
    for width, least in ((320, 15.5), (360, 18)):
        drawing = show(mask_drawing().html, width=width).locator("tl-drawing")
        assert cell(drawing, 7, 7).bounding_box()["width"] >= least


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 1280])
def test_cells_are_squares_and_the_name_of_a_key_stands_over_its_column(show, width):
    drawing = show(mask_drawing().html, width=width).locator("tl-drawing")
    boxes = """(drawing) => [...drawing.querySelector(".tl-mask").rows].map((row) =>
      [...row.cells].slice(1).map((cell) => {
        const { x, width, height } = cell.getBoundingClientRect();
        return [x, width, height];
      }))"""
    head, *body = np.array(drawing.evaluate(boxes)).reshape(T + 1, T, 3)
    for row in body:
        np.testing.assert_allclose(row[:, 1], row[:, 2], atol=1)
        np.testing.assert_allclose(row[:, :2], head[:, :2], atol=0.5)


@pytest.mark.long
def test_answers_at_once_also_where_every_pair_is_painted(drawing, browser):
    page = drawing.page
    with recorded(browser) as events:
        for key in NAMES:
            drawing.evaluate(RECALL, f"from={key}&causal=no")
            drawing.get_by_label("layers").fill("6")
        page.mouse.move(*middle(drawing, 0, 0))
        page.mouse.down()
        for t in range(T):
            page.mouse.move(*middle(drawing, t, 15 - t % 2 * 15))
        page.mouse.up()
        do_references(page)
    assert largest_task(events) <= BUDGETS["answer"]
