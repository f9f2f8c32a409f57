"""The strip of memory in Chromium: shape, strides, view or copy and offsets are NumPy's own."""

import json
import re

import numpy as np
import pytest

from tests.elements.test_strip import PRODUCT, STARTS, strides
from tests.sampling import long
from tests.site.browsing import SET, said
from tools.chapters import pages
from tutorial_lib import split_heads
from tutorial_lib.elements.exhibits import memory_strip

PRESSES = {  # as a link calls them, and as a button does
    "r2-3-4": "reshape(2, 3, 4)",
    "r3-2-4": "reshape(3, 2, 4)",
    "r3-8": "reshape(3, 8)",
    "r24": "reshape(24)",
    "s0-1": "swapaxes(0, 1)",
    "s1-2": "swapaxes(1, 2)",
}
# What is shown, as one text.
READ = """(strip) => {
  const texts = (selector) => [...strip.querySelectorAll(selector)].map((e) => e.textContent);
  const cells = [...strip.querySelectorAll(".tl-blocks td")];
  const blocks = [...strip.querySelectorAll(".tl-blocks table")];
  const rows = [...strip.querySelector(".tl-numbers tbody").rows];
  const coloured = (one) => [one.dataset.t, one.dataset.h];
  const line = [...strip.querySelectorAll(".tl-memory > div")];
  const barred = [...strip.querySelectorAll("[aria-disabled=true]")];
  return JSON.stringify({
    made: texts(".tl-made")[0],
    facts: texts("dd"),
    sum: texts(".tl-facts + p")[0],
    blocks: blocks.map((block) => [...block.rows].map((row) => row.cells.length)),
    captions: texts("caption"),
    cells: texts(".tl-blocks td"),
    named: cells.map((cell) => cell.ariaLabel),
    colours: [cells.map(coloured), line.map(coloured)],
    chosen: cells.findIndex((cell) => cell.ariaSelected == "true"),
    line: texts(".tl-memory b"),
    lies: line.findIndex((one) => one.hasAttribute("data-on")),
    rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
    barred: barred.map((button) => button.textContent),
  });
}"""
# Press one button after the other, and read after each.
PLAY = f"""(strip, labels) => labels.map((label) => {{
  [...strip.querySelectorAll("button")].find((one) => one.textContent == label).click();
  return ({READ})(strip);
}})"""


SEQUENCES = [("heads", 5), *(pytest.param(s, 60, marks=pytest.mark.long) for s in STARTS)]


def allowed(array):
    """The presses that NumPy allows; the others raise."""
    found = []
    for key, label in PRESSES.items():
        try:
            pressed(array, label)
        except ValueError:  # also AxisError
            continue
        found.append(key)
    return found


def pressed(array, label):
    """What NumPy makes of an array at a press."""
    name, numbers = label.rstrip(")").split("(")
    return getattr(array, name)(*map(int, numbers.split(",")))


def random_presses(start, count):
    """Sequences of up to 8 operations that NumPy allows one after the other."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        array, keys = STARTS[start][1], []
        for _ in range(int(rng.integers(1, 9))):
            keys.append(str(rng.choice(allowed(array))))
            array = pressed(array, PRESSES[keys[-1]])
        yield keys


def numpys(start, keys):
    """The array after some presses, whether the last gave a view or a copy, and its memory."""
    _, array = STARTS[start]
    came, memory = "–", PRODUCT.ravel()
    for key in keys:
        before, array = array, pressed(array, PRESSES[key])
        came = "view" if np.shares_memory(before, array) else "copy"
        memory = memory if came == "view" else array.ravel("K")
    return array, came, memory


def compare(shown, start, keys, number=10):
    """Compare all that is shown with NumPy."""
    shown = json.loads(shown)
    array, came, memory = numpys(start, keys)
    name, first = STARTS[start]
    same = "product’s line" if np.shares_memory(array, first) else "a new line"
    assert shown["made"] == ".".join([name, *(PRESSES[key] for key in keys)])
    assert shown["facts"] == [str(array.shape), str(strides(array)), came, same]
    blocks, rows, columns = (1, 1, *array.shape)[-3:]
    assert shown["blocks"] == [[columns] * rows] * blocks
    assert shown["captions"] == [f"[{i}]" for i in range(blocks) if array.ndim == 3]
    assert shown["cells"] == [str(n) for n in array.flat]
    assert shown["line"] == [str(n) for n in memory]
    for numbers, colours in zip((array.flat, memory), shown["colours"], strict=True):
        assert colours == [[str(n // 10), str(n % 10 // 4)] for n in numbers]
    assert shown["barred"] == [PRESSES[key] for key in PRESSES if key not in allowed(array)]
    for k, index in enumerate(np.ndindex(array.shape)):
        assert shown["named"][k] == f"{list(index)}: {array[index]}"
        pairs = zip(index, strides(array), strict=True)
        terms = " + ".join(f"{i} · {stride}" for i, stride in pairs)
        offset = int(np.dot(index, strides(array)))
        assert memory[offset] == array[index]
        assert shown["rows"][k] == [str(list(index)), str(array[index]), f"{terms} = {offset}"]
        if array[index] == number:
            assert (shown["chosen"], shown["lies"]) == (k, offset)
            said = f"{number} is at {list(index)}: {terms} = offset {offset} in memory."
            assert shown["sum"] == said


def agrees(strip, *presses, start="heads", number=10):
    """Compare what stands there with NumPy."""
    compare(strip.evaluate(READ), start, presses, number)


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


@pytest.mark.parametrize(("start", "count"), SEQUENCES)
def test_every_sequence_of_presses_gives_what_numpy_gives(show, start, count):
    strip = show(memory_strip(start).html).locator("tl-strip")
    press(strip, "Guess first")
    came = set()
    for keys in list(random_presses(start, 60))[-count:]:
        shown = strip.evaluate(PLAY, ["Reset", *(PRESSES[key] for key in keys)])
        for n, state in enumerate(shown):
            compare(state, start, keys[:n])
            came.add(numpys(start, keys[:n])[1])
    assert came == {"–", "view", "copy"}


def test_question_stays_and_a_press_asks_where_the_number_goes(strip):
    question = strip.get_by_text("Which presses give each head a block, (2, 3, 4), in one colour?")
    assert question.is_visible()
    assert strip.locator("[aria-live]").text_content() == ""
    press(strip, "r2-3-4")
    assert question.is_visible()
    assert said(strip) == "Where does 10 go now? Choose a cell, or press Show."
    covered = json.loads(strip.evaluate(READ))
    assert set(covered["cells"]) == {""}
    assert covered["facts"] == ["(2, 3, 4)", "?", "?", "?"]
    assert covered["line"] == [str(n) for n in PRODUCT.ravel()]
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
        shown = json.loads(strip.evaluate(READ))
        array = RIGHT[shown["facts"][0]]
        assert (shown["cells"] == [str(n) for n in array.flat]) == right, keys
        if array.ndim == 3:  # one colour, or stripes
            colours = np.array([h for _, h in shown["colours"][0]]).reshape(2, 12)
            assert (len(set(colours[0])) == 1) == words.startswith("each"), keys


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
    assert json.loads(plain.evaluate(READ))["barred"] == [*PRESSES.values()]


def focused(page):
    """The name of what has the focus."""
    return page.evaluate(
        "() => document.activeElement.ariaLabel ?? document.activeElement.innerText"
    )


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


NAMES = ", ".join(PRESSES)
