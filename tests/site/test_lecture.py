"""The lecture view in Chromium: a chapter as slides, and back."""

from axe_playwright_python.sync_playwright import Axe

CHAPTER = "notebooks/03_attention_weights.html"
SEEN = """() => [...document.querySelectorAll('article :is(h1, h2, h3, h4)')]
  .filter((heading) => heading.checkVisibility()).map((heading) => heading.parentNode.id)"""
HEADINGS = """() => [...document.querySelectorAll('article :is(h1, h2, h3, h4)')]
  .map((heading) => heading.parentNode).filter((section) => section.id).map(({ id }) => id)"""


def told(page):
    """What the bar of the slides says."""
    return page.locator(".book-lecture p").text_content()


def test_each_heading_is_a_slide_with_all_that_stands_below_it(open_page):
    page = open_page(CHAPTER)
    page.locator("article").click(position={"x": 5, "y": 5})
    page.keyboard.press("F8")
    page.keyboard.press("Home")
    names = page.evaluate(HEADINGS)
    seen = []
    for number in range(1, len(names) + 1):
        assert told(page).startswith(f"{number} of {len(names)}: ")
        seen += page.evaluate(SEEN)
        page.keyboard.press("ArrowRight")
    assert seen == names
    assert not page.locator(".bd-sidebar-primary").is_visible()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(SEEN) == [names[-2]]
    page.keyboard.press("F8")
    assert page.evaluate(SEEN) == names
    assert page.locator(".book-away").count() == 0
    assert page.problems == []


def test_button_begins_where_the_reader_is_and_elements_keep_their_keys(open_page):
    page = open_page(CHAPTER)
    page.get_by_role("button", name="Show this chapter as slides (F8)").click()
    assert told(page).endswith("Recap")
    for _ in range(20):
        page.get_by_role("button", name="← Back").click()
    assert told(page).startswith("1 of ")
    while not page.locator("tl-predict-choice").first.is_visible():
        page.get_by_role("button", name="On →").click()
    slide, options = told(page), page.locator("tl-predict-choice").first.get_by_role("radio")
    options.first.focus()
    page.keyboard.press("ArrowRight")
    assert options.nth(1).is_checked()
    assert told(page) == slide
    page.locator("tl-predict-choice").first.get_by_role("button", name="Commit").click()
    page.get_by_role("button", name="End", exact=True).click()
    assert options.nth(1).is_checked()
    assert page.problems == []


def test_axe_finds_nothing_and_nothing_sticks_out_of_a_slide(open_page):
    page = open_page(CHAPTER, width=320)
    page.get_by_role("button", name="Show this chapter as slides (F8)").click()
    page.get_by_role("button", name="← Back").click()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["target"] for n in v["nodes"][:3]]) for v in found] == []
