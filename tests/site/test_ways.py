"""The ways in that the first page offers: minutes by touch, an evening with a pencil."""

import gzip
import math
import re

import pytest

from tests.chapters.pages import written
from tests.chapters.prose_numbers import FENCE
from tests.site.arrival import WEIGHT
from tests.site.browsing import PHONE, ROOT, SET, SITE, said
from tools.chapters import pages
from tools.minutes import A_LINE_READ, A_WORD, STEP, passages, words_of

TEN, EVENING = "book/ten_minutes.html", "book/one_evening.html"
EXHIBITS = ["plane", "bench", "sum", "paint", "ask"]
MOST_BYTES, MOST_MINUTES = 150_000, 150
AN_EXHIBIT, A_QUESTION = 3, 2  # minutes
# What the page of the evening may link to in a chapter: its Idea, a round, a question, a state.
PLACE = re.compile(r"idea|look|round-\d-[\w-]+|prediction-\d|(map|playground)=0&[\w.]+=[\w.]+")

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Where the parts of the model's exhibit begin, and where the page ends.
HEIGHTS = """() => [
  ...document.querySelectorAll("tl-ask :is(.tl-sentence, .tl-row, .tl-lists, table, .tl-legend)"),
  document.querySelector(".book-foot"),
].map((part) => Math.round(part.getBoundingClientRect().top + scrollY))"""


def load_button(page):
    """The button that loads the model."""
    return page.get_by_role("button", name="Load the model")


def source(name):
    """The text of a page of `book/`, as it is written."""
    return (ROOT / "book" / name).read_text(encoding="utf-8")


def test_twenty_minutes_are_five_exhibits_a_figure_and_no_code_and_what_the_rule_gives(page_of_ten):
    kinds = page_of_ten.locator("article .tl").evaluate_all("all => all.map((e) => e.localName)")
    assert kinds == [f"tl-{kind}" for kind in EXHIBITS]
    text = source("ten_minutes.md")
    assert "`" not in FENCE.sub("", text)
    minutes = A_WORD * words_of(text) + A_QUESTION * len(EXHIBITS)  # one task with each
    assert text.startswith("# Twenty minutes:")
    assert STEP * round(minutes / STEP) == 20


def test_twenty_minutes_stay_light_until_a_reader_loads_the_model(open_fresh, site_dir):
    page = open_fresh(TEN, **PHONE)
    exhibit, button = page.locator("tl-ask"), load_button(page)
    for part in (page.locator(".book-foot"), exhibit):
        part.scroll_into_view_if_needed()
        page.evaluate(TWO_FRAMES)
        page.wait_for_load_state("networkidle")
    assert 60_000 < page.evaluate(WEIGHT) <= MOST_BYTES
    assert page.evaluate("() => globalThis.tlModels") is None
    [file] = re.findall(r"model-\w+\.js", (site_dir / TEN).read_text(encoding="utf-8"))
    kb = math.ceil(len(gzip.compress((site_dir / "_static" / file).read_bytes())) / 1000)
    assert button.inner_text() == f"Load the model, {kb} kB"
    button.tap()
    exhibit.get_by_role("button", name="silence head 1.2").tap()
    assert said(exhibit).startswith("Head 1.2 is silenced: “barks” − “bark” goes from +6.22 to ")
    assert page.problems == []


def test_what_a_reader_did_to_the_model_waits_until_it_is_loaded_again(page_of_ten):
    exhibit, button = page_of_ten.locator("tl-ask"), load_button(page_of_ten)
    button.click()
    exhibit.get_by_role("button", name="silence head 1.2").click()
    page_of_ten.reload()
    page_of_ten.wait_for_load_state("networkidle")
    assert page_of_ten.evaluate("() => globalThis.tlModels") is None
    button.click()
    exhibit.locator("[data-quiet]").wait_for()


@pytest.mark.parametrize(("width", "dark"), [(320, False), (390, True), (800, False), (1440, True)])
def test_model_that_comes_late_or_not_at_all_moves_nothing(open_page, width, dark):
    page = open_page(TEN, width=width, dark=dark)
    exhibit, button = page.locator("tl-ask"), load_button(page)
    heights = [page.evaluate(HEIGHTS)]
    page.route("**/model-*.js", lambda route: route.abort())
    button.click()
    exhibit.get_by_text("The model did not arrive. Check the connection").wait_for()
    heights.append(page.evaluate(HEIGHTS))
    page.unroute_all()
    button.click()
    exhibit.get_by_text("The model is loaded.").wait_for()
    heights.append(page.evaluate(HEIGHTS))
    assert heights == heights[:1] * 3
    assert not button.count()


