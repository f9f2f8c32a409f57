"""The page of things to touch: every exhibit as a picture that weighs little and does nothing."""

from book._ext.content.touch import exhibit_places
from tests.site.arrival import WEIGHT
from tests.site.browsing import PHONE
from tutorial_lib.elements import exhibits

TOUCH = "book/things_to_touch.html"
MOST_BYTES, MOST_NODES = 180_000, 6_000
# Of each picture: whether something of it is drawn, and whether it lies inside its frame.
DRAWN = """() => [...document.querySelectorAll(".book-picture")].map((frame) => {
  const { left, right } = frame.getBoundingClientRect();
  const parts = [...frame.querySelectorAll("td, text, path, i")];
  const boxes = parts.map((e) => e.getBoundingClientRect());
  return boxes.some((b) => b.width && b.left >= left && b.right <= right);
})"""


def test_every_exhibit_of_the_library_is_on_the_page_and_leads_to_its_place(site_dir, visit):
    assert exhibit_places().keys() == set(exhibits.__all__)
    page = visit(TOUCH, java_script_enabled=False)
    things = page.locator(".book-thing")
    assert things.count() == len(exhibit_places())
    assert page.evaluate(DRAWN) == [True] * things.count()
    for link in things.locator("a").all():
        name, _, aim = link.get_attribute("href").partition("#")
        text = (site_dir / "book" / name).resolve().read_text(encoding="utf-8")
        assert f' id="{aim}"' in text, (name, aim)
    page.context.close()


def test_pictures_are_light_and_no_key_reaches_them(open_fresh):
    page = open_fresh(TOUCH, **PHONE)
    page.wait_for_load_state("networkidle")
    assert 60_000 < page.evaluate(WEIGHT) <= MOST_BYTES
    assert page.evaluate("() => document.querySelectorAll('*').length") <= MOST_NODES
    assert page.locator(".book-picture").count() == page.locator(".book-picture[inert]").count()
    page.locator(".book-thing a").first.focus()
    for _ in exhibit_places():
        page.keyboard.press("Tab")
        assert not page.evaluate("() => document.activeElement.closest('.book-picture')")


def test_picture_leads_to_an_exhibit_that_lay_in_a_fold(open_page):
    page = open_page(TOUCH)
    page.locator(".book-picture").nth(list(exhibit_places()).index("playground")).click(force=True)
    page.wait_for_url("**/06_output_projection.html#tl-playground")
    assert page.locator("tl-playground").is_visible()
