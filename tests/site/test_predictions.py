"""Predictions hold: nothing on a page gives an answer away before its reader commits or asks."""

import re
from copy import copy

import pytest
from bs4 import BeautifulSoup, SoupStrainer

from tests.sampling import long

ASKED = ".tl-predict"
WAITS = "details.below-input"
UNSEEN = "details, .tl, script, style, .headerlink, .visually-hidden"
NUMBER = r"(?<![\w.])-?\d+(?:\.\d+)?(?:/\d+)?"
EVERYWHERE = 100  # one or two whole numbers below it stand in any text
DISCUSSED = "notebooks/16_rope_alibi.html"  # its second answer: an output and two paragraphs
TOLD = "the weight of dogs falls to"
LONG = "notebooks/17_sparse_attention.html"  # its third answer: two outputs


def block(box):
    """What follows a prediction: its answers and the next code, or up to a heading or question."""
    for node in (box.find_parent(class_="cell") or box).find_next_siblings():
        if node.name == "section" or node.select_one(ASKED):
            return
        yield node
        if is_other_code(node):
            return


def is_other_code(node):
    """Whether a cell shows its code and keeps no output closed."""
    return node.select_one(".cell_input") and not node.select_one(WAITS)


def seen(node, unseen=UNSEEN):
    """What is visible of a node, its folds closed."""
    shown = copy(node)
    for part in shown.select(unseen):
        part.extract()
    return " ".join(shown.get_text(" ").split()).replace("−", "-")


def given_away(box):
    """What is visible below a prediction before any code but that of its answers."""
    for node in block(box):
        if is_other_code(node):
            return
        if text := seen(node, f"{UNSEEN}, .cell_input"):
            yield text


def values(text):
    """The numbers of a text, one after the other, a fraction as its value."""
    parts = (number.split("/") for number in re.findall(NUMBER, text.replace("−", "-")))
    return [float(n) / float(*d or (1,)) if float(*d or (1,)) else 0.0 for n, *d in parts]


def stands_in(answer, text):
    """Whether an answer stands in a text, in words, or as numbers to four digits."""
    wanted, found = values(answer), values(text)
    if not wanted or re.search("[A-Za-z]{2}", answer):
        return answer.lower() in text.lower()
    if len(wanted) < 3 and all(n == int(n) < EVERYWHERE for n in wanted):
        return False
    starts = (found[i : i + len(wanted)] for i in range(len(found)))
    return any(len(s) == len(wanted) and s == pytest.approx(wanted, abs=1e-4) for s in starts)


def answer_of(box):
    """The text of the right option of a prediction, or its number."""
    [right] = [dd for dd in box.select("details dd") if dd.select_one(".tl-right")]
    return " ".join(right.find_previous_sibling("dt").get_text().split())


@pytest.fixture(scope="module")
def boxes(site_dir, page_name):
    """The predictions of a built page."""
    text = (site_dir / page_name).read_text(encoding="utf-8")
    if ASKED.removeprefix(".") not in text:
        return []
    page = BeautifulSoup(text, "html.parser", parse_only=SoupStrainer("article"))
    return page.select(ASKED)


def test_nothing_that_discusses_an_answer_is_visible_before_it(boxes):
    told = {box["id"]: list(given_away(box)) for box in boxes}
    assert not any(told.values()), {name: texts for name, texts in told.items() if texts}


def test_no_answer_stands_below_its_question(boxes):
    told = []
    for box in boxes:
        text, asked = " | ".join(map(seen, block(box))), box.select_one("legend, label").get_text()
        if stands_in(answer_of(box), text) and not stands_in(answer_of(box), asked):
            told.append((box["id"], answer_of(box), text))
    assert not told, "Give the cell that prints it the tag hide-output, or say it after the answer."


def test_answers_are_found_in_words_and_as_numbers():
    assert stands_in("4/7, 1/7, 2/7", "float64: 0.5714 0.1429 0.2857 and on")
    assert stands_in("The sum of the heads", "So it is the sum of the heads.")
    assert not stands_in("4/7, 1/7, 2/7", "0.5714 0.2857 0.1429")
    assert not stands_in("2", "rows 1 2")


@pytest.mark.parametrize("width", [1440, *long(390)])
def test_discussion_waits_for_the_commitment_and_is_there_tomorrow(open_page, width):
    page = open_page(DISCUSSED, width=width)
    box, told = page.locator(ASKED).nth(1), page.get_by_text(TOLD)
    assert told.count() == 1
    assert not told.is_visible()
    box.get_by_role("radio").nth(0).check()
    assert not told.is_visible()
    box.get_by_role("button", name="Commit").click()
    assert told.is_visible()
    assert page.locator(".book-discussion:visible").count() == 1
    page.reload()
    told.wait_for()
    assert page.locator(".book-discussion:visible").count() == 1
    assert page.problems == []


def test_all_outputs_of_an_answer_open_together(open_page):
    page = open_page(LONG)
    page.locator(ASKED).nth(2).get_by_role("button", name="Show me").click()
    assert page.locator(f"{WAITS}[open]").count() == 2
    assert page.get_by_text("few pairs matter").is_visible()
    assert page.problems == []


def test_discussion_is_found_printed_and_there_without_scripts(open_page):
    page = open_page(DISCUSSED, java_script_enabled=False)
    told = page.get_by_text(TOLD)
    page.locator(WAITS).nth(1).locator("summary").click()
    assert told.is_visible()
    page = open_page(f"{DISCUSSED}?find=quarter+ahead#round-2-rope-a-rotation-for-each-position")
    told = page.get_by_text(TOLD)
    assert not told.is_visible()
    while not told.is_visible():
        page.get_by_role("button", name="Next mark").click()
        assert not page.locator(".search-pill").inner_text().startswith("0")
    page = open_page(DISCUSSED)
    page.emulate_media(media="print")
    assert page.get_by_text(TOLD).is_visible()
