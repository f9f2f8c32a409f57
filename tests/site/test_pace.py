"""The Build of a chapter is not a column of text and code alone.

It is asked of chapters that have a Deeper; the others get one when they are told again.
`python -m tools.pace` prints the screens of all pages.
"""

import pytest

from tests.site.test_deeper import WITH_DEEPER
from tools.pace import SCREEN, measure

MOST_BARE = 4  # screens


@pytest.mark.parametrize("name", WITH_DEEPER)
def test_no_stretch_of_build_is_long_without_a_picture(open_page, name):
    page = open_page(f"notebooks/{name}.html", width=SCREEN["width"])
    bare = measure(page)["bare"]
    assert bare <= MOST_BARE, "screens: show a figure, or announce a table of show"


TEXT = "<p style='height: 1800px; margin: 0'>Text</p>"
CELL = "<div class='cell'>{}</div>"
TABLE = CELL.format("<div class='book-array'>1</div>")
PARTS = {
    "a figure": (CELL.format("<figure>1</figure>"), 2),
    "an exhibit": (CELL.format("<div class='tl tl-plane'>1</div>"), 2),
    "an announced table": (f"<p>See.</p>{TABLE}", 2),
    "a table below a cell": (CELL.format("1") + TABLE, 4),
    "a prediction": (CELL.format("<div class='tl tl-predict'>1</div>"), 4),
    "a figure in a fold": (f"<details><summary>1</summary><figure>1</figure></details>{TEXT}", 6),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_counts_as_a_picture_parts_a_build(browser, part):
    html, bare = PARTS[part]
    build = f"<section id='build'>{TEXT}{html}{TEXT}</section><section id='recap'>1</section>"
    page = browser.new_page(viewport=SCREEN)
    page.set_content(f"<article><section><h1>Title</h1>{build}</section></article>")
    found = measure(page)
    page.close()
    assert found["bare"] == pytest.approx(bare, abs=0.2)
    assert found["whole"] > found["sections"]["build"] > 4
