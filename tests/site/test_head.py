"""The head of a chapter in Chromium: steps, Run here, Colab and PDF, on one line."""

import pytest

PARTS = ".book-head > :is(.book-steps, .book-pdf), .book-head > p > a, .tl-run > button"
BOXES = """(parts) => [...document.querySelectorAll(parts)].filter((part) => !part.hidden)
  .map((part) => { const {top, bottom} = part.getBoundingClientRect(); return [top, bottom]; })"""


@pytest.mark.parametrize(("name", "parts"), [("03_attention_weights", 4), ("11_gpu", 3)])
def test_head_is_one_line(open_page, name, parts):
    boxes = open_page(f"notebooks/{name}.html", width=1440).evaluate(BOXES, PARTS)
    assert len(boxes) == parts
    assert max(top for top, _ in boxes) < min(bottom for _, bottom in boxes)
    assert max(bottom for _, bottom in boxes) - min(top for top, _ in boxes) < 80


def test_idea_begins_on_the_first_screen(open_page):
    page = open_page("notebooks/03_attention_weights.html", width=1440)
    assert page.locator("#idea > p").first.bounding_box()["y"] < 900


def test_pdf_of_the_head_prints_the_page(open_page):
    page = open_page("notebooks/03_attention_weights.html")
    page.evaluate("() => { window.print = () => { document.title = 'printed'; }; }")
    page.get_by_role("button", name="PDF", exact=True).click()
    assert page.title() == "printed"


def test_button_tells_where_python_comes_from_before_it_is_pressed(open_page):
    page = open_page("notebooks/03_attention_weights.html")
    notice = page.get_by_role("button", name="Run here").get_attribute("title")
    assert "more than 10 MB, from cdn.jsdelivr.net" in notice
