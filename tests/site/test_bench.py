"""The softmax bench in Chromium: its weights and slopes are the library's, by any means."""

import re
from fractions import Fraction

import numpy as np
import pytest

from tests.sampling import long
from tests.site.browsing import PHONE, draw_finger, said
from tutorial_lib import attention_weights
from tutorial_lib.elements.exhibits import softmax_bench
from tutorial_lib.gradients import softmax_backward

WORDS, UNIT = ("dogs", "that", "bark"), np.log(2)
FIRST = {
    "products": UNIT * np.array([2.0, -2.0, 0.0]),
    "divide": 2.0,  # √d_k, as on paper
    "hidden": np.zeros(3, dtype=bool),
    "away": False,
    "by": 0,
}
# What the bench shows: tables, bars, stack, controls and what a screen reader hears of a bar.
READ = """(bench) => {
  const all = (what, give) => [...bench.querySelectorAll(what)].map(give);
  const [lines, rows] = all("tbody", (body) => [...body.rows].map(
    (row) => [...row.cells].map((cell) => cell.textContent)));
  return {
    lines, rows,
    heads: all("thead tr", (row) => [...row.cells].slice(1).map((cell) => cell.textContent)),
    lanes: all(".tl-lane", (lane) => ({
      ...lane.dataset, value: lane.ariaValueNow, told: lane.ariaValueText, name: lane.ariaLabel,
      top: parseFloat(lane.firstElementChild.style.top),
      height: parseFloat(lane.firstElementChild.style.height),
    })),
    exponentials: all("td > i", (bar) => parseFloat(bar.style.width)),
    stack: all(".tl-stack > span", (part) => parseFloat(part.style.width)),
    fields: all("[type=text]", (field) => field.value),
    hidden: all("[type=checkbox]", (box) => box.checked),
    slider: bench.querySelector("[type=range]").value,
    pressed: bench.querySelector("[aria-pressed]").ariaPressed,
    two: all(".tl-two b", (number) => number.textContent),
    state: bench.querySelector(".tl-numbers p").textContent,
    dot: bench.querySelector("circle")?.getAttribute("transform")
      .match(/-?[\\d.]+(e-\\d+)?/g).map(Number),
  };
}"""
# Lead to an address, and wait until the bench has heard of it.
SET = """(hash) => new Promise((done) => {
  addEventListener("hashchange", () => done(), {once: true});
  location.hash = hash;
})"""


