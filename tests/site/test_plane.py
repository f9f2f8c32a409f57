"""The plane in Chromium: shadows, weights and outputs are the library's, by any means."""

import re

import numpy as np
import pytest

from tests.sampling import long
from tests.site.arrival import BUDGETS, do_references, largest_task, recorded
from tests.site.browsing import PHONE, SET, draw_finger, press, said, write
from tests.site.showing import assert_shows
from tutorial_lib import attention_scores, attention_weights, project_heads, running_example
from tutorial_lib.elements.exhibits import query_plane
from tutorial_lib.elements.exhibits.plane.element import draw_plane

EXAMPLE = running_example()
K = project_heads(EXAMPLE.X, EXAMPLE.params.W_K)
KEYS = K[0][:, [0, 1]], K[1][:, [0, 2]]
VALUES = project_heads(EXAMPLE.X, EXAMPLE.params.W_V)[0][:, :2]
WORDS = EXAMPLE.tokens
FIRST = {"heads": 1, "head": 0, "angle": 0, "length": 1, "angle.1": 110, "length.1": 2}
PARTS = ("angle", "length"), ("angle.1", "length.1")
ANGLE, LENGTH = "angle of the query, in degrees", "length of the query"
# Of each bar of a dot product: its share, its number, how wide it is and where it begins.
BARS = """(all) => all.map((bar) => {
  const { width, marginLeft } = getComputedStyle(bar, "::before");
  return [
    Number(bar.style.getPropertyValue("--share")), bar.nextElementSibling.textContent,
    parseFloat(width) / bar.clientWidth, parseFloat(marginLeft) / bar.clientWidth,
  ];
})"""


def library(state, h):
    """Direction, query, products, scores, weights and output of a head, and its keys."""
    angle, length = (state[part] for part in PARTS[h])
    way = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    scores = attention_scores(length * way[None], KEYS[h])
    weights = attention_weights(scores)
    return way, length * way, KEYS[h] @ way * length, scores[0], weights[0], (weights @ VALUES)[0]


def number(text):
    """The number that a text shows with four decimals."""
    assert re.fullmatch(r"−?\d\.\d{4}", text), text
    assert text != "−0.0000"
    return float(text.replace("−", "-"))


def near(texts, values):
    """Compare numbers with four decimals to those that they show."""
    np.testing.assert_allclose([*map(number, texts)], values, rtol=0, atol=0.5e-4 + 1e-9)


def pair(text):
    """The two numbers of a text such as (0.1000, −0.2000)."""
    return re.fullmatch(r"\((\S+), (\S+)\)", text).groups()


def agrees(plane, **state):
    """Compare all that the plane shows with Python's."""
    assert_shows(plane, draw_plane(**state))
    heads = plane.locator(".tl-asker:visible")
    for h, block in enumerate(heads.all()):
        words, bars = (block.locator(f"span:nth-of-type({parity})") for parity in ("odd", "even"))
        told = zip(words.all_text_contents(), bars.all_text_contents(), strict=True)
        label = f"head {h}: " + ", ".join(map(" ".join, told))
        assert block.get_attribute("aria-label") == label
        checked = str(h == state.get("head", 0)).lower()
        assert block.get_attribute("aria-checked") == checked


def tells(sentence, **state):
    """Compare a sentence with the library: the weights, where the output lies."""
    state = FIRST | state
    weights = library(state, state["head"])[4]
    angle, length = (f"{state[part]:g}".replace("-", "−") for part in PARTS[state["head"]])
    who = f"Head {state['head']} at" if state["heads"] == 2 else "At"
    form = r"(.*): dogs (\S+), that (\S+), bark (\S+); the output is (.*)\."
    begins, *texts, where = re.fullmatch(form, sentence).groups()
    assert begins == f"{who} {angle}°, length {length}"
    near(texts, weights)
    assert where.startswith(lies(weights))


def lies(weights):
    """Where an output lies in the triangle."""
    few = [word for word, weight in zip(WORDS, weights, strict=True) if weight < 0.025]
    others = [f"“{word}”" for word, weight in zip(WORDS, weights, strict=True)]
    if len(few) == 2 and weights.max() > 0.975:
        return f"close to the corner of {others[weights.argmax()]}"
    if few:
        without = others.pop(weights.argmin())
        return f"close to the edge between {' and '.join(others)}. On it {without} would weigh 0"
    return "inside the triangle"


