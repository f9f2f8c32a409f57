"""The playground in Chromium: it is worked by any means, and each number is explained."""

import re
from fractions import Fraction

import pytest

from tests.sampling import long
from tests.site.browsing import PHONE, SET, focused
from tutorial_lib import running_example
from tutorial_lib.elements.exhibits import playground

EXAMPLE = running_example()
TOKENS = EXAMPLE.tokens
MADE = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")
READ = """(box) => Object.fromEntries([...box.querySelectorAll(".tl-grids table")].map((table) => [
  table.caption.firstChild.textContent.trim(),
  [...table.rows].slice(1).map((row) => [...row.querySelectorAll("td")].map((d) => d.innerText)),
]))"""
ASK_EVERY_MADE_NUMBER = """(box) => {
  const cells = [...box.querySelectorAll(".tl-grids [aria-readonly=true] [tabindex]")];
  return cells.map((cell) => {
    cell.click();
    const made = [...box.querySelectorAll(".tl-grids [data-lit]")];
    const lit = made.map((one) => one.ariaLabel.split(":")[0]);
    return [cell.ariaLabel, box.querySelector("[aria-live]").textContent, lit];
  });
}"""


def number(text):
    """The number that a cell shows, and by how much it may be rounded."""
    text = text.replace("−", "-")
    return float(Fraction(text)), 0.5e-4 if "." in text else 1e-12


def cell(box, title, row, column):
    """One cell of a table, by its title, the name of its row and that of its column."""
    return box.locator(f'.tl-grids td[aria-label^="{title}, {row}, {column}:"]')


def tint(box, title, row, column):
    """The same cell on the map above the tables."""
    return box.locator(f'.tl-board td[aria-label^="{title}, {row}, {column}:"]')


def said(box):
    """What a screen reader is told, which must stand on the screen too."""
    region = box.locator("[aria-live]")
    assert region.evaluate("(e) => [e.clientHeight > 10, getComputedStyle(e).clipPath]") == [
        True,
        "none",
    ]
    return region.text_content()


def write(box, title, row, column, text):
    """Click a number, write another, press Enter."""
    cell(box, title, row, column).click()
    box.page.keyboard.type(text)
    box.page.keyboard.press("Enter")


@pytest.fixture
def board(show):
    """The playground on a page of its own."""
    return show(playground().html).locator("tl-playground")


def sources(label):
    """The labels of the numbers that made the one with this label, written out by hand."""
    name, *rest = label.split(", ")
    h = rest.pop(0) if rest[0].startswith("head") else None
    row, column = rest
    head = f", {h}" if h else ""
    pairs = {"Q": "W_Q", "K": "W_K", "V": "W_V"}
    if name in pairs:
        return [f"X, {row}, {i}" for i in range(8)] + [
            f"{pairs[name]}{head}, {i}, {column}" for i in range(8)
        ]
    if name == "scores":
        rows = [f"Q{head}, {row}, {i}" for i in range(4)]
        return [*rows, *(f"K{head}, {column}, {i}" for i in range(4)), "scale, scores, ÷"]
    if name == "weights":
        return [f"{kind}, {row}, {token}" for kind in (f"scores{head}", "mask") for token in TOKENS]
    if name == "heads":
        rows = [f"weights{head}, {row}, {token}" for token in TOKENS]
        return rows + [f"V{head}, {token}, {column}" for token in TOKENS]
    if name == "concat":
        return [f"heads, head {int(column) // 4}, {row}, {int(column) % 4}"]
    return [f"concat, {row}, {i}" for i in range(8)] + [f"W_O, {i}, {column}" for i in range(8)]


