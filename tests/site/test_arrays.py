"""Printed arrays as tables: the numbers, names and order of what was printed, tinted by value."""

import json
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup, SoupStrainer

from book._ext.content.arrays import LEVELS, Array, array_html, arrays_and_texts
from book._ext.content.search import entries_of_page
from tests.sampling import long
from tests.site.browsing import INKS, OPEN_ALL, PHONE, quiet
from tools.chapters import pages
from tutorial_lib import describe

TOKENS = ["dogs", "that", "bark"]
CHAPTER = "notebooks/03_attention_weights.html"
WIDE = "notebooks/20_scoring_heads.html"  # has a table of ten columns
PAGES = [page.name for page in pages()]
PAPER = "() => getComputedStyle(document.body).backgroundColor"
OUTPUT = re.compile(r"\bcell_output\b")
STREAMS = ".cell_output .output.stream"
# Each form that `show` and `show_fractions` print as a table.
FORMS = {
    "a vector": ("show", "ids", [1, 2, 3], {}),
    "named entries": ("show", "weights", [0.5, 0.25, 0.25], {"columns": TOKENS}),
    "one number in a matrix": ("show", "Ann", [[31]], {}),
    "no names": ("show", "W_O", [[1, 0, -1], [0, 10, 2]], {}),
    "named rows": ("show", "X", np.eye(3), {"rows": TOKENS}),
    "numbers as names": ("show", "mean, top", [[1, 2], [3, 4]], {"columns": [4, 16]}),
    "rows numbered": ("show", "W_Q", [[1, -1], [0, 2]], {"rows": range(2)}),
    "names of several words": (
        *("show", "excess loss (nats)", [[0.4, -0.25], [1, 2]]),
        {"rows": ["2 new words", "(none)"], "columns": ["4 of 8", "last doubling"]},
    ),
    "one column": ("show", "score", [[0.65], [1]], {"rows": ["a, 0 back", "b"], "columns": ["x"]}),
    "fractions": ("show_fractions", "bark", [[4 / 7, -1 / 7], [0, 3]], {"rows": ["a", "b"]}),
    "a mask": ("show", "may look", np.tri(3, dtype=bool), {"rows": TOKENS, "columns": TOKENS}),
    "without a limit": ("show", "e to the 1000", [np.inf, -np.inf, np.nan], {}),
    "two heads": ("show", "scores", np.arange(12).reshape(2, 2, 3) - 4, {"rows": ["a", "b"]}),
    "heads of unlike width": (
        *("show_fractions", "weights", [[[1, 0], [1 / 2, 1 / 2]], [[16 / 17, 1 / 17], [0, 1]]]),
        {"rows": ["dogs", "that"], "columns": ["dogs", "that"]},
    ),
    "a batch of heads": ("show", "Q", np.arange(24).reshape(2, 2, 2, 3) / 8, {}),
    "thousands": ("show", "parameters", np.array([["49,664", "7"]]), {}),
}
# What is printed and is no such array: shapes alone, a line too few, another number, words.
NONE = [
    "scores   (2, 2, 3)\nweights  (2, 2, 3)\nY        (2, 8)\n",
    "X   (2, 2)\n1  0\n",
    "X   (2, 2)\n1  0\n0  1 \n\n",
    "ids   (3,)\n1  2\n",
    "names   (2,)\ndogs  that\n",
    "heads   (2, 1, 1)\n[0]\n31\n45\n\n",
    "empty   (0, 3)\n",
    f"wide   (13,)\n{'  '.join('1' * 13)}\n",
    "tall   (25, 1)\n" + "1\n" * 25 + "\n",
    "loops agree: True\n",
]


def printed(capsys, form):
    """Return what a form prints."""
    function, label, value, names = form
    getattr(describe, function)(label, np.asarray(value), **names)
    return capsys.readouterr().out


def table_of(html):
    """Return the text that `show` would print of a table in HTML, by what the table says."""
    array = BeautifulSoup(html, "html.parser").select_one(".book-array")
    tables = array.select("table")
    label = array.select_one("caption" if len(tables) == 1 and not array.get("role") else "div")
    shape = label.small.extract().get_text()
    sizes = [int(size) for size in shape.strip("(),").split(", ")]
    cells = [td.get_text() for td in array.select("tbody td")]
    rows = [th.get_text() for th in tables[0].select("tbody th[scope=row]")]
    columns = [th.get_text() for th in tables[0].select("thead th[scope=col]")]
    text = describe.format_array(
        np.reshape(cells, sizes), str, rows=rows or None, columns=columns or None
    )
    return f"{label.get_text(strip=True)}   {shape}\n{text}\n" + "\n" * (len(sizes) > 1)


def streams(name):
    """Return what each cell of a page printed, in order."""
    [path] = [page.path for page in pages() if page.name == name]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = (output for cell in cells for output in cell.get("outputs", ()))
    return ["".join(output["text"]) for output in outputs if output["output_type"] == "stream"]


def tints(html):
    """Return the class of each cell of a table, or an empty text."""
    cells = BeautifulSoup(html, "html.parser").select("tbody td")
    return ["".join(cell.get("class", ())) for cell in cells]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_array_of_show_stays_text(text):
    assert arrays_and_texts(text) == [text.strip("\n")]


@pytest.mark.parametrize("between", ["", "between: 1\n"])
def test_each_form_of_show_becomes_a_table_that_says_the_same(capsys, between):
    texts = {name: printed(capsys, form) for name, form in FORMS.items()}
    found = arrays_and_texts(between.join(["", *texts.values(), ""]))
    arrays = [piece for piece in found if isinstance(piece, Array)]
    assert {n: table_of(array_html(array)) for n, array in zip(texts, arrays, strict=True)} == texts
    rest = [piece for piece in found if not isinstance(piece, Array)]
    assert rest == [between.strip()] * (len(texts) + 1) * bool(between)


