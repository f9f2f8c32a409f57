"""Y as a sum in Chromium: every bar and fraction is the library's, by any means."""

import json
import re
from fractions import Fraction
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.sampling import long
from tests.site.browsing import said
from tutorial_lib import concat_heads, running_example, trace
from tutorial_lib.elements.exhibits import heads_sum

EXAMPLE = running_example()
RECORD = trace(EXAMPLE.X, EXAMPLE.params, mask=EXAMPLE.mask)
WORDS = EXAMPLE.tokens
FIRST = {"word": "bark", "off": "", "swap": "no", "row": 0, "times": 1}
FACTORS = [-1, -0.5, 0, 0.5, 1, 1.5, 2]
# What is drawn and written, in each of some states or as it is.
READ = """(sum, states) => JSON.stringify(states.map((state) => {
  const accepted = state == null || sum.recall(state);
  const all = (root, what) => [...root.querySelectorAll(what)];
  const texts = (row) => [...row.cells].map((cell) => cell.textContent);
  const ends = (bar) => [bar.style.top, bar.style.height].map(parseFloat);
  const [shown, listed] = all(sum, "tbody").map((body) => [...body.rows]);
  return {
    accepted,
    bars: all(sum, ".tl-heap").map((heap) => all(heap, "i").map(ends)),
    heads: all(sum, ".tl-heap").map((heap) => all(heap, "i").map((bar) => bar.dataset.head)),
    lines: all(sum, ".tl-heap").map((heap) =>
      ["b", "s"].map((line) => parseFloat(heap.querySelector(line).style.top))),
    heard: all(sum, ".tl-heap").map((heap) => heap.ariaLabel),
    shown: shown.slice(1).map(texts),
    listed: listed.map(texts),
    met: all(sum, ".tl-meets div > span").map((cell) => {
      const [number, row] = cell.children;
      return [number.textContent, number.dataset.head, row.textContent, row.dataset.head];
    }),
    chosen: all(sum, ".tl-meets div > span").flatMap((cell, i) =>
      cell.ariaChecked == "true" ? [i] : []),
    pressed: all(sum, "button").flatMap((b) => b.ariaPressed == "true" ? [b.textContent] : []),
    slider: sum.querySelector("[type=range]").value,
    factor: sum.querySelector(".tl-times").textContent,
  };
}))"""
SWITCHES = {
    "Silence head 0": lambda state: "0" in state["off"],
    "Silence head 1": lambda state: "1" in state["off"],
    "Swap heads and rows": lambda state: state["swap"] == "with",
    "Swap only heads": lambda state: state["swap"] == "without",
}


def library(state):
    """Parts of both heads of every word, Y, the row of concat, whose numbers and which rows."""
    W_O = EXAMPLE.params.W_O.copy()
    W_O[state["row"]] *= state["times"]
    rows = W_O.reshape(2, 4, 8)
    heads = RECORD.heads * [[["0" not in state["off"]]], [["1" not in state["off"]]]]
    order = [0, 1] if state["swap"] == "no" else [1, 0]
    owners = [1, 0] if state["swap"] == "with" else [0, 1]
    concat = concat_heads(heads[order])
    Y = concat @ rows[owners].reshape(8, 8)
    parts = [heads[h] @ rows[owners[order.index(h)]] for h in range(2)]
    np.testing.assert_allclose(sum(parts), Y, rtol=1e-12, atol=1e-12)
    return parts, Y, concat, order, owners


def random_states(count):
    """States of every word, with heads silent and swapped, and a row scaled."""
    rng = np.random.default_rng(8)
    kinds = (WORDS, ["", "0", "1", "01"], ["no", "with", "without"], range(8), FACTORS)
    return [
        {key: kind[rng.integers(len(kind))] for key, kind in zip(FIRST, kinds, strict=True)}
        for _ in range(count)
    ]


def query(state):
    """The query of a state, written from its description and not by the script."""
    return urlencode({key: value for key, value in state.items() if value != ""})


def seen(exhibit, *states):
    """What is shown in each of some states, or now."""
    return json.loads(exhibit.evaluate(READ, list(states) or [None]))


def near(texts, numbers):
    """Compare fractions, or four decimals where those are long, to numbers."""
    for text, number in zip(texts, numbers, strict=True):
        assert text != "−0"
        value = text.replace("−", "-")
        assert abs(Fraction(value) - number) <= (0.5e-4 + 1e-9 if "." in text else 1e-12), text


