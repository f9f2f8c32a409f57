"""The frame of a page where the browser stores nothing, and the line that its set-up folds into."""

import ast
import json

import pytest
from playwright.sync_api import Locator

from tests.sampling import long
from tests.site.browsing import PHONE, ROOT, STORES, quiet

CHAPTER = "notebooks/03_attention_weights.html"
# What scrolls, and what of it the keyboard reaches.
BOXES = """() => [...document.querySelectorAll("article pre")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth)
  .map((e) => e.tabIndex)"""
WIDE_BOXES_ARE_STOPS = f"() => {{ const all = ({BOXES})(); return !all.includes(-1); }}"
REALLY = """() => [localStorage, sessionStorage].map((store) => store instanceof Storage)"""


FRAMES = ["refused phone", "full wide", *long("refused wide", "full phone")]


@pytest.fixture(scope="module", params=FRAMES)
def framed(request, visit):
    """A chapter in a browser that stores nothing; whatever it is asked, it must not complain."""
    store, width = request.param.split()
    options = PHONE if width == "phone" else {"width": 1280}
    with quiet(visit(CHAPTER, first=STORES[store], **options)) as page:
        page.narrow = width == "phone"
        page.press = Locator.tap if page.narrow else Locator.click
        yield page
        page.wait_for_load_state()


def test_colours_change_where_nothing_is_stored(framed):
    assert framed.evaluate(REALLY) == [False, False]
    page, said = framed.locator("html"), framed.locator(".theme-switch-button > [aria-live=polite]")
    shown = []
    for _ in range(3):
        framed.press(framed.get_by_role("button", name="Colour mode: "))
        modes = (page.get_attribute("data-mode"), page.get_attribute("data-theme"))
        shown.append((*modes, said.first.text_content().removeprefix("Colour mode: ")))
    assert sorted(shown) == [
        ("auto", "light", "that of the system"),
        ("dark", "dark", "dark"),
        ("light", "light", "light"),
    ]


def test_elements_answer_where_nothing_is_stored(framed):
    question = framed.locator("tl-quiz fieldset").first
    framed.press(question.locator("label").first)
    framed.press(question.get_by_role("button", name="Check"))
    assert question.locator("[aria-live] > :is(.tl-right, .tl-wrong)").is_visible()
    framed.press(framed.get_by_role("button", name="Show me").first)
    framed.press(framed.locator("details.above-input summary").first)
    for fold in ("below-input", "above-input"):
        assert framed.locator(f"details.{fold}[open]").count() == 1
    framed.press(framed.locator("tl-parsons ul code").first)
    assert framed.locator("tl-parsons ol li").count() == 1


def test_keys_reach_and_scroll_code_where_nothing_is_stored(framed):
    framed.wait_for_function(WIDE_BOXES_ARE_STOPS)
    found = framed.evaluate(BOXES)
    if not framed.narrow:
        assert set(found) <= {0}
        return
    assert len(found) > 2
    code = framed.locator("article pre[tabindex='0']:visible").first
    code.focus()
    framed.keyboard.press("ArrowRight")
    framed.wait_for_function(
        "code => code.scrollLeft > 0 && code == document.activeElement",
        arg=code.element_handle(),
    )


def test_search_finds_where_nothing_is_stored(framed):
    field = framed.locator("#pst-search-dialog input[name=q]")
    framed.press(framed.locator(".search-button" if framed.narrow else ".search-button-field"))
    field.wait_for()
    framed.keyboard.press("Escape")
    field.wait_for(state="hidden")
    framed.keyboard.press("Control+k")
    field.fill("softmax")
    field.press("Enter")
    framed.wait_for_url("**/search.html?q=softmax**")
    framed.locator("#search-results a[href*='03_attention_weights']").first.click()
    framed.wait_for_url("**/notebooks/03_attention_weights.html**")


def test_contents_of_the_page_lead_on_where_nothing_is_stored(framed):
    if framed.narrow:
        framed.locator(".secondary-toggle").tap()
        framed.locator("#pst-secondary-sidebar-modal").wait_for()
    framed.press(framed.locator(".page-toc:visible").get_by_role("link", name="Quiz"))
    framed.wait_for_url("**#quiz")


def test_menu_leads_on_where_nothing_is_stored(framed):
    framed.reload()  # without what lies open
    sidebar = framed.locator("#pst-primary-sidebar")
    link = framed.locator(".bd-links a[href$='04_multi_head_attention.html']")
    if framed.narrow:
        assert not link.is_visible()
        framed.locator(".primary-toggle").tap()
        framed.locator("#pst-primary-sidebar-modal").wait_for()
    else:
        for state in ("hidden", "visible"):
            framed.locator(".primary-toggle").click()
            sidebar.wait_for(state=state)
    framed.press(link)
    framed.wait_for_url("**/notebooks/04_multi_head_attention.html")


@pytest.mark.long
def test_what_was_stored_before_a_store_was_full_is_read(open_fresh):
    page = open_fresh(CHAPTER)
    page.evaluate("() => localStorage.setItem('mode', 'dark')")
    page.add_init_script(STORES["full"])
    page.reload()
    assert page.evaluate("() => localStorage instanceof Storage") is False
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_store_that_works_is_left_as_it_is(open_page):
    page = open_page(CHAPTER)
    assert page.evaluate(REALLY) == [True, True]
    assert "?" not in page.evaluate("() => [...Object.keys(localStorage)]")


def code_cells(name):
    """Return the code cells of a notebook."""
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def is_for_colab(node) -> bool:
    """Whether a statement does something in Colab only."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "'google.colab' in sys.modules"


def prepares(cell) -> bool:
    """Whether a cell, apart from Colab, only imports, and names a constant or two."""
    body = ast.parse("".join(cell["source"])).body
    body = [node for node in body if not is_for_colab(node)]
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    constants = [
        node
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    ]
    return bool(imports) and len(imports) + len(constants) == len(body)


def test_set_up_is_one_line_at_the_head_and_nothing_of_it_stands_elsewhere(open_page, notebook):
    page = open_page(f"notebooks/{notebook}.html")
    fold = page.locator("article details.book-setup")
    assert fold.count() == 1
    assert fold.locator("summary").inner_text() == "Set-up"
    assert fold.bounding_box()["height"] <= 48
    folded = fold.locator("div.cell > .cell_input").count()
    first, *others = code_cells(notebook)
    assert "find_spec" in "".join(first["source"])
    assert folded == 1 + sum(map(prepares, others)), "imports that are not tagged hide-input"
    assert page.locator("article div.cell").first.evaluate("e => !!e.closest('.book-setup')")
    fold.locator("summary").click()
    assert fold.locator("pre").last.is_visible()


def test_each_fold_says_what_it_holds(open_page, notebook):
    page = open_page(f"notebooks/{notebook}.html", java_script_enabled=False)
    folds = page.locator("article div.cell details.hide").evaluate_all(
        """folds => folds.map((fold) => [
          fold.querySelector(".collapsed").textContent,
          fold.closest("div.cell").matches(".tag_solution"),
          fold.matches(".below-input"),
          [...fold.querySelectorAll(".cell_input pre")].map((pre) => pre.textContent).join("\\n"),
        ])"""
    )
    assert len(folds) >= 1
    for name, solution, output, code in folds:
        lines = [line.strip() for line in code.strip().splitlines()]
        first = next((line for line in lines if line != "display("), "")
        count = f"{len(lines)} line{'s' * (len(lines) > 1)}"
        waits = "Output: answer above, or show it"
        assert name == (waits if output else "Solution" if solution else f"{first} {count}")
