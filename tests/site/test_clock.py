"""The clock in Chromium: worked by fields, by dragging, by keys and by touch."""

import re
from functools import partial

import numpy as np
import pytest

from tests.site.browsing import PHONE, field, said, write
from tests.site.showing import assert_shows
from tutorial_lib import attention_scores
from tutorial_lib.elements.exhibits import rotation_clock
from tutorial_lib.elements.exhibits.clock.element import draw_clock
from tutorial_lib.variants.positions import rope_frequencies, rotate

QUERY = np.array([[1, 0, 1, 0, 1, 0, 0, 1.0]])
KEY = np.array([[1, 0, 0.8, 0.6, 1, 0, 0.6, 0.8]])
FREQUENCIES = rope_frequencies(8)
PAIRS = range(4)


def agrees(clock, **state):
    """Compare all that the clock shows with Python's."""
    assert_shows(clock, draw_clock(**state))


def hand(vector, position, pair):
    """Where a pair of a vector points at a position: up, right."""
    return rotate(vector, np.array([position]), FREQUENCIES)[0, 2 * pair : 2 * pair + 2]


def score(m, n):
    """The score at two positions."""
    rotated = partial(rotate, frequencies=FREQUENCIES)
    return attention_scores(rotated(QUERY, np.array([m])), rotated(KEY, np.array([n]))).item()


QUERY_FIELD, KEY_FIELD = ("position of the query, as a number", "position of the key, as a number")


@pytest.fixture
def clock(show):
    """The clock on a page of its own."""
    return show(rotation_clock().html).locator("tl-clock")


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
    assert largest[-1] == 6 == np.argmax([score(m, 0) for m in range(41)])


def test_both_move_together_and_the_score_stays(clock):
    clock.get_by_role("button", name="Move both together").click()
    assert said(clock) == "Both now move together, so their distance stays."
    write(clock, QUERY_FIELD, "1009")
    assert said(clock) == (
        f"Query at 1009, key at 1004, distance 5: the score is still {score(9, 4):.4f}."
    )
    agrees(clock, together=True, m=1009, n=1004)
    write(clock, KEY_FIELD, "3")
    agrees(clock, together=True, m=8, n=3)
    write(clock, QUERY_FIELD, "2")  # the key stops at position 0, and the query with it
    agrees(clock, together=True, m=5, n=0)
    clock.get_by_role("button", name="Move both together").click()
    assert said(clock) == "Each now moves alone, so the distance can change."
    write(clock, QUERY_FIELD, "6")
    agrees(clock, m=6, n=0)
    assert "still" not in said(clock)


@pytest.mark.long
def test_frequency_is_written_and_a_frequency_of_zero_leaves_a_pair_as_it_is(clock):
    for i, (text, frequency) in enumerate({"π/2": np.pi / 2, "0": 0, "2 pi": 2 * np.pi}.items()):
        clock.locator(".tl-pair").nth(i).click()
        write(clock, "frequency of the pair", text)
        agrees(clock, **{"pair": i, f"frequency.{i}": frequency})
        assert "the largest so far" not in said(clock)  # with other frequencies
        clock.get_by_role("button", name="Reset").click()
    agrees(clock)
    for i in PAIRS:
        clock.locator(".tl-pair").nth(i).click()
        write(clock, "frequency of the pair", "0")
    write(clock, QUERY_FIELD, "40")
    assert " the score is still " in said(clock)  # no rotation: the layer of chapter 06
    unrotated = attention_scores(QUERY, KEY).item()
    assert said(clock).endswith(f"{unrotated:.4f}.")


@pytest.mark.long
def test_hand_is_dragged_to_the_position_at_which_it_points_there(clock):
    mouse, box = clock.page.mouse, clock.locator(".tl-face svg").bounding_box()

    def point(direction, more=0.0):
        """Where the tip of a hand is, or the point that is so many radians on."""
        angle = np.arctan2(direction[1], direction[0]) + more
        scale = 0.9 * 100 * box["width"] / 280
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        return middle[0] + scale * np.sin(angle), middle[1] - scale * np.cos(angle)

    mouse.move(*point(hand(QUERY, 9, 0)))
    mouse.down()
    agrees(clock)
    for more in (1, 2, 3, 4):  # radians, and positions
        mouse.move(*point(hand(QUERY, 9, 0), more), steps=3)
    mouse.up()
    agrees(clock, m=13)
    mouse.move(*point(hand(QUERY, 9, 0), -2))
    agrees(clock, m=13)  # let go
    mouse.move(*point(hand(KEY, 4, 0)))
    mouse.down()
    mouse.move(*point(hand(KEY, 4, 0), -1), steps=3)
    mouse.up()
    agrees(clock, m=13, n=3)
    clock.locator(".tl-pair").nth(2).click()
    mouse.move(*point(hand(QUERY, 13, 2), 0.02))
    mouse.down()
    mouse.move(*point(hand(QUERY, 13, 2), np.pi / 2), steps=3)
    mouse.up()
    m = int(field(clock, QUERY_FIELD).input_value())
    assert m == pytest.approx(
        13 + np.pi / 2 / 0.01, abs=1
    )  # a quarter of a round at frequency 0.01
    agrees(clock, m=m, n=3, pair=2)


def test_worked_only_by_keys(clock):
    page = clock.page
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.role") == "radio"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert (
        said(clock) == "Pair 3: the distance rotates its hands by 0.005; their product is 0.7970."
    )
    agrees(clock, pair=3)
    chosen = clock.get_by_role("radio", name="pair 3, frequency 0.001: 0.7970", checked=True)
    assert chosen.count() == 1
    for key in ("Tab", "ArrowRight", "Tab", "Tab", "End", "Tab", "Tab"):
        page.keyboard.press(key)
    agrees(clock, m=10, n=40, pair=3)
    assert "distance −30 (the key is after the query)" in said(clock)
    assert page.evaluate("() => document.activeElement.ariaLabel") == "frequency of the pair"


@pytest.mark.long
def test_worked_by_touch(show):
    page = show(rotation_clock().html, **PHONE)
    clock = page.locator("tl-clock")
    clock.locator(".tl-pair").nth(1).tap()
    agrees(clock, pair=1)
    box = clock.locator(".tl-face svg").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.85)
    assert re.match(r"Query at 9, key at \d+, ", said(clock))  # the nearer hand