def agrees(found, **state):
    """Compare all that is shown with the library."""
    state = FIRST | state
    assert found["accepted"] is True
    t = WORDS.index(state["word"])
    parts, Y, concat, order, owners = library(state)
    numbers = [part[t] for part in parts] + [Y[t]]
    drawn(found, numbers, RECORD.Y[t])
    row = EXAMPLE.params.W_O[state["row"]] * state["times"]
    for line, values in zip(found["shown"], [*numbers, row], strict=True):
        near(line[1:], values)
    names = ["head 0", "head 1", "Y", f"row {state['row']}"]
    assert [line[0] for line in found["shown"]] == names
    every = [(f"{word}, {name}", s) for s, word in enumerate(WORDS) for name in names[:3]]
    for i, (name, s) in enumerate(every):
        assert found["listed"][i][0] == name
        near(found["listed"][i][1:], [*parts, Y][i % 3][s])
    near([cell[0] for cell in found["met"]], concat[t])
    rows = [4 * owners[j // 4] + j % 4 for j in range(8)]
    places = [[str(order[j // 4]), str(rows[j]), str(owners[j // 4])] for j in range(8)]
    assert [cell[1:] for cell in found["met"]] == places
    assert found["chosen"] == [rows.index(state["row"])]
    pressed = [state["word"], *(name for name, on in SWITCHES.items() if on(state))]
    assert sorted(found["pressed"]) == sorted(pressed)
    factor = found["factor"].rsplit("× ")[1]
    near([factor], [state["times"]])
    assert float(found["slider"]) == state["times"]


def drawn(found, numbers, before):
    """Compare bars and lines: an axis from 3 at the top to −3, each bar on the one below it."""
    for i, (one, two, total) in enumerate(zip(*numbers, strict=True)):
        start = one if one * two > 0 else 0
        tops = [100 * (3 - max(0, one)) / 6, 100 * (3 - max(start, start + two)) / 6]
        heights = [100 * abs(one) / 6, 100 * abs(two) / 6]
        ends = np.transpose([tops, heights])
        there = ends[:, 1] > 0
        np.testing.assert_allclose(np.array(found["bars"][i])[there], ends[there], atol=0.00501)
        assert np.all(np.array(found["bars"][i])[~there, 1] == 0)
        assert np.all(ends[:, 0] >= -1e-9)
        assert np.all(ends.sum(axis=1) <= 100 + 1e-9)
        lines = [100 * (3 - total) / 6, 100 * (3 - before[i]) / 6]
        np.testing.assert_allclose(found["lines"][i], lines, atol=0.00501)
        assert found["heads"][i] == ["0", "1"]
        if found["heard"][i] is not None:
            form = rf"feature {i}: head 0 (\S+), head 1 (\S+), Y (\S+)"
            near(re.fullmatch(form, found["heard"][i]).groups(), [one, two, total])


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


def press(exhibit, name):
    """Press a button by its name."""
    exhibit.get_by_role("button", name=name, exact=True).click()


@pytest.fixture
def exhibit(show):
    """The sum on a page of its own."""
    return show(heads_sum().html).locator("tl-sum")


@pytest.mark.parametrize("count", [8, *long(90)])
def test_every_bar_and_fraction_is_the_librarys_in_random_states(exhibit, count):
    [found] = seen(exhibit)
    agrees(found)
    states = random_states(count)
    for state, found in zip(states, seen(exhibit, *map(query, states)), strict=True):
        agrees(found, **state)
    assert said(exhibit) == ""


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
        [found] = seen(exhibit)
        agrees(found, word=word)


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
    keys.press("Tab")
    keys.press("ArrowRight")
    keys.press("End")
    state = {"row": 5, "times": 2}
    words = f"Row 5 of W_O times 2 is multiplied by 4/13, of head 1: that {moves('times', **state)}"
    assert said(exhibit) == words
    assert "features 4 and 5 of Y" in words
    agrees(*seen(exhibit), **state)
    keys.press("Home")
    agrees(*seen(exhibit), row=5, times=-1)
    for _ in range(4):
        keys.press("ArrowRight")
    agrees(*seen(exhibit), row=5)
    keys.press("Tab")
    for i, words in enumerate(FEATURES):
        assert said(exhibit) == f"Feature {i} of “bark”: {words}."
        keys.press("ArrowRight")
    for _ in range(3):
        keys.press("Tab")
    keys.press("Space")  # swap heads and rows
    agrees(*seen(exhibit), row=5, swap="with")
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
    agrees(*seen(exhibit), **state)


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
        agrees(*seen(exhibit), **state)
        moved = f": that {moves(*state, **state)}" if state else "."
        assert said(exhibit) == f"{words}{moved}"
    press(exhibit, "Swap heads and rows")
    agrees(*seen(exhibit))
    assert said(exhibit) == "Heads in their own positions."
    exhibit.locator(".tl-heap").nth(2).click()
    assert said(exhibit) == f"Feature 2 of “bark”: {FEATURES[2]}."
    press(exhibit, "Silence head 0")
    exhibit.locator(".tl-heap").nth(2).click()
    assert "0 − 8/13 = −8/13, only head 1 writes here." in said(exhibit)
    exhibit.locator(".tl-meets div > span").nth(6).click()
    agrees(*seen(exhibit), off="0", row=6)
