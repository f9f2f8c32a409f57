"""A link whose words name a chapter by its number leads there, and one to a heading finds it."""

import re

import nbformat
import pytest

from tests.chapters.anatomy import headings
from tools.chapters import ROOT, pages, section_of

SOURCES = [ROOT / "README.md", *sorted(ROOT.glob("book/*.md")), *(page.path for page in pages())]
CHAPTER = {f"{page.number:02}": page.name for page in pages() if page.number}
WORDS = r"(?:chapter |\*\*[a-z ]+\*\* )?"
LINK = re.compile(rf"\[{WORDS}({'|'.join(CHAPTER)})\]\([^)]*?(\w+)\.ipynb[^)]*\)", re.I)
# Of the addresses in a page, neither those with a number, as #exercise-2, nor states, as #strip=0.
TO_HEADING = re.compile(r"\]\([^)\s]*?(\w+)\.ipynb#((?![a-z]+-\d+\))[\w-]+)\)")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_link_that_names_a_chapter_leads_there(path):
    found = LINK.findall(path.read_text(encoding="utf-8"))
    wrong = [f"{number} leads to {name}" for number, name in found if name != CHAPTER[number]]
    where = path.relative_to(ROOT)
    assert not wrong, f"{where}: correct the number or the address of each link: {wrong}"


def test_the_first_page_links_to_every_chapter_of_part_i_by_its_number():
    text = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    first = {f"{page.number:02}" for page in pages() if page.part == "Part I" and page.number}
    missing = sorted(first - {number for number, _ in LINK.findall(text)})
    assert not missing, f"book/intro.md: let a link name {missing} by the number"


def address(heading):
    """Return what a link to a heading ends in: the words in small letters, joined by hyphens."""
    return re.sub(r"[^\w\- ]", "", section_of(heading).lower()).replace(" ", "-")


def links_to_no_heading(name, notebook, texts):
    """List the links of texts, by file, that name a heading of a page which it does not have."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    known = {address(title) for text in cells for _, title in headings(text)}
    for file, text in texts.items():
        lost = {to for page, to in TO_HEADING.findall(text) if page == name} - known
        yield from (f"{file}: {name}.ipynb#{to}" for to in sorted(lost))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_link_to_a_heading_of_a_page_finds_it(page):
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in SOURCES}
    lost = [*links_to_no_heading(page.name, nbformat.read(page.path, 4), texts)]
    assert not lost, f"correct these links, or the heading in {page.name}: {lost}"


def test_a_link_to_a_heading_that_is_gone_is_told():
    cell = nbformat.v4.new_markdown_cell("## Look: bytes, *of* a cache\n\n### Round 1: `a`, b")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    found = "look", "round-1-a-b", "exercise-2", "playground=0&X.0=1"
    text = "".join(f"[x](05.ipynb#{to}) " for to in (*found, "gone"))
    assert [*links_to_no_heading("05", notebook, {"a.md": text})] == ["a.md: 05.ipynb#gone"]


ENTRY = re.compile(r"\*\*\[[^]]+\]\((\S+)\)\*\*.*?“(.+?)”.* Found (?:by|in) .+\.")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def test_errata_are_dated_link_their_pages_and_quote_what_is_gone():
    text = COMMENT.sub("", (ROOT / "book" / "errata.md").read_text(encoding="utf-8"))
    days = re.findall(r"^## (20\d\d-[01]\d-[0-3]\d)$", text, re.MULTILINE)
    assert sorted(set(days), reverse=True) == days
    for entry in re.findall(r"^(?!# |## 20|This page ).+", text, re.MULTILINE):
        link, quoted = ENTRY.fullmatch(entry).groups()
        path = (ROOT / "book" / link).resolve()
        cells = nbformat.read(path, 4).cells if path.suffix == ".ipynb" else []
        page = "\n".join(cell.source for cell in cells) or path.read_text(encoding="utf-8")
        assert quoted not in COMMENT.sub("", page), f"{path.name} still says “{quoted}”"