@pytest.mark.long
def test_every_number_lights_what_made_it_and_writes_a_sum_that_gives_it(board):
    asked = board.evaluate(ASK_EVERY_MADE_NUMBER)
    assert len(asked) == 24 * 3 + 18 * 2 + 24 * 3
    values = {label.split(": ")[0]: label.split(": ")[1].split(" ")[0] for label, *_ in asked}
    for label, sentence, lit in asked:
        name, shown = label.split(": ")[0], values[label.split(": ")[0]].rstrip(",")
        assert sorted(lit) == sorted(sources(name)), name
        start, middle, end = sentence.partition(" = ")[0], *sentence.split(" = ")[1:]
        assert (start, end.split(" ")[0]) == (name, shown)
        if name.startswith("concat"):
            assert middle == sources(name)[0]
        elif middle == "nothing, since the mask hides it":
            assert shown == "0"
        else:
            result = eval(middle.replace("·", "*").replace("−", "-"))
            assert abs(result - number(shown)[0]) < 1e-12, sentence


def test_sum_of_a_number_that_is_no_fraction_says_that_it_is_rounded(board):
    write(board, "scale", "scores", "÷", "3")
    cell(board, "weights, head 0", "bark", "dogs").click()
    assert said(board) == ("weights, head 0, bark, dogs = 1.5874 / (1.5874 + 0.6300 + 1) ≈ 0.4934")


def test_edited_number_changes_all_that_follow_and_nothing_before(board):
    before = board.evaluate(READ)
    write(board, "W_V, head 1", "6", "2", "3/2")
    assert said(board) == (
        "W_V, head 1, 6, 2 was 1, is 3/2. "
        "Numbers that follow: 1 of V, 1 of heads, 1 of concat, 4 of Y."
    )
    after = board.evaluate(READ)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"W_V, head 1", "V, head 1", "heads, head 1", "concat", "Y"}
    assert cell(board, "V, head 1", "bark", "2").inner_text() == "3/2"
    assert cell(board, "concat", "bark", "6").inner_text() == "12/13"
    assert board.locator(".tl-grids [data-moved]").count() == 1 + 1 + 1 + 1 + 4
    line = cell(board, "V, head 1", "bark", "2").evaluate(
        "(e) => getComputedStyle(e).textDecorationLine"
    )
    assert line == "underline"


def test_mask_is_turned_over_by_a_click_and_an_empty_row_gives_zeros(board):
    own = cell(board, "mask", "dogs", "dogs")
    assert own.get_attribute("aria-label") == "mask, dogs, dogs: may look"
    own.click()
    assert own.inner_text() == "·"
    assert said(board).startswith("mask, dogs, dogs was ✓, is ·. Numbers that follow: 2 of weights")
    for column in range(8):
        assert cell(board, "Y", "dogs", column).inner_text() == "0"
    hidden = cell(board, "scores, head 0", "dogs", "dogs")
    assert hidden.get_attribute("aria-label").endswith(": 2 × ln 2, hidden by the mask")


NO_NUMBERS = ("", "four", "1/0", "1.2.3", "NaN", "1e", "—")


def test_what_is_no_number_is_named_and_nothing_is_lost(board):
    before = board.evaluate(READ)
    for text in NO_NUMBERS:
        cell(board, "X", "dogs", "1").click()
        field = board.get_by_role("textbox")
        field.fill(text)
        field.press("Enter")
        assert said(board) == f"“{text}” is not a number. Write 2, −0.5 or 1/4."
        assert field.input_value() == text
        assert field.get_attribute("aria-invalid") == "true"
        field.press("Escape")
        assert board.evaluate(READ) == before


def test_wrong_text_waits_in_its_cell_with_its_reason_while_others_are_used(board):
    cell(board, "X", "dogs", "1").click()
    board.page.keyboard.type("four")
    write(board, "W_K, head 0", "0", "0", "2")
    assert "W_K, head 0, 0, 0 was 0, is 2." in said(board)
    field = board.get_by_role("textbox")
    assert field.input_value() == "four"
    assert board.locator(".tl-sum", has_text="“four” is not a number").is_visible()
    field.click()
    assert said(board).startswith("“four” is not a number.")
    field.fill("4")
    field.press("Enter")
    assert said(board).startswith("X, dogs, 1 was 0, is 4.")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("scale", "scores", "÷"), "0"),
        *long((("X", "bark", "0"), "9" * 300)),
    ],
)
def test_number_that_makes_another_infinite_is_refused(board, place, text):
    before = board.evaluate(READ)
    write(board, *place, text)
    assert said(board) == f"{text} makes a number after it infinite."
    board.page.keyboard.press("Escape")
    assert board.evaluate(READ) == before


