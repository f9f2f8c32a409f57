"""The first use of a term leads to the glossary; terms and papers show their card when asked."""

import json
import re
from collections import Counter
from functools import cache

import pytest
from bs4 import BeautifulSoup, SoupStrainer

from book._ext.content import definitions
from book._ext.content.definitions import CARDS, EVERYDAY, UNLINKED, link_first_uses, term_forms
from tests.sampling import every
from tests.site.browsing import DOCUMENTS, PHONE

CHAPTER = "notebooks/15_mqa_gqa_mla.html"
READ = [f"{name}.html" for name in DOCUMENTS if f"{name}.html" not in UNLINKED]
TERM, PAPER = "article p > a.book-term", "article p > a.book-paper"
FETCHED = f"""() => performance.getEntriesByType("resource")
  .filter(({{name}}) => name.endsWith("{CARDS}")).length"""


@cache
def article(site_dir, name):
    """Return what a page of the book says."""
    page = (site_dir / name).read_text(encoding="utf-8")
    return BeautifulSoup(page, "html.parser", parse_only=SoupStrainer("article"))


@pytest.fixture(scope="module")
def cards(site_dir):
    """What is shown of each term and each paper."""
    script = (site_dir / "_static" / CARDS).read_text(encoding="utf-8")
    return json.loads(script.removeprefix("window.bookCards = ").rstrip().removesuffix(";"))


@pytest.fixture
def page(open_page):
    """A chapter with the card of a term or a paper to come."""
    page = open_page(CHAPTER)
    page.card = page.locator("#book-card")
    return page


@pytest.mark.parametrize("name", READ)
def test_the_first_use_of_a_term_is_a_link_and_no_other(site_dir, cards, name):
    links = article(site_dir, name).select('a.book-term[href^="../book/glossary.html"]')
    links = [link for link in links if link["class"] == ["book-term"]]
    counts = Counter(link["href"].partition("#")[2] for link in links)
    assert len(counts) >= 5
    assert counts.keys() <= cards.keys()
    assert set(counts.values()) == {1}
    assert not [link for link in links if link.find_parent(["h1", "h2", "h3", "h4", "pre", "code"])]


def test_chapters_lead_to_nearly_every_term(site_dir, cards):
    found = {
        link["href"].partition("#")[2]
        for name in READ
        for link in article(site_dir, name).select("a.book-term")
    }
    terms = {place for place in cards if place.startswith("term-")}
    assert len(terms) > 140
    assert len(found & terms) >= 0.85 * len(terms), sorted(terms - found)


@pytest.mark.parametrize("name", every(4, READ))
def test_a_link_to_a_paper_of_the_references_has_a_card(site_dir, cards, name):
    links = article(site_dir, name).select("a.reference.external")
    missed = [a["href"] for a in links if a["href"] in cards and "book-paper" not in a["class"]]
    assert missed == []
    assert all(a["href"] in cards for a in links if "book-paper" in a["class"])


def test_a_card_of_a_paper_has_its_title_and_why_it_is_cited(site_dir, cards):
    papers = article(site_dir, "book/references.html").select("div.citation > p")
    assert len(papers) > 100
    for paper in papers:
        shown = BeautifulSoup(cards[paper.select_one("a")["href"]], "html.parser")
        title, _, why = (part.get_text() for part in shown.select("p"))
        assert title in paper.get_text()
        assert why == paper.select_one(".book-why").get_text()
        assert why.endswith("."), f"references.bib: write the annote of {title}"


def test_a_card_of_a_term_begins_with_its_definition_and_leads_on(site_dir, cards):
    glossary = article(site_dir, "book/glossary.html")
    for term in glossary.select("dt[id^=term-]"):
        shown = BeautifulSoup(cards[term["id"]], "html.parser").select("p")
        assert shown[0].get_text() == term.find_next("p").get_text()
        assert "Chapter:" in shown[1].get_text()
        assert shown[-1].a["href"] == f"../book/glossary.html#{term['id']}"


