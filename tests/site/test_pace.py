"""The Build of a chapter is not a column of text and code alone.

It is asked of chapters that have a Deeper; the others get one when they are told again.
"""

import pytest

from tests.site.test_deeper import WITH_DEEPER

MOST_BARE = 4  # screens
SCREEN = {"width": 1440, "height": 900}
# What breaks the column of text and code: a picture, an exhibit, or a printed array as a tinted
# table, which counts only below a paragraph that says what to see in it.
PICTURES = (
    "img, figure, .ahh-panels, .tl:not(.tl-predict, .tl-quiz, .tl-parsons), p + .cell .book-array"
)
# The longest stretch of Build without a picture, in screens, with the folds as a reader finds them.
LONGEST = """(pictures) => {
  const screens = (from, to) => (to - from) / innerHeight;
  const box = (node) => node.getBoundingClientRect();
  const build = document.querySelector("article > section > #build");
  const found = [...build.querySelectorAll(pictures)];
  let [from, longest] = [box(build).top, 0];
  for (const { top, bottom } of found.filter((node) => node.checkVisibility()).map(box)) {
    longest = Math.max(longest, screens(from, top));
    from = Math.max(from, bottom);
  }
  return Math.max(longest, screens(from, box(build).bottom));
}"""


def longest_bare(page):
    """Return the screens of the longest stretch of Build without a picture."""
    page.evaluate("() => document.fonts.ready.then(() => null)")
    return page.evaluate(LONGEST, PICTURES)


@pytest.mark.parametrize("name", WITH_DEEPER)
def test_no_stretch_of_build_is_long_without_a_picture(open_page, name):
    page = open_page(f"notebooks/{name}.html", width=SCREEN["width"])
    assert longest_bare(page) <= MOST_BARE, "screens: show a figure, or announce a table of show"


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
    build = f"<section id='build'>{TEXT}{html}{TEXT}</section>"
    page = browser.new_page(viewport=SCREEN)
    page.set_content(f"<article><section><h1>Title</h1>{build}</section></article>")
    found = longest_bare(page)
    page.close()
    assert found == pytest.approx(bare, abs=0.2)
