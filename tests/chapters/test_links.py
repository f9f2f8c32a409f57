"""A link whose words name a chapter by its number leads to that chapter."""

import re

import pytest

from tools.chapters import ROOT, pages

SOURCES = [ROOT / "README.md", *sorted(ROOT.glob("book/*.md")), *(page.path for page in pages())]
CHAPTER = {f"{page.number:02}": page.name for page in pages() if page.number}
WORDS = r"(?:chapter |\*\*[a-z ]+\*\* )?"
LINK = re.compile(rf"\[{WORDS}({'|'.join(CHAPTER)})\]\([^)]*?(\w+)\.ipynb[^)]*\)", re.I)


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
