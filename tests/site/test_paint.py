"""The mask to paint in Chromium: weights and changes are the library's, by any means."""

import re
from fractions import Fraction

import numpy as np
import pytest

from tests.elements.test_paint import EXAMPLE, FOUR, TOKENS, X, changes, library, mask_of, unpacked
from tests.site.arrival import BUDGETS, do_references, largest_task, recorded
from tests.site.browsing import PHONE, RECALL, SET, cell, middle, press, said, swipe
from tests.site.showing import assert_shows
from tools.chapters import pages
from tutorial_lib import causal_mask, trace
from tutorial_lib.elements.exhibits import paint_mask
from tutorial_lib.elements.exhibits.paint.element import draw_mask
from tutorial_lib.elements.exhibits.pairs import mask_to_hex

FIRST = causal_mask(5)


def agrees(paint, mask, reads="look", align="bottom-right", masked="zeros", **more):
    """Compare all that is shown with Python's, and what is heard of a pair with the mask."""
    state = {"true": reads, "align": align, "masked": masked, "queries": len(mask)}
    assert_shows(paint, draw_mask(mask=mask_to_hex(mask), **state, **more))
    T, S = mask.shape
    verbs = np.where(mask ^ (reads == "hide"), "may look", "may not look")
    heard = paint.locator("[role=grid] tbody tr:visible td")
    assert heard.evaluate_all("(all) => all.map((e) => e.ariaLabel)") == [
        f"{TOKENS[S - T + t]} at {TOKENS[s]}: {mask[t, s]}, {verbs[t, s]}"
        for t, s in np.ndindex(mask.shape)
    ]


@pytest.fixture
def paint(show):
    """The mask on a page of its own."""
    return show(paint_mask().html).locator("tl-paint")


@pytest.mark.long
def test_fully_masked_rows_are_nan_as_by_pytorchs_own_steps(paint):
    torch = pytest.importorskip("torch")
    mask = causal_mask(5) & (np.arange(5) >= 2)
    paint.evaluate(RECALL, f"mask={mask_to_hex(mask)}&masked=nan")
    agrees(paint, mask, masked="nan")
    scores = torch.from_numpy(trace(X, EXAMPLE.params).scores)
    own = scores.masked_fill(~torch.from_numpy(mask), -torch.inf).softmax(dim=-1).numpy()
    texts = paint.locator(".tl-mixed tbody td").all_text_contents()
    assert [text == "NaN" for text in texts] == np.isnan(own).ravel().tolist()
    assert np.isnan(own).any()


def test_question_stays_and_one_of_the_four_masks_leaks(paint):
    question = paint.get_by_text("Which of these four masks leaks?")
    paint.page.mouse.move(*middle(paint, 3, 1))
    assert question.is_visible()
    assert said(paint) == ""
    verdicts = []
    for i, (digits, reads, _) in enumerate(FOUR):
        paint.locator(".tl-gave").nth(i).click()
        agrees(paint, unpacked(digits), reads)
        four = paint.locator(".tl-gave").evaluate_all("(all) => all.map((e) => e.ariaPressed)")
        assert four == [str(i == j).lower() for j in range(4)]
        assert said(paint).startswith(f"Mask {'ABCD'[i]}, ")
        verdicts.append("It leaks, in 10 pairs: “dogs” changes by" in said(paint))
        assert verdicts[-1] != ("No leak: no output depends" in said(paint))
    assert verdicts == [False, False, True, False]
    assert question.is_visible()


TASK = "Tap a cell of *the mask*."


def test_three_words_have_one_task_and_nothing_to_choose(show):
    paint = show(paint_mask(TASK).html).locator("tl-paint")
    assert paint.locator(".tl-ask").inner_text() == "Tap a cell of the mask."
    assert paint.get_by_role("button").all_inner_texts() == ["Reset"]
    agrees(paint, causal_mask(3), task=TASK)
    cell(paint, 0, 1).click()
    mask = causal_mask(3)
    mask[0, 1] = True
    agrees(paint, mask, task=TASK)
    assert said(paint).startswith("True: dogs may look at that. It leaks, in 1 pair: “dogs”")
    link = paint.get_by_role("link", name="Link to this mask")
    assert link.get_attribute("href") == "#paint=0&mask=667"
    press(paint, "Reset")
    paint.evaluate(RECALL, "mask=667")
    agrees(paint, mask, task=TASK)
    paint.page.evaluate(SET, "#paint=0&mask=12")
    paint.page.get_by_text("mask is “12”; expected 3 digits, 0 to 7 for each query.").wait_for()


@pytest.mark.long
def test_same_array_read_the_other_way_and_alignments_sizes_and_masked_rows(paint):
    press(paint, "True means look")
    agrees(paint, causal_mask(5), "hide")
    assert said(paint).startswith("The same array, and now True means hide. It leaks, in 10 pairs")
    assert said(paint).endswith("“sleep” is fully masked: zeros.")
    press(paint, "masked rows: zeros")
    agrees(paint, causal_mask(5), "hide", masked="nan")
    assert said(paint).endswith("“sleep” is fully masked: NaN.")
    press(paint, "Reset")
    agrees(paint, causal_mask(5))
    press(paint, "align bottom-right")
    assert "both alignments are one" in said(paint)
    press(paint, "5 queries")
    agrees(paint, mask_of("causal", 3, "top-left"), align="top-left")
    assert said(paint).endswith("“bark”, “cats” and “sleep” do not see themselves.")
    press(paint, "align top-left")
    agrees(paint, causal_mask(3, 5))
    press(paint, "Window")
    agrees(paint, mask_of("window", 3, "bottom-right"))
    cell(paint, 2, 4).click()  # a painted mask keeps its cells
    press(paint, "align bottom-right")
    mask = mask_of("window", 3, "bottom-right")
    mask[0, 4] = True
    agrees(paint, mask, align="top-left")
    assert "a painted mask keeps its cells" in said(paint)