def random_states(count):
    """States with multiples of ln 2 and other numbers, near and far, keys hidden, each switch."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(count):
        size = 10.0 ** rng.integers(-1, 4)
        numbers = np.round(rng.uniform(-size, size, 3), 3)
        whole = UNIT * rng.integers(-32, 33, 3) / 4
        state = {"products": np.where(rng.random(3) < 0.5, whole, numbers), "by": i % 3}
        state["divide"] = rng.choice([1.0, 2.0, 16.0, round(rng.uniform(1, 16), 2)]).item()
        state |= {"hidden": rng.random(3) < 0.25, "away": bool(rng.random() < 0.5)}
        found.append(state)
    return found


def library(products, divide, hidden, away, by):
    """The scores, exponentials, weights of a row, and the slopes in the score of a key."""
    scores = products / divide
    exponentials = np.where(hidden, -np.inf, scores)
    if away and not hidden.all():
        exponentials = exponentials - exponentials.max()
    with np.errstate(over="ignore", invalid="ignore"):
        exponentials = np.exp(exponentials)
        weights = exponentials / exponentials.sum()
    stable = attention_weights(scores[None], mask=~hidden[None])[0]
    if away or hidden.all():
        weights = stable
    elif np.isfinite(weights).all():
        np.testing.assert_allclose(weights, stable, rtol=0, atol=1e-12)
    slopes = softmax_backward(weights, np.eye(3)[by]) if np.isfinite(weights).all() else None
    return scores, exponentials, weights, slopes


def address(products, divide, hidden, away, by, *, slope):
    """The link to a state, written from its description and not by the script."""
    given = [f"{word}={number!r}" for word, number in zip(WORDS, products.tolist(), strict=True)]
    given += [f"divide={divide!r}"] + ["largest=away"] * away + [f"by={WORDS[by]}"] * slope
    names = "+".join(word for word, out in zip(WORDS, hidden, strict=True) if out)
    return "#" + "&".join(["bench=0", *given, *[f"hide={names}"] * bool(names)])


def number(text):
    """The number that a text shows, and how far it may be from what it stands for."""
    text = text.replace("−", "-")
    if text in ("inf", "nan", "-∞"):
        return float(text.replace("∞", "inf")), 0.0
    times = re.fullmatch(r"(-?[\d.]*) ?ln 2", text)
    if times:
        return float({"": 1, "-": -1}.get(times[1], times[1] or 1)) * UNIT, 1e-9
    value = float(Fraction(text)) if "/" in text else float(text)
    if "e" in text:
        return value, 0.0051 * abs(value)
    off = 0.5000001e-4 if re.search(r"\.\d{4}$", text) else 1e-11
    return value, max(off, 6e-6 * abs(value))


def same(texts, values):
    """Compare texts with numbers; a fraction stands for no other number."""
    for text, value in zip(texts, values, strict=True):
        shown, off = number(text)
        if "/" in text:
            off = 1e-12
        np.testing.assert_allclose(shown, value, rtol=0, atol=off, err_msg=text)


def agrees(bench, state, *, slope=False):
    """Compare all that the bench shows with the library."""
    shown = bench.evaluate(READ)
    products, hidden, by = state["products"], state["hidden"], state["by"]
    scores, exponentials, weights, slopes = library(**state)
    columns = [products, np.where(hidden, -np.inf, scores), exponentials, weights]
    if slope:
        columns.append(np.full(3, np.nan) if slopes is None else slopes)
    for row, line, word, *values in zip(
        shown["rows"], shown["lines"], WORDS, *columns, strict=True
    ):
        assert row[0] == line[0] == word
        assert row[2:] == line[1:]
        same(row[1:], values)
    highest = exponentials.max()
    parts = exponentials / highest if 0 < highest < np.inf else np.zeros(3)
    np.testing.assert_allclose(shown["exponentials"], 100 * parts, rtol=0, atol=0.006)
    np.testing.assert_allclose(shown["stack"], 100 * np.nan_to_num(weights), rtol=0, atol=0.006)
    entropy = -(weights * np.log2(np.where(weights == 0, 1, weights))).sum()
    same(shown["two"], [weights.max(), entropy])
    assert shown["state"].endswith(
        f": largest weight {shown['two'][0]}, entropy {shown['two'][1]} bits."
    )
    controls(shown, state, slope=slope)
    top = np.where(hidden, -np.inf, scores).max() if state["away"] and not hidden.all() else 0
    for heads in shown["heads"]:
        _, _, less = heads[-3 if slope else -2].partition("e to the score less ")
        assert bool(less) == state["away"]
        same([less or "0"], [top])
        assert not slope or heads[-1] == f"slope by {WORDS[by]}"
    if slope and slopes is not None:  # on the curve: the slope of the chosen bar's weight in it
        np.testing.assert_allclose(shown["dot"], [160 * weights[by], -240 * slopes[by]], atol=1e-9)


def controls(shown, state, *, slope):
    """Compare bars, fields and switches with a state."""
    products, divide = state["products"], state["divide"]
    same(shown["fields"], [*products, divide])
    assert shown["hidden"] == state["hidden"].tolist()
    assert shown["pressed"] == str(state["away"]).lower()
    assert float(shown["slider"]) == pytest.approx(np.log2(divide), abs=0.026)
    ends = np.clip(products, -7, 7)
    for i, (lane, product, end) in enumerate(zip(shown["lanes"], products, ends, strict=True)):
        assert float(lane["value"]) == pytest.approx(product, rel=1e-12, abs=1e-12)
        assert lane["name"] == f"q · k of {WORDS[i]}"
        same([lane["told"].removesuffix(", hidden")], [product])
        assert lane["told"].endswith(", hidden") == ("hidden" in lane) == state["hidden"][i]
        assert ("minus" in lane, "beyond" in lane) == (product < 0, abs(product) > 7)
        assert ("by" in lane) == (slope and i == state["by"])
        drawn = lane["top"], lane["top"] + lane["height"]
        expected = 50 - 50 * max(end, 0) / 7, 50 - 50 * min(end, 0) / 7
        np.testing.assert_allclose(drawn, expected, rtol=0, atol=0.006)


def write(bench, name, text):
    """Write into a field and press Enter."""
    field = bench.get_by_label(name, exact=True)
    field.fill(text)
    field.press("Enter")


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


@pytest.mark.parametrize("count", [5, *long(60)])
def test_every_weight_and_slope_is_the_librarys_in_random_states(show, count):
    for slope in (False, True):
        bench = show(softmax_bench(slope=slope).html).locator("tl-bench")
        for state in random_states(count)[-5 if count == 5 else 0 :]:
            bench.page.evaluate(SET, address(**state, slope=slope))
            agrees(bench, state if slope else state | {"by": 0}, slope=slope)


def test_question_stays_and_trying_answers_it(bench):
    question = bench.get_by_text("Add 5 to all three: whose weight grows?")
    assert question.is_visible()
    assert said(bench) == ""
    bench.get_by_role("button", name="Add 5 to all").click()
    assert question.is_visible()
    assert said(bench).startswith("The weights are still dogs 4/7, that 1/7, bark 2/7; ")
    agrees(bench, FIRST | {"products": FIRST["products"] + 5})
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
        state = FIRST | {"products": np.array([12, -2 * UNIT, 0]), "divide": divide}
        assert (library(**state)[2].max() > 0.99) == past == (", past 0.99" in said(bench))
        agrees(bench, state)


def test_1000_overflows_unless_the_largest_is_taken_away(bench):
    write(bench, DIVISOR, "1")
    write(bench, FIELDS[0], "1000")
    state = FIRST | {"products": np.array([1000, -2 * UNIT, 0]), "divide": 1.0}
    agrees(bench, state)
    assert said(bench) == (
        "e to the 1000 is inf, beyond the largest float64, and inf / inf is nan: "
        "the weights are dogs nan, that 0, bark 0."
    )
    bench.get_by_role("button", name="Subtract the largest score").click()
    agrees(bench, state | {"away": True})
    assert said(bench).startswith("The weights are dogs 1, that 0, bark 0; ")
    bench.get_by_role("button", name="Add 5 to all").click()
    assert said(bench) == "With 5 more a number would be past 1000. Nothing has changed."
    for name in FIELDS:
        write(bench, name, "-1000")
    bench.get_by_role("button", name="Subtract the largest score").click()
    assert said(bench) == "Every exponential is 0, too small for a float64, and 0 / 0 is nan."
    agrees(bench, state | {"products": np.full(3, -1000.0)})
    for word in WORDS:
        bench.get_by_label(f"hide {word}").check()
    assert said(bench).startswith("Every key is hidden: ")
    agrees(bench, state | {"products": np.full(3, -1000.0), "hidden": np.ones(3, dtype=bool)})


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
        agrees(bench, FIRST | {"products": UNIT * np.array([2, -2, times])})
    write(bench, FIELDS[2], "16 ln 2")
    assert bench.evaluate(READ)["lines"][2][2] == "256"  # though its last digits are rounded


def test_worked_by_keys_alone(sloped):
    page = sloped.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "q · k of dogs"
    for key in ("ArrowUp", "PageUp", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    state = FIRST | {"products": UNIT * np.array([5, -1, 0]), "by": 1}
    agrees(sloped, state, slope=True)
    *_, slopes = library(**state)
    texts = re.search(r"their slopes in the score of that are (.*)\.$", said(sloped))[1].split(", ")
    same(texts, slopes)
    page.keyboard.press("End")
    agrees(sloped, state | {"by": 2}, slope=True)
    for key in ("Tab", "Tab", "Space"):  # to the box of bark
        page.keyboard.press(key)
    hidden = np.array([False, False, True])
    agrees(sloped, state | {"by": 2, "hidden": hidden}, slope=True)


def test_a_trail_of_slopes_is_drawn_where_the_reader_has_been(sloped):
    def marks():
        """The points of the trail."""
        path = sloped.locator("[data-part=trail]").get_attribute("d")
        return [tuple(map(float, one.split())) for one in re.findall(r"M(\S+ \S+)h0", path)]

    assert not sloped.locator("[data-part=curve]").is_visible()
    first = library(**FIRST)
    assert marks() == [pytest.approx((160 * first[2][0], -240 * first[3][0]))]
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
    agrees(bench, FIRST)
    to(2, 1.55 * UNIT)
    agrees(bench, FIRST | {"products": UNIT * np.array([2, -2, 1.5])})
    to(2, 9)  # beyond the picture
    agrees(bench, FIRST | {"products": UNIT * np.array([2, -2, 10])})
    mouse.up()
    to(2, 1)
    agrees(bench, FIRST | {"products": UNIT * np.array([2, -2, 10])})  # let go
    to(0, -3.05 * UNIT)
    mouse.down()
    mouse.up()
    agrees(bench, FIRST | {"products": UNIT * np.array([-3, -2, 10])})


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
    agrees(bench, FIRST, slope=slope)


@pytest.mark.long
def test_worked_by_touch(show):
    page = show(softmax_bench(slope=True).html, **PHONE)
    bench = page.locator("tl-bench")
    box = bench.locator(".tl-lane").nth(1).bounding_box()
    place = box["x"] + 20, box["y"] + box["height"] * (7 - 2.05 * UNIT) / 14
    page.touchscreen.tap(*place)
    agrees(bench, FIRST | {"by": 1}, slope=True)  # chosen, and left as it is
    page.touchscreen.tap(*place)
    state = FIRST | {"products": UNIT * np.array([2, 2, 0]), "by": 1}
    agrees(bench, state, slope=True)
    there = box["x"] + 20, box["y"] + box["height"] * (7 - 4.05 * UNIT) / 14
    draw_finger(page, place, there)
    state["products"][1] = 4 * UNIT
    agrees(bench, state, slope=True)
    bench.get_by_text("hide").nth(0).tap()
    agrees(bench, state | {"hidden": np.array([True, False, False])}, slope=True)