def test_names_are_no_markup():
    array = Array("K < V", np.array([["1"]]), ["<pad>"], ["a & b"])
    table = BeautifulSoup(array_html(array), "html.parser")
    assert [th.get_text() for th in table.select("th")] == ["a & b", "<pad>"]
    assert table.caption.get_text() == "K < V (1, 1)"


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["0", "1/3", "2/3", "1"], ["", "t3", "t7", f"t{LEVELS}"]),
        (["0.04", "0.2"], ["", "t2"]),  # of 1, as every weight
        (["2", "-1", "-0.01", "0"], ["t10", "n5", "", ""]),  # of the largest, of either sign
        (["-4", "2"], ["n10", "t5"]),
        (["8", "4"], ["t10", "t5"]),
        (["✓", "·"], ["t10", ""]),
        (["inf", "nan", "-inf", "1"], ["", "", "", "t10"]),
        (["1024", "16"], ["", ""]),  # counts
        (["31"], [""]),  # nothing to compare with
        (["0", "0"], ["", ""]),
    ],
)
def test_tint_is_linear_in_the_number(numbers, expected):
    assert tints(array_html(Array("", np.array([numbers]), None, None))) == expected


def test_matrices_of_one_array_have_one_scale():
    array = Array("", np.array([[["1"]], [["-4"]]]), None, None)
    assert tints(array_html(array)) == ["t2", "n10"]


@pytest.mark.parametrize("name", PAGES)
def test_every_stored_array_becomes_a_table_that_says_the_same(name):
    for text in streams(name):
        for piece in arrays_and_texts(text):
            said = table_of(array_html(piece)).strip("\n") if isinstance(piece, Array) else piece
            assert said in text
        heads = [line for line in text.split("\n") if line.endswith(")") and "   (" in line]
        arrays = [piece for piece in arrays_and_texts(text) if isinstance(piece, Array)]
        assert len(arrays) == len(heads) or "Y        (2, 8)" in text


@pytest.mark.parametrize("name", PAGES)
def test_page_says_all_that_its_cells_printed_in_their_order(site_dir, name):
    html = (site_dir / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    page = BeautifulSoup(html, "html.parser", parse_only=SoupStrainer(class_=OUTPUT))
    shown = " ".join(output.get_text(" ") for output in page.select(STREAMS)).split()
    words = "\n".join(streams(name)).split()
    assert shown == words
    assert page.select(".book-array")


def test_search_reads_a_table_as_what_code_printed():
    html = array_html(Array("weights", np.array([["0.731", "0.269"]]), None, ["dogs", "bark"]))
    article = f'<article><section id="a"><h1>A</h1><p>Weights.</p>{html}</section></article>'
    [entry] = entries_of_page(article)
    assert entry["texts"] == ["Weights."]
    assert {"weights", "dogs", "bark"} <= set(entry["code"])


@pytest.fixture(scope="module", params=[CHAPTER, *long(WIDE)])
def opened(visit, request):
    """A chapter on a phone, everything unfolded."""
    with quiet(visit(request.param, **PHONE)) as page:
        page.evaluate(OPEN_ALL)
        yield page


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_are_legible_on_every_tint(opened, dark):
    opened.emulate_media(color_scheme="dark" if dark else "light")
    mode = "dark" if dark else "light"
    opened.wait_for_function(f"() => document.documentElement.dataset.theme === '{mode}'")
    assert min(opened.locator(".book-array tbody td").evaluate_all(INKS)) >= 4.5


def test_names_of_rows_stay_in_sight_in_a_table_that_scrolls(open_page):
    page = open_page(WIDE, **PHONE)
    page.evaluate(OPEN_ALL)
    table = page.locator(".book-array", has_text="attribution").first
    name, last = table.locator("[scope=row]").first, table.locator("tr").nth(1).locator("td").last
    left, far = name.bounding_box()["x"], last.bounding_box()["x"]
    assert far > 390
    table.locator("> div").evaluate("(box) => { box.scrollLeft = 9999; }")
    assert last.bounding_box()["x"] + last.bounding_box()["width"] < 390
    assert name.bounding_box()["x"] == pytest.approx(left, abs=2)
    covers = """(name) => {
      name.scrollIntoView({block: "center"});
      const {x, y, height} = name.getBoundingClientRect();
      const {backgroundColor} = getComputedStyle(name);
      return [document.elementFromPoint(x + 4, y + height / 2) == name, backgroundColor];
    }"""
    assert name.evaluate(covers) == [True, page.evaluate(PAPER)]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("name", ["book/notation.html"])
def test_first_column_of_an_ordinary_table_stays_in_sight_on_a_phone(open_page, name):
    page = open_page(name, **PHONE)
    table = page.locator(".pst-scrollable-table-container:has(table.table)").first
    first = table.locator("tbody tr").first.locator("> :first-child")
    left = first.bounding_box()["x"]
    assert table.evaluate("(box) => { box.scrollLeft = 80; return box.scrollLeft; }") == 80
    assert first.bounding_box()["x"] == pytest.approx(left, abs=1.5)


@pytest.fixture(scope="module")
def wide(visit):
    """A chapter on a wide page, everything unfolded."""
    with quiet(visit(CHAPTER)) as page:
        page.evaluate(OPEN_ALL)
        yield page


def test_copied_table_has_the_numbers_of_the_text(wide):
    table = wide.locator(".book-array", has_text="raw").first
    copied = table.evaluate(
        """(table) => {
          const selection = getSelection();
          selection.selectAllChildren(table);
          return selection.toString();
        }"""
    )
    [text] = [text for text in streams("03_attention_weights") if "raw" in text]
    assert copied.split() == text.split()