def test_numbers_are_kept_as_exactly_as_they_were_written(board):
    write(board, "X", "dogs", "0", "0.123456789")
    assert cell(board, "X", "dogs", "0").inner_text() == "0.1235"
    cell(board, "X", "dogs", "0").click()
    assert board.get_by_role("textbox").input_value() == "0.123456789"
    board.page.keyboard.press("Enter")
    board.get_by_role("button", name="Undo").click()
    assert cell(board, "X", "dogs", "0").inner_text() == "1"  # Enter alone was no change


def test_undo_goes_back_step_by_step_and_reset_can_be_undone(board):
    states = [board.evaluate(READ)]
    write(board, "X", "bark", "6", "2")
    states.append(board.evaluate(READ))
    cell(board, "mask", "that", "bark").click()
    states.append(board.evaluate(READ))
    undo, reset = (board.get_by_role("button", name=name) for name in ("Undo", "Reset"))
    reset.click()
    assert board.evaluate(READ) == states[0]
    assert said(board).startswith("The example's own numbers are back. Numbers that follow: ")
    back = ["X, bark, 6 is 2 and mask, that, bark is ✓", "mask, that, bark is ·", "X, bark, 6 is 1"]
    for state, words in zip((states[2], states[1], states[0]), back, strict=True):
        undo.click()
        assert board.evaluate(READ) == state
        assert said(board).startswith(f"{words} again. Numbers that follow: ")
    undo.click()
    assert said(board) == "There is nothing to undo."
    board.page.evaluate(SET, "#playground=0&X.0.0.0=3")
    board.get_by_text("The numbers of the link are here.").first.wait_for()
    undo.click()
    assert cell(board, "X", "dogs", "0").inner_text() == "1"


def test_worked_by_keys_alone(board):
    page = board.page
    for _ in range(5):  # the map, Undo, Reset, the link, then one stop for each table
        page.keyboard.press("Tab")
    assert focused(page) == "X, dogs, 0: 1"
    for key, label in {
        "ArrowDown": "X, that, 0: 0",
        "ArrowRight": "X, that, 1: 1",
        "End": "X, that, 7: 0",
        "ArrowLeft": "X, that, 6: 0",
        "ArrowUp": "X, dogs, 6: 0",
        "Home": "X, dogs, 0: 1",
    }.items():
        page.keyboard.press(key)
        assert focused(page) == label
        assert said(board) == f"{label}. Enter changes it."
    page.keyboard.press("ArrowUp")
    assert focused(page) == "X, dogs, 0: 1"  # the edge
    page.keyboard.press("Enter")
    assert focused(page) == "A number for X, dogs, 0"
    page.keyboard.type("5")
    page.keyboard.press("Escape")
    assert focused(page) == "X, dogs, 0: 1"
    page.keyboard.type("-2")  # a digit or a sign begins a number
    page.keyboard.press("Enter")
    assert focused(page) == "X, dogs, 0: −2"
    assert said(board).startswith("X, dogs, 0 was 1, is −2. ")
    page.keyboard.press("Control+z")
    assert focused(page) == "X, dogs, 0: 1"
    page.keyboard.press("Tab")
    assert focused(page) == "W_Q, head 0, 0, 0: 1 × 2 ln 2"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert said(board).startswith("The example's own numbers are back.")
    cell(board, "mask", "dogs", "that").focus()
    page.keyboard.press("Space")
    assert focused(page) == "mask, dogs, that: may look"
    cell(board, "Y", "bark", "4").focus()
    page.keyboard.press("Enter")  # nobody edits a sum
    assert board.get_by_role("textbox").count() == 0


