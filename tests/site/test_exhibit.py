"""What all exhibits do in Chromium: they answer in sight, and stay where they are pressed."""

from operator import methodcaller

import numpy as np
import pytest

from tests.sampling import long
from tests.site.browsing import PHONE
from tests.site.test_exhibits import ROWS, html_of
from tutorial_lib.elements.exhibits import ask_model
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import WORDS
from tutorial_lib.records import checkpoint


def model():
    """The trained model, its sentence so long that a phone needs two lines for it."""
    trained, split = TinyModel.of(checkpoint("known_text")), ("barks", "bark")
    return ask_model(trained, WORDS, "the dog that the cats see", question="?", split=split)


EXHIBITS = (
    *("plane", "products", "bench", "slopes", "sum", "paint", "words", "tiles", "map"),
    *("bytes", "heads", "model"),
)
BANDS = (*EXHIBITS, "strip", "drawing", "clock", "playground")
FIRST_PRESSED = {  # where it is not the first button
    "clock": "button:has-text('Reset')",
    "map": "td[tabindex]",
    "playground": ".tl-grids td[tabindex]",
}
FILLED = "plane", "bench", "slopes", "paint", "words", "tiles", "clock"  # by more words
ASK = ".tl-ask"
TOUCHED = {  # what is touched or asked on a phone, and the picture that answers
    "plane": [(".tl-arrows svg", ".tl-mix"), (".tl-polar", ".tl-arrows svg")],
    "products": [(".tl-arrows svg", ".tl-products"), (".tl-polar", ".tl-arrows svg")],
    "bench": [(".tl-lane", ".tl-stack"), ("[type=range]", ".tl-stack"), ("button", ".tl-stack")],
    "slopes": [(".tl-lane", ".tl-curve")],
    "strip": [("button", ".tl-blocks")],
    "sum": [("button", "figure"), ("[type=range]", "figure")],
    "paint": [(cause, ".tl-drawn:nth-child(2)") for cause in (ASK, ".tl-gave", "td", "button")],
    "words": [(ASK, ".tl-drawn:nth-child(2)")],
    "tiles": [(".tl-row ~ .tl-row", ".tl-scores"), (ASK, ".tl-held")],
    "bytes": [("select", ".tl-plot"), ("[type=range]", ".tl-plot")],
    "heads": [(ASK, ".tl-large"), ("[role=gridcell]", ".tl-large")],
    "clock": [(ASK, ".tl-clocks + .tl-row > button")],
    "drawing": [("button", ".tl-mask"), ("[type=range]", ".tl-mask")],
    "model": [(ASK, ".tl-paths table")],
}
SCREEN = 844 - 56  # of a phone, without the bar of the site
SPAN = """(exhibit, selectors) => {
  const boxes = selectors.map((one) => exhibit.querySelector(one).getBoundingClientRect());
  const [top, end] = [boxes.map((box) => box.top), boxes.map((box) => box.bottom)];
  return Math.max(...end) - Math.min(...top);
}"""
HIGH = "(one) => one.offsetHeight"
# How far below the words that say how to begin the next thing is.
GAP = """(how) => Math.min(...[...how.closest(".tl").querySelectorAll(":not(.tl-said *)")]
  .filter((other) => other.checkVisibility() && other.getClientRects().length)
  .map((other) => other.getBoundingClientRect().top - how.getBoundingClientRect().bottom)
  .filter((gap) => gap >= 0))"""
ROOM = "<p style='height: 900px'></p>"  # in which a page can scroll
# Where the controls are on the screen: one, or all of an element.
PLACE = "(one) => [one.getBoundingClientRect()].map(({ x, y }) => [x, y])"
PLACES = """(one) => [...one.closest(".tl").querySelectorAll("button, input, select, th[tabindex]")]
  .filter((other) => other.checkVisibility())
  .map((other) => other.getBoundingClientRect()).map(({ x, y }) => [x, y])"""
WORDS_AT = "(one) => [...one.parentNode.children].map((other) => other.getBoundingClientRect().x)"
BELOW = """(one) => [one.closest(".tl").querySelector(".tl-said + *")]
  .map((other) => other.getBoundingClientRect()).map(({ x, y }) => [x, y])"""
NO_ANCHOR = "<style>html { overflow-anchor: none }</style>"  # as in Safari
PRESS = methodcaller("click")
CENTRE = "(one) => one.scrollIntoView({ block: 'center' })"