def test_model_is_loaded_by_keys_and_the_focus_goes_to_the_chosen_word(page_of_ten):
    load_button(page_of_ten).focus()
    page_of_ten.keyboard.press("Tab")
    assert not page_of_ten.evaluate("() => document.activeElement.closest('.tl-row, .tl-lists')")
    page_of_ten.keyboard.press("Shift+Tab")
    page_of_ten.keyboard.press("Enter")
    page_of_ten.locator("tl-ask .tl-word:focus").get_by_text("see").wait_for()
    page_of_ten.keyboard.press("Tab")
    assert page_of_ten.evaluate("() => document.activeElement.ariaLabel") == "silence head 0.0"


def test_address_of_a_sentence_loads_the_model_at_once(open_page):
    page = open_page(f"{TEN}#ask=0&text=the+dogs+that")
    page.locator("tl-ask [aria-live]").get_by_text("Next after “that”").wait_for()
    assert page.locator("tl-ask").bounding_box()["y"] < 900


def test_address_that_changes_to_a_sentence_loads_the_model(page_of_ten):
    page_of_ten.evaluate(SET, "#ask=0&text=the+dogs+that")
    page_of_ten.locator("tl-ask [aria-live]").get_by_text("Next after “that”").wait_for()


@pytest.mark.parametrize("name", [TEN, EVENING])
def test_ways_do_not_scroll_sideways_on_a_small_phone(open_page, name):
    page = open_page(name, **PHONE | {"width": 320})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


def stretch(name, question):
    """The Idea of a chapter, and the round that leads to a question, as far as it."""
    cells = written(name).cells
    [end] = [i for i, c in enumerate(cells) if f'prediction("{name}", {question})' in c.source]
    found = [(section, kind, text) for section, off, kind, text in passages(cells[:end]) if not off]
    starts = [i for i, (_, _, text) in enumerate(found) if text.startswith("### Round")]
    return [each for each in found if each[0] == "Idea"] + found[starts[-1] :]


def minutes_of_reading(read):
    """The minutes that the rule gives to words and to lines of code."""
    words = sum(words_of(text) for _, kind, text in read if kind == "text")
    code = [line for _, kind, text in read if kind == "code" for line in text.splitlines()]
    return A_WORD * words + A_LINE_READ * sum(bool(line.strip()) for line in code)


def test_evening_takes_the_minutes_of_the_rule_and_at_most_150():
    text = source("one_evening.md")
    named = [int(n) for n in re.findall(r"\*\* \(about (\d+) minutes\)", text)]
    questions = re.findall(r"notebooks/(\w+)\.ipynb#prediction-(\d)", text)
    read = [minutes_of_reading(stretch(*question)) for question in questions]
    assert named[:6] == [STEP * round((n + AN_EXHIBIT + A_QUESTION) / STEP) for n in read]
    assert sum(named) <= MOST_MINUTES


@pytest.mark.usefixtures("site_dir")
def test_evening_leads_through_the_ideas_to_the_playground():
    links = re.findall(r"\]\(\.\./notebooks/(\w+)\.ipynb#([^)]+)\)", source("one_evening.md"))
    assert [place for _, place in links if not PLACE.fullmatch(place)] == []
    firsts = [page.name for page in pages()[:6]]
    assert [name for name, place in links if place == "idea"] == firsts
    assert [name for name, place in links if place.startswith("prediction-")] == firsts
    for name, place in links:
        if "=" not in place:
            text = (SITE / f"notebooks/{name}.html").read_text(encoding="utf-8")
            assert f' id="{place}"' in text, (name, place)
    assert links[-1] == (firsts[-1], "playground=0&X.0.0.3=1")


@pytest.fixture
def page_of_ten(open_page):
    """The page of twenty minutes, wide."""
    page = open_page(TEN)
    yield page
    assert page.problems == []
