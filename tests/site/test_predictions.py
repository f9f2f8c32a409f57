"""Predictions hide their answers until a reader commits or asks, and hide nothing else."""

import re
from copy import copy

import pytest
from bs4 import BeautifulSoup, SoupStrainer

from tests.sampling import long
from tests.site.test_deeper import IN_VIEW

ASKED = ".tl-predict"
WAITS = "details.below-input"
UNSEEN = "details, .tl, script, style, .headerlink, .visually-hidden"
NUMBER = r"(?<![\w.])-?\d+(?:\.\d+)?(?:/\d+)?"
EVERYWHERE = 100  # one or two whole numbers below it stand in any text
DISCUSSED = "notebooks/16_rope_alibi.html"  # its second answer: an output and two paragraphs
TOLD = "the weight of dogs falls to"
HIDDEN = "(all) => all.filter((one) => !one.checkVisibility()).map((one) => one.textContent)"
LONG = "notebooks/17_sparse_attention.html"  # its third answer: two outputs


def below(box):
    """What follows a prediction up to a heading or another prediction."""
    for node in (box.find_parent(class_="cell") or box).find_next_siblings():
        if node.name == "section" or node.select_one(ASKED):
            return
        yield node


def seen(node, unseen=UNSEEN):
    """What is visible of a node, its folds closed."""
    shown = copy(node)
    for part in shown.select(unseen):
        part.extract()
    return " ".join(shown.get_text(" ").split()).replace("−", "-")


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
def page_soup(site_dir, page_name):
    """The text of a built page that asks for predictions, or nothing of another."""
    text = (site_dir / page_name).read_text(encoding="utf-8")
    asks = ASKED.removeprefix(".") in text
    return BeautifulSoup(text if asks else "", "html.parser", parse_only=SoupStrainer("article"))


@pytest.fixture(scope="module")
def boxes(page_soup):
    """The predictions of a built page."""
    return page_soup.select(ASKED)


READING = "details > .book-reading"
MOST_WORDS, MOST_SENTENCES = 60, 2
SENTENCE_ENDS = r"[.?!:](?=[\s”’)]|$)"
EXPLAINS = "b, strong, dfn, figure, svg, details, .tl"  # which a fold may not take from the text


def readings_of(page_soup):
    """Yield what waits for each prediction: the paragraphs of all its outputs together."""
    readings = []
    for node in [*page_soup.select(f"{ASKED}, {READING}"), None]:
        if node and node.name == "div" and "book-reading" in node["class"]:
            readings.append(node)
        elif readings:
            yield readings
            readings = []


def too_much(readings):
    """List what the paragraphs that wait for an answer hold beyond reading it."""
    texts = [" ".join(reading.get_text(" ").split()) for reading in readings]
    words = sum(len(text.split()) for text in texts)
    sentences = max(len(re.findall(SENTENCE_ENDS, text)) for text in texts)
    faults = [f"{words} words, more than {MOST_WORDS}"] * (words > MOST_WORDS)
    faults += [f"{sentences} sentences, more than {MOST_SENTENCES}"] * (sentences > MOST_SENTENCES)
    found = sorted({node.name for reading in readings for node in reading.select(EXPLAINS)})
    return faults + [f"it explains, with {', '.join(found)}"] * bool(found)


def test_what_waits_for_an_answer_reads_it_and_explains_nothing(page_soup):
    waiting = {r[0].get_text()[:60]: too_much(r) for r in readings_of(page_soup)}
    faults = {begins: found for begins, found in waiting.items() if found}
    assert not faults, (
        "Say it after the answer, as a paragraph of its own that does not give the answer away: "
        f"{faults}"
    )


def test_no_answer_stands_below_its_question(boxes):
    told = []
    for box in boxes:
        text, asked = " | ".join(map(seen, below(box))), box.select_one("legend, label").get_text()
        if stands_in(answer_of(box), text) and not stands_in(answer_of(box), asked):
            told.append((box["id"], answer_of(box), text))
    assert not told, "Give the cell that prints it the tag hide-output, or say it in other words."


def test_answers_are_found_in_words_and_as_numbers():
    assert stands_in("4/7, 1/7, 2/7", "float64: 0.5714 0.1429 0.2857 and on")
    assert stands_in("The sum of the heads", "So it is the sum of the heads.")
    assert not stands_in("4/7, 1/7, 2/7", "0.5714 0.2857 0.1429")
    assert not stands_in("2", "rows 1 2")


@pytest.mark.parametrize("width", [1440, *long(390)])
def test_reading_waits_for_the_commitment_and_is_there_tomorrow(open_page, width):
    page = open_page(DISCUSSED, width=width)
    box, told = page.locator(ASKED).nth(1), page.get_by_text(TOLD)
    assert told.count() == 1
    assert not told.is_visible()
    box.get_by_role("radio").nth(0).check()
    assert not told.is_visible()
    box.get_by_role("button", name="Commit").click()
    assert told.is_visible()
    assert page.locator(".book-reading:visible").count() == 1
    page.reload()
    told.wait_for()
    assert page.locator(".book-reading:visible").count() == 1


def test_all_outputs_of_an_answer_open_together(open_page):
    page = open_page(LONG)
    page.locator(ASKED).nth(2).get_by_role("button", name="Show me").click()
    assert page.locator(f"{WAITS}[open]").count() == 2
    assert page.get_by_text("few pairs matter").is_visible()


def test_reading_is_printed_and_there_without_scripts(open_page):
    page = open_page(DISCUSSED, java_script_enabled=False)
    assert page.get_by_text(TOLD).is_visible()
    folds = "article :is(details.hide, .book-deeper):not(.book-hints *)"
    assert page.locator(f"{folds} > :not(summary)").count() > 20
    assert page.locator(f"{folds} > :not(summary)").evaluate_all(HIDDEN) == []
    assert page.locator(f"{folds} > summary:visible").count() == 0
    assert not page.locator(".book-hints details > p").first.is_visible()
    page = open_page(DISCUSSED)
    page.emulate_media(media="print")
    assert page.get_by_text(TOLD).is_visible()


@pytest.mark.parametrize("touch", [False, True], ids=["keys", "touch"])
def test_who_asks_for_everything_has_it_on_every_page_until_asked_first_again(open_page, touch):
    page = open_page(DISCUSSED, has_touch=touch)
    press = page.locator(".book-shows").tap if touch else lambda: page.keyboard.press("Enter")
    page.locator(".book-shows").focus()
    assert not page.get_by_text(TOLD).is_visible()
    press()
    page.reload()
    assert page.get_by_text(TOLD).is_visible()
    assert page.locator(".book-deeper > p").first.is_visible()
    assert not page.locator(".book-hints details > p").first.is_visible()
    assert page.locator(".book-shows").inner_text() == "Ask me first"
    page.locator(".book-shows").focus()
    press()
    assert not page.get_by_text(TOLD).is_visible()


def test_sentence_that_a_hit_quotes_is_opened_and_in_view(open_page):
    page = open_page("search.html?q=quarter turn ahead head 0 weight of dogs falls")
    page.locator("a.search-hit[href*='16_rope'][href*='#round-2-']").first.click()
    page.wait_for_url("**/16_rope_alibi.html#round-2-**")
    told = page.get_by_text(TOLD)
    page.wait_for_function(IN_VIEW, arg=told.element_handle())