def test_leaving_a_field_keeps_what_was_written(board):
    cell(board, "X", "dogs", "0").click()
    board.page.keyboard.type("7")
    board.page.keyboard.press("Tab")
    assert cell(board, "X", "dogs", "0").inner_text() == "7"
    assert focused(board.page).startswith("W_Q, head 0, 0, 0")


def test_cells_have_names_roles_and_one_stop_for_each_table(board):
    grids = board.get_by_role("grid")
    assert grids.count() == 24 + 15
    assert board.locator("td[tabindex='0']").count() == 24 + 1
    cell(board, "Y", "bark", "4").click()
    assert board.locator("td[tabindex='0']").count() == 24 + 1
    assert board.locator(".tl-grids [aria-selected=true]").count() == 1
    read_only = [name for name in board.evaluate(READ) if name.partition(",")[0] in MADE]
    assert board.locator(".tl-grids [aria-readonly=true]").count() == len(read_only) == 14
    for chosen in board.get_by_role("gridcell", name="Y, bark, 4: 106/91", exact=True).all():
        assert chosen.get_attribute("aria-selected") == "true"


def test_worked_by_touch(show):
    page = show(playground().html, **PHONE)
    board = page.locator("tl-playground")
    cell(board, "X", "bark", "0").tap()
    field = board.get_by_role("textbox")
    field.fill("2")
    cell(board, "Y", "bark", "1").tap()  # anywhere else
    assert cell(board, "X", "bark", "0").inner_text() == "2"
    assert said(board).startswith("Y, bark, 1 = ")
    cell(board, "mask", "dogs", "that").tap()
    assert cell(board, "mask", "dogs", "that").inner_text() == "✓"
    board.get_by_role("button", name="Undo").tap()
    board.get_by_role("button", name="Undo").tap()
    assert cell(board, "X", "bark", "0").inner_text() == "1"
    sizes = board.locator(".tl-grids td[tabindex]").evaluate_all(
        "(all) => all.map((e) => Math.min(e.offsetWidth, e.offsetHeight))"
    )
    assert min(sizes) >= 24


def test_two_on_one_page_keep_their_numbers_and_their_links_apart(show):
    page = show(playground().html, playground().html)
    first, second = page.locator("tl-playground").all()
    write(second, "X", "dogs", "0", "3")
    assert cell(first, "X", "dogs", "0").inner_text() == "1"
    assert first.locator(".tl-grids :is([data-moved], [data-lit])").count() == 0
    cell(first, "Y", "dogs", "0").click()
    assert said(second).startswith("X, dogs, 0 was 1, is 3.")
    href = second.get_by_role("link").get_attribute("href")
    assert href == "#playground=1&cell=X.0.0.0&X.0.0.0=3"
    second.get_by_role("button", name="Undo").click()
    page.evaluate(SET, href)
    page.get_by_text("X, dogs, 0: 3. Enter changes it.").first.wait_for()
    assert cell(second, "X", "dogs", "0").inner_text() == "3"
    assert cell(first, "X", "dogs", "0").inner_text() == "1"


def test_no_link_in_a_frame(show):
    inner = playground().html.replace("&", "&amp;").replace('"', "&quot;")
    framed = show(f'<iframe title="output" srcdoc="{inner}" width="700" height="900"></iframe>')
    output = framed.frame_locator("iframe")
    output.locator(".tl-grids td[tabindex]").first.wait_for()
    assert output.get_by_role("button", name="Undo").count() == 1
    assert output.get_by_role("link").count() == 0


def operate(board):
    """Bring every kind of mark and message onto the page."""
    write(board, "X", "dogs", "0", "1/3")
    cell(board, "mask", "dogs", "that").click()
    write(board, "X", "dogs", "1", "four")
    cell(board, "scores, head 0", "bark", "dogs").click()
    board.get_by_role("button", name="Undo").click()
    cell(board, "Y", "bark", "4").click()
    assert board.locator(".tl-grids [data-lit]").count() == 16