TERMS = {
    form: f"term-{name}"
    for name in ("mask", "query", "page", "KV-cache", "attention-sink")
    for form in term_forms(name.replace("-", " "), "")
}


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("<p>A mask. Another mask.</p>", ["mask"]),
        ("<p>Queries come first.</p>", ["Queries"]),
        ("<p>KV caches and the KV cache</p>", ["KV caches"]),
        ("<p>an attention-sink</p><p>the attention sink</p>", ["attention-sink"]),
        ("<p>unmasked, mask-like, masked</p>", []),
        ("<p>this page; a <strong>page</strong></p>", ["page"]),
        ("<p><a href='x'>a mask</a> <code>mask</code> <em>mask</em></p><h2>mask</h2>", []),
        ("<details><p>a mask</p></details><p>the mask</p>", ["mask"]),
        ('<details class="book-deeper"><p>a mask</p></details>', ["mask"]),
        ("<tl-quiz><p>a mask</p></tl-quiz><table><td><p>mask</p></table>", []),
        ("<p>x<!-- a mask --></p>", []),
    ],
)
def test_what_is_a_use_of_a_term(text, linked):
    page = link_first_uses(text, TERMS)
    assert re.findall('<a class="book-term"[^>]*>([^<]*)</a>', page) == linked
    assert re.sub('<a class="book-term"[^>]*>([^<]*)</a>', r"\1", page) == text


def test_an_everyday_word_is_a_term_of_the_glossary(cards):
    assert {f"term-{word}" for word in EVERYDAY.split()} <= cards.keys()


def test_other_names_of_a_term_lead_to_it():
    text = "<p>Text.</p><p><em>Also called:</em> MLA, key-value cache, past, past key values</p>"
    assert term_forms("mask", text)[:4] == ["mask", "MLA", "key-value cache", "past key values"]
    assert definitions.plural_of("query") == "queries"


def test_pointing_shows_a_card_that_can_be_read_and_left(page):
    link = page.locator(TERM).first
    assert page.evaluate(FETCHED) == 0
    link.hover()
    page.card.wait_for()
    assert page.evaluate(FETCHED) == 1
    assert link.get_attribute("aria-describedby") == "book-card"
    page.card.hover()
    page.wait_for_timeout(500)
    assert page.card.is_visible()
    page.keyboard.press("Escape")
    assert not page.card.is_visible()
    assert link.get_attribute("aria-describedby") is None
    link.hover()
    page.card.wait_for()
    page.locator("article h1").hover()
    page.card.wait_for(state="hidden")


def test_focus_shows_a_card_and_the_next_focus_takes_it_away(page):
    link = page.locator(PAPER).first
    link.evaluate("(link) => link.focus({focusVisible: true})")
    page.card.wait_for()
    assert page.card.locator("strong").count() == 1
    assert not page.card.locator("a:not([tabindex='-1'])").count()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement").__class__
    assert link.get_attribute("aria-describedby") is None


def test_a_tap_shows_a_card_within_the_window_and_a_second_follows(open_page):
    page = open_page(CHAPTER, **PHONE)
    card = page.locator("#book-card")
    page.evaluate("document.querySelectorAll('.book-deeper').forEach((d) => { d.open = true; })")
    links = page.locator(TERM)
    for i in range(0, links.count(), 6):
        links.nth(i).tap()
        card.wait_for()
        box = card.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        assert 0 <= box["y"] <= box["y"] + box["height"] <= page.evaluate("innerHeight")
        page.locator("article h1").dispatch_event("click")
        card.wait_for(state="hidden")
    links.first.tap()
    card.wait_for()
    links.first.tap()
    page.wait_for_url("**/glossary.html#term-*")


def test_a_page_from_disk_shows_its_cards(open_page):
    page = open_page(CHAPTER, from_disk=True)
    page.locator(TERM).first.hover()
    page.locator("#book-card").wait_for()


def test_where_no_card_comes_a_link_is_followed(open_fresh):
    page = open_fresh(CHAPTER, **PHONE)
    page.route(f"**/{CARDS}", lambda route: route.abort())
    page.locator(TERM).first.tap()
    page.wait_for_url("**/glossary.html#term-*")
    page.problems.clear()
