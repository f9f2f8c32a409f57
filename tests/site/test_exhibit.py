"""What all exhibits do in Chromium: they answer in sight, and stay where they are pressed."""

import pytest

from tests.sampling import long
from tutorial_lib.elements.exhibits import (
    fold_tiles,
    heads_sum,
    paint_mask,
    query_plane,
    softmax_bench,
)

EXHIBITS = {
    "plane": query_plane,
    "bench": softmax_bench,
    "slopes": lambda: softmax_bench(slope=True),
    "sum": heads_sum,
    "paint": paint_mask,
    "tiles": fold_tiles,
    "ring": lambda: fold_tiles(owners=2),
}
THERE = "(button, [x, y]) => button.contains(document.elementFromPoint(x, y))"


@pytest.mark.parametrize("width", [390, *long(768)])
@pytest.mark.parametrize("name", EXHIBITS)
def test_a_button_is_still_there_for_a_second_press(show, name, width):
    page = show(EXHIBITS[name]().html, "<p style='height: 900px'>", width=width)
    buttons = page.locator(".tl button:visible")
    moved = []
    for button in buttons.all() * 2:
        button.evaluate("(button) => button.scrollIntoView({ block: 'center' })")
        box = button.bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        page.mouse.click(*middle)
        if not button.evaluate(THERE, middle):
            moved.append(button.text_content())
    assert moved == []


def test_the_sentence_stays_in_sight_once_there_is_one(show):
    page = show(paint_mask().html, "<p style='height: 900px'>", width=390)
    said = page.locator(".tl-said")
    top = "(said) => { scrollTo(0, 600); return said.getBoundingClientRect().top; }"
    assert said.evaluate(top) < -100
    page.get_by_role("button", name="Packed", exact=True).click()
    assert said.evaluate(top) == 0
