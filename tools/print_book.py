"""Print the built site as one PDF: `make pdf`.

Chromium loads one page, the articles of all others are moved into it, and it is printed twice: the
first time to learn on which page each chapter begins, the second time with these numbers in the
contents. What a page looks like on paper is in `book/_static/book.css`.

    python -m tools.print_book [PAGE.html ...]     the whole book, or these pages of it
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
PATIENCE_MS = 300_000
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


class CannotPrint(Exception):
    """The site is not built, or a page is not in it."""


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


def choose(chapters: list[dict], wanted: list[str]) -> list[dict]:
    """Return the chapters to print, in the book's order: all, or those wanted.

    Raises
    ------
    CannotPrint : a page that the contents do not have
    """
    known = [chapter["place"] for chapter in chapters]
    unknown = [place for place in wanted if place not in known]
    if unknown:
        raise CannotPrint(f"{unknown} are no pages of the book. Its pages are {known}.")
    return [chapter for chapter in chapters if not wanted or chapter["place"] in wanted]


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


def gather(page, site: Path, wanted: list[str], report):
    """Move the wanted pages into the open one, behind a cover with the contents."""
    chapters = choose(page.evaluate("() => printing.contents()"), wanted)
    page.evaluate("chapters => printing.begin(chapters)", chapters)
    for i, chapter in enumerate(chapters, start=1):
        report(f"{i:2} of {len(chapters)}: {chapter['title']}")
        html = (site / chapter["place"]).read_text(encoding="utf-8")
        page.evaluate("([chapter, html]) => printing.add(chapter, html)", [chapter, html])
    report("setting the formulas")
    page.evaluate("() => printing.settle()")


def print_book(browser, site: Path, wanted: list[str], *, report=print) -> bytes:
    """Print pages of a built site.

    Parameters
    ----------
    browser : Chromium, started by playwright
    site : the folder of the built site
    wanted : pages such as "notebooks/04_multi_head_attention.html"; none means all
    report : called with one line for each step

    Returns
    -------
    pdf : the bytes of the file

    Raises
    ------
    CannotPrint : no site, no such page, or contents that moved what they count
    """
    page = open_site(browser, site)
    gather(page, site, wanted, report)
    report("printing, to learn where each page begins")
    numbers = page_numbers(print_once(page))
    page.evaluate("numbers => printing.number(numbers)", numbers)
    report("printing again, with these numbers in the contents")
    pdf = print_once(page)
    page.close()
    if page_numbers(pdf) != numbers:
        raise CannotPrint("The numbers in the contents moved pages: widen .book-number.")
    return pdf


def main(arguments: list[str]) -> int:
    """Print the site of this tree and say where the file is."""
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            PDF.write_bytes(print_book(browser, SITE, arguments))
            browser.close()
    except (CannotPrint, NoChromium) as error:
        print(error, file=sys.stderr)
        return 1
    pages = len(PdfReader(PDF).pages)
    print(f"{PDF.relative_to(ROOT)}: {pages} pages, {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