def test_click_stroke_and_keys_paint_and_a_cell_tells_its_numbers(paint):
    page, mask = paint.page, causal_mask(5)
    cell(paint, 2, 4).click()
    mask[2, 4] = True
    agrees(paint, mask)
    by = changes(mask)[2, 4]
    change = f"“bark” changes by {by:.2f} when a later token, “sleep”, is replaced."
    leak = f"It leaks, in 1 pair: {change}"
    assert said(paint) == f"True: bark may look at sleep. {leak}"
    page.mouse.move(*middle(paint, 4, 0))
    page.mouse.down()
    page.mouse.move(*middle(paint, 4, 4))  # begun on a full pair, a stroke takes away
    page.mouse.up()
    mask[4] = False
    agrees(paint, mask)
    cell(paint, 2, 4).focus()
    page.keyboard.press("Space")
    mask[2, 4] = False
    agrees(paint, mask)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    weights, by = library(mask)[0][:, 2, 2], changes(mask)[2, 2]
    texts = " and ".join(str(Fraction(w).limit_denominator(99)) for w in weights)
    assert said(paint) == (
        f"bark at bark: True, may look; weights {texts}; the output of bark changes by {by:.2f} "
        "when bark is replaced."
    )


def test_worked_by_keys_only(paint):
    keyboard = paint.page.keyboard
    for key in ("Tab", "ArrowRight", "ArrowRight", "Enter"):
        keyboard.press(key)
    agrees(paint, causal_mask(5), "hide")
    for key in ("ArrowRight", "Space", *["Tab"] * 11):
        keyboard.press(key)
    label = paint.page.evaluate("() => document.activeElement.ariaLabel")
    assert label == "bark at dogs: True, may look"  # the first row that is shown
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    mask = causal_mask(3, 5)
    mask[0, 0] = False
    agrees(paint, mask)


@pytest.mark.long
def test_lines_are_copied_and_where_that_is_refused_selected(paint):
    page = paint.page
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { kept = text; }; }")
    paint.get_by_role("button", name="Copy").first.click()
    page.get_by_text("The line is copied.").wait_for()
    assert page.evaluate("() => kept") == "mask = np.tri(5, dtype=bool)"
    page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error(); }; }")
    paint.get_by_role("button", name="Copy").last.click()
    page.get_by_text("The line is selected: copy it.").wait_for()
    line = "mask = torch.ones(5, 5, dtype=torch.bool).tril()"
    assert page.evaluate("() => `${getSelection()}`") == line


@pytest.mark.long
def test_finger_taps_and_paints_sideways_and_scrolls_up_and_down(show):
    space = '<div style="height: 1200px"></div>'
    page = show(paint_mask().html, space, **PHONE)
    paint = page.locator("tl-paint")
    cell(paint, 1, 3).scroll_into_view_if_needed()
    cell(paint, 1, 3).tap()
    mask = causal_mask(5)
    mask[1, 3] = True
    agrees(paint, mask)
    top = page.evaluate("() => scrollY")
    swipe(paint, (0, 1), (0, 4))
    mask[0, 1:] = True
    agrees(paint, mask)
    assert page.evaluate("() => scrollY") == top
    swipe(paint, (4, 0), (0, 0))
    page.wait_for_function(f"() => scrollY > {top} + 50")
    agrees(paint, mask)


@pytest.mark.long
def test_answers_at_once(paint, browser):
    page = paint.page
    with recorded(browser) as events:
        for i in range(4):
            paint.locator(".tl-gave").nth(i).click()
        press(paint, "Packed")
        page.mouse.move(*middle(paint, 2, 0))
        page.mouse.down()
        for t in (2, 3, 4):
            page.mouse.move(*middle(paint, t, 4 - t % 2 * 4))
        page.mouse.up()
        do_references(page)
    assert largest_task(events) <= BUDGETS["answer"]


SHOWING = [page for page in pages() if "paint_mask()" in page.path.read_text(encoding="utf-8")]
CLAIMS = {  # what the sentence around a link says of what may be looked at
    "attends only to later tokens": lambda looks: (looks == np.triu(np.ones((5, 5)), k=1)).all(),
    "two `<pad>` tokens before three real ones": lambda looks: (
        not looks[:2].any() and looks[2:].any(axis=1).all()
    ),
}


def test_mask_of_a_link_in_the_chapter_is_what_its_sentence_says(paint):
    source = "".join(page.path.read_text(encoding="utf-8") for page in SHOWING)
    links = dict(re.findall(r"\[([^][]+)\]\(#paint=0&([^)]+)\)", source))
    assert set(links) == set(CLAIMS)
    for words, state in links.items():
        assert paint.evaluate(RECALL, state) is True
        on = paint.locator("[role=grid] tbody td").evaluate_all(
            "(all) => all.map((e) => 'on' in e.dataset)"
        )
        looks = np.reshape(on, (5, 5)) ^ ("true=hide" in state)
        assert CLAIMS[words](looks), words
