"""Ask the model in Chromium: what is said, the arcs, and its weights on the site."""

import gzip
import re

import pytest

from tests.site.browsing import said
from tests.site.showing import assert_shows
from tests.site.test_exhibits import ASKED, known_text
from tutorial_lib.elements.exhibits import ask_model
from tutorial_lib.elements.exhibits.ask.element import draw_ask
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import WORDS
from tutorial_lib.records import checkpoint

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF"
FOLDED_IN = "#deeper-ask-the-model-and-layer-1-on-one-sentence"


def drawn(**state):
    """The exhibit of the known text in a state."""
    return draw_ask(known_text(), WORDS, "Which?", ASKED, **state)


@pytest.fixture
def shown(show):
    """The exhibit on a page of its own."""
    return show(drawn().html).locator("tl-ask")


def switch(shown, head):
    """The button that silences a head."""
    return shown.get_by_role("button", name=f"silence head {head}")


def test_a_sentence_is_typed_and_its_tokens_are_chosen(shown):
    field = shown.get_by_role("textbox")
    field.fill("the dgos that")
    field.press("Enter")
    assert "and “dgos” is none of them. Nothing has changed." in said(shown)
    field.fill(" the dog  that sees the ")
    field.press("Enter")
    assert said(shown).startswith("Next after “the”, position 5: “")
    assert shown.locator(".tl-word").all_inner_texts()[-1] == "the5"
    shown.locator(".tl-word").nth(3).click()
    assert said(shown).startswith("Next after “that”: “")
    assert_shows(shown, drawn(text=" the dog  that sees the ", query="3"))
    shown.get_by_role("radio", name="the, position 1").click()
    assert said(shown).startswith("Next after “the”, position 1: “")


def test_a_silenced_head_is_told_with_what_it_changes(shown):
    switch(shown, "1.2").click()
    assert re.match(
        r"Head 1\.2 is silenced: “\S+” goes from 0\.\d+ to .*\. Next after", said(shown)
    )
    switch(shown, "0.0").click()
    assert_shows(shown, drawn(silenced="1.2,0.0"))
    switch(shown, "1.2").click()
    assert said(shown).startswith("Head 1.2 is no longer silenced: ")
    assert_shows(shown, drawn(silenced="0.0"))


def test_what_adds_most_is_said_and_no_token_is_compared_with_itself(shown):
    word, minus = shown.locator("select").all()
    minus.select_option("barks")
    word.select_option("sleep")
    most = r"Head 1\.2 adds most to “sleep” − “barks”: \+\d\.\d\d of \+\d\.\d\d\."
    assert re.fullmatch(most, said(shown))
    off = "(select) => [...select.options].filter((o) => o.disabled).map((o) => o.value)"
    assert [menu.evaluate(off) for menu in (word, minus)] == [["barks"], ["sleep"]]
    bar = shown.locator(".tl-paths rect").first
    width = bar.get_attribute("width")
    switch(shown, "1.2").click()
    assert bar.get_attribute("width") == width  # though the largest is gone
    assert said(shown).startswith("Head 1.2 is silenced: “sleep” − “barks” goes from +")
    assert_shows(shown, drawn(silenced="1.2", word="sleep", minus="barks"))


def test_row_and_switch_of_a_head_show_its_arcs_and_no_weak_ones(shown):
    arcs, heads = shown.locator(".tl-sentence path"), "(all) => all.map((p) => p.dataset.head)"
    every = arcs.count()
    assert 8 < every < 40
    shown.locator(".tl-paths tr[data-head]").nth(6).hover()
    assert set(arcs.evaluate_all(heads)) == {"2"}
    shown.page.mouse.move(0, 0)
    assert arcs.count() == every
    switch(shown, "0.1").focus()
    assert set(arcs.evaluate_all(heads)) == {"1"}
    shown.locator(".tl-word").nth(6).focus()
    assert arcs.count() == every


def test_what_is_said_is_in_sight_of_what_is_pressed(open_page):
    options = {"has_touch": True, "is_mobile": True}
    page = open_page(f"notebooks/20_scoring_heads.html{FOLDED_IN}", width=390, **options)
    shown, bar = page.locator("tl-ask"), page.locator(".bd-header-article").bounding_box()
    for head in ("0.0", "1.3"):
        switch(shown, head).tap()
        box = shown.locator(".tl-said").bounding_box()
        assert bar["height"] <= box["y"] < 900 - box["height"], head


@pytest.mark.long
def test_worked_by_keys_alone(shown):
    for key in ("Tab", "Home", "ArrowRight", "ArrowRight"):
        shown.page.keyboard.press(key)
    assert_shows(shown, drawn(query="2"))
    for key in ("Tab", "ArrowRight", "Enter"):  # the first switch, the second
        shown.page.keyboard.press(key)
    assert_shows(shown, drawn(query="2", silenced="0.1"))


@pytest.mark.long
def test_letters_need_no_blanks(show):
    model = TinyModel.of(checkpoint("copying"))
    shown = show(ask_model(model, LETTERS, "headshe", question="Where?").html).locator("tl-ask")
    shown.get_by_role("textbox").fill("abcabca")
    shown.get_by_role("textbox").press("Enter")
    assert said(shown).startswith("Next after “a”, position 6: “b” ")
    first = {**ASKED, "text": "abcabca"}
    assert_shows(shown, draw_ask(model, LETTERS, "Where?", first))


@pytest.mark.long
def test_without_its_weights_it_stays_as_python_drew_it(show):
    bare = re.sub(r"<script data-model.*?</script>", "", drawn().html, flags=re.S)
    shown = show(bare).locator("tl-ask")
    assert shown.locator(":is(button, input, select):visible").count() == 0
    assert shown.locator(".tl-how:visible").count() == 0
    assert shown.get_by_text("head 1.2", exact=True).is_visible()


@pytest.mark.parametrize("width", [360, 500, 660])
def test_what_a_head_looks_at_has_room(show, width):
    seen = show(drawn().html, width=width).locator("tl-ask .tl-paths tbody tr > :nth-child(2)")
    assert min(seen.evaluate_all("(all) => all.map((cell) => cell.offsetWidth)")) > 100


def test_site_has_the_weights_that_an_exhibit_names_as_a_script(site_dir):
    asking = set()
    for path in site_dir.glob("notebooks/*.html"):
        page = path.read_text(encoding="utf-8")
        names = re.findall(r'<template data-model="\.\./_static/model-(\w+)\.js">', page)
        assert "tlModels" not in page
        assert len(names) == len(set(names)) == len(set(re.findall(r'id="tl-ask-(\w+)"', page)))
        asking |= {path.stem} if names else set()
        for name in names:
            script = (site_dir / f"_static/model-{name}.js").read_bytes()
            assert len(gzip.compress(script)) <= 60_000
    assert asking == {"08_gradients", "20_scoring_heads"}


def test_chapter_08_from_disk_shows_the_letter_after_the_earlier_copy(open_page):
    page = open_page("notebooks/08_gradients.html#ask=0&query=8", from_disk=True)
    page.get_by_text("Next after “d”, position 8: “s” ").first.wait_for()
    keys = page.locator("tl-ask .tl-paths tbody td:nth-child(2)").all_inner_texts()
    assert [text.replace("\u00a0", " ")[:5] for text in keys[3:5]] == ["s (4)", "s (4)"]
