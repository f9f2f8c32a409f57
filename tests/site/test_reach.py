"""A page by keys alone, by touch, and for readers who ask for less motion."""

import pytest
from playwright.sync_api import expect

from tests.site.browsing import OPEN_ALL, quiet
from tools.chapters import FOLDER, part

CHAPTER = "notebooks/03_attention_weights.html"
STOPS = """() => {
  const reachable = "a[href], button, input, select, textarea, summary, [tabindex]";
  const groups = new Set();
  window.stops = [...document.querySelectorAll(reachable)].filter((e) => {
    const here = e.checkVisibility({visibilityProperty: true});
    if (e.tabIndex < 0 || e.disabled || !here) return false;
    if (e.type != "radio") return true;
    const first = !groups.has(e.name);
    groups.add(e.name);
    return first;
  });
  window.reached = new Set();
  window.unseen = new Set();
  const ring = ({outlineStyle, outlineWidth, boxShadow}) =>
    (outlineStyle != "none" && parseFloat(outlineWidth) >= 1) || boxShadow != "none";
  const name = (e) => `${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 40)}`;
  addEventListener("focusin", ({target}) => {
    reached.add(target);
    const {width, height} = target.getBoundingClientRect();
    const shown = [target, target.closest("form")].some((e) => e && ring(getComputedStyle(e)));
    if (!shown || !width || !height) unseen.add(name(target));
  });
  window.left = () => stops.filter((e) => !reached.has(e)).map(name);
  return stops.length;
}"""
STOPS_ARE_RIGHT = """() => [...document.querySelectorAll("pre")].every((e) =>
  (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight) == (e.tabIndex == 0))"""
WIDE_FORMULAS = """() => [...document.querySelectorAll(".math")]
  .filter((e) => e.scrollWidth > e.clientWidth + 2 || e.tabIndex >= 0)
  .map((e) => e.tabIndex == 0 && e.getBoundingClientRect().right <= innerWidth)"""
MOVING = """() => [...document.querySelectorAll("*")].filter((e) => {
  const style = getComputedStyle(e);
  return style.transitionDuration.split(", ").some((time) => parseFloat(time))
    || style.animationName != "none" || style.scrollBehavior != "auto";
}).map((e) => `${e.tagName}.${e.className}`)"""


# Where the first thing that answers stands, in screens of 900 pixels: the map of its head is not
# counted, which every chapter has.
FIRST_ANSWER = """() => {
  const kinds = [...document.querySelectorAll(".tl")].filter((e) => !e.matches("tl-map"));
  const top = (e) => e.getBoundingClientRect().top + scrollY;
  const shown = kinds.filter((e) => e.checkVisibility());
  return Math.min(...shown.map(top)) / 900;
}"""


def test_something_answers_in_the_first_four_screens_of_every_chapter_of_part_one(open_page):
    page = open_page(None)
    for chapter in part("Part I"):
        if not chapter.closes:
            page.goto(f"{FOLDER}{chapter.name}.html")
            assert 0 < page.evaluate(FIRST_ANSWER) < 4, chapter.name


@pytest.fixture(scope="module")
def walked(visit, kind):
    """A page of each kind."""
    with quiet(visit(kind)) as page:
        yield page


def test_tab_reaches_every_control_shows_where_it_is_and_leaves_the_page(walked):
    walked.emulate_media(reduced_motion="reduce")
    walked.evaluate(OPEN_ALL)
    walked.wait_for_function(STOPS_ARE_RIGHT)
    count = walked.evaluate(STOPS)
    assert count > 15
    for _ in range(count + 20):  # a box that scrolls is a stop, too, without being a control
        walked.keyboard.press("Tab")
    assert walked.evaluate("() => left()") == []
    assert walked.evaluate("() => [...unseen]") == []


def test_formula_wider_than_its_line_is_a_stop_and_no_other(open_page):
    page = open_page("notebooks/08_gradients.html", width=320)
    page.wait_for_function("() => document.querySelector('.math[tabindex]')")
    assert set(page.evaluate(WIDE_FORMULAS)) == {True}
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function("() => !document.querySelector('.math[tabindex]')")
    assert page.evaluate(WIDE_FORMULAS) == []


def test_nothing_moves_for_readers_who_ask_for_less_motion(walked):
    walked.emulate_media(reduced_motion="no-preference")
    assert walked.evaluate(MOVING) != [], "else this test sees nothing"
    walked.emulate_media(reduced_motion="reduce")
    assert walked.evaluate(MOVING) == []


def test_first_stop_skips_to_the_text(open_page):
    page = open_page(CHAPTER)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main-content")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.closest('main') != null")


@pytest.mark.parametrize("from_disk", [False, True])
def test_contents_show_the_line_of_the_page_wherever_they_stood_before(open_page, from_disk):
    stood = "sessionStorage.setItem('sidebar-scroll-top', '0')"
    page = open_page("book/references.html", first=stood, from_disk=from_disk)
    line = page.locator(".bd-sidebar-primary .bd-links li.current > a")
    assert page.locator(".bd-sidebar-primary").evaluate("(box) => box.scrollTop") > 0
    expect(line).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("() => scrollY") == 0
