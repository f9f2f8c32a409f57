"""The softmax bench in Chromium: worked by fields, by dragging, by keys and by touch."""

import re

import numpy as np
import pytest

from tests.site.browsing import PHONE, draw_finger, said, write
from tests.site.showing import assert_shows
from tutorial_lib.elements.exhibits import softmax_bench
from tutorial_lib.elements.exhibits.bench.element import draw_bench

WORDS, UNIT = ("dogs", "that", "bark"), np.log(2)
# What a screen reader hears of each bar, in its state.
LANES = """(all) => all.map((lane) => [lane.ariaLabel, lane.ariaValueText,
  Math.abs(lane.ariaValueNow) <= lane.ariaValueMax])"""


def agrees(bench, *, slope=False, **state):
    """Compare all that the bench shows with Python's, and what is heard of its bars."""
    trail = "[data-part=trail]"  # of all states so far
    assert_shows(bench, draw_bench(slope=slope, **state), besides=trail)
    numbers = bench.locator("tbody").last.locator("td:nth-of-type(1)").all_text_contents()
    out = state.get("hide", "").split()
    heard = [number + ", hidden" * (w in out) for w, number in zip(WORDS, numbers, strict=True)]
    lanes = bench.locator(".tl-lane").evaluate_all(LANES)
    assert lanes == [[f"q · k of {w}", h, True] for w, h in zip(WORDS, heard, strict=True)]


def products(*times, **state):
    """A state of products in units of ln 2."""
    return dict(zip(WORDS, UNIT * np.array(times, dtype=float), strict=True)) | state


FIELDS = [f"q · k of {word}, as a number" for word in WORDS]
DIVISOR = "divide by, as a number"


@pytest.fixture
def bench(show):
    """The bench on a page of its own."""
    return show(softmax_bench().html).locator("tl-bench")


@pytest.fixture
def sloped(show):
    """The bench with slopes."""
    return show(softmax_bench(slope=True).html).locator("tl-bench")


def test_question_stays_and_trying_answers_it(bench):
    question = bench.get_by_text("Add 5 to all three: whose weight grows?")
    assert question.is_visible()
    assert said(bench) == ""
    bench.get_by_role("button", name="Add 5 to all").click()
    assert question.is_visible()
    assert said(bench).startswith("The weights are still dogs 4/7, that 1/7, bark 2/7; ")
    agrees(bench, **{word: n + 5 for word, n in products(2, -2, 0).items()})
    bench.get_by_label("divide by", exact=True).focus()
    for _ in range(20):  # from 2 to 1
        bench.page.keyboard.press("ArrowLeft")
    assert said(bench) == (
        "The weights are dogs 16/21, that 1/21, bark 4/21; the largest is 0.7619, "
        "the entropy 0.9637 bits."
    )
    write(bench, FIELDS[0], "12")
    write(bench, FIELDS[1], "-2 ln 2")
    write(bench, FIELDS[2], "0")
    for divide, past in ((2.38, True), (2.39, False)):  # where one weight passes 0.99
        write(bench, DIVISOR, str(divide))
        assert (", past 0.99" in said(bench)) == past
        agrees(bench, dogs=12, divide=divide)


def test_1000_overflows_unless_the_largest_is_taken_away(bench):
    write(bench, DIVISOR, "1")
    write(bench, FIELDS[0], "1000")
    agrees(bench, dogs=1000, divide=1)
    assert said(bench) == (
        "e to the 1000 is inf, beyond the largest float64, and inf / inf is nan: "
        "the weights are dogs nan, that 0, bark 0."
    )
    bench.get_by_role("button", name="Subtract the largest score").click()
    agrees(bench, dogs=1000, divide=1, largest="away")
    assert said(bench).startswith("The weights are dogs 1, that 0, bark 0; ")
    bench.get_by_role("button", name="Add 5 to all").click()
    assert said(bench) == "With 5 more a number would be past 1000. Nothing has changed."
    for name in FIELDS:
        write(bench, name, "-1000")
    bench.get_by_role("button", name="Subtract the largest score").click()
    assert said(bench) == "Every exponential is 0, too small for a float64, and 0 / 0 is nan."
    state = dict.fromkeys(WORDS, -1000) | {"divide": 1}
    agrees(bench, **state)
    for word in WORDS:
        bench.get_by_label(f"hide {word}").check()
    assert said(bench).startswith("Every key is hidden: ")
    agrees(bench, **state, hide=" ".join(WORDS))


WRITTEN = {
    "ln 2": 1,
    "−ln 2": -1,
    "ln 2/2": 1 / 2,
    "3/2 ln 2": 3 / 2,
    "2·ln 4": 4,
    "2 ln 1.5": 2 * np.log2(1.5),
    "3 ln 2,5": 3 * np.log2(2.5),
    "-.5ln2": -1 / 2,
}


