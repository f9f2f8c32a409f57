"""The book on paper: two pages printed by tools/print_book.py, and a page printed by a reader."""

import io
import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest
from pypdf import PdfReader

from tests.chapters.pages import CHAPTER
from tests.sampling import long
from tests.site.browsing import PUBLIC_URL, ROOT
from tools import chapters
from tools.print_book import CannotPrint, print_book
from tutorial_lib.elements.banks import load_bank

NAME = "03_attention_weights"
PRINTED = ["book/glossary.html", f"notebooks/{NAME}.html"]


def squeezed(text: str) -> str:
    """Return a text without white space and ligatures, as lines and fonts break it anywhere."""
    return re.sub(r"\s", "", text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff"))


@cache
def texts(reader: PdfReader) -> list[str]:
    """Return the text of each page, squeezed."""
    return [squeezed(page.extract_text()) for page in reader.pages]


def without_numbers(reader: PdfReader) -> str:
    """Return the text of all pages, squeezed, without the number that each begins with."""
    return "".join(text.removeprefix(f"{n}") for n, text in enumerate(texts(reader), start=1))


def bookmarks(reader: PdfReader, items=None, depth=0):
    """Yield (depth, title, page counted from 0) of every bookmark, in order."""
    for item in reader.outline if items is None else items:
        if isinstance(item, list):
            yield from bookmarks(reader, item, depth + 1)
        else:
            yield depth, item.title, reader.get_destination_page_number(item)


def links(reader: PdfReader) -> list[dict]:
    """Return every link of every page."""
    return [a.get_object() for page in reader.pages for a in page.get("/Annots", [])]


def reasons(bank) -> list[str]:
    """Return why each option of a bank's questions is right or wrong, squeezed."""
    questions = [q for q in [*bank["quiz"], *bank["predictions"]] if "options" in q]
    whys = [option["why"] for question in questions for option in question["options"]]
    return [squeezed(re.sub(r"[`*]", "", why)) for why in whys]


def solutions(name: str) -> list[str]:
    """Return the solutions of a chapter's exercises, squeezed."""
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    tagged = [c for c in notebook["cells"] if "solution" in c["metadata"].get("tags", [])]
    return [squeezed("".join(cell["source"])) for cell in tagged]


@pytest.fixture(scope="module")
def book(browser, site_dir) -> PdfReader:
    """Two pages of the book, printed as `make pdf` prints all."""
    return PdfReader(io.BytesIO(print_book(browser, site_dir, PRINTED)))


@pytest.mark.long
def test_page_numbers_of_the_contents_are_right(book):
    _, _, contents = book.pages[0].extract_text().rpartition("\nContents\n")
    lines = re.findall(r"^(.+?) ?(\d+)$", contents, re.MULTILINE)
    assert len(lines) == len(PRINTED)
    chapter = chapters.page(NAME)
    title = f"{chapter.number}. {chapter.title}".replace("'", "’")
    assert squeezed(lines[0][0]) == squeezed(title), "whole"
    shown = texts(book)
    for title, number in lines:
        page = shown[int(number) - 1]
        assert squeezed(title) in page
        assert page.startswith(number), "the number at the page's foot"


@pytest.mark.long
def test_bookmarks_are_parts_chapters_and_sections_and_resolve(book):
    found, shown = list(bookmarks(book)), texts(book)
    for _, title, page in found:
        assert squeezed(title) in shown[page], f"{title!r} is not on page {page + 1}"
    named = [(depth, title) for depth, title, _ in found]
    assert named[0] == (0, "Contents")
    assert any(d == 0 and t.startswith(f"{chapters.page(NAME).part}: ") for d, t in named)
    assert (0, "Look things up") in named
    assert (1, "Glossary") in named
    assert (1, "3. Scores, softmax, one head: weigh the words") in named, "with its spaces"
    sections = [chapters.section_of(title) for depth, title in named if depth == 2]
    assert [t for t in sections if t in CHAPTER.headings] == list(CHAPTER.headings)
    assert sections[sections.index("Recap") + 1] == "Answers"


def test_answers_stand_at_the_end_of_the_chapter_and_only_there(book):
    before, _, after = without_numbers(book).rpartition("Answers")
    found = reasons(load_bank(NAME))
    assert len(found) >= 20
    assert [why for why in found if why not in after] == []
    assert [why for why in found if why in before] == []


def test_every_page_has_its_number_and_is_not_blank(book):
    for number, text in enumerate(texts(book), start=1):
        assert text.startswith(str(number))
        assert len(text) > 40, f"page {number} is blank"


def test_what_a_reader_opens_is_open(book):
    whole = "".join(texts(book))
    assert whole.count("Hint1") >= 3
    assert "notdoneyet" in whole
    found = solutions(NAME)
    assert len(found) >= 3
    assert [solution for solution in found if solution not in whole] == []
    assert "Showasolution" not in whole


def test_links_between_pages_stay_in_the_file_and_others_are_public(book):
    inside = [link["/Dest"] for link in links(book) if "/Dest" in link]
    assert "/book/glossary.html#term-mask" in inside
    assert set(inside) <= set(book.named_destinations)
    outside = [link["/A"]["/URI"] for link in links(book) if "/A" in link]
    assert [url for url in outside if not url.startswith("https://")] == []
    assert any(url.startswith(PUBLIC_URL) for url in outside)
    assert not [url for url in outside if url.endswith(tuple(PRINTED))]


def test_file_is_tagged_and_says_its_language(book):
    root = book.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert root["/StructTreeRoot"]["/K"]["/S"] == "/Document"


def test_a_site_that_is_not_built_is_refused(browser, tmp_path):
    with pytest.raises(CannotPrint, match="make book"):
        print_book(browser, tmp_path)


def test_without_a_browser_the_command_says_so(tmp_path):
    run = [sys.executable, "-m", "tools.print_book"]
    nothing = {"PATH": "", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    done = subprocess.run(
        run, cwd=ROOT, env=os.environ | nothing, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("There is no Chromium here. ")


@pytest.mark.long
def test_a_page_printed_by_a_reader_is_light_and_then_as_before(open_page):
    page = open_page(f"notebooks/{NAME}.html", dark=True)
    page.evaluate("""() => addEventListener('beforeprint', () => {
        window.printed = [document.documentElement.dataset.theme,
                          document.querySelectorAll('.book-answers dd').length];
    })""")
    text = squeezed("".join(p.extract_text() for p in PdfReader(io.BytesIO(page.pdf())).pages))
    theme, answers = page.evaluate("window.printed")
    assert theme == "light"
    assert answers > 20
    assert [why for why in reasons(load_bank(NAME)) if text.count(why) != 1] == []
    for control in ("SearchCtrl", "Commit", "Showme", "Haveread", "previous"):
        assert control not in text
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator(".book-answers").count() == 0


# Leaves the elements alone on the page, and no background but theirs.
ELEMENTS = """() => {
  const box = document.createElement("div");
  box.className = "bd-article";
  box.append(...document.querySelectorAll("article .tl"));
  document.body.replaceChildren(box);
  for (const place of [document.documentElement, document.body])
    place.style.setProperty("background", "none", "important");
}"""


def contents(pdf: bytes) -> list[bytes]:
    """Return what draws each page of a file."""
    return [page.get_contents().get_data() for page in PdfReader(io.BytesIO(pdf)).pages]


@pytest.mark.parametrize("name", [NAME, *long("10_masks", "14_kv_cache", "20_scoring_heads")])
def test_elements_are_printed_whole_without_background_graphics(open_page, name):
    page = open_page(f"notebooks/{name}.html")
    page.evaluate(ELEMENTS)
    without, with_them = (contents(page.pdf(print_background=there)) for there in (False, True))
    assert len(with_them) >= 3
    assert [a == b for a, b in zip(without, with_them, strict=True)] == [True] * len(with_them)


def test_lines_and_shades_of_the_screen_are_not_printed(page):
    shade = "(box) => getComputedStyle(box).backgroundImage"
    board, numbers = page.locator(".tl-board"), page.locator(".tl-map .tl-numbers > div")
    assert board.locator("> svg").is_visible()
    assert "gradient" in numbers.evaluate(shade)
    page.emulate_media(media="print")
    assert not board.locator("> svg").is_visible()
    assert [box.evaluate(shade) for box in (board, numbers)] == ["none", "none"]