def column(name):
    """An exhibit as wide as on the site."""
    html = model().html if name == "model" else html_of(ROWS[name].call)
    return f"<div style='max-width: 736px'>{html}</div>"


def first_pressed(name):
    """Where an exhibit is pressed first."""
    return f".tl {FIRST_PRESSED.get(name, 'button:visible')}"


def shift(control, places, act):
    """How many pixels an act moves what is measured; a window scrolls by whole ones."""
    control.evaluate(CENTRE)
    before = control.evaluate(places)
    act(control)
    return np.abs(np.subtract(control.evaluate(places), before)).max()


@pytest.mark.parametrize("width", [390, *long(768, 1440)])
@pytest.mark.parametrize("name", EXHIBITS)
def test_what_is_pressed_stays_for_a_second_press(show, name, width):
    page = show(ROOM, column(name), ROOM, width=width)
    for button in page.locator(".tl button:visible").element_handles() * 2:
        if button.is_enabled():
            assert shift(button, PLACE, PRESS) <= 1, button.text_content()


@pytest.mark.parametrize("width", [390, *long(1440)])
def test_no_control_of_the_model_moves_when_one_is_pressed(show, width):
    page = show(ROOM, column("model"), ROOM, width=width)
    shown = page.locator("tl-ask")
    for word in shown.locator(".tl-word").element_handles():
        assert shift(word, WORDS_AT, PRESS) == 0, word.text_content()
    for button in shown.locator(".tl-word, button:visible").element_handles():
        if button.is_enabled():
            assert shift(button, PLACES, PRESS) <= 1, button.text_content()
    for menu, words in enumerate((("himself", "", "follow"), ("themselves", "", "often"))):
        for word in words:
            choose = methodcaller("select_option", word)
            assert shift(shown.locator("select").nth(menu), PLACES, choose) <= 1, word


@pytest.mark.parametrize("width", [390, *long(1440)])
@pytest.mark.parametrize("name", BANDS)
def test_words_below_the_question_say_how_to_begin_until_a_touch_says_more(show, name, width):
    page = show(ROOM, column(name), ROOM, width=width, head=NO_ANCHOR)
    question, how = page.locator("p.tl-ask"), page.locator(".tl-how")
    assert len(how.inner_text()) > 40
    top = question.bounding_box()["y"] + question.bounding_box()["height"]
    assert 0 <= how.bounding_box()["y"] - top <= 60
    assert how.evaluate(GAP) <= 32 or name not in FILLED
    assert page.locator(".tl [aria-live]").all_inner_texts() == [""]
    assert shift(page.locator(first_pressed(name)).first, BELOW, PRESS) <= 1
    spoken = page.locator(".tl [aria-live]").last
    assert len(spoken.inner_text()) > 15
    assert not how.is_visible()


@pytest.mark.parametrize("name", TOUCHED)
def test_what_is_touched_on_a_phone_shares_its_screen_with_what_answers(show, name):
    page = show(column(name), **PHONE)
    exhibit = page.locator(".tl")
    page.locator(first_pressed(name)).first.click()  # room is kept for what is said
    band = exhibit.locator(".tl-said").evaluate(HIGH)
    for pair in TOUCHED[name]:
        assert exhibit.evaluate(SPAN, pair) <= SCREEN - band * (ASK not in pair), pair


@pytest.mark.parametrize(("width", "most"), [(390, 2 * 844), (1440, 1000)])
def test_the_model_fits_two_screens_of_a_phone_and_little_more_than_one_of_a_desk(
    show, width, most
):
    page = show(column("model"), width=width)
    assert page.locator("tl-ask").evaluate(HIGH) <= most


def test_the_map_above_the_playground_leaves_two_thirds_of_a_phone(show):
    page = show(column("playground"), **PHONE)
    assert page.locator(".tl-bar-above").evaluate(HIGH) <= 844 / 3


def test_the_sentence_stays_in_sight_once_there_is_one(show):
    page = show(html_of(ROWS["paint"].call), "<p style='height: 900px'>", width=390)
    said = page.locator(".tl-said")
    top = "(said) => { scrollTo(0, 600); return said.getBoundingClientRect().top; }"
    assert said.evaluate(top) < -100
    page.get_by_role("button", name="Packed", exact=True).click()
    assert said.evaluate(top) == 0
