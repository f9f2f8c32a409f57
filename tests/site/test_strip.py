"""The strip of memory in Chromium: shape, strides, view or copy and offsets are NumPy's own."""

import re

import numpy as np
import pytest

from tests.elements.test_strip import PRODUCT, STARTS
from tests.sampling import long
from tests.site.browsing import SET, focused, said
from tests.site.showing import assert_shows
from tools.chapters import pages
from tutorial_lib import split_heads
from tutorial_lib.elements.exhibits import memory_strip
from tutorial_lib.elements.exhibits.strip.element import PRESSES, draw_strip

CELLS = ".tl-blocks td"


def barred(array):
    """The presses that NumPy refuses."""
    for label in PRESSES.values():
        try:
            eval(f"array.{label}", {"array": array})
        except ValueError:  # also AxisError
            yield label


def array_after(start, keys):
    """What NumPy makes of some presses."""
    name, array = STARTS[start]
    return eval(".".join([name, *(PRESSES[key] for key in keys)]), {name: array})


def agrees(strip, *presses, start="heads", number=10):
    """Compare all that stands there with Python's, and what is heard of each cell with NumPy."""
    guess = strip.get_by_role("button", name="Guess first").get_attribute("aria-pressed") == "true"
    drawn = draw_strip(start, do=".".join(presses), number=number, guess=guess)
    assert_shows(strip, drawn)
    array = array_after(start, presses)
    assert strip.locator("[aria-disabled=true]").all_text_contents() == [*barred(array)]
    heard = [f"{list(index)}: {array[index]}" for index in np.ndindex(array.shape)]
    assert strip.locator(CELLS).evaluate_all("(all) => all.map((e) => e.ariaLabel)") == heard
    chosen = strip.get_by_role("gridcell", selected=True)
    assert chosen.text_content() == str(number)


def press(strip, *names):
    """Press buttons by their names, or by the keys of a link."""
    for name in names:
        strip.get_by_role("button", name=PRESSES.get(name, name), exact=True).click()


def cell(strip, number):
    """The cell of a number above."""
    return strip.get_by_role("gridcell", name=re.compile(rf": {number}$"))


@pytest.fixture
def strip(show):
    """The product that is to be cut, on a page of its own."""
    return show(memory_strip().html).locator("tl-strip")


@pytest.fixture
def plain(strip):
    """The same where a press covers nothing."""
    press(strip, "Guess first")
    return strip


def home(start):
    """The page that shows a start, and its source."""
    sources = {page.name: page.path.read_text(encoding="utf-8") for page in pages()}
    [found] = [(n, s) for n, s in sources.items() if f'memory_strip(\\"{start}\\")' in s]
    return found


@pytest.mark.long
def test_links_of_the_chapter_name_states_that_can_be(show):
    strip = show(memory_strip("concat").html).locator("tl-strip")
    links = re.findall(r"\(#strip=0&do=([^)]*)\)", home("concat")[1])
    assert links
    for keys in links:
        press(strip, "Reset")
        strip.page.evaluate(SET, f"#strip=0&do={keys}")
        label = PRESSES[keys.split(".")[-1]]
        strip.page.get_by_text(f"{label} is a copy with strides").first.wait_for()
        agrees(strip, *keys.split("."), start="concat")


def test_question_stays_and_a_press_asks_where_the_number_goes(strip):
    question = strip.get_by_text("Which presses give each head a block, (2, 3, 4), in one colour?")
    assert question.is_visible()
    assert strip.locator("[aria-live]").text_content() == ""
    press(strip, "r2-3-4")
    assert question.is_visible()
    assert said(strip) == "Where does 10 go now? Choose a cell, or press Show."
    assert set(strip.locator(CELLS).all_text_contents()) == {""}
    assert strip.locator("dd").all_text_contents() == ["(2, 3, 4)", "?", "?", "?"]
    line = strip.locator(".tl-memory b").all_text_contents()
    assert line == [str(n) for n in PRODUCT.ravel()]
    strip.get_by_role("gridcell", name="[0, 1, 0]: covered").click()
    assert said(strip) == (
        "No, [0, 1, 0] holds 4: reshape(2, 3, 4) is a view with strides [12, 4, 1]; "
        "10 is at [0, 2, 0], and block [0] mixes tokens 0, 1 of both heads."
    )
    agrees(strip, "r2-3-4")
    press(strip, "r3-2-4")
    strip.get_by_role("gridcell", name="[1, 0, 0]: covered").click()
    assert said(strip).startswith("Right: reshape(3, 2, 4) is a view with strides [8, 4, 1];")
    agrees(strip, "r2-3-4", "r3-2-4")


@pytest.mark.long
def test_guess_is_never_owed(strip):
    press(strip, "r3-2-4", "s0-1")  # the second goes before an answer to the first
    press(strip, "Show")
    agrees(strip, "r3-2-4", "s0-1")
    assert said(strip).endswith("10 is at [0, 1, 0], and each block keeps to one head: as asked.")
    press(strip, "r24", "Undo")
    assert said(strip).startswith("Undone: swapaxes(0, 1) is a view")
    agrees(strip, "r3-2-4", "s0-1")
    press(strip, "r24", "Guess first")
    assert said(strip).startswith("A press shows all at once: reshape(24) is a copy")
    agrees(strip, "r3-2-4", "s0-1", "r24")
    press(strip, "Reset", "Undo")
    assert said(strip) == "There is nothing to undo: 10 of product is at [1, 0]."
    agrees(strip)


