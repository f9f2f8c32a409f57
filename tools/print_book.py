"""Print the built site as one PDF: `make pdf`.

Chromium loads one page, the articles of all others are moved into it, and it is printed twice: the
first time to learn on which page each chapter begins, the second time with these numbers in the
contents. What a page looks like on paper is in `book/_static/book.css`.
"""

import io
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from tools.chromium import NoChromium, launch

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
PDF = SITE / "attention-head-by-head.pdf"  # published with the site
FIRST = "book/intro.html"
SHEET = "book/sheet.html"
PATIENCE_MS = 300_000
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


class CannotPrint(Exception):
    """The site is not built, or its contents move what they count."""


def open_site(browser, site: Path):
    """Open the first page of a site from disk, in light colours.

    Raises
    ------
    CannotPrint : no built site
    """
    if not (site / FIRST).is_file():
        raise CannotPrint(f"{site / FIRST} is missing. Run `make book` first.")
    page = browser.new_page(color_scheme="light")
    page.set_default_timeout(PATIENCE_MS)
    page.goto((site / FIRST).as_uri(), wait_until="load")
    page.evaluate(SCRIPT)
    return page


def print_once(page) -> bytes:
    """Print what the browser shows, tagged and with bookmarks."""
    return page.pdf(format="A4", print_background=True, tagged=True, outline=True)


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Return the page, counted from 1, of each place in a PDF that a link leads to."""
    reader = PdfReader(io.BytesIO(pdf))
    return {
        name.removeprefix("/"): reader.get_destination_page_number(target) + 1
        for name, target in reader.named_destinations.items()
    }


def gather_pages(page, site: Path, places):
    """Move pages of a site into the open one, behind a cover with the contents."""
    contents = page.evaluate("() => printing.contents()")
    chapters = [chapter for chapter in contents if not places or chapter["place"] in places]
    page.evaluate("chapters => printing.begin(chapters)", chapters)
    for chapter in chapters:
        html = (site / chapter["place"]).read_text(encoding="utf-8")
        page.evaluate("([chapter, html]) => printing.add(chapter, html)", [chapter, html])
    page.evaluate("() => printing.settle()")


def print_book(browser, site: Path, places=()) -> bytes:
    """Return a PDF of a built site, or of some places such as "book/glossary.html".

    Raises
    ------
    CannotPrint : no site, or contents that moved what they count
    """
    page = open_site(browser, site)
    gather_pages(page, site, places)
    numbers = page_numbers(print_once(page))
    page.evaluate("numbers => printing.number(numbers)", numbers)
    pdf = print_once(page)
    page.close()
    if page_numbers(pdf) != numbers:
        raise CannotPrint("The numbers in the contents moved pages: widen .book-number.")
    return pdf


def print_sheet(browser, site: Path) -> bytes:
    """Return the page to pin up as a PDF of one page, as a reader prints it."""
    page = browser.new_page(color_scheme="light")
    page.goto((site / SHEET).as_uri(), wait_until="load")
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    page.close()
    return pdf


def main() -> int:
    """Print the site of this tree and say where the file is."""
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            PDF.write_bytes(print_book(browser, SITE))
            (SITE / SHEET).with_suffix(".pdf").write_bytes(print_sheet(browser, SITE))
            browser.close()
    except (CannotPrint, NoChromium) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{PDF.relative_to(ROOT)}: {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
