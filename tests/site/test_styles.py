"""The one style sheet of the site: every rule that something can match, and few others."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from book._ext.theme.styles import known_classes, parse_stylesheet, rules_that_match
from tests.sampling import long
from tests.site.browsing import KINDS, LIGHT, ROOT
from tutorial_lib.elements.sources import KINDS as ELEMENTS
from tutorial_lib.elements.sources import style

# What the sheet is made of, as its packages bring it.
SOURCES = {
    "pydata_sphinx_theme": "pydata-sphinx-theme.css",
    "sphinx_book_theme": "sphinx-book-theme.css",
    "myst_nb": "mystnb.css",
    "sphinx_design": "sphinx-design.min.css",
}
# The parts of selectors, of sheets given as text, that match something in the page but are in no
# rule of its own sheet. A state such as :hover, and what no element is, matches for this question.
LOST = """(sheets) => {
  const walk = (rules, found) => {
    for (const rule of rules) {
      if (rule.selectorText && rule.style.length) found.push(rule.selectorText);
      if (rule.cssRules) walk(rule.cssRules, found);
    }
    return found;
  };
  const split = (text) => text.split(/,(?![^(]*\\))/).map((part) => part.trim());
  const have = new Set(walk(document.styleSheets[0].cssRules, []).flatMap(split));
  const still = (part) => part
    .replace(/::[\\w-]+(\\([^)]*\\))?/g, "")
    .replace(/:(hover|focus|focus-visible|focus-within|active|visited|target)\\b/g, "");
  const matches = (part) => {
    try {
      return document.querySelector(still(part) || "*");
    } catch {
      return null; // what this browser cannot read, it does not show either
    }
  };
  const asked = sheets.flatMap((css) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    return walk(sheet.cssRules, []).flatMap(split);
  });
  const known = asked.filter(matches);
  return { known: known.length, lost: known.filter((part) => !have.has(part)) };
}"""
# Everything opens that opens, and answers that answers.
USE = """() => {
  const press = (selector) => document.querySelectorAll(selector).forEach((e) => e.click());
  press(".dropdown-toggle, .theme-switch-button, .secondary-toggle, .copybtn");
  press("tl-quiz input, .tl-predict input, .tl button");
  document.querySelectorAll("details").forEach((e) => { e.open = true; });
  document.querySelector(".search-button-field, .search-button").click();
}"""


@pytest.fixture(scope="module")
def originals() -> list[str]:
    """The style sheets that the site's own is made of."""
    texts = []
    for package, name in SOURCES.items():
        [path, *_] = Path(find_spec(package).origin).parent.rglob(name)
        texts.append(path.read_text(encoding="utf-8"))
    texts += [p.read_text(encoding="utf-8") for p in (ROOT / "book/_static").glob("*.css")]
    return [*texts, style(*ELEMENTS)]


@pytest.mark.parametrize("width", [390, *long(1280)])
@pytest.mark.parametrize("name", [LIGHT[3], *long(*[name for name in KINDS if name != LIGHT[3]])])
def test_no_rule_that_matches_something_is_lost(open_fresh, originals, name, width):
    page = open_fresh(name, width=width)
    page.evaluate(USE)
    page.wait_for_timeout(200)
    found = page.evaluate(LOST, originals)
    assert found["known"] > 250
    assert found["lost"] == []


def reduced(css, page, *scripts, tmp_path):
    """Return a style sheet as the site has it, of a page and scripts given as text."""
    sheet = tmp_path / "sheet.css"
    sheet.write_text(css, encoding="utf-8")
    return rules_that_match(parse_stylesheet(sheet), known_classes(page, scripts))


PAGE = '<main class="book wide" id="top"><p data-mode="x" lang="en">card</p></main>'


@pytest.mark.parametrize(
    "selector",
    ["main p", ".book.wide > #top:hover", "*", "main:not(.card) p", ":is(.card, .book) p", ".made"],
)
def test_rule_stays_whose_classes_a_page_has_or_a_script_may_give(selector, tmp_path):
    css = f"{selector}{{color: red;}}"
    assert reduced(css, PAGE, 'e.className = "made"', tmp_path=tmp_path) == css


@pytest.mark.parametrize("selector", [".card", "p.table", "main > .tab:hover"])
def test_rule_goes_that_asks_for_a_class_that_nothing_has(selector, tmp_path):
    assert reduced(f"{selector} {{ color: red }}", PAGE, tmp_path=tmp_path) == ""
    assert reduced(f"p, {selector} {{ color: red }}", PAGE, tmp_path=tmp_path) == "p{color: red}"


def test_media_stay_with_what_they_hold_and_go_when_they_hold_nothing(tmp_path):
    css = "@media print{p{top:0!important;}}@supports (top: 0){.card{top:0;}}@page {margin: 0}"
    kept = "@media print{p{top:0!important;}}@page {margin: 0}"
    assert reduced(css, PAGE, tmp_path=tmp_path) == kept


def test_sheet_that_is_imported_stands_where_it_was_asked_for(tmp_path):
    (tmp_path / "first.css").write_text("p { top: 1px }", encoding="utf-8")
    css = '@charset "utf-8"; @import "first.css"; p { top: 2px }'
    assert reduced(css, PAGE, tmp_path=tmp_path) == "p{top: 1px}p{top: 2px}"


def test_each_page_has_one_sheet_and_the_site_no_other(site_dir, page_name):
    page = (site_dir / page_name).read_text(encoding="utf-8")
    assert page.count('rel="stylesheet"') == 1
    assert [path.name for path in site_dir.glob("**/*.css")] == ["site.css"]
