"""The clock in Chromium: its hands and its score are the library's, by any means."""

import re

import numpy as np
import pytest

from tests.sampling import long
from tests.site.browsing import PHONE, SET, said
from tutorial_lib import attention_scores
from tutorial_lib.elements.exhibits import rotation_clock
from tutorial_lib.variants.positions import rope_frequencies, rotate

QUERY = np.array([[1, 0, 1, 0, 1, 0, 0, 1.0]])
KEY = np.array([[1, 0, 0.8, 0.6, 1, 0, 0.6, 0.8]])
FREQUENCIES = rope_frequencies(8)
FIRST = {"m": 9, "n": 4, "pair": 0, "frequencies": FREQUENCIES}
PAIRS, DISTANCES = range(4), range(13)
# What the clock shows: its tables, its lines, its menus and what a screen reader hears of a pair.
READ = """(clock) => {
  const ends = (line) => ["x1", "y1", "x2", "y2"].map((name) => Number(line.getAttribute(name)));
  const lines = (svg) => Object.fromEntries(
    [...svg.querySelectorAll("line")].map((line) => [line.dataset.part, ends(line)]));
  const rows = [...clock.querySelectorAll("tbody tr")].map(
    (row) => [...row.cells].map((cell) => cell.textContent));
  return {
    rows,
    face: lines(clock.querySelector(".tl-face svg")),
    small: [...clock.querySelectorAll(".tl-pair svg")].map(lines),
    pairs: [...clock.querySelectorAll(".tl-pair")].map((cell) => cell.ariaLabel),
    chosen: [...clock.querySelectorAll(".tl-pair")].findIndex((cell) => cell.ariaChecked == "true"),
    total: clock.querySelector(".tl-total p").textContent,
    fields: [...clock.querySelectorAll("input")].map((field) => field.value),
  };
}"""


def random_states(count):
    """States with positions near and far, frequencies as given or others, a pair chosen."""
    rng = np.random.default_rng(19)
    found = []
    for i in range(count):
        m, n = (int(rng.integers(0, 10 ** int(rng.integers(1, 6)))) for _ in range(2))
        other = rng.random(4) < 0.3
        frequencies = np.where(other, np.round(rng.uniform(0, 4, 4), 3), FREQUENCIES)
        found.append({"m": m, "n": n, "pair": i % 4, "frequencies": frequencies})
    return found


def library(m, n, frequencies):
    """The rotated query and key in pairs, their products, and the score."""
    Q, K = rotate(QUERY, np.array([m]), frequencies), rotate(KEY, np.array([n]), frequencies)
    hands = [array.reshape(-1, 2) for array in (Q, K)]
    return hands, (hands[0] * hands[1]).sum(axis=-1), attention_scores(Q, K).item()


def address(m, n, pair, frequencies):
    """The link to a state, written from its description and not by the script."""
    given = [f"{name}={value}" for name, value in (("m", m), ("n", n), ("pair", pair))]
    changed = [
        f"frequency.{i}={float(frequencies[i])}" for i in PAIRS if frequencies[i] != FREQUENCIES[i]
    ]
    return "#" + "&".join(["clock=0", *given, *changed])


def number(text):
    """The number that a text shows with four decimals."""
    assert re.fullmatch(r"−?\d+\.\d{4}", text), text
    return float(text.replace("−", "-"))


def near(text, value):
    """Whether a text is a number with four decimals; far positions cost the last of its digits."""
    return abs(number(text) - value) <= 0.5e-4 + 1e-9


def agrees(clock, m, n, pair, frequencies):
    """Compare all that the clock shows with the library."""
    shown = clock.evaluate(READ)
    hands, products, score = library(m, n, frequencies)
    for i in PAIRS:
        name, *written, product = shown["rows"][i]
        frequency = name.removeprefix(f"pair {i}, frequency ")
        assert float(frequency) == pytest.approx(frequencies[i], rel=1e-5)
        for text, hand in zip(written, (hands[0][i], hands[1][i]), strict=True):
            assert all(map(near, text.strip("()").split(", "), hand)), (i, text)
        assert near(product, products[i])
        assert shown["pairs"][i] == f"pair {i}, frequency {frequency}: {product}"
        drawn(shown["small"][i], hands[0][i], hands[1][i])
    for distance, (label, text) in zip(DISTANCES, shown["rows"][4:], strict=True):
        assert label == str(distance)
        assert near(text, library(distance, 0, frequencies)[2])
    total, found = re.fullmatch(r"sum (\S+), ÷ √8: score (\S+)", shown["total"]).groups()
    assert near(total, products.sum())
    assert near(found, score)
    assert shown["chosen"] == pair
    drawn(shown["face"], hands[0][pair], hands[1][pair])
    near_m, m_field, near_n, n_field, _ = shown["fields"]
    assert [m_field, n_field] == [str(m), str(n)]
    assert [near_m, near_n] == [str(min(m, 40)), str(min(n, 40))]