def tip(plane, angle, length):
    """The pixels at which a query ends."""
    box = plane.locator(".tl-arrows svg").bounding_box()
    unit = 25 * box["width"] / 224
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    turn = np.radians(angle)
    return middle[0] + unit * length * np.cos(turn), middle[1] - unit * length * np.sin(turn)


@pytest.fixture
def plane(show):
    """The plane on a page of its own."""
    return show(query_plane().html).locator("tl-plane")


@pytest.fixture
def products(show):
    """The plane that shows nothing but dot products, on a page of its own."""
    return show(query_plane(weights=False).html).locator("tl-plane")


def test_dot_products_alone_are_the_librarys_and_turning_answers_the_question(products):
    rng = np.random.default_rng(41)
    for angle in (0, 180, *np.round(rng.uniform(-179, 180, 4), 1)):
        firsts = set()
        for length in (2.5, 4, 1):
            write(products, ANGLE, f"{angle:g}")
            write(products, LENGTH, f"{length:g}")
            expected = library(FIRST | {"angle": angle, "length": length}, 0)[2]
            shown = products.locator(".tl-asker i").evaluate_all(BARS)
            near([text for _, text, _, _ in shown], expected)
            np.testing.assert_allclose([share for share, *_ in shown], expected / 8, atol=1e-9)
            np.testing.assert_allclose([w for *_, w, _ in shown], np.abs(expected) / 16, atol=0.01)
            begins = 0.5 + np.minimum(expected, 0) / 16
            np.testing.assert_allclose([left for *_, left in shown], begins, atol=0.01)
            cells = products.locator("tbody tr td:last-child").all_text_contents()
            assert cells == [text for _, text, _, _ in shown]
            best = f"“{WORDS[expected.argmax()]}” fits best."
            assert said(products).endswith(best)
            firsts.add(best)
        assert len(firsts) == 1  # a length chooses no other word
    write(products, LENGTH, "0")
    assert said(products).endswith("all three fit alike.")
    assert not re.search("weight|output", products.inner_text())


def test_question_stays_and_turning_answers_it(plane):
    question = plane.get_by_text("Turn the query and make it longer")
    assert question.is_visible()
    assert plane.locator("[aria-live]").text_content() == ""
    plane.locator(".tl-arrows").focus()
    assert question.is_visible()
    plane.page.keyboard.press("ArrowLeft")
    assert question.is_visible()
    write(plane, LENGTH, "4")
    edges = set()
    for angle in (45, -45, 135, -108, 0):  # at 0 a corner
        write(plane, ANGLE, str(angle))
        tells(said(plane), angle=angle, length=4)
        edges |= set(re.findall("edge between “(.*)” and “(.*)”. On it", said(plane)))
    assert edges == {("dogs", "bark"), ("that", "bark"), ("dogs", "that")}


