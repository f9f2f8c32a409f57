"""The page to pin up is one sheet of A4, on which nothing overlaps and every letter can be read."""

import io
import re

import pytest
from pypdf import PdfReader

from book._ext.content.sheet import FILE, cache_rows, formula, formula_rows, trap_rows
from tools.print_book import print_sheet
from tutorial_lib.records import facts

BOXES = """() => [...document.querySelectorAll("text")].map((text) => {
  const { x, y, width, height } = text.getBBox();
  const sizes = [text, ...text.children].map((node) => parseFloat(getComputedStyle(node).fontSize));
  return { words: text.textContent, size: Math.min(...sizes), box: [x, y, x + width, y + height] };
})"""
COLUMNS = (30, 224), (248, 470), (494, 812)  # from x to x, in points


def overlap(a, b):
    """Return whether two boxes have more in common than what lines leave free above a letter."""
    return min(a[2], b[2]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[1], b[1]) > 2.5


@pytest.fixture(scope="module")
def texts(browser, site_dir):
    """Every text of the file with its box and the size of its smallest letters."""
    page = browser.new_page()
    page.goto((site_dir / FILE).as_uri())
    found = page.evaluate(BOXES)
    page.close()
    return found


def test_texts_stay_in_their_columns_and_apart(texts):
    assert len(texts) > 100
    for n, text in enumerate(texts):
        left, top, right, bottom = text["box"]
        in_a_column = any(a - 1 <= left and right <= b + 1 for a, b in COLUMNS)
        assert in_a_column or (top < 200 and left >= 29 and right <= 813), text
        assert 15 < top < bottom < 585, text
        crossed = [other["words"] for other in texts[:n] if overlap(text["box"], other["box"])]
        assert not crossed, (text["words"], crossed)


def test_no_letter_is_smaller_than_seven_points(texts):
    assert min(text["size"] for text in texts) >= 7


def test_printed_page_is_one_sheet_whose_texts_can_be_selected(browser, site_dir, texts):
    (page,) = PdfReader(io.BytesIO(print_sheet(browser, site_dir))).pages
    assert [round(float(side)) for side in page.mediabox[2:]] == [842, 595]
    printed = re.sub(r"\s|\u200b", "", page.extract_text())
    for text in texts:
        words = re.sub(r"\s|\u200b", "", text["words"])
        assert words in printed or not re.fullmatch(r"[\w.,: ]+", words), words
    assert "Searchthisbook" not in printed


def test_sheet_has_ten_formulas_ten_traps_and_the_bytes_of_some_models():
    assert len(list(formula_rows())) == len(traps := list(trap_rows())) == 10
    assert not re.search(r" -inf| - |\^", str(traps)), "set mathematics as mathematics"
    (model,) = (m for m in facts("models")["models"] if m["name"] == "Llama 3.1 405B")
    entries = 2 * model["layers"] * model["kv_heads"] * model["d_k"]
    _, [(line, _)], *_ = cache_rows()
    numbers = re.findall(r">([\d.]+)<", line)
    assert numbers == [f"{2 * entries / 1e3:.0f}", f"{2 * entries * 32_768 / 1e9:.1f}"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("$e^{a_s} / \\sum_j e^{a_j}$", "eas / ∑j eaj"),
        ("$q \\cdot k / \\sqrt{d_k} - \\text{slope}$", "q · k / √dk − slope"),
        ("`a < W_O`", "a &lt; WO"),
    ],
)
def test_formula_is_set_without_marks_of_tex(source, shown):
    assert re.sub("<[^>]+>|\u200b", "", formula(source)) == shown
    assert formula(source).count("<tspan dy") % 2 == 0, "each shift is taken back"
