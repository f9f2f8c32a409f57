"""The first page, and what goes on from it: the steps, the contents, one edge for all."""

import re

import pytest

from tests.sampling import long
from tests.site.browsing import PHONE, quiet
from tools.chapters import page as page_of
from tools.chapters import pages
from tutorial_lib import multihead
from tutorial_lib.elements.exhibits.board import STEPS
from tutorial_lib.example import running_example

FIRST = "book/intro.html"
CHAPTER = "notebooks/03_attention_weights.html"
ENTRY = 30  # pixels of an entry of the contents at most, so that a longer book still fits
ROOM = 56  # pixels at the end of an entry of the contents, for its mark
# Of each entry: its title, its lines, whether it is whole, and the room behind it.
ENTRIES = """() => [...document.querySelectorAll(".bd-links a:has(.book-title)")].map((link) => {
  const title = link.querySelector(".book-title");
  const words = document.createRange();
  words.selectNodeContents(title);
  const text = words.getBoundingClientRect();
  const {right, height} = link.getBoundingClientRect();
  return {
    says: title.textContent,
    lines: text.height / parseFloat(getComputedStyle(title).lineHeight),
    whole: title.scrollWidth <= title.clientWidth,
    room: right - text.right,
    height,
  };
})"""
EDGES = """() => [
  ["p", "section > p"], ["h2", "h2"], ["code", "div.cell_input"], ["quiz", ".tl-quiz"],
  ["output", ".output.text_plain"], ["table", ".pst-scrollable-table-container"],
].flatMap(([name, selector]) => [...document.querySelectorAll(`article ${selector}`)]
  .filter((e) => e.checkVisibility() && !e.closest("details, li, .tl-quiz *"))
  .map((e) => [name, Math.round(e.getBoundingClientRect().right)]))"""


@pytest.fixture(scope="module")
def first(visit):
    """The first page, wide."""
    with quiet(visit(FIRST, width=1440)) as page:
        yield page


@pytest.fixture(scope="module")
def plain(visit):
    """A page without scripts."""
    with quiet(visit(FIRST, java_script_enabled=False)) as page:
        yield page