def test_worked_by_keys_alone(plane):
    page = plane.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.role") == "application"
    for key in ("ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "ArrowUp", "Shift+ArrowUp"):
        page.keyboard.press(key)
    agrees(plane, angle=11, length=1.3)
    for _ in range(12):
        page.keyboard.press("ArrowUp")
    agrees(plane, angle=11, length=4)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+ArrowRight")
    for _ in range(17):
        page.keyboard.press("ArrowDown")
    agrees(plane, angle=6, length=0)
    assert "dogs 0.3333, that 0.3333, bark 0.3333;" in said(plane)
    press(plane, "Second head")
    page.locator(".tl-asker").nth(1).focus()
    page.keyboard.press("ArrowLeft")
    tells(said(plane), heads=2, angle=6, length=0)
    agrees(plane, heads=2, angle=6, length=0)


def test_query_is_dragged_and_both_heads_have_their_own(plane):
    mouse = plane.page.mouse
    mouse.move(*tip(plane, 0, 1))
    mouse.down()
    for angle in (40, 80, 120):
        mouse.move(*tip(plane, angle, 3))
    mouse.up()
    agrees(plane, angle=120, length=3)
    tells(said(plane), angle=120, length=3)
    mouse.move(*tip(plane, 10, 2))
    agrees(plane, angle=120, length=3)  # let go
    press(plane, "Second head")
    outputs = [library(FIRST | {"angle": 120, "length": 3}, h)[5] for h in range(2)]
    places = re.findall(r"\(\S+ \S+\)", said(plane))
    for text, output in zip(places, outputs, strict=True):
        near(pair(text), output)
    mouse.click(*tip(plane, -90, 4.3))  # beyond the rim
    state = {"heads": 2, "angle": 120, "length": 3, "angle.1": -90, "length.1": 4}
    agrees(plane, **state, head=1)
    plane.locator(".tl-asker").first.click()
    agrees(plane, **state)
    press(plane, "Second head")
    agrees(plane, **state | {"heads": 1})
    assert said(plane).startswith("One head, one output: (")
    press(plane, "Reset")
    assert said(plane) == "The plane is as it was."
    agrees(plane)


def test_an_angle_is_read_as_people_write_it(plane):
    write(plane, ANGLE, "−765/3°")
    agrees(plane, angle=105)


@pytest.mark.long
def test_worked_by_touch(show):
    page = show(query_plane().html, **PHONE)
    plane = page.locator("tl-plane")
    page.touchscreen.tap(*tip(plane, -120, 2))
    agrees(plane, angle=-120, length=2)
    draw_finger(page, tip(plane, 90, 1), tip(plane, 90, 3))  # taken in hand by the tap
    agrees(plane, angle=90, length=3)
    page.wait_for_timeout(500)  # a tap that follows a quick finger at once stops what it threw
    plane.get_by_role("button", name="Second head").tap()
    plane.locator(".tl-asker").first.tap()
    agrees(plane, heads=2, angle=90, length=3)


@pytest.mark.long
def test_a_swipe_that_begins_on_the_circle_scrolls_the_page(show):
    page = show("<p style='height: 100px'></p>", query_plane().html, *["<br>"] * 60, **PHONE)
    plane = page.locator("tl-plane")
    draw_finger(page, tip(plane, 0, 2), tip(plane, 90, 4))
    page.wait_for_function("() => scrollY > 40")
    agrees(plane)


# What sticks out of the room within the frame, also where a reader has wider letters.
OUTSIDE = """(element) => {
  element.style.fontFamily = "DejaVu Sans";
  const { left, right } = element.getBoundingClientRect();
  const nodes = [...element.querySelectorAll(":is(label, input, svg, button, .tl-asker)")];
  return nodes.filter((node) => node.checkVisibility()).filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < left + 8 || box.right > right - 8;
  }).map((node) => node.outerHTML);
}"""


@pytest.mark.parametrize("weights", [True, *long(False)])
def test_nothing_leaves_the_frame_where_letters_are_wide(show, weights):
    plane = show(query_plane(weights=weights).html, width=320).locator("tl-plane")
    write(plane, LENGTH, "4")
    for text in ("180", "none"):
        write(plane, ANGLE, text)
        if weights:
            press(plane, "Second head")
        assert plane.evaluate(OUTSIDE) == []


INSIDE = """(all) => all.filter((text) => {
  const [inner, outer] = [text, text.ownerSVGElement].map((node) => node.getBoundingClientRect());
  return inner.left < outer.left - 1 || inner.right > outer.right + 1
    || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map((text) => text.textContent)"""


@pytest.mark.long
def test_every_name_stays_in_its_picture(plane):
    plane.page.evaluate(SET, "#plane=0&heads=2&length=4&length.1=4")
    for head in range(2):
        plane.locator(".tl-asker").nth(head).focus()
        for angle in range(-180, 180, 20):
            write(plane, ANGLE, str(angle))
            assert plane.locator("svg text").evaluate_all(INSIDE) == []


@pytest.mark.long
def test_answers_at_once(plane, browser):
    page = plane.page
    press(plane, "Second head")
    page.mouse.move(*tip(plane, 0, 2))
    with recorded(browser) as events:
        page.mouse.down()
        for angle in range(0, 360, 20):
            page.mouse.move(*tip(plane, angle, 3))
        page.mouse.up()
        do_references(page)
    assert largest_task(events) <= BUDGETS["answer"]
