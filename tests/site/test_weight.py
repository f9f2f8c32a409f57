"""What a page weighs and how it arrives, held to `budgets.yml`; that its icons are still there."""

import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from arrival import BUDGETS, WEIGHT, arrive, beyond_budget, closer_looks, processor_times
from conftest import KINDS
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[2]
THEME = "_static/styles/pydata-sphinx-theme.css"
FACE = r"@font-face\{[^}]*(Free|Brands);[^}]*font-weight:(\d+);[^}]*base64,([^)]+)\)"


def test_notebook_is_within_its_weight(notebook):
    size = (ROOT / "notebooks" / f"{notebook}.ipynb").stat().st_size
    assert size <= BUDGETS["notebook_kb"] * 1000


@pytest.mark.parametrize("name", KINDS[1::2])
def test_page_arrives_on_a_phone_within_its_budget(browser, visit, name):
    page = arrive(visit, name, 390)
    page.context.close()
    assert page.arrival["weight"] > 30_000
    assert beyond_budget(page.arrival, *closer_looks(browser, visit, name, 390)) == []


def test_long_tasks_are_seen_by_clock_and_by_processor_time(browser, visit):
    busy = "{ const end = performance.now() + 1000; while (performance.now() < end); }"
    script = f"addEventListener('DOMContentLoaded', () => {busy})"
    page = arrive(visit, "book/intro.html", 1280, script)
    page.context.close()
    assert max(page.arrival["tasks"]) >= 1000
    times = processor_times(browser, visit, "book/intro.html", 1280, script)
    assert max(times) >= 200
    [said] = beyond_budget(page.arrival, lambda: times, lambda: times)
    assert said.startswith("long_task_ms")
    assert beyond_budget(page.arrival, lambda: times, lambda: [60.0]) == []
    assert beyond_budget(page.arrival, list, pytest.fail) == []


def test_a_page_that_moves_or_weighs_too_much_is_told():
    arrival = {"weight": 800_000, "moves": [{"value": 0.015}] * 2, "tasks": []}
    told = [said.partition(":")[0] for said in beyond_budget(arrival)]
    assert told == ["first_visit_kb", "layout_shift"]


def test_page_after_another_is_lighter(open_page, site_url, page_names):
    first, *later = [name for name in page_names if "notebooks/" in name]
    page, weights = open_page(first, formulas=True), {}
    for name in later[1::4]:
        page.goto(site_url + name)
        page.evaluate("() => window.MathJax?.startup?.promise")
        weights[name] = page.evaluate(WEIGHT)
    assert min(weights.values()) > 0
    assert max(weights.values()) <= BUDGETS["next_page_kb"] * 1000, weights


@pytest.fixture(scope="module")
def theme(site_dir):
    """The theme's style sheet, and the characters of each of its icon fonts."""
    css = (site_dir / THEME).read_text(encoding="utf-8")
    fonts = {
        (name, int(weight)): set(TTFont(BytesIO(b64decode(data))).getBestCmap())
        for name, weight, data in re.findall(FACE, css)
    }
    return css, fonts


def test_every_icon_of_a_page_has_its_drawing(site_dir, theme, page_name):
    css, fonts = theme
    page = (site_dir / page_name).read_text(encoding="utf-8")
    icons = re.findall(r'class="([^"]*\bfa-[^"]*)"', page)
    assert len(icons) >= 8
    for classes in map(str.split, icons):
        face = ("Brands", 400) if "fab" in classes or "fa-brands" in classes else ("Free", 900)
        rules = [re.search(rf'\.{c}:before[^{{]*\{{content:"\\(\w+)"\}}', css) for c in classes]
        codes = [int(rule[1], 16) for rule in rules if rule]
        assert len(codes) == 1, classes
        assert codes[0] in fonts[face], classes


def test_every_icon_of_the_style_sheet_has_its_drawing(theme):
    css, fonts = theme
    drawn = set.union(*fonts.values())
    named = re.findall(r'--pst-[\w-]+:"([^"]*)"', css)
    icons = {ord(char) for text in named for char in text if char >= "\ue000"}
    assert len(icons) >= 12
    assert icons <= drawn
