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