ENDS = {  # of a start: presses, what is said of their end, whether it is the right one
    ("heads", "r2-3-4"): ("block [0] mixes tokens 0, 1 of both heads", False),
    ("heads", "r3-2-4.s0-1"): ("each block keeps to one head", True),
    ("heads", "s0-1.r2-3-4"): ("each block keeps to one head, out of order", False),
    ("heads", "r3-2-4.s1-2.r3-8"): ("each row keeps to one token, out of order", False),
    ("concat", "r3-8"): ("row [0] mixes tokens 0, 1", False),
    ("concat", "s0-1.r3-8"): ("each row keeps to one token", True),
    ("concat", "r24.r2-3-4.s0-1.r3-8"): ("each row keeps to one token", True),
}
RIGHT = {str(array.shape): array for array in (PRODUCT, split_heads(PRODUCT, 2))}


@pytest.mark.parametrize("start", ["heads", *long("concat")])
def test_right_end_and_the_wrong_ones_are_reached_and_told_apart(show, start):
    strip = show(memory_strip(start).html).locator("tl-strip")
    press(strip, "Guess first")
    for keys, (words, right) in {k: v for (s, k), v in ENDS.items() if s == start}.items():
        press(strip, "Reset", *keys.split("."))
        assert said(strip).endswith(f", and {words}{': as asked' * right}."), keys
        cells, array = strip.locator(CELLS), RIGHT[strip.locator("dd").first.text_content()]
        assert (cells.all_text_contents() == [str(n) for n in array.flat]) == right, keys
        if array.ndim == 3:  # one colour, or stripes
            colours = cells.evaluate_all("(all) => all.slice(0, 12).map((e) => e.dataset.h)")
            assert (len(set(colours)) == 1) == words.startswith("each"), keys


def test_chosen_number_shows_its_offset_by_click_and_by_keys(plain):
    press(plain, "r3-2-4", "s0-1")
    cell(plain, 23).click()
    assert said(plain) == "23 is at [0, 2, 3]: 0 · 4 + 2 · 8 + 3 · 1 = 19, its offset in memory."
    agrees(plain, "r3-2-4", "s0-1", number=23)
    keys = {"ArrowRight": 24, "ArrowUp": 14, "End": 17, "ArrowLeft": 16, "Home": 14}
    for key, number in {**keys, " ": 14}.items():  # over the edge of a block to the next
        plain.page.keyboard.press(key)
        agrees(plain, "r3-2-4", "s0-1", number=number)
    plain.page.keyboard.press("ArrowLeft")
    agrees(plain, "r3-2-4", "s0-1", number=13)
    press(plain, "r24")
    assert said(plain).startswith("reshape(24) is a copy with strides [1]; 13 is at [7], ")


@pytest.mark.long
def test_operation_that_numpy_refuses_is_not_offered_and_says_why(plain):
    for label, keys in {"swapaxes(1, 2)": (), "swapaxes(0, 1)": ("r24",)}.items():
        press(plain, *keys)
        button = plain.get_by_role("button", name=label)
        assert button.get_attribute("aria-disabled") == "true"
        button.click(force=True)
        shape = "(24,)" if keys else "(3, 8)"
        axes = int(label[-2]) + 1
        words = f"{label} needs {axes} axes; the shape is {shape}. Nothing has changed."
        assert said(plain) == words
        agrees(plain, *keys)
    press(plain, "Reset", *["r3-8"] * 12)
    plain.get_by_role("button", name="reshape(24)").click(force=True)
    assert said(plain) == "12 presses are the most; expected Undo or Reset. Nothing has changed."
    off = plain.locator("[aria-disabled=true]").all_text_contents()
    assert off == [*PRESSES.values()]


@pytest.mark.long
def test_worked_by_keys_alone(strip):
    page = strip.page
    for key in ("Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    assert focused(page) == "reshape(3, 2, 4)"
    for key in ("Tab", "Tab", "Tab", "Tab", "Tab"):
        page.keyboard.press(key)
    assert focused(page) == "[0, 0, 0]: covered"
    page.keyboard.press("ArrowRight")
    assert said(strip) == "Where does 10 go now? Choose a cell, or press Show."  # not yet a guess
    for key in ("Home", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert said(strip).startswith("No, [0, 1, 0] holds 4: ")
    agrees(strip, "r3-2-4")
    for _ in range(3):  # back past both swaps
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert focused(page) == "reshape(24)"
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    for key in ("Tab", "Tab", "Tab"):
        page.keyboard.press(key)
    assert focused(page) == "[0]: covered"
    for _ in range(4):
        page.keyboard.press("Tab")
    assert focused(page) == "Reset"
    page.keyboard.press("Enter")
    agrees(strip)
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    assert focused(page) == "[1, 0]: 10"  # the number in hand is the stop
    agrees(strip)
