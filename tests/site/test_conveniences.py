"""What each page offers beside its text: neighbours by arrow, a mark, a report."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.site.browsing import CONFIG, DOCUMENTS, PUBLIC_URL, ROOT, quiet

CHAPTER, NEXT = "notebooks/03_attention_weights.html", "notebooks/04_multi_head_attention.html"
BOXES = """() => [...document.querySelectorAll('.bd-links a, .book-foot *')]
  .map((e) => e.getBoundingClientRect()).map(({x, y, width, height}) => [x, y, width, height])"""


def arrow(document: str) -> str:
    """Return a page's steps and arrow as its notebook has them, and nothing for other pages."""
    path = ROOT / f"{document}.ipynb"
    if not path.is_file():
        return ""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    steps = re.search(r"^.*embed.* · .*project out.*$", text, re.MULTILINE)[0]
    formula = re.search(r"`([^`]*→[^`]*)`", text.partition("## Goal")[2])[1]
    return f"{' · '.join(re.findall(r'[*]{2}(.*?)[*]{2}', steps))}: {formula}"


def link_in_contents(page, path: str):
    """Return the sidebar's link to a page of the book."""
    return page.locator(f".bd-links a[href$='{path.rpartition('/')[2]}']")


def mark(page):
    """Return the box of a page that says it is read."""
    return page.get_by_role("checkbox", name="I have read this page")


def marked(page, path: str) -> bool:
    """Whether the contents show a page as read, to the eye and to a screen reader."""
    page.wait_for_load_state("load")
    link = link_in_contents(page, path)
    said = "(read)" in link.text_content()
    assert said == (link.locator(".book-done").count() == 1)
    return said


def reported(link) -> dict[str, str]:
    """Return the fields of the report that a link opens."""
    fields = parse_qs(urlsplit(link.get_attribute("href")).query)
    return {name: value for name, [value] in fields.items()}


@pytest.fixture(scope="module")
def plain(visit):
    """One page without scripts, which the tests below move."""
    with quiet(visit(CHAPTER, java_script_enabled=False)) as page:
        yield page


def test_neighbours_are_named_with_their_arrow(plain, site_url, notebook):
    document = f"notebooks/{notebook}"
    place = DOCUMENTS.index(document)
    plain.goto(f"{site_url}{document}.html")
    for side, neighbour in (("left-prev", place - 1), ("right-next", place + 1)):
        shown = plain.locator(f".{side} .book-arrow").all_inner_texts()
        texts = [text.replace("\N{NO-BREAK SPACE}", " ") for text in shown]
        assert texts == [text for text in [arrow(DOCUMENTS[neighbour])] if text]


def test_first_page_and_first_chapter_are_neighbours(plain, site_url):
    first, ten_minutes, *_, run, chapter = DOCUMENTS[:6]
    leads = {(first, "right-next"): chapter, (chapter, "left-prev"): first}
    leads |= {(ten_minutes, "left-prev"): first, (run, "right-next"): chapter}
    for (document, side), neighbour in leads.items():
        plain.goto(f"{site_url}{document}.html")
        plain.locator(f"a.{side}").click()
        plain.wait_for_url(f"**/{neighbour}.html")


def test_arrow_of_a_chapter_is_what_we_read_in_it():
    assert arrow("notebooks/05_concatenation") == "concat: heads → concat"
    assert arrow("book/glossary") == ""


def test_code_has_a_button_that_copies_it_and_what_it_printed_has_none(open_page):
    page = open_page(CHAPTER)
    buttons = "(all) => all.map((box) => box.parentNode.querySelectorAll('.copybtn').length)"
    code, printed = (f"article .{part} .highlight pre" for part in ("cell_input", "cell_output"))
    assert set(page.locator(code).evaluate_all(buttons)) == {1}
    assert set(page.locator(printed).evaluate_all(buttons)) == {0}


def test_mark_is_shown_in_the_contents_of_every_page_and_survives_a_reload(open_page, site_url):
    page = open_page(CHAPTER)
    assert not marked(page, NEXT)
    page.goto(site_url + NEXT)
    assert not mark(page).is_checked()
    mark(page).check()
    assert marked(page, "#")
    page.reload()
    assert mark(page).is_checked()
    page.goto(site_url + CHAPTER)
    assert marked(page, NEXT)
    assert not mark(page).is_checked()
    mark(page).check()
    mark(page).uncheck()
    assert not marked(page, "#")


def test_foot_is_operated_by_keyboard(open_page):
    page = open_page(CHAPTER)
    box = mark(page)
    box.focus()
    page.keyboard.press("Space")
    assert box.is_checked()
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "book-report"


def test_marking_moves_nothing(open_page):
    page = open_page(CHAPTER)
    mark(page).focus()
    before = page.evaluate(BOXES)
    mark(page).check()
    page.wait_for_function("() => document.querySelector('.book-done')")
    assert [b for b in page.evaluate(BOXES) if b not in before] == []


def test_report_names_the_page_without_a_script_too(open_page):
    page = open_page(CHAPTER, java_script_enabled=False)
    for link in (page.locator(".book-report"), page.locator(".btn-source-issues-button")):
        assert link.get_attribute("href").startswith(f"{CONFIG['repository']['url']}/issues/new?")
        body = reported(link)["body"]
        assert "Page: Scores, softmax, one head: weigh the words\n" in body
        assert f"Address: {PUBLIC_URL}{CHAPTER}\nSection:\n" in body


def test_pages_that_are_not_of_the_book_have_no_foot(open_page):
    for name in ("search.html", "genindex.html"):
        page = open_page(name)
        assert page.locator(".book-foot").count() == 0
        assert page.problems == []


def test_pasted_message_leaves_the_entry_that_has_most_of_its_words_and_none_leaves_all(open_page):
    page = open_page("book/symptoms.html")
    entries = page.locator("article section section section")
    count, field = entries.count(), page.locator(".book-filter input")
    field.fill("RuntimeError: expected scalar type Float but found Half")
    shown = entries.locator("visible=true").locator("h3").all_inner_texts()
    assert [text.strip("#") for text in shown] == ["mat1 and mat2 must have the same dtype"]
    assert page.locator(".book-filter [role=status]").inner_text().startswith(f"1 of {count}")
    field.fill("")
    assert entries.locator("h3:visible").count() == count


def test_field_that_searches_is_in_view_on_a_page_far_down_the_contents(open_page):
    page = open_page("book/symptoms.html", width=1280)
    box = page.locator(".bd-sidebar-primary .search-button-field").bounding_box()
    assert 0 <= box["y"] < 100
