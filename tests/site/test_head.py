"""The head of a chapter in Chromium: steps, Run here, Colab and PDF, on one line."""

import pytest

from tests.site.browsing import PHONE, quiet

PARTS = ".book-head > :is(.book-steps, .book-pdf), .book-head > p > a, .tl-run > button"
PILLS = ".book-head > button, .book-head > p > a, .tl-run > button"
BOXES = """(parts) => [...document.querySelectorAll(parts)].filter((part) => !part.hidden)
  .map((part) => { const {top, bottom} = part.getBoundingClientRect(); return [top, bottom]; })"""


@pytest.fixture(scope="module")
def head(visit):
    """A chapter that runs in the page."""
    with quiet(visit("notebooks/03_attention_weights.html", width=1440)) as page:
        yield page


def assert_one_line(page, parts):
    """Look at the head of a page, which has so many parts."""
    boxes = page.evaluate(BOXES, PARTS)
    assert len(boxes) == parts
    assert max(top for top, _ in boxes) < min(bottom for _, bottom in boxes)
    assert max(bottom for _, bottom in boxes) - min(top for top, _ in boxes) < 80


@pytest.mark.parametrize("width", [1280, 1440])
def test_head_is_one_line(open_page, width):
    assert_one_line(open_page("notebooks/03_attention_weights.html", width=width), 4)


def test_head_of_a_chapter_that_needs_pytorch_is_one_line(open_page):
    assert_one_line(open_page("notebooks/11_gpu.html", width=1440), 3)


@pytest.mark.parametrize("name", ["03_attention_weights", "11_gpu"])
def test_on_a_phone_the_pills_are_one_row_and_project_out_one_line(open_page, name):
    page = open_page(f"notebooks/{name}.html", **PHONE)
    boxes = page.evaluate(BOXES, PILLS)
    assert len(boxes) == 3 + (name[:2] == "03")
    assert len({(round(top), round(bottom)) for top, bottom in boxes}) == 1
    steps = page.locator(".book-head .book-map > .book-step").all()
    assert len({step.bounding_box()["height"] for step in steps}) == 1


def test_what_follows_the_colon_of_a_title_is_a_line_below_it_in_smaller_type(head):
    words, subtitle = head.locator("h1 > span").last, head.locator("h1 .book-subtitle")
    assert words.text_content() == "Scores, softmax, one head: weigh the words"
    sizes = [
        part.evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")
        for part in (words, subtitle)
    ]
    assert subtitle.text_content() == "weigh the words"
    assert sizes[1] < 0.7 * sizes[0]


def test_idea_begins_on_the_first_screen(head):
    assert head.locator("#goal > p").first.bounding_box()["y"] < 620
    assert head.locator("#idea > p").first.bounding_box()["y"] < 900


def test_button_tells_where_python_comes_from_before_it_is_pressed(head):
    notice = head.get_by_role("button", name="Run here").get_attribute("title")
    assert "more than 10 MB, from cdn.jsdelivr.net" in notice


def test_buttons_for_a_pdf_print_the_page_without_an_attribute_of_code(head):
    head.evaluate("() => { window.print = () => { document.title += ' printed'; }; }")
    head.get_by_role("button", name="Print or PDF").click()
    head.get_by_role("button", name="Download this page").click()
    head.locator(".btn-download-pdf-button").click()
    assert head.title().endswith(" printed printed")
