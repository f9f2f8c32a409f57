"""Y as a sum in Chromium: every bar and fraction is the library's, by any means."""

import numpy as np
import pytest

from tests.site.browsing import press, said
from tests.site.showing import assert_shows
from tutorial_lib import concat_heads, running_example, trace
from tutorial_lib.elements.exhibits import heads_sum
from tutorial_lib.elements.exhibits.sum.element import draw_sum

EXAMPLE = running_example()
RECORD = trace(EXAMPLE.X, EXAMPLE.params, mask=EXAMPLE.mask)
WORDS = EXAMPLE.tokens
FIRST = {"word": "bark", "off": "", "swap": "no", "row": 0, "times": 1}


def library(state):
    """Parts of both heads of every word, and Y."""
    W_O = EXAMPLE.params.W_O.copy()
    W_O[state["row"]] *= state["times"]
    rows = W_O.reshape(2, 4, 8)
    heads = RECORD.heads * [[["0" not in state["off"]]], [["1" not in state["off"]]]]
    order = [0, 1] if state["swap"] == "no" else [1, 0]
    owners = [1, 0] if state["swap"] == "with" else [0, 1]
    Y = concat_heads(heads[order]) @ rows[owners].reshape(8, 8)
    parts = [heads[h] @ rows[owners[order.index(h)]] for h in range(2)]
    np.testing.assert_allclose(sum(parts), Y, rtol=1e-12, atol=1e-12)
    return parts, Y


def agrees(exhibit, **state):
    """Compare all that is shown with Python's, and what is heard of a feature with its numbers."""
    assert_shows(exhibit, draw_sum(**state))
    table = exhibit.locator("tbody").first.locator("tr")
    numbers = [table.nth(row).locator("td").all_text_contents()[-8:] for row in (1, 2, 3)]
    heard = exhibit.locator(".tl-heap").evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    assert heard == [
        f"feature {i}: head 0 {one}, head 1 {two}, Y {total}"
        for i, (one, two, total) in enumerate(zip(*numbers, strict=True))
    ]


def test_marks_of_the_axis_are_in_the_scale_of_the_bars(exhibit):
    press(exhibit, "dogs")
    middles = """(all) => all.map((one) => {
      const { y, height } = one.getBoundingClientRect();
      return y + height / 2;
    })"""
    lines = exhibit.locator(".tl-heap > b").evaluate_all(middles)
    marks = exhibit.locator(".tl-marks > i")
    places = dict(zip(marks.all_text_contents(), marks.evaluate_all(middles), strict=True))
    Y = [f"{number:g}".replace("-", "−") for number in np.round(RECORD.Y[0], 12) + 0]
    assert {"−1", "0", "1", "2"} == set(Y) < set(places)
    for number, line in zip(Y, lines, strict=True):
        assert abs(places[number] - line) < 1, number


def moves(*parts, **state):
    """The features of Y that parts of a state move, as the exhibit says it."""
    state = FIRST | state
    t = WORDS.index(state["word"])
    without = state | {part: FIRST[part] for part in parts}
    found = np.flatnonzero(np.abs(library(state)[1][t] - library(without)[1][t]) > 1e-12)
    return f"moves {counted(found)} of Y of “{state['word']}”."


def counted(found):
    """Features, in words."""
    if len(found) in (0, 8):
        return "all 8 features" if len(found) else "no feature"
    *most, last = map(str, found)
    return f"features {', '.join(most)} and {last}" if most else f"feature {last}"


@pytest.fixture
def exhibit(show):
    """The sum on a page of its own."""
    return show(heads_sum().html).locator("tl-sum")


def test_question_stays_and_the_words_answer_it(exhibit):
    question = exhibit.get_by_text("In which features do the heads pull against each other?")
    assert question.is_visible()
    for t, word in enumerate(WORDS):
        press(exhibit, word)
        assert question.is_visible()
        one, two = library(FIRST)[0]
        count = (one[t] * two[t] < 0).sum()
        pulls = f"“{word}”: the heads pull against each other in {count} of 8 features."
        assert said(exhibit) == pulls
        agrees(exhibit, word=word)