def test_ways_in_say_each_thing_once_and_need_no_script(plain, site_url):
    plain.goto(site_url + FIRST)
    ways = plain.locator("h1 + p + .book-ways > li")
    links = ways.locator("a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    names = [link.rpartition("/")[2].removesuffix(".html") for link in links]
    assert names[:4] == ["ten_minutes", "01_embeddings", "teaching", "one_evening"]
    assert [name[:2] for name in names[4:]] == ["09", "14", "19"]
    filled, outlined = ways.locator("a.book-start").all()
    assert (filled.inner_text(), outlined.inner_text()) == ("Twenty minutes", "Chapter 1")
    grounds = [a.evaluate("(a) => getComputedStyle(a).backgroundColor") for a in (filled, outlined)]
    assert grounds[1] == "rgba(0, 0, 0, 0)" != grounds[0]
    filled.click()
    plain.wait_for_url("**/book/ten_minutes.html")


def test_on_a_phone_the_map_stands_between_two_sentences_and_the_ways_in(open_page):
    page = open_page(FIRST, **PHONE)
    parts = ["h1 + p", "tl-map", ".book-ways", ".book-ways ~ p", ".book-cards"]
    tops = [page.locator(part).first.bounding_box()["y"] for part in parts]
    assert tops == sorted(tops)
    assert tops[1] < 844, "the map begins on the first screen"
    assert page.locator("tl-map > p").first.inner_text().startswith("Three rows go in")


def test_each_step_leads_to_the_first_chapter_that_lights_it(first):
    cards = first.locator(".book-cards a").evaluate_all(
        "all => all.map((a) => [a.querySelector('strong').textContent, a.href])"
    )
    labels = first.locator("tl-map a[href$='.html']").evaluate_all(
        "all => all.map((a) => [a.textContent, a.href])"
    )
    labels = [[step, url] for step, url in labels if step in STEPS]
    assert [step for step, _ in cards] == [step for step, _ in labels] == list(STEPS)
    chapters = [page for page in pages() if page.number]
    for step, url in cards + labels:
        home = next(page.name for page in chapters if step in page.steps)
        assert url.endswith(f"/notebooks/{home}.html"), step


def test_key_of_the_first_prediction_is_what_the_layer_gives(first):
    example = running_example()
    weights = multihead.trace(example.X, example.params, mask=example.mask).weights[0]
    assert weights[0].tolist() == [1, 0, 0]
    fold = first.locator(".below-input")
    assert not fold.locator("pre").is_visible()
    question = first.locator(".tl-predict")
    question.get_by_label("all of it to itself").check()
    question.get_by_role("button", name="Commit").click()
    assert question.locator("[aria-live] .tl-right").is_visible()
    rows = [line.split() for line in fold.locator("pre").inner_text().splitlines()]
    assert ["dogs", "1", "0", "0"] in rows
    assert ["bark", "4/7", "1/7", "2/7"] in rows


def test_first_page_says_what_attention_is_for_before_any_symbol(plain, site_url):
    plain.goto(site_url + FIRST)
    paragraph = plain.locator("h1 + p")
    text = paragraph.inner_text()
    assert len(re.findall(r"[.?!](?: |$)", text)) == 2
    assert "language model" in text
    assert not paragraph.locator("code, math, sub").count()


@pytest.mark.parametrize("width", [1280, 1440])
def test_titles_in_the_contents_take_a_line_and_leave_room_for_a_mark(first, width):
    first.set_viewport_size({"width": width, "height": 900})
    entries = first.evaluate(ENTRIES)
    titles = [page.title.partition(":")[0] for page in pages()]
    assert [entry["says"] for entry in entries if entry["says"] in titles] == titles
    for entry in entries:
        assert entry["whole"], entry
        assert entry["lines"] <= 1.2, entry
        assert entry["room"] >= ROOM, entry
        assert entry["height"] <= ENTRY, entry
    second = first.locator(".bd-links .caption", has_text="Part II:").bounding_box()
    assert second["y"] + second["height"] <= 900, "Part II is below the fold"


def test_field_of_the_search_ends_before_the_edge_of_the_contents(first):
    field = first.locator(".bd-sidebar-primary .search-button-field").bounding_box()
    box = first.locator(".bd-sidebar-primary").bounding_box()
    room = first.locator(".bd-sidebar-primary").evaluate("(box) => box.clientWidth")
    assert box["x"] + room - field["x"] - field["width"] >= 8


def test_entry_of_the_contents_has_its_whole_title_as_a_tooltip(first):
    link = first.locator(".bd-links").get_by_role("link", name="3. Scores, softmax, one head")
    assert link.get_attribute("title") == page_of("03_attention_weights").title.replace("'", "’")


def test_small_map_lights_the_steps_that_the_notebook_has_in_bold(plain, site_url, notebook):
    plain.goto(f"{site_url}notebooks/{notebook}.html")
    head = plain.locator("h1 + .book-head > .book-steps")
    assert head.locator(".book-step").count() == len(STEPS)
    shown = head.locator(".book-step[data-lit]").evaluate_all(
        "all => all.map((e) => e.firstChild.textContent)"
    )
    assert shown == list(page_of(notebook).steps)
    opens = page_of(notebook).part == "Part I"
    assert head.locator("tl-map").count() == plain.locator("tl-map").count() == opens
    if opens:
        assert not head.locator("tl-map").is_visible()
        head.locator("> summary").click()
        assert head.locator("tl-map").is_visible()


def test_map_that_a_chapter_opens_answers_and_leads_to_the_other_chapters(open_page):
    page = open_page(CHAPTER)
    head = page.locator("h1 + .book-head > .book-steps")
    head.locator("> summary").focus()
    page.keyboard.press("Enter")
    board = head.locator("tl-map")
    links = board.locator(".tl-steps a").all_inner_texts()
    assert links == ["embed", "project", "concat", "project out"]
    board.locator("td[tabindex='0']").first.press("ArrowRight")
    assert board.locator("[aria-live]").first.inner_text().startswith("X, dogs, 1 ")


def test_link_to_the_map_of_its_own_page_opens_it_and_leads_there(open_page):
    page = open_page("notebooks/06_output_projection.html")
    page.locator("#idea a[href^='#map=']").click()
    said = page.locator("tl-map [aria-live]").first
    said.get_by_text("Y, bark, 4 = ").wait_for()
    assert page.locator("tl-map").bounding_box()["y"] < 900


@pytest.mark.parametrize("width", [1280, *long(1440), 1920, *long(2560)])
def test_text_headings_code_and_tables_end_at_one_edge(open_page, width):
    page = open_page(CHAPTER, width=width)
    edges = page.evaluate(EDGES)
    assert len({name for name, _ in edges}) >= 5
    text = max(right for name, right in edges if name == "h2")
    assert [(name, right) for name, right in edges if right > text + 1] == []
    ends = {name: max(r for n, r in edges if n == name) for name, _ in edges}
    assert set(ends.values()) <= {text - 1, text, text + 1}, ends
    left = page.locator(".bd-links a").first.bounding_box()["x"]
    beside = page.locator(".bd-sidebar-secondary").bounding_box()
    right = page.evaluate("() => document.body.clientWidth") - beside["x"] - beside["width"]
    assert abs(left - right) <= 40, "the block stands in the middle of the window"
