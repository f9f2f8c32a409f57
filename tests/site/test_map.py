"""The live map in Chromium: its numbers and its lights are the library's, by any means."""

import re

import numpy as np
import pytest

from tests.site.browsing import PHONE, SET, focused, said
from tests.site.showing import assert_shows
from tutorial_lib import running_example, trace
from tutorial_lib.elements.exhibits import live_map
from tutorial_lib.elements.exhibits.map.element import draw_map

EXAMPLE = running_example()
TOKENS = EXAMPLE.tokens
LN_2 = np.log(2)
UNITS = {"Q": 2 * LN_2, "scores": LN_2}
MADE = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")
LABELS = "(map) => [...map.querySelectorAll('td[tabindex]')].map((d) => d.ariaLabel.split(': '))"
LINKS, PLAYGROUND = {"embed": "01.html", "project out": "06.html"}, "06.html#look"
LIT = """(map, name) => [...map.querySelectorAll(`td[data-${name}]`)].map(
  (d) => d.ariaLabel.split(":")[0])"""


def library(X):
    """The arrays of the layer in the map's units."""
    record = trace(X, EXAMPLE.params, mask=EXAMPLE.mask)
    made = {name: getattr(record, name) / UNITS.get(name, 1) for name in MADE}
    return {"X": X[None], **{n: a[None] if a.ndim == 2 else a for n, a in made.items()}}


def names():
    """The name of every cell of the map, and where it stands: {label: (array, h, t, j)}."""
    found = {}
    for name, array in library(EXAMPLE.X).items():
        for h, t, j in np.ndindex(array.shape):
            head = f", head {h}" if len(array) > 1 else ""
            column = TOKENS[j] if name in ("scores", "weights") else j
            found[f"{name}{head}, {TOKENS[t]}, {column}"] = (name, h, t, j)
    return found


NAMES = names()


def after(name, array):
    """What follows an array of the layer that is given: the library's own steps from there on."""
    arrays = library(EXAMPLE.X) | {name: array}
    start = MADE.index(name) + 1
    scale = np.sqrt(EXAMPLE.params.d_k) / UNITS["Q"] * LN_2
    steps = {
        "scores": lambda a: a["Q"] @ np.swapaxes(a["K"], -1, -2) / scale,
        "weights": lambda a: softmax(np.where(EXAMPLE.mask, a["scores"] * LN_2, -np.inf)),
        "heads": lambda a: a["weights"] @ a["V"],
        "concat": lambda a: np.concatenate(list(a["heads"]), axis=-1)[None],
        "Y": lambda a: a["concat"] @ EXAMPLE.params.W_O,
    }
    for step in MADE[max(start, 3) :]:
        arrays[step] = steps[step](arrays)
    return arrays


def softmax(scores):
    """Shares of each row, by the definition."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def followers(label):
    """The names of all cells that change when this one is larger by one."""
    name, *place = NAMES[label]
    own = library(EXAMPLE.X)
    raised = own[name].copy()
    raised[tuple(place)] += 1
    changed = library(raised[0]) if name == "X" else after(name, raised)
    moved = {n for n, (a, *p) in NAMES.items() if abs(changed[a] - own[a])[tuple(p)] > 1e-9}
    return moved - {label}


def cell(map_, label):
    """One cell of the map by its name."""
    return map_.locator(f'.tl-board td[aria-label^="{label}:"]')


@pytest.fixture
def map_(show):
    """The map on a page of its own, as the first page has it."""
    return show(live_map(links=LINKS, playground=PLAYGROUND).html).locator("tl-map")


def agrees(map_, X):
    """Compare all that the map shows with Python's, and what is heard of it with its table."""
    changed = zip(*np.nonzero(X != EXAMPLE.X), strict=True)
    state = {f"X.0.{t}.{j}": X[t, j] for t, j in changed}
    assert_shows(map_, draw_map(state, links=LINKS, playground=PLAYGROUND))
    heard = dict(map_.evaluate(LABELS))
    assert set(heard) == set(NAMES)
    for row in map_.locator("tr[data-row]").all_text_contents():
        title, numbers = re.fullmatch(r"(.*(?:dogs|that|bark))(.*)", row).groups()
        texts = [text for label, text in heard.items() if label.startswith(f"{title}, ")]
        assert numbers.split(", ") == [re.split("[ ,]", text)[0] for text in texts], title