FEATURES = [  # of bark, by hand
    "−1/7 − 8/13 = −69/91, the heads pull the same way",
    "4/7 + 0 = 4/7, only head 0 writes here",
    "6/7 − 8/13 = 22/91, the heads pull against each other",
    "−1/7 − 8/13 = −69/91, the heads pull the same way",
    "6/7 + 4/13 = 106/91, the heads pull the same way",
    "−8/7 + 4/13 = −76/91, the heads pull against each other",
    "−6/7 + 1/13 = −71/91, the heads pull against each other",
    "4/7 + 9/13 = 115/91, the heads pull the same way",
]


def test_worked_by_keys_alone(exhibit):
    keys = exhibit.page.keyboard
    for _ in range(4):
        keys.press("Tab")  # three words, then concat
    for _ in range(5):
        keys.press("ArrowRight")
    assert said(exhibit) == "Row 5 of W_O times 1 is multiplied by 4/13, of head 1."
    chosen = exhibit.get_by_role("radio", name="4/13 of head 1, times row 5", checked=True)
    assert chosen.count() == 1
    keys.press("Tab")
    keys.press("ArrowRight")
    keys.press("End")
    state = {"row": 5, "times": 2}
    words = f"Row 5 of W_O times 2 is multiplied by 4/13, of head 1: that {moves('times', **state)}"
    assert said(exhibit) == words
    assert "features 4 and 5 of Y" in words
    agrees(exhibit, **state)
    keys.press("Home")
    agrees(exhibit, row=5, times=-1)
    for _ in range(4):
        keys.press("ArrowRight")
    agrees(exhibit, row=5)
    keys.press("Tab")
    for i, words in enumerate(FEATURES):
        assert said(exhibit) == f"Feature {i} of “bark”: {words}."
        keys.press("ArrowRight")
    for _ in range(3):
        keys.press("Tab")
    keys.press("Space")  # swap heads and rows
    agrees(exhibit, row=5, swap="with")
    assert said(exhibit).endswith("W_O with them: that moves no feature of Y of “bark”.")


def test_a_press_is_told_by_what_it_moves_itself(exhibit):
    for name in ("Silence head 0", "Swap heads and rows"):
        press(exhibit, name)
    assert said(exhibit).endswith("W_O with them: that moves no feature of Y of “bark”.")
    press(exhibit, "Swap only heads")
    state = {"off": "0", "swap": "without"}
    assert said(exhibit).endswith(f"W_O left behind: that {moves('swap', **state)}")
    press(exhibit, "Silence head 1")
    state["off"] = "01"
    assert said(exhibit) == f"Both are silent: that {moves('off', **state)}"
    agrees(exhibit, **state)


def test_heads_are_silenced_and_swapped_and_come_back(exhibit):
    ways = {
        "Silence head 1": ("Head 1 is silent", {"off": "1"}),
        "Silence head 0": ("Both are silent", {"off": "01"}),
        "Reset": ("The sum is as it was", {}),
        "Swap only heads": (
            "Heads swapped, their rows of W_O left behind",
            {"swap": "without"},
        ),
        "Swap heads and rows": (
            "Heads swapped, and their rows of W_O with them",
            {"swap": "with"},
        ),
    }
    for name, (words, state) in ways.items():
        press(exhibit, name)
        agrees(exhibit, **state)
        moved = f": that {moves(*state, **state)}" if state else "."
        assert said(exhibit) == f"{words}{moved}"
    press(exhibit, "Swap heads and rows")
    agrees(exhibit)
    assert said(exhibit) == "Heads in their own positions."
    exhibit.locator(".tl-heap").nth(2).click()
    assert said(exhibit) == f"Feature 2 of “bark”: {FEATURES[2]}."
    press(exhibit, "Silence head 0")
    exhibit.locator(".tl-heap").nth(2).click()
    assert "0 − 8/13 = −8/13, only head 1 writes here." in said(exhibit)
    exhibit.locator(".tl-meets div > span").nth(6).click()
    agrees(exhibit, off="0", row=6)
