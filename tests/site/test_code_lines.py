"""Code on a phone: a long line goes on below itself, and its text stays as it was."""

import re
from html import unescape
from pathlib import Path

import pytest

from book._ext.theme.code_lines import wrap_code_lines
from tests.chapters.pages import code_cells, written
from tests.site.browsing import OPEN_ALL, quiet

PRE = re.compile(r"<pre>(.*?)</pre>", re.DOTALL)
NAME = "06_output_projection"
WIDER = """() => [...document.querySelectorAll(".cell_input pre")]
  .filter((pre) => pre.scrollWidth > pre.clientWidth).map((pre) => pre.textContent)"""
HANGS = """() => [...document.querySelectorAll(".cell_input .line")].some((line) => {
  const [first, second] = [...new Set([...line.getClientRects()].map((r) => r.height))];
  return first > 1.5 * parseFloat(getComputedStyle(line).lineHeight);
})"""


def block(code):
    """Return a program as Sphinx writes it."""
    return (
        '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>'
        f"{code}</pre></div>\n</div>"
    )


def test_each_line_is_an_element_with_the_depth_of_its_indent():
    code = 'def f():\n    <span class="k">return</span> 1\n\n            x\n'
    pages = {Path("a.html"): block(code) + "<pre>no program\n</pre>"}
    wrap_code_lines(None, pages)
    [page] = pages.values()
    assert re.findall(r'class="line (in-\d)"', page) == ["in-0", "in-1", "in-3"]
    assert re.sub(r'<span class="line in-\d">(.*?\n)</span>', r"\1", page) == block(code) + (
        "<pre>no program\n</pre>"
    )


def test_code_on_the_page_is_that_of_the_notebook(site_dir):
    page = (site_dir / f"notebooks/{NAME}.html").read_text(encoding="utf-8")
    shown = {unescape(re.sub(r"<[^>]*>", "", pre)).strip("\n") for pre in PRE.findall(page)}
    hidden = "remove-input"
    cells = [c for c in code_cells(written(NAME)) if hidden not in c.metadata.get("tags", [])]
    assert {cell.source for cell in cells} <= shown


@pytest.fixture(scope="module")
def opened(visit):
    """The chapter, everything unfolded."""
    with quiet(visit(f"notebooks/{NAME}.html")) as page:
        page.evaluate(OPEN_ALL)
        yield page


@pytest.mark.parametrize("width", [320, 390])
def test_no_code_runs_off_the_edge_of_a_phone(opened, width):
    opened.set_viewport_size({"width": width, "height": 900})
    assert opened.evaluate(WIDER) == []
    assert opened.evaluate(HANGS)


def test_code_on_a_wide_page_keeps_its_lines(opened):
    opened.set_viewport_size({"width": 1440, "height": 900})
    assert not opened.evaluate(HANGS)
