"""Figures on the built site: labels that can be read on a desk and on a phone, and no torn page."""

import re

import numpy as np
import pytest

from tests.sampling import long
from tools.chapters import pages
from tutorial_lib.figures import attention_maps

SAMPLE = "05_concatenation"
DRAWN = [p.name for p in pages() if "ahh-figure" in p.path.read_text(encoding="utf-8")]
LEAST = {1280: 13, 390: 11, 320: 10.5}  # pixels of a label, by the width of the window
PAPER = 658  # pixels of A4 between the margins
FIGURES = """() => [...document.querySelectorAll("figure.ahh-figure")]
  .filter((figure) => figure.checkVisibility())
  .map((figure) => {
    const panels = figure.querySelector(".ahh-panels");
    const box = (node) => node.getBoundingClientRect();
    const shown = [...panels.querySelectorAll("svg")].filter((svg) => box(svg).width > 0);
    const scale = (node) => Math.hypot(node.getScreenCTM().a, node.getScreenCTM().b);
    const size = (node) => parseFloat(getComputedStyle(node).fontSize) * scale(node);
    const inside = (item) => shown.filter((svg) => item.contains(svg)).length;
    return {
      caption: figure.querySelector("figcaption").textContent,
      labels: shown.flatMap((svg) => [...svg.querySelectorAll("text")].map(size)),
      pictures: [...panels.querySelectorAll(".ahh-grid > *")].map(inside),
      beyond: Math.max(...shown.map((svg) => box(svg).right)) - box(panels).left
        - panels.clientWidth,
      scrolls: panels.querySelector(".ahh-wide") !== null && panels.tabIndex === 0,
      page: document.documentElement.scrollWidth - innerWidth,
    };
  })"""


@pytest.fixture(
    scope="module",
    params=[SAMPLE, *long(*(name for name in DRAWN if name != SAMPLE))],
)
def measured(visit, request):
    """What is measured of each figure of a chapter, by the width of the window."""
    page = visit(f"notebooks/{request.param}.html")
    found = {}
    for width in LEAST:
        page.set_viewport_size({"width": width, "height": 900})
        found[width] = page.evaluate(FIGURES)
        assert found[width], "a chapter has figures"
    page.context.close()
    return found


@pytest.mark.parametrize("width", LEAST)
def test_labels_of_figures_can_be_read(measured, width):
    for figure in measured[width]:
        assert round(min(figure["labels"]), 2) >= LEAST[width], figure["caption"]


@pytest.mark.parametrize("width", LEAST)
def test_a_figure_is_no_wider_than_its_column_unless_its_box_scrolls(measured, width):
    for figure in measured[width]:
        assert figure["page"] <= 0
        assert figure["beyond"] < 1 or (figure["scrolls"] and width < 1280), figure["caption"]


def test_paper_has_the_picture_for_a_desk(visit):
    page = visit(f"notebooks/{SAMPLE}.html", width=PAPER)
    page.emulate_media(media="print")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    found = page.evaluate(
        FIGURES.replace("caption:", "widths: shown.map((s) => box(s).width), caption:")
    )
    page.context.close()
    assert max(max(figure["widths"]) for figure in found) > 590


@pytest.mark.parametrize("width", LEAST)
def test_each_picture_is_shown_once_as_it_was_drawn_for_a_desk_or_for_a_phone(measured, width):
    for figure in measured[width]:
        assert set(figure["pictures"]) == {1}, figure["caption"]


def test_images_show_in_place_of_pictures_only_where_style_sheets_and_svg_are_stripped(browser):
    whole = attention_maps(np.eye(2), ["dogs", "bark"], caption="").html()
    stripped = re.sub(r"<(style|svg)\b.*?</\1>", "", whole)
    page = browser.new_page()
    page.set_content(whole + stripped)  # side by side, as where one cell of a notebook was run
    found = page.locator("figure").evaluate_all(
        """(figures) => figures.map((figure) => ["img", "svg"].map((kind) =>
          [...figure.querySelectorAll(kind)].map((node) => node.checkVisibility())))"""
    )
    page.close()
    assert found == [[[False, False], [True, True]], [[True, True], []]]


def test_no_page_carries_the_images_for_other_viewers(site_dir):
    for name in DRAWN:
        page = (site_dir / f"notebooks/{name}.html").read_text(encoding="utf-8")
        assert "ahh-panels" in page
        assert "ahh-fallback" not in page
