"""The ways in that the first page offers: minutes by touch, an evening with a pencil."""

import re

import pytest

from tests.chapters.pages import written
from tests.chapters.prose_numbers import FENCE
from tests.site.arrival import WEIGHT
from tests.site.browsing import PHONE, ROOT, SITE, said
from tools.chapters import pages
from tools.minutes import A_LINE_READ, A_WORD, STEP, count_words, passages

TEN, EVENING = "book/ten_minutes.html", "book/one_evening.html"
EXHIBITS = ["plane", "bench", "sum", "paint", "ask"]
MOST_BYTES, MOST_MINUTES = 200_000, 150
AN_EXHIBIT, A_QUESTION = 3, 2  # minutes
# What the page of the evening may link to in a chapter: its Idea, a round, a question, a state.
PLACE = re.compile(r"idea|look|round-\d-[\w-]+|prediction-\d|(map|playground)=0&[\w.]+=[\w.]+")


def source(name):
    """The text of a page of `book/`, as it is written."""
    return (ROOT / "book" / name).read_text(encoding="utf-8")


def test_twenty_minutes_are_five_exhibits_a_figure_and_no_code_and_what_the_rule_gives(page_of_ten):
    kinds = page_of_ten.locator("article .tl").evaluate_all("all => all.map((e) => e.localName)")
    assert kinds == [f"tl-{kind}" for kind in EXHIBITS]
    text = source("ten_minutes.md")
    assert "`" not in FENCE.sub("", text)
    minutes = A_WORD * count_words(text) + A_QUESTION * len(EXHIBITS)  # one task with each
    assert text.startswith("# Twenty minutes:")
    assert STEP * round(minutes / STEP) == 20


def test_twenty_minutes_are_light_and_their_model_answers(open_fresh):
    page = open_fresh(TEN, **PHONE)
    exhibit = page.locator("tl-ask")
    exhibit.get_by_role("button", name="silence head 1.2").tap()
    assert said(exhibit).startswith("Head 1.2 is silenced: “barks” − “bark” goes from +6.22 to ")
    page.locator(".book-foot").scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    assert 60_000 < page.evaluate(WEIGHT) <= MOST_BYTES


def test_address_of_a_sentence_is_followed_at_once(open_page):
    page = open_page(f"{TEN}#ask=0&text=the+dogs+that")
    page.locator("tl-ask [aria-live]").get_by_text("Next after “that”").wait_for()
    assert page.locator("tl-ask").bounding_box()["y"] < 900


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
    words = sum(count_words(text) for _, kind, text in read if kind == "text")
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
