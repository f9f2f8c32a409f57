"""The certificate on chapter 23's page: inside its frame at any width, and alone on its paper."""

import io

import pytest
from pypdf import PdfReader

from tests.chapters.pages import code_cells, printed, written
from tests.site.browsing import OPEN_ALL
from tests.site.test_pdf import squeezed

PAGE = "notebooks/23_capstone.html"
# How far the writing stays from the left and the right edge, what frames a line, and what shows.
LOOK = """(certificate) => {
  const inside = certificate.getBoundingClientRect();
  const rows = [...certificate.querySelectorAll("p, li")].map((row) => {
    const range = document.createRange();
    range.selectNodeContents(row);
    return { row, rects: [...range.getClientRects()] };
  });
  const rects = rows.flatMap((row) => row.rects);
  return {
    left: Math.min(...rects.map((rect) => rect.left)) - inside.left,
    right: inside.right - Math.max(...rects.map((rect) => rect.right)),
    padding: parseFloat(getComputedStyle(certificate).paddingLeft),
    framed: rows.filter(({ row }) => getComputedStyle(row).borderTopStyle !== "none").length,
    seen: rows.map(({ row }) => row.textContent).join(""),
  };
}"""


def stored():
    """What the chapter's last certificate says, squeezed."""
    cells = [cell for cell in code_cells(written("23_capstone")) if "certificate(" in cell.source]
    _, _, said = printed(cells[-1]).partition("Attention, Head by Head")
    return squeezed(f"Attention, Head by Head{said}")


def shown(page):
    """The last certificate of the page, in a solution that is opened."""
    page.evaluate(OPEN_ALL)
    return page.locator("tl-certificate").last


@pytest.mark.parametrize("width", [390, 1440])
def test_every_line_stands_in_the_frame_and_has_none_of_its_own(open_page, width):
    page = open_page(PAGE, width=width)
    found = shown(page).evaluate(LOOK)
    assert squeezed(found["seen"]) == stored()
    assert found["left"] == pytest.approx(found["padding"] + 1, abs=1)
    assert found["right"] >= found["padding"]
    assert found["framed"] == 0
    assert page.problems == []


def test_it_is_printed_alone_on_one_page_and_the_chapter_is_there_again(open_page):
    page = open_page(PAGE, dark=True, first="window.print = () => {}")
    shown(page).get_by_role("button", name="Print only this page").click()
    [paper] = PdfReader(io.BytesIO(page.pdf())).pages
    number, said = squeezed(paper.extract_text())[:1], squeezed(paper.extract_text())[1:]
    assert (number, said) == ("1", stored())
    page.emulate_media(media="print")  # as a reader prints the chapter afterwards
    assert page.get_by_role("heading", level=1).is_visible()
    assert page.locator(".tl-alone, .tl-asked").count() == 0
    assert page.problems == []
