"""The head of a chapter in Chromium: steps, Run here, Colab and PDF, on one line."""

import pytest

PARTS = ".book-head > :is(.book-steps, .book-pdf), .book-head > p > a, .tl-run > button"
BOXES = """(parts) => [...document.querySelectorAll(parts)].filter((part) => !part.hidden)
  .map((part) => { const {top, bottom} = part.getBoundingClientRect(); return [top, bottom]; })"""


@pytest.fixture(scope="module")
def head(visit):
    """A chapter that runs in the page."""
    page = visit("notebooks/03_attention_weights.html", width=1440)
    yield page
    page.context.close()


def assert_one_line(page, parts):
    """Look at the head of a page, which has so many parts."""
    boxes = page.evaluate(BOXES, PARTS)
    assert len(boxes) == parts
    assert max(top for top, _ in boxes) < min(bottom for _, bottom in boxes)
    assert max(bottom for _, bottom in boxes) - min(top for top, _ in boxes) < 80


def test_head_is_one_line(head):
    assert_one_line(head, 4)


def test_head_of_a_chapter_that_needs_pytorch_is_one_line(open_page):
    assert_one_line(open_page("notebooks/11_gpu.html", width=1440), 3)


def test_idea_begins_on_the_first_screen(head):
    assert head.locator("#idea > p").first.bounding_box()["y"] < 900


def test_button_tells_where_python_comes_from_before_it_is_pressed(head):
    notice = head.get_by_role("button", name="Run here").get_attribute("title")
    assert "more than 10 MB, from cdn.jsdelivr.net" in notice


def test_pdf_of_the_head_prints_the_page(head):
    head.evaluate("() => { window.print = () => { document.title = 'printed'; }; }")
    head.get_by_role("button", name="PDF", exact=True).click()
    assert head.title() == "printed"
