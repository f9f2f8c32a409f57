"""The ways in that the first page offers: ten minutes by touch, an evening with a pencil."""

import re

import pytest

from tests.chapters.prose_numbers import COMMENT, FENCE
from tests.chapters.values.one_evening import minutes_of_the_stations
from tests.site.arrival import WEIGHT
from tests.site.browsing import PHONE, ROOT, SITE, said
from tools.chapters import pages

TEN, EVENING = "book/ten_minutes.html", "book/one_evening.html"
EXHIBITS = ["plane", "bench", "gallery", "sum", "paint", "ask"]
MOST_WORDS, MOST_BYTES, MOST_MINUTES = 900, 150_000, 150
# What the page of the evening may link to in a chapter: its Idea, a round, a question, a state.
PLACE = re.compile(r"idea|look|round-\d-[\w-]+|prediction-\d|map=0&cell=[\w.]+")


def source(name):
    """The text of a page of `book/`, as it is written."""
    return (ROOT / "book" / name).read_text(encoding="utf-8")


def test_ten_minutes_are_six_exhibits_and_no_code(page_of_ten):
    kinds = page_of_ten.locator("article .tl").evaluate_all("all => all.map((e) => e.localName)")
    assert kinds == [f"tl-{kind}" for kind in EXHIBITS]
    text = source("ten_minutes.md")
    assert "`" not in FENCE.sub("", text)
    words = COMMENT.sub("", text).replace("```", "").split()
    assert len(words) < MOST_WORDS


def test_ten_minutes_arrive_light_and_fetch_the_model_when_a_reader_comes_near(open_page):
    page = open_page(TEN, **PHONE)
    page.wait_for_timeout(150)
    assert 60_000 < page.evaluate(WEIGHT) <= MOST_BYTES
    assert page.evaluate("() => globalThis.tlModels") is None
    exhibit = page.locator("tl-ask")
    assert not exhibit.get_by_role("button", name="silence head 1.2").is_visible()
    exhibit.scroll_into_view_if_needed()
    exhibit.get_by_role("button", name="silence head 1.2").click()
    assert said(exhibit).startswith("Head 1.2 is silenced: “barks” − “bark” goes from +6.22 to ")
    page.reload()
    exhibit.locator("[data-quiet]").wait_for()
    assert page.problems == []


def test_address_of_a_sentence_fetches_the_model_at_once(open_page):
    page = open_page(f"{TEN}#ask=0&text=the+dogs+that")
    page.locator("tl-ask [aria-live]").get_by_text("Next after “that”").wait_for()
    assert page.locator("tl-ask").bounding_box()["y"] < 900


@pytest.mark.parametrize("name", [TEN, EVENING])
def test_ways_do_not_scroll_sideways_on_a_small_phone(open_page, name):
    page = open_page(name, **PHONE | {"width": 320})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


def test_evening_takes_at_most_150_minutes():
    assert 0 < minutes_of_the_stations() <= MOST_MINUTES


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
    assert links[-1] == (firsts[-1], "look")


@pytest.fixture
def page_of_ten(open_page):
    """The page of ten minutes, wide."""
    page = open_page(TEN)
    yield page
    assert page.problems == []
