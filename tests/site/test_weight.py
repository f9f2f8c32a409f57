"""What a page weighs and how it arrives, held to `budgets.yml`; that its icons are still there."""

import re
from base64 import b64decode
from gzip import compress
from io import BytesIO

import pytest
from fontTools.ttLib import TTFont

from tests.site.answering import ACTIONS, work
from tests.site.arrival import BUDGETS, WEIGHT, arrive, beyond_budget, closer_looks
from tests.site.browsing import KINDS, PARAMETERS, ROOT, said

SHEET = "_static/site.css"
FACE = r"@font-face\{[^}]*(Free|Brands);[^}]*font-weight:(\d+);[^}]*base64,([^)]+)\)"


def test_file_of_a_page_and_what_it_links_are_within_the_budget(site_dir, page_name):
    text = (site_dir / page_name).read_text(encoding="utf-8")
    names = re.findall(r'(?:src|rel="stylesheet" href)="[^"]*?(_static/[^"?]*)', text)
    names += ["_static/formulas.woff"] * ("<math" in text)
    size = sum(len(compress((site_dir / name).read_bytes())) for name in [page_name, *names])
    assert 60_000 < size <= BUDGETS["first_visit_kb"] * 1000
    read = re.sub(r"<noscript\b.*?</noscript>|<script\b.*?</script>", "", text, flags=re.S)
    assert 200 < len(re.findall("<[a-z]", read)) <= BUDGETS["nodes"]


@pytest.mark.parametrize(
    "wish",
    [
        *("fold => fold.querySelector('summary').click()", "fold => { fold.open = true; }"),
        *("() => dispatchEvent(new Event('beforeprint'))", "() => { location.hash = '#sum=0'; }"),
        "() => document.querySelector('.book-shows').click()",
    ],
)
def test_what_waits_in_a_fold_is_there_once_it_is_wanted(open_page, wish):
    fold = open_page(KINDS[3]).locator(".book-setup")
    assert fold.locator(".line").count() == 0
    fold.evaluate(wish)
    fold.locator(".line").first.wait_for(state="attached")
    assert fold.locator("noscript").count() == 0


def test_what_lies_in_a_fold_is_there_without_a_script(visit):
    page = visit(KINDS[3], java_script_enabled=False)
    assert page.locator(".book-setup .line").first.is_visible()
    page.context.close()


def test_exhibit_and_its_model_come_when_it_is_near(open_fresh):
    page = open_fresh(None)
    page.goto("notebooks/20_scoring_heads.html")
    exhibit = page.locator("tl-ask")
    assert not exhibit.evaluate("e => e.matches(':defined') || globalThis.tlModels")
    page.locator("details", has=exhibit).locator("> summary").click()
    exhibit.get_by_role("button", name="silence head 1.2").click()
    assert said(exhibit).startswith("Head 1.2 is silenced")


def test_notebook_is_within_its_weight(notebook):
    size = (ROOT / "notebooks" / f"{notebook}.ipynb").stat().st_size
    assert size <= BUDGETS["notebook_kb"] * 1000


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [*KINDS[:2], KINDS[3], "notebooks/12_flash_attention.html", KINDS[-1]]
)
def test_page_arrives_on_a_phone_within_its_budget(browser, visit, name):
    page = arrive(browser, visit, name, 390)
    page.context.close()
    assert page.arrival["weight"] > 30_000
    assert beyond_budget(page.arrival, *closer_looks(browser, visit, name, 390)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ACTIONS)
def test_page_answers_soon(browser, visit, name):
    page = visit(name, width=390)
    page.wait_for_timeout(1000)  # what is left of its arrival has a budget of its own
    found = {}
    for action, act in ACTIONS[name].items():
        if action.startswith("("):
            act(page)
        else:
            found[action] = work(browser, page, act)
    page.context.close()
    assert min(found.values()) > 0
    assert max(found.values()) <= BUDGETS["answer"], found


@pytest.mark.long
def test_page_after_another_is_lighter(open_fresh, site_url):
    first, *later = [name for name in PARAMETERS["page_name"] if "notebooks/" in name]
    page, weights = open_fresh(first), {}
    for name in later[1::4]:
        page.goto(site_url + name)
        weights[name] = page.evaluate(WEIGHT)
    assert min(weights.values()) > 0
    assert max(weights.values()) <= BUDGETS["next_page_kb"] * 1000, weights


@pytest.fixture(scope="module")
def theme(site_dir):
    """The site's style sheet, and the characters of each of its icon fonts."""
    css = (site_dir / SHEET).read_text(encoding="utf-8")
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
        rules = [re.search(rf'\.{c}:before[^{{]*\{{content:"(.)"', css) for c in classes]
        codes = [ord(rule[1]) for rule in rules if rule]
        assert len(codes) == 1, classes
        assert codes[0] in fonts[face], classes


def test_every_icon_of_the_style_sheet_has_its_drawing(theme):
    css, fonts = theme
    drawn = set.union(*fonts.values())
    icons = {ord(char) for char in re.findall("[\ue000-\uf8ff]", css)}
    assert len(icons) >= 12
    assert icons <= drawn