def test_a_number_is_read_as_people_write_it(bench):
    for text, times in WRITTEN.items():
        write(bench, FIELDS[2], text)
        agrees(bench, bark=UNIT * times)
    write(bench, FIELDS[2], "16 ln 2")
    shown = bench.locator("tbody").first.locator("tr").nth(2).locator("td span")
    assert shown.text_content() == "256"  # though its last digits are rounded


def test_worked_by_keys_alone(sloped):
    page = sloped.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "q · k of dogs"
    for key in ("ArrowUp", "PageUp", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    state = products(5, -1, 0)
    agrees(sloped, **state, by="that", slope=True)
    told = re.search(r"their slopes in the score of that are (.*)\.$", said(sloped))[1]
    slopes = sloped.locator("tbody").last.locator("td:last-child").all_text_contents()
    assert told.split(", ") == slopes
    page.keyboard.press("End")
    agrees(sloped, **state, by="bark", slope=True)
    for key in ("Tab", "Tab", "Space"):  # to the box of bark
        page.keyboard.press(key)
    agrees(sloped, **state, by="bark", hide="bark", slope=True)


def test_a_trail_of_slopes_is_drawn_where_the_reader_has_been(sloped):
    def marks():
        """The points of the trail."""
        path = sloped.locator("[data-part=trail]").get_attribute("d")
        return [tuple(map(float, one.split())) for one in re.findall(r"M(\S+ \S+)h0", path)]

    assert not sloped.locator("[data-part=curve]").is_visible()
    assert marks() == [pytest.approx((160 * 4 / 7, -240 * 12 / 49))]
    drop = sloped.locator("[data-part=drop]")
    for count, text in enumerate(("-4 ln 2", "0", "ln 2", "9"), start=2):
        write(sloped, FIELDS[0], text)
        assert len(marks()) == count
        x, y = marks()[-1]
        assert y == pytest.approx(-240 * x / 160 * (1 - x / 160)), "a slope is p (1 - p)"
        assert list(map(float, re.findall(r"[-\d.]+", drop.get_attribute("d")))) == [x, 0, y, 0]
    write(sloped, DIVISOR, "1")
    been = marks()
    write(sloped, FIELDS[0], "1000")  # nan: no weight, no slope
    assert marks() == been
    assert not drop.is_visible()
    sloped.get_by_role("button", name="Reset").click()
    assert len(marks()) == 1


@pytest.mark.long
def test_bars_are_dragged_by_halves_of_ln_2(bench):
    mouse, lanes = bench.page.mouse, bench.locator(".tl-lane")

    def to(i, number):
        """Move the mouse to where a bar ends that is so high."""
        box = lanes.nth(i).bounding_box()
        mouse.move(box["x"] + 20, box["y"] + box["height"] * (7 - number) / 14, steps=4)

    to(2, 0)
    mouse.down()
    agrees(bench)
    to(2, 1.55 * UNIT)
    agrees(bench, **products(2, -2, 1.5))
    to(2, 9)  # beyond the picture
    agrees(bench, **products(2, -2, 10))
    mouse.up()
    to(2, 1)
    agrees(bench, **products(2, -2, 10))  # let go
    to(0, -3.05 * UNIT)
    mouse.down()
    mouse.up()
    agrees(bench, **products(-3, -2, 10))


@pytest.mark.long
@pytest.mark.parametrize("slope", [False, True])
def test_a_swipe_that_begins_on_a_bar_scrolls_the_page(show, slope):
    html = softmax_bench(slope=slope).html
    page = show("<p style='height: 100px'></p>", html, *["<br>"] * 60, **PHONE)
    bench = page.locator("tl-bench")
    box = bench.locator(".tl-lane").nth(1).bounding_box()
    x = box["x"] + 20
    draw_finger(page, (x, box["y"] + 150), (x, box["y"] + 10))
    page.wait_for_function("() => scrollY > 40")
    agrees(bench, slope=slope)


@pytest.mark.long
def test_worked_by_touch(show):
    page = show(softmax_bench(slope=True).html, **PHONE)
    bench = page.locator("tl-bench")
    box = bench.locator(".tl-lane").nth(1).bounding_box()
    place = box["x"] + 20, box["y"] + box["height"] * (7 - 2.05 * UNIT) / 14
    page.touchscreen.tap(*place)
    agrees(bench, by="that", slope=True)  # chosen, and left as it is
    page.touchscreen.tap(*place)
    agrees(bench, **products(2, 2, 0), by="that", slope=True)
    there = box["x"] + 20, box["y"] + box["height"] * (7 - 4.05 * UNIT) / 14
    draw_finger(page, place, there)
    state = products(2, 4, 0)
    agrees(bench, **state, by="that", slope=True)
    bench.get_by_text("hide").nth(0).tap()
    agrees(bench, **state, by="that", hide="dogs", slope=True)