def test_cell_lights_all_that_change_with_it_and_those_that_changed_it(map_):
    every = {label: followers(label) for label in NAMES}
    labels = [label for i, label in enumerate(NAMES) if i % 11 == 0]
    assert {NAMES[label][0] for label in labels} == {"X", *MADE}
    for label in labels:
        cell(map_, label).click()
        assert set(map_.evaluate(LIT, "reached")) == every[label], label
        before = {other for other in NAMES if label in every[other]}
        assert set(map_.evaluate(LIT, "before")) == before, label


def test_cell_lights_what_made_it_and_says_the_sum(map_):
    cell(map_, "Y, bark, 4").click()
    assert map_.evaluate(LIT, "lit") == [f"concat, bark, {i}" for i in range(8)]
    terms = "6/7·1 + 3/7·0 + 4/7·0 + 1/7·0 + 1/13·0 + 4/13·1 + 8/13·0 + 0·(−1)"
    assert said(map_) == f"Y, bark, 4 = {terms} = 106/91"
    assert map_.locator(".tl-board path").count() == 8
    cell(map_, "Q, head 1, that, 2").click()
    assert map_.evaluate(LIT, "lit") == [f"X, that, {i}" for i in range(8)]
    assert said(map_).endswith("× 2 ln 2")
    cell(map_, "concat, bark, 5").click()
    assert map_.evaluate(LIT, "lit") == ["heads, head 1, bark, 1"]


def test_question_stays_and_its_answer_is_there(map_):
    question = map_.get_by_text("Which numbers of Y change if that changes?")
    assert question.is_visible()
    assert map_.locator("[aria-live]").text_content() == ""
    cell(map_, "X, that, 1").click()
    assert question.is_visible()
    assert said(map_) == (
        "X, that, 1 is 1. One more would change 16 of the numbers of Y, "
        "in the rows of that and bark."
    )
    rows = {label.split(", ")[1] for label in map_.evaluate(LIT, "reached") if label[0] == "Y"}
    assert rows == {"that", "bark"}  # never of a word before it


@pytest.mark.long
def test_pointing_shows_a_cell_and_keeps_what_was_chosen(map_):
    cell(map_, "X, that, 1").click()
    cell(map_, "V, head 0, bark, 0").hover()
    assert said(map_).startswith("V, head 0, bark, 0 = 1·1 + ")
    map_.page.mouse.move(5, 5)
    assert said(map_).startswith("X, that, 1 is 1. ")
    map_.get_by_role("button", name="+ 1").click()
    assert said(map_).startswith("X, that, 1 was 1, is 2. Numbers that follow: ")


def test_number_of_x_is_changed_by_keys_and_every_tint_follows(map_):
    page = map_.page
    cell(map_, "X, that, 1").click()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "X, bark, 1: 1"  # arrows move, until a cell is in hand
    page.keyboard.press("Enter")
    assert said(map_).endswith(" In hand: ↑ and ↓ change it, Enter lets it go.")
    X = EXAMPLE.X.copy()
    for key, by in {"ArrowUp": 1, "ArrowDown": -1, "+": 1, "-": -1}.items():
        page.keyboard.press(key)
        X[2, 1] += by
        agrees(map_, X)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    X[2, 1] -= 3
    agrees(map_, X)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "X, that, 1: 1"
    agrees(map_, X)
    page.keyboard.press("-")
    assert said(map_).startswith("X, that, 1 was 1, is 0. ")
    map_.get_by_role("button", name="Reset").click()
    assert said(map_).startswith("The example's own numbers are back. ")
    agrees(map_, EXAMPLE.X)


@pytest.mark.long
def test_arrows_reach_every_array_from_one_stop(map_):
    page = map_.page
    assert map_.locator("td[tabindex='0']").count() == 1
    map_.locator("a").first.focus()
    page.keyboard.press("Tab")
    assert focused(page) == "X, dogs, 0: 1"
    seen = set()
    for keys in ("ArrowRight " * 30, "ArrowDown " * 20, "ArrowLeft " * 40, "ArrowUp " * 20):
        for key in keys.split():
            page.keyboard.press(key)
            seen.add(focused(page).split(": ")[0])
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        seen.add(focused(page).split(": ")[0])
    arrays = {label.rsplit(", ", 2)[0] for label in seen}
    assert {"X", "Q, head 0", "Q, head 1", "heads, head 1", "Y"} <= arrays
    page.keyboard.press("Tab")
    assert map_.locator("td:focus").count() == 0