def drawn(lines, query, key):
    """Compare the lines of a clock with two hands: first entry up, second to the right."""
    cast = (query @ key) * query
    ends = {"q": (0 * query, query), "k": (0 * key, key), "cast": (0 * cast, cast)}
    for part, at in (ends | {"drop": (key, cast)}).items():
        expected = [100 * x for up, right in at for x in (right, -up)]
        np.testing.assert_allclose(lines[part], expected, rtol=0, atol=1e-6, err_msg=part)


def score(**positions):
    """The score at two positions, as it is written."""
    return f"{library(frequencies=FREQUENCIES, **positions)[2]:.4f}".replace("-", "−")


def field(clock, name):
    """A field by its name."""
    return clock.get_by_label(name, exact=True)


QUERY_FIELD, KEY_FIELD = ("position of the query, as a number", "position of the key, as a number")


def write(clock, name, text):
    """Write into a field and press Enter."""
    field(clock, name).fill(text)
    field(clock, name).press("Enter")


@pytest.fixture
def clock(show):
    """The clock on a page of its own."""
    return show(rotation_clock().html).locator("tl-clock")


@pytest.mark.parametrize("count", [5, *long(60)])
def test_every_hand_and_the_score_are_the_librarys_in_random_states(clock, count):
    for state in random_states(count)[-5 if count == 5 else 0 :]:
        clock.page.evaluate(SET, address(**state))
        words = f"Query at {state['m']}, key at {state['n']}, distance "
        clock.locator(".tl-said").get_by_text(words).wait_for()
        agrees(clock, **state)


def test_question_stays_and_trying_answers_it(clock):
    question = clock.get_by_text("At which distance up to 40 is the score largest?")
    assert question.is_visible()
    assert clock.locator("[aria-live]").text_content() == ""
    field(clock, "position of the query").focus()
    clock.page.keyboard.press("Home")
    assert question.is_visible()
    assert "distance −4 (the key is after the query)" in said(clock)
    largest = []
    for distance in range(-3, 37):
        clock.page.keyboard.press("ArrowRight")
        assert f", distance {distance}".replace("-", "−") in said(clock)
        if said(clock).endswith(", the largest so far."):
            largest.append(distance)
    assert largest[-1] == 6 == np.argmax([library(m, 0, FREQUENCIES)[2] for m in range(41)])


def test_both_move_together_and_the_score_stays(clock):
    clock.get_by_role("button", name="Move both together").click()
    assert said(clock) == "Both now move together, so their distance stays."
    write(clock, QUERY_FIELD, "1009")
    assert said(clock) == (
        f"Query at 1009, key at 1004, distance 5: the score is still {score(m=9, n=4)}."
    )
    agrees(clock, **FIRST | {"m": 1009, "n": 1004})
    write(clock, KEY_FIELD, "3")
    agrees(clock, **FIRST | {"m": 8, "n": 3})
    write(clock, QUERY_FIELD, "2")  # the key stops at position 0, and the query with it
    agrees(clock, **FIRST | {"m": 5, "n": 0})
    clock.get_by_role("button", name="Move both together").click()
    assert said(clock) == "Each now moves alone, so the distance can change."
    write(clock, QUERY_FIELD, "6")
    agrees(clock, **FIRST | {"m": 6, "n": 0})
    assert "still" not in said(clock)


@pytest.mark.long
def test_frequency_is_written_and_a_frequency_of_zero_leaves_a_pair_as_it_is(clock):
    for i, (text, frequency) in enumerate({"π/2": np.pi / 2, "0": 0, "2 pi": 2 * np.pi}.items()):
        clock.locator(".tl-pair").nth(i).click()
        write(clock, "frequency of the pair", text)
        frequencies = FREQUENCIES.copy()
        frequencies[i] = frequency
        agrees(clock, **FIRST | {"pair": i, "frequencies": frequencies})
        assert "the largest so far" not in said(clock)  # with other frequencies
        clock.get_by_role("button", name="Reset").click()
    agrees(clock, **FIRST)
    for i in PAIRS:
        clock.locator(".tl-pair").nth(i).click()
        write(clock, "frequency of the pair", "0")
    write(clock, QUERY_FIELD, "40")
    assert " the score is still " in said(clock)  # no rotation: the layer of chapter 06
    unrotated = attention_scores(QUERY, KEY).item()
    assert said(clock).endswith(f"{unrotated:.4f}.")


