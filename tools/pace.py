"""How long each chapter is on a desktop screen: `python -m tools.pace` prints a line a page.

Measured on the built site as a reader finds it, at 1440 × 900 with its folds closed and nothing
answered: the screens from the title to the end of Recap, those of its sections, and the longest
stretch of Build without a picture.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.chapters import FOLDER, ROOT, pages
from tools.chromium import launch

SITE = ROOT / "_build" / "html"
SCREEN = {"width": 1440, "height": 900}
# What breaks the column of text and code: a picture, an exhibit, or a printed array as a tinted
# table, which counts only below a paragraph that says what to see in it.
PICTURES = (
    "img, figure, .ahh-panels, .tl:not(.tl-predict, .tl-quiz, .tl-parsons), p + .cell .book-array"
)
MEASURE = """(pictures) => {
  const screens = (from, to) => (to - from) / innerHeight;
  const box = (node) => node.getBoundingClientRect();
  const sections = [...document.querySelectorAll("article > section > section")];
  const build = sections.find(({ id }) => id == "build");
  const found = [...(build?.querySelectorAll(pictures) ?? [])];
  let [from, longest] = [build && box(build).top, 0];
  for (const { top, bottom } of found.filter((node) => node.checkVisibility()).map(box)) {
    longest = Math.max(longest, screens(from, top));
    from = Math.max(from, bottom);
  }
  return {
    whole: screens(box(document.querySelector("article h1")).top, box(sections.at(-1)).bottom),
    sections: Object.fromEntries(
      sections.map((section) => [section.id, screens(box(section).top, box(section).bottom)])
    ),
    bare: build ? Math.max(longest, screens(from, box(build).bottom)) : 0,
  };
}"""


def measure(page) -> dict:
    """Return the screens of the page that is open: `whole`, of its `sections`, and `bare`.

    Parameters
    ----------
    page : one of playwright, with a window of SCREEN
    """
    page.evaluate("() => document.fonts.ready.then(() => null)")
    return page.evaluate(MEASURE, PICTURES)


def line(name: str, found: dict) -> str:
    """Return a line of the table of all pages."""
    parts = "  ".join(f"{key[:5]} {screens:4.1f}" for key, screens in found["sections"].items())
    return f"{name:24} {found['whole']:5.1f}  without a picture {found['bare']:4.1f}   {parts}"


def main(names: list[str], site: Path = SITE) -> None:
    """Print a line for each page, or for those that are named."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport=SCREEN)
        total = 0.0
        for name in names or [page.name for page in pages()]:
            page.goto((site / FOLDER / f"{name}.html").as_uri())
            found = measure(page)
            total += found["whole"]
            print(line(name, found), flush=True)
        print(f"{'all':24} {total:5.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