def test_worked_by_touch(show):
    page = show(live_map(links=LINKS, playground=PLAYGROUND).html, **PHONE)
    map_ = page.locator("tl-map")
    map_.get_by_role("button", name="+ 1").tap()
    assert said(map_) == "Choose a number of X first: those can be changed."
    cell(map_, "X, dogs, 0").tap()
    map_.get_by_role("button", name="− 1").tap()
    assert said(map_).startswith("X, dogs, 0 was 1, is 0. ")
    X = EXAMPLE.X.copy()
    X[0, 0] = 0
    agrees(map_, X)


def test_lines_pass_behind_buttons_and_names_of_steps_on_a_phone(show):
    page = show(live_map(links={"project": "02.html"}, playground="06.html").html, **PHONE)
    map_ = page.locator("tl-map")
    cell(map_, "X, that, 3").tap()
    assert map_.locator(".tl-board path").count() > 5
    controls = map_.locator(".tl-board :is(.tl-row > *, .tl-steps > span)")
    inside = """(all) => all.map((one) => one.getBoundingClientRect()).map((box) =>
      ({ x: box.x + 2, y: box.y + 2, width: box.width - 4, height: box.height - 4 }))"""
    boxes = controls.evaluate_all(inside)
    crossed = [page.screenshot(clip=box) for box in boxes]
    map_.locator(".tl-board > svg").evaluate("(svg) => (svg.style.visibility = 'hidden')")
    free = [page.screenshot(clip=box) for box in boxes]
    pairs = zip(controls.all_inner_texts(), crossed, free, strict=True)
    assert [name for name, with_lines, without in pairs if with_lines != without] == []


def test_link_carries_the_state_to_the_map_and_to_the_playground(map_):
    cell(map_, "X, bark, 1").click()
    map_.get_by_role("button", name="+ 1").click()
    link = map_.get_by_role("link", name="Link to this map").get_attribute("href")
    assert link == "#map=0&cell=X.0.2.1&X.0.2.1=2"
    onward = map_.get_by_role("link", name="Open in the playground")
    assert onward.get_attribute("href") == "06.html#playground=0&X.0.2.1=2"
    map_.get_by_role("button", name="Reset").click()
    assert onward.get_attribute("href") == "06.html#playground=0"
    map_.page.evaluate(SET, link)
    map_.page.get_by_text("X, bark, 1 is 2. One more would change").wait_for()
    X = EXAMPLE.X.copy()
    X[2, 1] = 2
    agrees(map_, X)


def test_bare_anchor_named_as_the_map_says_nothing(map_):
    words = map_.locator("[aria-live]").text_content()
    map_.page.evaluate(SET, "#map")
    map_.page.wait_for_timeout(50)
    assert map_.locator("[aria-live]").text_content() == words


def test_map_fits_its_screen(map_):
    box = map_.locator(".tl-board").bounding_box()
    assert box["width"] <= 820
    assert box["height"] <= 420


@pytest.mark.long
def test_steps_that_are_named_are_lit_until_a_cell_is_chosen(show):
    page = show(live_map(("score", "mix")).html)
    faint = "(map) => [...map.querySelectorAll('table')].filter((t) => getComputedStyle(" + (
        "t.rows[1].cells[1]).opacity < 1).map((t) => t.dataset.array)"
    )
    map_ = page.locator("tl-map")
    # X stays as it is: the question asks to choose in it.
    assert set(map_.evaluate(faint)) == {"concat", "Y"} | {
        f"{name}.{h}" for name in "QKV" for h in (0, 1)
    }
    cell(map_, "X, dogs, 0").click()
    assert not map_.locator(".tl-board:not([data-busy])").count()


@pytest.mark.long
def test_answers_at_once_with_a_processor_slowed_four_times(map_):
    client = map_.page.context.new_cdp_session(map_.page)
    client.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    cell(map_, "X, that, 1").click()
    took = map_.evaluate("""(map) => [...map.querySelectorAll("button")].slice(0, 2).map((one) => {
      const start = performance.now();
      one.click();
      map.offsetHeight;
      return performance.now() - start;
    })""")
    assert max(took) <= 200
