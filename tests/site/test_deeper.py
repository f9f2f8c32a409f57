"""Deeper: what is off the main path is folded below its result, and found, opened and printed."""

import re

import pytest
from bs4 import BeautifulSoup

from tests.chapters.anatomy import pieces
from tests.chapters.pages import NAMES, written
from tools.chapters import DEEPER

CHAPTER = "notebooks/02_queries_keys_values.html"
SECTION = "deeper-how-much-two-subspaces-overlap"
OPEN = "(fold) => fold.open"
IN_VIEW = (
    "(e) => { const { top } = e.getBoundingClientRect(); return 0 <= top && top < innerHeight; }"
)
WITH_DEEPER = [name for name in NAMES if any(piece.deeper for piece in pieces(written(name)))]


def fold_of(page, section=SECTION):
    """Return the fold of a section."""
    return page.locator(f"#{section} > details.book-deeper")


@pytest.fixture
def opened(open_page):
    """Open the chapter at an address within it; return the fold of the section, and its page."""

    def open_(address="", **options):
        page = open_page(CHAPTER + address, **options)
        return fold_of(page), page

    return open_


@pytest.mark.parametrize("name", WITH_DEEPER)
def test_each_deeper_shows_its_heading_and_its_result_and_folds_the_rest(site_dir, name):
    begins = f" {DEEPER}"
    titles = [p.deeper for p in pieces(written(name)) if p.text.lstrip("#").startswith(begins)]
    page = (site_dir / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    folds = BeautifulSoup(page, "html.parser").select("article section[id] > .book-deeper")
    shown = []
    for fold in folds:
        heading, result = fold.find_previous_siblings(True)[::-1]
        heading.select_one(".headerlink").extract()
        shown.append(heading.get_text())
        assert heading.name in ("h3", "h4")
        assert result.name == "p"
        assert not fold.has_attr("open")
        assert len(fold.find_all(recursive=False)) > 1, "nothing is behind it"
        assert not fold.find_next_siblings(True)
    assert shown == [re.sub(r"[`*]", "", title).replace("'", "’") for title in titles]


def test_result_is_seen_and_the_rest_behind_a_press(opened):
    fold, page = opened()
    inside = fold.locator("pre").first
    assert page.locator(f"#{SECTION} > p").is_visible()
    assert not inside.is_visible()
    fold.locator("> summary").focus()
    page.keyboard.press("Enter")
    assert inside.is_visible()


@pytest.mark.parametrize("inside", [SECTION, "table"])
def test_address_of_it_or_of_what_is_in_it_opens_it(opened, open_page, inside):
    if inside == "table":
        page = open_page(CHAPTER)
        fold = page.locator(".book-deeper:has(table[id])").first
        inside = fold.locator("table[id]").first.get_attribute("id")
        page.evaluate("(id) => { location.hash = id; }", inside)
        page.wait_for_function(OPEN, arg=fold.element_handle())
    else:
        fold, page = opened(f"#{inside}")
        assert fold.evaluate(OPEN)
    assert page.locator(f"#{inside}").evaluate(IN_VIEW)


def test_list_of_what_is_on_the_page_leaves_it_out(opened):
    _, page = opened()
    listed = page.locator(".bd-sidebar-secondary a[href^='#']")
    targets = listed.evaluate_all("(links) => links.map((link) => link.hash)")
    assert "#build" in targets
    assert not any(target.startswith("#deeper") for target in targets)


def test_link_of_its_heading_opens_it(opened):
    fold, page = opened()
    page.locator(f"#{SECTION} > h3 a.headerlink").evaluate("(link) => link.click()")
    page.wait_for_function(OPEN, arg=fold.element_handle())


def test_search_finds_what_is_in_it_and_opens_it(open_page):
    page = open_page("search.html?q=overlap of two subspaces")
    page.locator(f"a.search-hit[href*='#{SECTION}']").click()
    page.wait_for_url(f"**/{CHAPTER.rpartition('/')[2]}#{SECTION}**")
    page.wait_for_function(OPEN, arg=fold_of(page).element_handle())


def test_hit_on_the_open_page_opens_it(opened):
    fold, page = opened()
    page.keyboard.press("Control+k")
    page.keyboard.type("overlap of two subspaces")
    page.locator(f"a.search-hit[href*='#{SECTION}']").click()
    page.wait_for_function(OPEN, arg=fold.element_handle())


def test_paper_has_it_open(opened):
    fold, page = opened()
    page.emulate_media(media="print")
    assert fold.locator("pre").first.bounding_box()["height"] > 0
    assert fold.locator("> p").last.is_visible()
    assert not fold.locator("> summary").is_visible()