STRANGE = {
    (QUERY_FIELD, "two"): "“two” cannot be; expected a whole number from 0 to 100,000.",
    (QUERY_FIELD, "2.5"): "“2.5” cannot be; expected a whole number from 0 to 100,000.",
    (KEY_FIELD, "-1"): "“-1” cannot be; expected a whole number from 0 to 100,000.",
    (KEY_FIELD, "100001"): "“100001” cannot be; expected a whole number from 0 to 100,000.",
    (
        "frequency of the pair",
        "",
    ): "“” cannot be; expected a number from 0 to 10, such as 0.1 or π/2.",
    ("frequency of the pair", "ππ"): "“ππ” cannot be; expected a number from 0 to 10, such as 0.1 "
    "or π/2.",
    ("frequency of the pair", "11"): "“11” cannot be; expected a number from 0 to 10, such as 0.1 "
    "or π/2.",
}


def test_what_is_no_position_and_no_frequency_is_refused_and_changes_nothing(clock):
    write(clock, QUERY_FIELD, "7")
    for (name, text), words in STRANGE.items():
        write(clock, name, text)
        assert said(clock) == f"{words} Nothing has changed.", text
        assert field(clock, name).get_attribute("aria-invalid") == "true"
        before = library(7, 4, FREQUENCIES)[2]
        assert near(clock.locator(".tl-total b").text_content(), before)
        field(clock, name).fill({QUERY_FIELD: "7", KEY_FIELD: "4"}.get(name, "1"))
        field(clock, name).press("Enter")
        assert field(clock, name).get_attribute("aria-invalid") is None
        agrees(clock, **FIRST | {"m": 7})


@pytest.mark.long
def test_hand_is_dragged_to_the_position_at_which_it_points_there(clock):
    mouse, box = clock.page.mouse, clock.locator(".tl-face svg").bounding_box()

    def point(hand, more=0.0):
        """Where the tip of a hand is, or the point that is so many radians on."""
        angle = np.arctan2(hand[1], hand[0]) + more
        scale = 0.9 * 100 * box["width"] / 280
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        return middle[0] + scale * np.sin(angle), middle[1] - scale * np.cos(angle)

    (queries, keys), *_ = library(9, 4, FREQUENCIES)
    mouse.move(*point(queries[0]))
    mouse.down()
    agrees(clock, **FIRST)
    for more in (1, 2, 3, 4):  # radians, and positions
        mouse.move(*point(queries[0], more), steps=3)
    mouse.up()
    agrees(clock, **FIRST | {"m": 13})
    mouse.move(*point(queries[0], -2))
    agrees(clock, **FIRST | {"m": 13})  # let go
    mouse.move(*point(keys[0]))
    mouse.down()
    mouse.move(*point(keys[0], -1), steps=3)
    mouse.up()
    agrees(clock, **FIRST | {"m": 13, "n": 3})
    clock.locator(".tl-pair").nth(2).click()
    (queries, _), *_ = library(13, 3, FREQUENCIES)
    mouse.move(*point(queries[2], 0.02))
    mouse.down()
    mouse.move(*point(queries[2], np.pi / 2), steps=3)
    mouse.up()
    m = int(field(clock, QUERY_FIELD).input_value())
    assert m == pytest.approx(
        13 + np.pi / 2 / 0.01, abs=1
    )  # a quarter of a round at frequency 0.01
    agrees(clock, **FIRST | {"m": m, "n": 3, "pair": 2})


def test_worked_only_by_keys(clock):
    page = clock.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.role") == "radio"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert (
        said(clock) == "Pair 3: the distance rotates its hands by 0.005; their product is 0.7970."
    )
    agrees(clock, **FIRST | {"pair": 3})
    for key in ("Tab", "ArrowRight", "Tab", "Tab", "End", "Tab", "Tab"):
        page.keyboard.press(key)
    agrees(clock, **FIRST | {"m": 10, "n": 40, "pair": 3})
    assert "distance −30 (the key is after the query)" in said(clock)
    assert page.evaluate("() => document.activeElement.ariaLabel") == "frequency of the pair"


@pytest.mark.long
def test_worked_by_touch_and_its_targets_are_large(show):
    page = show(rotation_clock().html, **PHONE)
    clock = page.locator("tl-clock")
    clock.locator(".tl-pair").nth(1).tap()
    agrees(clock, **FIRST | {"pair": 1})
    box = clock.locator(".tl-face svg").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.85)
    assert re.match(r"Query at 9, key at \d+, ", said(clock))  # the nearer hand
    sizes = "(all) => Math.min(...all.map((e) => Math.min(e.offsetWidth, e.offsetHeight)))"
    assert clock.locator("button, input, .tl-pair").evaluate_all(sizes) >= 44


PARTS = "m, n, pair, frequency.0, frequency.1, frequency.2, frequency.3"
