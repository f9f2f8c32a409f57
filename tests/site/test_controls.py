"""What the site adds around its exhibits, in use: seen by all, pressed by a finger, and still."""

from typing import NamedTuple

import pytest

from tests.sampling import long
from tests.site.browsing import OPEN_ALL, PHONE
from tests.site.test_browser import STOPS_ARE_SET, violations

CHAPTER, TEN = "notebooks/03_attention_weights.html", "book/ten_minutes.html"
FINGER = 44  # pixels
HEIGHTS = "(all) => all.map((each) => each.getBoundingClientRect().height)"


class Control(NamedTuple):
    """A part of a page that is used.

    Parameters
    ----------
    page : its address
    part : a selector of what axe looks at; all, where it is None
    use : puts it into use; called with the page
    pressed : a selector of what a finger presses
    width : of a page that shows it
    """

    page: str
    part: str | None
    use: object = lambda page: None
    pressed: str | None = None
    width: int = 320


def mark(page):
    """Use the foot of a page."""
    page.get_by_role("checkbox", name="I have read this page").check()


def search(page):
    """Search in the dialogue, with a slip, and choose the first hit."""
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog .search-said").wait_for()
    page.keyboard.type("softmaxx mask")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")


def unfold(page):
    """Open every fold, and wait until each table that scrolls is a stop of the keys."""
    page.evaluate(OPEN_ALL)
    page.wait_for_function(STOPS_ARE_SET)


DEEPER = "deeper-how-much-two-subspaces-overlap"
FOOT = ".book-mark, .book-report, .book-forget button:visible"
CONTROLS = {
    "foot": Control(CHAPTER, ".book-foot", mark, FOOT),
    "contents": Control(CHAPTER, ".bd-links", mark, width=1280),
    "deeper": Control(f"notebooks/02_queries_keys_values.html#{DEEPER}", f"#{DEEPER}"),
    "closed deeper": Control("notebooks/02_queries_keys_values.html", f"#{DEEPER}"),
    "arrays": Control("notebooks/20_scoring_heads.html", ".book-array", unfold),
    "found": Control("search.html?q=mask", None, pressed="a.search-hit"),
    "dialogue": Control(CHAPTER, "#pst-search-dialog", search, "[role=option]"),
    "model": Control(TEN, "tl-ask"),
    "things to touch": Control("book/things_to_touch.html", None),
}
PRESSED = {name: control for name, control in CONTROLS.items() if control.pressed}


def shown(page, control):
    """Put a control into use, and wait until what a finger presses is there."""
    control.use(page)
    if control.pressed:
        page.locator(control.pressed).first.wait_for()


@pytest.mark.parametrize("dark", [True, *long(False)])
@pytest.mark.parametrize("name", CONTROLS)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_page, axe, name, dark):
    control = CONTROLS[name]
    page = open_page(control.page, width=control.width, dark=dark)
    shown(page, control)
    assert violations(axe, page, control.part) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= control.width


@pytest.mark.parametrize("name", PRESSED)
def test_finger_finds_it(open_page, name):
    page = open_page(PRESSED[name].page, **PHONE)
    shown(page, PRESSED[name])
    heights = page.locator(PRESSED[name].pressed).evaluate_all(HEIGHTS)
    assert heights
    assert min(heights) >= FINGER


# Without a script: what is there, and what would do nothing and is not.
PLAIN = {
    CHAPTER: (
        "article pre",
        ".tl-run, .book-mark, .book-shows, .book-pdf, .book-forget, .book-kept",
    ),
    TEN: ("tl-ask >> text=/^head 1.2$/", "tl-ask :is(button, input, select)"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_without_a_script_nothing_is_shown_that_needs_one(open_page, name):
    page = open_page(name, java_script_enabled=False)
    there, idle = PLAIN[name]
    assert page.locator(there).first.is_visible()
    assert page.locator(idle).locator("visible=true").count() == 0
