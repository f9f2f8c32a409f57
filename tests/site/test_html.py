"""The built pages as files: complete, described, linked, and calling on no other host."""

import struct
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from book._ext.content.addresses import BOOK
from book._ext.content.sheet import PDF
from tests.site.browsing import CONFIG, PARAMETERS, PUBLIC_URL
from tools import chapters

LOADING_LINKS = {"stylesheet", "preload", "icon", "modulepreload", "manifest"}


class Page(HTMLParser):
    """The tags of one page, as (name, attributes) pairs, and its title and last h1 as text."""

    def __init__(self, path: Path):
        super().__init__()
        self.tags, self.texts, self._open = [], {"title": "", "h1": ""}, None
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag], self._open = "", tag

    def handle_endtag(self, tag):
        self._open = None if tag == self._open else self._open

    def handle_data(self, data):
        if self._open:
            self.texts[self._open] += data

    def meta(self, name: str) -> str:
        """The content of the one meta tag of that name."""
        found = [a["content"] for t, a in self.tags if t == "meta" and name in a.values()]
        assert len(found) == 1, f"{len(found)} meta tags named {name}"
        return found[0]

    def values(self, *attributes: str) -> list[str]:
        """Every value of these attributes, in the page's order."""
        return [a[name] for _, a in self.tags for name in attributes if a.get(name)]


@pytest.fixture(scope="session")
def pages(site_dir) -> dict[str, Page]:
    """Every built page by its path below the site."""
    found = sorted(site_dir.rglob("*.html"))
    inside = [path for path in found if "_static" not in path.parts]
    return {path.relative_to(site_dir).as_posix(): Page(path) for path in inside}


def test_every_page_of_the_contents_is_built_and_no_other(pages):
    assert set(pages) == {*PARAMETERS["page_name"], "index.html"}


def test_page_says_what_it_is(pages, page_name, site_dir):
    page, base = pages[page_name], PUBLIC_URL
    assert CONFIG["title"] in page.texts["title"]
    assert page.texts["title"].split("—")[0].strip()
    assert page.meta("description") == page.meta("og:description")
    assert 40 <= len(page.meta("description")) <= 200
    assert page.meta("og:title")
    assert page.meta("viewport")
    assert page.meta("twitter:card") == "summary_large_image"
    image = page.meta("og:image")
    assert image.startswith(base)
    assert (site_dir / image.removeprefix(base)).is_file()


def test_no_two_pages_of_the_book_have_one_description(pages):
    described = {n: p.meta("description") for n, p in pages.items() if "/" in n}
    assert len(set(described.values())) == len(described), described


def test_start_page_carries_the_card_and_leads_to_the_book(pages):
    page = pages["index.html"]
    assert page.meta("og:url") == PUBLIC_URL
    assert page.meta("refresh") == "0; url=book/intro.html"


def test_social_picture_has_the_size_that_the_card_names(pages, site_dir):
    data = (site_dir / "_static" / "social.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    page = pages["book/intro.html"]
    assert (str(width), str(height)) == (page.meta("og:image:width"), page.meta("og:image:height"))


def test_page_loads_nothing_from_another_host(pages, page_name):
    loaded = []
    for tag, attributes in pages[page_name].tags:
        if tag == "link" and LOADING_LINKS & set(attributes.get("rel", "").split()):
            loaded.append(attributes["href"])
        elif tag != "a":
            loaded += [attributes[n] for n in ("src", "poster", "data") if attributes.get(n)]
    assert [url for url in loaded if urlsplit(url).scheme not in ("", "data")] == []


def test_internal_links_and_pictures_resolve(pages, page_name, site_dir):
    base, broken = PUBLIC_URL, []
    for url in pages[page_name].values("href", "src", "action"):
        target = urljoin(base + page_name, url)
        if not target.startswith(base):
            if urlsplit(target).netloc == urlsplit(base).netloc:
                broken.append(f"{url} leaves the site's folder")
            continue
        if target in (base + BOOK, base + PDF):  # beside the pages once they are printed
            continue
        path, _, anchor = target.removeprefix(base).partition("#")
        if "=" in anchor:  # a state of an exhibit: test_addresses.py follows it
            anchor = ""
        path = unquote(urlsplit(path).path) or "index.html"
        if not (site_dir / path).is_file():
            broken.append(f"{url} is no file")
        elif anchor and path in pages and unquote(anchor) not in pages[path].values("id"):
            broken.append(f"{url} has no such anchor")
    assert broken == []


def test_notebook_links_to_colab(pages, notebook):
    repository = CONFIG["repository"]
    place = urlsplit(repository["url"]).path + "/blob/" + repository["branch"]
    url = f"https://colab.research.google.com/github{place}/notebooks/{notebook}.ipynb"
    links = [a["href"] for t, a in pages[f"notebooks/{notebook}.html"].tags if t == "a"]
    assert links.count(url) == 1
    assert {link for link in links if "colab" in link} == {url}


def test_notebook_is_offered_for_download(pages, notebook, site_dir):
    tags = pages[f"notebooks/{notebook}.html"].tags
    links = [a["href"] for t, a in tags if t == "a" and "download" in a]
    assert len(links) == 1
    offered = (site_dir / "notebooks" / links[0]).resolve()
    assert offered.read_bytes() == chapters.page(notebook).path.read_bytes()


def test_chapter_number_of_the_site_is_that_of_the_notebook(pages, chapter):
    heading = pages[f"notebooks/{chapter}.html"].texts["h1"]
    assert heading.startswith(f"{chapters.page(chapter).number}. "), heading


def test_review_has_no_number_and_stands_between_the_chapters_that_it_joins(pages, review):
    page = pages[f"notebooks/{review}.html"]
    assert not page.texts["h1"][0].isdigit(), page.texts["h1"]
    before = [a["href"] for t, a in page.tags if t == "a" and a.get("class") == "left-prev"]
    assert before == [f"{chapters.page(review).closes[-1]}.html"]