def test_wide_matrices_scroll_in_a_box_of_their_own_at_320_pixels(show):
    page = show(playground().html, width=320)
    wide = page.locator(".tl-grids").evaluate_all(
        "(all) => all.map((box) => box.scrollWidth > box.clientWidth)"
    )
    assert wide == [False] * 7 + [True, True]
    heads = page.locator(".tl-grids table", has_text="W_Q, head").all()
    tops = [head.bounding_box()["y"] for head in heads]
    assert tops[0] == tops[1]  # two heads fit side by side


def test_scripts_of_a_folded_page_wake_it_too(show):
    html = playground().html
    [script] = re.findall(r"<script>.*?</script>", html, re.S)
    page = show(html.replace(script, ""), head=script)
    board = page.locator("tl-playground")
    cell(board, "Y", "bark", "4").click()
    assert said(board).endswith("= 106/91")


@pytest.mark.long
def test_chapter_06_carries_a_link_through_a_reload(open_page):
    path = "notebooks/06_output_projection.html"
    page = open_page(f"{path}#playground=0&X.0.2.0=1/2")
    board = page.locator("tl-playground")
    wrong = "X.0.2.0 is “1/2”; expected a number."
    assert said(board) == f"The link does not fit: {wrong} Nothing has changed."
    page = open_page(f"{path}#playground=0&X.0.2.0=0.5")
    board = page.locator("tl-playground")
    assert cell(board, "X", "bark", "0").inner_text() == "1/2"
    assert board.evaluate("(e) => e.getBoundingClientRect().top < innerHeight")
    write(board, "scale", "scores", "÷", "4")
    board.get_by_role("link", name="Link to these numbers").click()
    page.reload()
    assert cell(board, "scale", "scores", "÷").inner_text() == "4"
    assert cell(board, "X", "bark", "0").inner_text() == "1/2"


def test_map_above_the_tables_shows_and_lights_the_same_numbers(board):
    write(board, "X", "dogs", "0", "3")
    assert tint(board, "X", "dogs", "0").get_attribute("aria-label") == "X, dogs, 0: 3"
    strength = tint(board, "X", "dogs", "0").evaluate("(e) => e.style.getPropertyValue('--n')")
    assert strength == "96%"
    lit = "(box, [part, mark]) => [...box.querySelectorAll(`${part} [data-${mark}]`)].map(" + (
        "(e) => e.ariaLabel)"
    )
    cell(board, "heads, head 0", "bark", "0").click()
    for mark in ("lit", "reached"):
        above, below = (board.evaluate(lit, [part, mark]) for part in (".tl-board", ".tl-grids"))
        assert sorted(above) == sorted(below)
        assert above
    tint(board, "Y", "bark", "4").click()
    assert cell(board, "Y", "bark", "4").get_attribute("aria-selected") == "true"
    assert said(board).startswith("Y, bark, 4 = ")
    tint(board, "X", "that", "0").press("Enter")  # opens the number where it can be written
    assert focused(board.page) == "A number for X, that, 0"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.long
def test_map_and_buttons_stay_on_the_screen_and_leave_room_for_the_tables(open_page, width):
    fold = "deeper-playground-the-whole-layer-to-change"
    page = open_page(f"notebooks/06_output_projection.html#{fold}", width=width)
    page.set_viewport_size({"width": width, "height": 844})
    board = page.locator("tl-playground")
    write(board, "W_O", "5", "0", "2")
    bar = board.locator(".tl-bar-above").bounding_box()
    header = page.locator(".bd-header-article").bounding_box()
    assert abs(bar["y"] - header["height"]) <= 1
    assert bar["height"] <= 0.4 * 844
    assert tint(board, "Y", "bark", "0").get_attribute("data-moved") == ""
    assert cell(board, "W_O", "5", "0").bounding_box()["y"] >= bar["y"] + bar["height"]
    board.get_by_role("button", name="Undo").click()
    assert said(board).startswith("W_O, 5, 0 is 0 again. ")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
