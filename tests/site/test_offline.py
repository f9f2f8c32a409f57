"""The built folder, opened from disk: pages of each kind, the search, elements and buttons."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.sampling import long
from tests.site.browsing import DOCUMENTS, KINDS

CHAPTER = "notebooks/03_attention_weights.html"
OTHERS = [f"{name}.html" for name in [*DOCUMENTS, "search", "genindex"] if name not in KINDS[1]]
# What did not come: fonts, pictures, and elements, of which each has a first state.
LACKS = """() => [...document.querySelectorAll("article :not(:defined), img, .tl")].filter((e) =>
  !e.matches(":defined") || (e.complete && !e.naturalWidth) ||
  (e.checkVisibility() && !e.getBoundingClientRect().height)).map((e) => e.outerHTML)
  .concat([...document.fonts].filter((font) => font.status == "error").map((f) => f.family))"""


@pytest.mark.parametrize("name", [KINDS[1], *long(*OTHERS)])
def test_page_opens_from_disk_whole_and_its_links_lead_to_files(open_page, name):
    page = open_page(name, from_disk=True)
    page.wait_for_timeout(200)
    assert page.locator("main h1:visible").count() == 1
    assert page.locator("math").count() == page.locator(".math").count()
    assert page.evaluate(LACKS) == []
    links = page.evaluate("() => [...document.links].map((link) => link.href)")
    files = {unquote(urlsplit(link).path) for link in links if link.startswith("file:")}
    assert [file for file in files if not Path(file).is_file()] == []


def test_search_works_from_disk(open_fresh):
    page = open_fresh(CHAPTER, from_disk=True)
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[name=q]")
    field.fill("concatenation")
    field.press("Enter")
    hit = page.locator("#search-results a[href*='05_concatenation']").first
    hit.click()
    page.wait_for_url("file://**/notebooks/05_concatenation.html**")


@pytest.mark.long
def test_mode_chosen_from_disk_stays_on_the_next_page(open_fresh):
    page = open_fresh(CHAPTER, from_disk=True)
    button = page.get_by_role("button", name="Colour mode")
    modes = []
    for _ in range(3):
        button.click()
        modes.append(page.locator("html").get_attribute("data-mode"))
    assert sorted(modes) == ["auto", "dark", "light"]
    page.get_by_role("link", name="next").click()
    page.wait_for_url("file://**/notebooks/04_multi_head_attention.html")
    assert page.locator("html").get_attribute("data-mode") == modes[-1]
