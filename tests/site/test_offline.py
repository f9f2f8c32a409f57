"""The built folder, opened from disk: pages of each kind, the search, elements and buttons."""

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.sampling import long
from tests.site.browsing import DOCUMENTS, KINDS, START_EXHIBITS
from tools.pack import pack

CHAPTER = "notebooks/03_attention_weights.html"


@pytest.mark.parametrize("name", [KINDS[1], *long(KINDS[3], "notebooks/12_flash_attention.html")])
def test_page_opens_from_disk_and_sets_its_formulas(open_fresh, name):
    page = open_fresh(name, from_disk=True)
    page.wait_for_timeout(200)
    assert page.locator("main h1:visible").count() == 1
    assert page.locator("math").count() == page.locator(".math").count()
    assert page.problems == []


def test_search_works_from_disk(open_fresh):
    page = open_fresh(CHAPTER, from_disk=True)
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[name=q]")
    field.fill("concatenation")
    field.press("Enter")
    hit = page.locator("#search-results a[href*='05_concatenation']").first
    hit.click()
    page.wait_for_url("file://**/notebooks/05_concatenation.html**")
    assert page.problems == []


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
    assert page.problems == []


# What did not come: fonts, pictures, and elements, which show their first state; and all links.
LACKS = """() => document.fonts.ready.then(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = all(".tl").filter((e) => e.checkVisibility());
  const lacks = [...[...document.fonts].filter((font) => font.status == "error"),
    ...all("article :not(:defined)"), ...all("img").filter((e) => e.complete && !e.naturalWidth),
    ...shown.filter((e) => !e.getBoundingClientRect().height)];
  return [lacks.map((e) => e.outerHTML ?? e.family), all("a[href]").map((e) => e.href)];
})"""


@pytest.mark.long
def test_every_page_of_the_zip_is_whole_in_a_folder_with_a_blank(visit, site_dir, tmp_path):
    shutil.unpack_archive(pack(tmp_path / "dist")[0], folder := tmp_path / "Für mich")
    page = visit(None, from_disk=True)
    for name in (*DOCUMENTS, "search", "genindex"):
        page.goto((folder / site_dir.name / f"{name}.html").as_uri())
        page.evaluate(START_EXHIBITS)
        lacks, links = page.evaluate(LACKS)
        files = {unquote(urlsplit(link).path) for link in links if link.startswith("file:")}
        lost = [file for file in files if not Path(file).is_file()]
        problems = [told for told in page.problems if " outside the site: file:" not in told]
        assert [*lacks, *problems, *lost] == [], name
    page.context.close()
