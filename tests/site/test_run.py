"""Python in the page: the button, the cells, Stop, errors and what cannot load.

No network is needed. In most tests a stand-in takes the place of the worker: it has the same
messages, and the book's own Python behind it instead of Pyodide. What Pyodide itself does is tested
where its files lie in `_build/pyodide`, which `make site-assets` fills.
"""

import ast
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile

import pytest
from axe_playwright_python.sync_playwright import Axe

from book._ext.content import runnable
from book._static.run_cell import run_cell
from tests.chapters.pages import FIRST_REVIEW
from tests.sampling import long
from tests.site.arrival import BUDGETS
from tests.site.browsing import ROOT, SCRIPT, STORES
from tests.wheel import build_wheel
from tools.chapters import NOT_IN_BROWSER, pages
from tutorial_lib import hunt
from tutorial_lib.records import ADDRESS, MANIFEST

STATIC = ROOT / "book" / "_static"
KEPT = ROOT / "_build" / "pyodide"
LOCK = json.loads((STATIC / "pyodide.json").read_text(encoding="utf-8"))
CORE = {name: digest for name, digest in LOCK["files"].items() if not name.endswith(".whl")}
IN_BROWSER = [page.name for page in pages() if page.runs_in_browser]
DIGESTS = json.loads(MANIFEST.read_text(encoding="utf-8"))
CELLS = "div.cell:has(.cell_input)"
HOST = "python.example"

STAND_IN = """// Stands in for run-worker.js: cells go to the book's own Python, by way of the test.
onmessage = async ({ data }) => {
  if (data.lock) {
    for (const files of [0, 1, 2]) {
      postMessage({ host: "HOST", files, of: 2, bytes: files * 1.5e6 });
    }
  }
  const response = await fetch("stand-in", { method: "POST", body: JSON.stringify(data) });
  const answer = await response.json();
  answer.shown.forEach(([kind, text]) => postMessage({ kind, text }));
  postMessage({ done: answer.done });
};
""".replace("HOST", HOST)

# Types into cell 9, and leaves the page at once.
TYPE_AND_LEAVE = """(text) => {
  const area = document.querySelector("[aria-label='Code of cell 9']");
  area.value = text;
  area.dispatchEvent(new Event("input"));
  location.reload();
}"""
# Gives the last cell of a page the text of the one before it, before any script reads them.
TWINS = """document.addEventListener("readystatechange", () => {
  const cells = [...document.querySelectorAll("div.cell .cell_input pre")].slice(-2);
  if (document.readyState == "interactive") cells[1].textContent = cells[0].textContent;
});"""


def run_in_book_python(source, name, variables):
    """Run a cell; return all that it shows, and whether it ended."""
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = run_cell(source, name, variables, lambda *pair: shown.append(pair))
    return {"shown": shown, "done": done}


@pytest.fixture
def open_stand_in(open_fresh):
    """Open a page whose worker is the stand-in; a cell with `while True` never answers."""

    def open_(path="notebooks/03_attention_weights.html", **options):
        page = open_fresh(path, **options)
        page.ran, variables = [], {}

        def answer(route):
            asked = route.request.post_data_json
            if "lock" in asked:
                variables.clear()
                variables["__name__"] = "__main__"
                route.fulfill(json={"shown": [], "done": True})
            else:
                page.ran.append(asked["name"])
                if "while True" not in asked["source"]:
                    found = run_in_book_python(asked["source"], asked["name"], variables)
                    route.fulfill(json=found)

        page.route("**/run-worker.js", lambda route: route.fulfill(body=STAND_IN, headers=SCRIPT))
        page.route("**/stand-in", answer)
        return page

    return open_


def status(page):
    """What the page says of Python."""
    return page.locator(".tl-run [role=status]").inner_text()


def wait(page, words, seconds=60):
    """Wait until the page says these words of Python."""
    page.locator(".tl-run [role=status]", has_text=words).wait_for(timeout=seconds * 1000)


def press(page, *, seconds=60):
    """Start Python, and open what is folded above its output: the set-up, the code of pictures."""
    page.get_by_role("button", name="Run here").click()
    wait(page, "Python is ready", seconds)
    page.locator("details.above-input").evaluate_all(
        "all => all.forEach((d) => { d.open = true; })"
    )
    return page


def area(page, number):
    """Where the code of a cell is edited."""
    return page.get_by_role("textbox", name=f"Code of cell {number}", exact=True)


def push(page, words, number):
    """Press a button of a cell."""
    page.get_by_role("button", name=f"{words}: cell {number}", exact=True).click()


def focused(page):
    """The name of what has the focus."""
    return page.evaluate(
        """() => {
          const { ariaLabel, dataset, textContent } = document.activeElement;
          return ariaLabel ?? dataset.tooltip ?? textContent;
        }"""
    )


def run(page, code, number=2):
    """Write code into a cell, run it, and return what the cell shows."""
    area(page, number).fill(code)
    push(page, "Run", number)
    wait(page, re.compile(f"Cell {number} (has run|ended)"))
    return shown(page, number)


def shown(page, number):
    """What a cell shows, as text."""
    return page.locator(CELLS).nth(number - 1).locator(".cell_output").inner_text().strip()


def outputs(page):
    """The words of every cell's output, open or closed, and how many pictures it has.

    An array is a table in the page as built, and text where its cell has run again. A figure that
    has run again brings a style sheet, which is no words.
    """
    return page.locator(CELLS).evaluate_all(
        """cells => cells.map((cell) => {
          const texts = ({localName, childNodes, textContent}) => localName == "style" ? []
            : childNodes.length ? [...childNodes].flatMap(texts) : textContent;
          const output = cell.querySelector('.cell_output');
          const words = output && [texts(output)].flat().join(" ").trim().split(/\\s+/);
          return output ? [words.join(" "), output.querySelectorAll('svg').length] : null;
        })"""
    )


def test_button_stands_on_the_pages_that_run_in_the_browser_and_the_others_say_why(site_dir):
    for page in pages():
        text = (site_dir / "notebooks" / f"{page.name}.html").read_text(encoding="utf-8")
        assert ('class="tl-run"' in text) == page.runs_in_browser, page.name
        reason = f"This chapter cannot run here, since {NOT_IN_BROWSER.get(page.part)}."
        assert (reason in text) != page.runs_in_browser, page.name


def test_nothing_of_python_loads_before_the_press(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html")
    loaded = page.evaluate("() => performance.getEntriesByType('resource').map((e) => e.name)")
    assert [url for url in loaded if "run-worker" in url or "pyodide" in url] == []
    assert len(gzip.compress((STATIC / "run.js").read_bytes())) <= 5_900
    assert page.locator("textarea, .tl-tools").count() == 0


@pytest.mark.parametrize("name", ["03_attention_weights", *long(FIRST_REVIEW)])
def test_chapter_that_runs_in_the_page_shows_what_it_showed_before(open_stand_in, name):
    page = open_stand_in(f"notebooks/{name}.html")
    page.evaluate("() => unwrap(document)")  # the tables that wait in folds
    before = outputs(page)
    press(page)
    page.get_by_role("button", name="Run all cells").click()
    wait(page, f"Cell {len(before)} has run.", seconds=240)
    assert page.ran == [f"cell {i + 1}" for i in range(len(before))]
    after = [found if found != ["", 0] else None for found in outputs(page)]
    assert after == before


@pytest.mark.parametrize(
    ("name", "place"),
    [("02_queries_keys_values", ".book-deeper"), *long(("03_attention_weights", ".book-setup"))],
)
def test_error_of_a_cell_opens_the_fold_that_it_is_in(open_stand_in, name, place):
    page = press(open_stand_in(f"notebooks/{name}.html"))
    fold = page.locator(f"{place}:has(textarea)").first
    fold.evaluate("(fold) => { fold.open = true; }")
    name = fold.locator("textarea").last.get_attribute("aria-label")
    number = int(name.removeprefix("Code of cell "))
    assert run(page, "print('deep')", number) == "deep"
    area(page, number).fill("1 / 0")
    button = page.get_by_role("button", name=f"Run: cell {number}", exact=True)
    button.evaluate(f"(it) => {{ it.click(); it.closest('{place}').open = false; }}")
    wait(page, f"Cell {number} ended in an error")
    assert fold.get_attribute("open") is not None
    assert "ZeroDivisionError" in shown(page, number)


def test_page_tells_how_python_arrives(open_stand_in):
    page = open_stand_in()
    page.evaluate(
        """() => {
          window.told = [];
          const status = document.querySelector('.tl-run [role=status]');
          new MutationObserver(() => told.push(status.textContent))
            .observe(status, { childList: true });
        }"""
    )
    press(page)
    told = page.evaluate("() => told")
    assert told[:4] == [
        "Python is starting.",
        f"Python is loading from {HOST}: 0 of 2 files, 0.0 MB.",
        f"Python is loading from {HOST}: 1 of 2 files, 1.5 MB.",
        "All 2 files are here, 3.0 MB. Python is starting.",
    ]
    assert not page.locator(".tl-run progress").is_visible()


def test_cell_can_be_edited_and_keeps_its_colours(open_stand_in):
    page = press(open_stand_in())
    box = page.locator(CELLS).nth(1)
    before = box.bounding_box()["height"]
    assert run(page, 'def double(x):  # "twice"\n    return 2 * x\n\n\ndouble("ab" * 3)') == (
        "'abababababab'"
    )
    copy = box.locator("pre").first
    kinds = copy.locator("span").evaluate_all("all => all.map((e) => [e.className, e.innerText])")
    assert kinds == [
        *(["k", "def"], ["c1", '# "twice"'], ["k", "return"], ["mi", "2"]),
        *(["s2", '"ab"'], ["mi", "3"]),
    ]
    assert copy.inner_text().rstrip("\n") == area(page, 2).input_value()
    area(page, 2).fill("\n" * 40)
    assert box.bounding_box()["height"] > before + 400


def test_text_that_is_typed_lies_on_its_copy(open_stand_in):
    page = press(open_stand_in(width=390))
    area(page, 2).fill("x" * 200)
    sizes = page.locator(CELLS).nth(1).locator(".tl-edit > *")
    boxes = [node.bounding_box() for node in sizes.all()]
    assert boxes[0] == boxes[1]
    assert boxes[0]["width"] > 1_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_keys_run_cells_and_none_is_trapped(open_stand_in):
    page = press(open_stand_in())
    area(page, 2).fill("")
    area(page, 2).focus()
    page.keyboard.type("for i in (1, 2):")
    page.keyboard.press("Enter")
    page.keyboard.type("print(i)")
    assert area(page, 2).input_value() == "for i in (1, 2):\n    print(i)"
    page.keyboard.press("Shift+Enter")
    wait(page, "Cell 2 has run")
    assert shown(page, 2) == "1\n2"
    assert focused(page) == "Code of cell 3"
    for expected in ("Copy", "Run: cell 3", "Run all above: cell 3"):
        page.keyboard.press("Tab")
        assert focused(page) == expected
    page.keyboard.press("Enter")
    wait(page, "Cell 2 has run")
    assert page.ran == ["cell 2", "cell 1", "cell 2"]


def test_key_that_runs_a_cell_goes_on_to_the_next_that_is_open(open_stand_in):
    page = press(open_stand_in())
    numbers = page.locator(CELLS).evaluate_all(
        """cells => cells.flatMap((cell, i) => cell.matches(".tag_solution") ? [i + 1] : [])"""
    )
    fold = page.locator(CELLS).nth(numbers[0] - 1).locator("details")
    fold.evaluate("fold => { fold.open = false; }")
    area(page, numbers[0] - 1).fill("1")
    page.keyboard.press("Shift+Enter")
    assert focused(page) == f"Code of cell {numbers[0] + 1}"
    assert fold.get_attribute("open") is None


def test_cells_pressed_while_one_runs_wait_their_turn(open_stand_in):
    page = press(open_stand_in())
    for number in (2, 3, 4):
        area(page, number).fill(str(number))
    states = page.evaluate(
        """() => {
          const named = (number) => `[aria-label="Run: cell ${number}"]`;
          for (const number of [2, 4, 3, 4, 2]) document.querySelector(named(number)).click();
          return [...document.querySelectorAll('.tl-state')].map((state) => state.textContent);
        }"""
    )
    assert states[1:5] == ["waiting", "waiting", "waiting", ""]
    wait(page, "Cell 3 has run.")
    assert page.ran == ["cell 2", "cell 4", "cell 3"]


def test_error_shows_as_python_shows_it_and_ends_the_queue(open_stand_in):
    page = press(open_stand_in())
    area(page, 2).fill("def halve(x):\n    return x / 0\n\n\nhalve(1)")
    push(page, "Run all above", 5)
    wait(page, "Cell 2 ended in an error: ZeroDivisionError: division by zero")
    assert shown(page, 2).splitlines()[:3] == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 5, in <module>',
        "    halve(1)",
    ]
    assert shown(page, 2).splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "run_cell" not in shown(page, 2)
    assert page.ran == ["cell 1", "cell 2"]
    assert page.locator(".tl-state").all_text_contents()[:5] == ["done", "error", "", "", ""]
    found = run(page, "if True\n    1")
    assert found.splitlines()[0] == 'File "<cell 2>", line 1'
    assert found.splitlines()[-1] == "SyntaxError: expected ':'"


@pytest.mark.long
def test_what_a_cell_shows_keeps_its_order(open_stand_in):
    page = press(open_stand_in())
    found = run(page, 'import sys\nprint("a")\nprint("b", file=sys.stderr)\nprint("c")\n1 + 1')
    assert found.split() == ["a", "b", "c", "2"]
    blocks = page.locator(CELLS).nth(1).locator(".output")
    kinds = blocks.evaluate_all("all => all.map((block) => block.dataset.kind)")
    assert kinds == ["stdout", "stderr", "stdout", "text"]
    assert run(page, "print('<b>&</b>')") == "<b>&</b>"
    assert run(page, "x = 1") == ""


def test_element_that_a_cell_shows_answers(open_stand_in):
    page = press(open_stand_in())
    run(
        page,
        "from tutorial_lib.elements import quiz, parsons\nparsons('04_multi_head_attention')",
    )
    element = page.locator(CELLS).nth(1).locator("tl-parsons")
    element.locator(".tl-add").first.click()
    element.get_by_role("button", name="Check").click()
    assert element.locator("[aria-live]").first.inner_text()
    run(page, "parsons('04_multi_head_attention')")  # the same again: what was done is there
    assert element.locator("ol li").count() == 1
    assert element.locator("[aria-live]").first.inner_text()


@pytest.mark.long
def test_closed_output_opens_for_its_own_cell_and_not_for_others(open_stand_in):
    page = press(open_stand_in())
    number = page.locator(CELLS).evaluate_all(
        "cells => cells.findIndex((c) => c.querySelector('details.below-input')) + 1"
    )
    closed = page.locator(CELLS).nth(number - 1).locator("details.below-input")
    push(page, "Run all above", number + 1)
    wait(page, f"Cell {number} has run.")
    assert closed.get_attribute("open") is None
    push(page, "Run", number)
    assert closed.get_attribute("open") is not None


def test_stop_ends_python_and_the_next_run_starts_it_again(open_stand_in):
    page = press(open_stand_in())
    run(page, "secret = 1")
    area(page, 3).fill("while True: pass")
    push(page, "Run", 3)
    push(page, "Run", 4)
    stop = page.get_by_role("button", name="Stop: cell 3", exact=True)
    stop.focus()
    page.keyboard.press("Enter")
    wait(page, "Stopped. Python has ended and its variables are gone.")
    assert page.workers == []
    assert focused(page) == "Run all above: cell 3"
    states = page.locator(".tl-state").all_text_contents()
    assert states[2] == status(page)
    assert set(states) == {"", states[2]}
    assert page.get_by_role("button", name="Stop").count() == 0
    assert "NameError" in run(page, "secret")
    assert page.ran == ["cell 2", "cell 3", "cell 2"]


TRAINS = """from tutorial_lib import figures

def training():
    for step in range(1, 10_000):
        time.sleep(0.02)
        yield step, 4 / step, f"model {step}"

import time
model = figures.watch(training(), "start", 10_000)"""


def live(page, number):
    """The pictures of a cell, and their captions."""
    return page.locator(CELLS).nth(number - 1).locator(".cell_output figure figcaption")


@pytest.mark.long
def test_training_that_was_run_twice_has_one_curve_and_its_last_model(open_stand_in):
    page = press(open_stand_in())
    short = TRAINS.replace("10_000", "4")
    for _ in range(2):
        run(page, short + "\nprint(model)")
        assert live(page, 2).all_inner_texts() == ["Step 3 of 4: the loss is 1.333."]
    assert shown(page, 2).endswith("model 3")
    assert run(page, "display(1)\nplace = display('<b>', display_id=True)\n2") == "1\n'<b>'\n2"


def test_stop_while_python_loads(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html")
    page.route("**/run-worker.js", lambda r: r.fulfill(body="onmessage = () => {}", headers=SCRIPT))
    page.get_by_role("button", name="Run here").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    wait(page, "Stopped before Python was ready.")
    assert page.locator("textarea").count() == 0
    assert focused(page) == "Run here"


def cell_state(page, number):
    """What the page says beside the buttons of a cell."""
    return page.locator(CELLS).nth(number - 1).locator(".tl-state").inner_text()


@pytest.mark.long
def test_typed_code_is_there_after_a_reload_before_python_is(open_stand_in):
    page = press(open_stand_in())
    book = area(page, 8).input_value()
    area(page, 8).fill("mine = 1")
    area(page, 9).fill("1 / 0")
    push(page, "Run", 9)
    wait(page, "Cell 9 ended in an error")
    page.reload()  # the last text was told when the page was left, if not before
    assert page.locator("textarea").count() == 2
    assert area(page, 8).input_value() == "mine = 1"
    assert area(page, 9).input_value() == "1 / 0"
    assert cell_state(page, 8) == "Your text is back."
    page.get_by_role("button", name="The book’s text: cell 8").click()
    assert area(page, 8).input_value() == book
    page.reload()
    assert area(page, 8).input_value() == book
    page.get_by_role("button", name="Your text: cell 8").click()
    push(page, "Run", 8)
    wait(page, "Cell 8 has run.")
    assert page.ran[-1] == "cell 8"
    assert area(page, 10).input_value()  # every cell can be edited now
    area(page, 8).fill(book)
    with page.expect_navigation():
        page.evaluate(TYPE_AND_LEAVE, "last = 1")
    assert page.locator("textarea").count() == 1
    assert area(page, 9).input_value() == "last = 1"


def test_every_cell_is_told_from_those_with_the_same_text(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html", first=TWINS)
    keys = page.locator(CELLS).evaluate_all("all => all.map((cell) => cell.keptAs)")
    assert len(set(keys)) == len(keys) > 20
    assert len({key.rstrip() for key in keys}) == len(keys) - 1


@pytest.mark.long
def test_code_whose_cell_has_changed_is_offered_and_not_put_elsewhere(open_stand_in):
    page = press(open_stand_in())
    first = area(page, 8).input_value().split("\n")[0]
    area(page, 8).fill("mine = 1\nmine")
    page.reload()
    page.evaluate(
        """(line) => {
          const key = Object.keys(localStorage).find((name) => name.startsWith("kept:"));
          const was = `"code ${JSON.stringify(line).slice(1, -1)}`;
          localStorage[key] = localStorage[key].replace(was, `${was}  # old`);
        }""",
        first,
    )
    page.reload()
    assert page.locator("textarea").count() == 0
    page.get_by_text("Your code from an earlier edition").click()
    offered = page.locator(".tl-mine div")
    assert f"In place of {first} # old you wrote:" in offered.inner_text()
    assert offered.locator("pre").inner_text() == "mine = 1\nmine"
    offered.get_by_role("button", name="Remove").click()
    assert page.locator(".tl-mine").count() == 0
    page.reload()
    assert page.locator(".tl-mine").count() == 0


@pytest.mark.parametrize("store", ["refused", *long("full")])
@pytest.mark.long
def test_page_that_cannot_keep_typed_code_says_so_and_loses_nothing_by_an_error(
    open_stand_in, store
):
    page = press(open_stand_in(first=STORES[store]))
    area(page, 8).fill("mine = 1 / 0")
    page.locator(".tl-state", has_text="your text lasts until you leave the page").wait_for()
    push(page, "Run", 8)
    wait(page, "Cell 8 ended in an error")
    area(page, 9).fill("while True: pass")
    push(page, "Run", 9)
    push(page, "Stop", 9)
    wait(page, "Stopped. Python has ended")
    assert area(page, 8).input_value() == "mine = 1 / 0"
    assert area(page, 9).input_value() == "while True: pass"


FILES = "**/_static/pyodide/*"


def serve(page, files, content=None):
    """Let the page's own worker load a lock of these files from `pyodide/` of the site."""
    lock = LOCK | {"base": "pyodide/", "packages": [], "files": files}
    page.route("**/_static/pyodide.json", lambda route: route.fulfill(json=lock))
    if content is not None:
        page.route(FILES, content)


FAILURES = {  # how the host answers, and what the page says of it
    "no worker": (
        {"**/run-worker.js": lambda route: route.fulfill(status=404)},
        "run-worker.js did not load.",
    ),
    "no file": ({}, "a.whl did not load: 127.0.0.1:{port} answers 404."),
    "no answer": (
        {FILES: lambda route: route.abort()},
        "a.whl did not load: 127.0.0.1:{port} does not answer, or something blocks it.",
    ),
    "another file": (
        {FILES: lambda route: route.fulfill(body="other")},
        "a.whl is not the file that the book was tested with (its sha256 is "
        f"{hashlib.sha256(b'other').hexdigest()}, not {hashlib.sha256(b'own').hexdigest()}), "
        "so it was not used.",
    ),
}
AGAIN = "To try again, press the button again. The link to Colab runs the chapter too."


def test_page_says_each_time_which_file_did_not_load_and_what_to_do(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html")
    port = re.search(r":(\d+)/", page.url)[1]
    for routes, sentence in FAILURES.values():
        page.unroute_all()
        serve(page, {"a.whl": hashlib.sha256(b"own").hexdigest()})
        for pattern, answer in routes.items():
            page.route(pattern, answer)
        page.get_by_role("button", name="Run here").click()
        wait(page, sentence.format(port=port))
        assert status(page) == f"{sentence.format(port=port)} {AGAIN}"
        assert page.locator("textarea").count() == 0
        assert page.get_by_role("button", name="Run here").is_visible()
        assert not page.locator(".tl-run progress").is_visible()
    page.problems.clear()


def test_page_opened_from_disk_says_that_python_needs_a_server(open_page):
    page = open_page("notebooks/03_attention_weights.html", from_disk=True)
    page.get_by_role("button", name="Run here").click()
    wait(page, "Python needs a web server")
    assert "“make serve”" in status(page)


@pytest.mark.parametrize("dark", [False, *long(True)], ids=["light", "dark"])
def test_axe_finds_nothing_while_python_runs(open_stand_in, dark):
    page = press(open_stand_in(width=320, dark=dark))
    run(page, "1 / 0")
    page.add_style_tag(content="*, *::before { transition: none !important }")
    own = {"include": [[".tl-run"], ["div.cell:has(.traceback)"]]}
    found = Axe().run(page, own, {"resultTypes": ["violations"]}).response["violations"]
    assert [(v["id"], v["nodes"][0]["target"]) for v in found] == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


def library():
    """The files of the library, by their paths."""
    files = [path for path in (ROOT / "src/tutorial_lib").rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    return {path.relative_to(ROOT / "src").as_posix() for path in files}


DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef


def without_docstrings(source):
    """The docstrings of a module; and the rest of its tree, with the line of each node."""
    tree, docstrings = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstrings.append(ast.literal_eval(node.body.pop(0).value))
    lines = [node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")]
    return "".join(docstrings), (ast.dump(tree), lines)


def test_library_on_the_site_is_its_code_line_by_line_and_the_same_bytes_each_time(
    site_dir, tmp_path
):
    [placed] = (site_dir / "_static").glob("tutorial_lib-*")
    again = runnable.pack_library(tmp_path)
    assert (again.name, again.read_bytes()) == (placed.name, placed.read_bytes())
    assert placed.stat().st_size <= BUDGETS["library_kb"] * 1000
    with tarfile.open(placed) as archive:
        packed = {n: archive.extractfile(n).read() for n in archive.getnames()}
    rooms = [f"practice/ch{page.name}/" for page in pages() if not page.runs_in_browser]
    data = [f"data/{path}" for path in DIGESTS]
    folders = ("probe/", "pytorch/", "models/real/", *rooms, *data)
    left_out = tuple(f"tutorial_lib/{folder}" for folder in folders)
    expected = {name for name in library() if not name.startswith(left_out)}
    assert packed.keys() == {name for name in expected if not name.endswith("/bank.json")}
    for name, content in packed.items():
        source = (ROOT / "src" / name).read_bytes()
        if name.endswith(".py"):
            assert without_docstrings(content) == ("", without_docstrings(source)[1]), name
        elif name.endswith("sha256.json"):
            assert json.loads(content).items() > json.loads(source).items(), name
        else:
            assert content == source, name


def test_a_whole_wheel_is_the_whole_library(tmp_path):
    names = zipfile.ZipFile(build_wheel(tmp_path)).namelist()
    assert {name for name in names if ".dist-info/" not in name} == library()


def imports_of(name):
    """The import statements of a notebook."""
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    return [ast.unparse(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]


def test_all_that_pages_which_run_import_and_read_comes_from_the_site(site_dir, tmp_path):
    [placed] = (site_dir / "_static").glob("tutorial_lib-*")
    with tarfile.open(placed) as archive:
        archive.extractall(tmp_path, filter="data")
    readers = {"results": "record", "checkpoints": "checkpoint", "facts": "facts"}
    files = [path.partition(".")[0].split("/") for path in DIGESTS]
    reads = [f"records.{readers[folder]}({name!r})" for folder, name in files]
    # of "banks/NAME.json"
    reads += [f"records.question_bank({name[6:-5]!r})" for name in runnable.BANKS]
    ask = "print(records.__file__, 'tutorial_lib.pytorch' in sys.modules)"
    lines = [line for name in IN_BROWSER for line in imports_of(name)]
    lines += ["import sys", "from tutorial_lib import records", *reads, ask]
    data = (site_dir / "_static" / "data").as_uri() + "/"
    settings = os.environ | {"PYTHONPATH": str(tmp_path), ADDRESS: data}
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    file = str(tmp_path / "tutorial_lib" / "records.py")
    assert done.stdout.split() == [file, "False"], done.stderr


# Stands in for Pyodide in the page's own worker: a cell says where the data is.
FAKE = {
    "pyodide.mjs": """export const loadPyodide = async ({ env }) => ({
      loadPackage() {}, unpackArchive() {}, runPython() {},
      toPy: () => new Map([["run_cell", (source, name, globals, send) => {
        send("text", env.TUTORIAL_LIB_DATA);
        return true;
      }]]),
    });""",
    "pyodide.asm.mjs": "export default null;",
    "pyodide-lock.json": "{}",
}


@pytest.fixture
def open_fake(open_fresh):
    """Open chapter 03, whose own worker loads FAKE."""
    page = open_fresh("notebooks/03_attention_weights.html")
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in FAKE.items()}
    serve(page, files, lambda route: route.fulfill(body=FAKE[route.request.url.split("/")[-1]]))
    return press(page)


SHA256 = """async (address) => {
  const content = await (await fetch(address)).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}"""


def test_worker_tells_python_where_the_site_has_the_data_and_the_page_may_fetch_it(
    open_fake, site_url
):
    address = run(open_fake, "data")
    assert address == f"{site_url}_static/data/"
    assert {path: open_fake.evaluate(SHA256, address + path) for path in DIGESTS} == DIGESTS


def serve_pyodide(page, files):
    """Let the page's own worker load these files of Pyodide itself."""
    serve(page, files, lambda route: route.fulfill(path=KEPT / route.request.url.split("/")[-1]))


def absent(names):
    """The files of Pyodide that are not kept here."""
    return sorted(name for name in names if not (KEPT / name).is_file())


@pytest.mark.skipif(absent(CORE), reason="Pyodide is not in _build/pyodide: its core is untested.")
def test_pyodide_itself_runs_a_cell_and_stops(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html")
    serve_pyodide(page, CORE)
    press(page, seconds=240)
    assert run(page, "import sys\nprint(sys.platform)\nsum(range(5))").split() == [
        "emscripten",
        "10",
    ]
    assert run(page, "1 / 0").splitlines()[1] == '  File "<cell 2>", line 1, in <module>'
    found = run(page, "import importlib.util\nbool(importlib.util.find_spec('tutorial_lib'))")
    assert found == "True"
    area(page, 2).fill("while True: print(1)")
    push(page, "Run", 2)
    page.locator(CELLS).nth(1).locator(".cell_output pre").wait_for()
    push(page, "Stop", 2)
    wait(page, "Stopped. Python has ended")


ONE_RECORD = """import importlib.util, os, sys, types
sys.modules["numpy"] = types.ModuleType("numpy")  # which this reader of text does without
[folder] = importlib.util.find_spec("tutorial_lib").submodule_search_locations
spec = importlib.util.spec_from_file_location("records", folder + "/records.py")
records = importlib.util.module_from_spec(spec)
spec.loader.exec_module(records)
"""


@pytest.mark.skipif(absent(CORE), reason="Pyodide is not in _build/pyodide: its core is untested.")
def test_pyodide_itself_fetches_a_record_when_it_is_read(open_fresh):
    page = open_fresh("notebooks/03_attention_weights.html")
    serve_pyodide(page, CORE)
    asked = []
    page.on("request", lambda request: asked.append(request.url.partition("_static/")[2]))
    run(press(page, seconds=240), ONE_RECORD)
    assert "data/results/gradients.json" not in asked
    assert run(page, 'records.record("gradients")["script"]') == "'experiments/gradients.py'"
    assert "data/results/gradients.json" in asked
    assert page.problems == []
    found = run(page, "os.environ[records.ADDRESS] += 'x/'\nrecords.record('gradients')")
    assert "x/results/gradients.json did not load: the answer is 404. Try again" in found
    found = run(
        page, "os.environ[records.ADDRESS] = 'http://127.0.0.1:9/'\nrecords.facts('models')"
    )
    assert "facts/models.json did not load: " in found.splitlines()[-1]


@pytest.mark.skipif(
    absent(LOCK["files"]), reason="`make site-assets` has not run: NumPy in Pyodide is untested."
)
@pytest.mark.parametrize("name", IN_BROWSER)
def test_chapter_in_pyodide_shows_what_it_showed_before(open_fresh, name):
    page = open_fresh(f"notebooks/{name}.html")
    serve_pyodide(page, LOCK["files"])
    page.route("**/_static/pyodide.json", lambda r: r.fulfill(json=LOCK | {"base": "pyodide/"}))
    before = outputs(page)
    press(page, seconds=240)
    page.get_by_role("button", name="Run all cells").click()
    wait(page, f"Cell {len(before)} has run.", seconds=480)
    after = [found if found != ["", 0] else None for found in outputs(page)]
    assert after == before


ALONE = "notebooks/05_concatenation.html?only=exercise-2#exercise-2"
ANSWER = "def concat_tokens_first(heads):\n    return heads.reshape(*heads.shape[:-2], -1)"
# The words of the first text area that is seen, after typing into it as a reader does, or as it is.
TYPED = """(text) => {
  const box = [...document.querySelectorAll(".cell:has(.cell_input)")].find(
    (cell) => cell.checkVisibility() && !cell.closest("details")
  );
  if (text) box.recall({ text: box.innerText });
  const area = box.querySelector("textarea");
  if (text) area.value = text;
  area?.dispatchEvent(new Event("input"));
  dispatchEvent(new Event("pagehide"));
  return area?.value;
}"""


def texts(page):
    """The paragraphs, headings and code of a page that are seen."""
    seen = page.locator("article :is(p, h1, h2, h3, .cell_input)")
    return seen.evaluate_all("all => all.filter((e) => e.checkVisibility()).map(e => e.innerText)")


@pytest.mark.long
def test_an_exercise_alone_is_solved_from_blank(open_stand_in):
    page = open_stand_in(ALONE)
    page.get_by_role("button", name="Run here").click()
    page.locator(".book-hints:visible summary", has_text="Solution").click()
    fields = page.locator("textarea:visible")
    fields.nth(2).wait_for()
    names = fields.evaluate_all("all => all.map((field) => field.ariaLabel)")
    stub, check, solution = (int(name.split()[-1]) for name in names)
    above = [f"cell {i + 1}" for i in range(stub - 1)]
    wait(page, f"Cell {stub - 1} has run")
    assert page.ran == above
    assert run(page, ANSWER, stub) == ""
    push(page, "Run", check)
    wait(page, f"Cell {check} has run")
    assert shown(page, check).startswith("✓ concat_tokens_first: right")
    page.get_by_role("button", name="Run all cells").click()
    wait(page, f"Cell {solution} has run")
    assert page.ran[len(above) + 2 :] == [f"cell {i}" for i in (stub, check, solution)]
    area(page, stub).fill("while True:\n    1")
    push(page, "Run", stub)
    page.get_by_role("button", name=f"Stop: cell {stub}").click()
    page.ran.clear()
    push(page, "Run", check)
    wait(page, f"Cell {check} ended in an error: NameError")
    assert page.ran == [*above, f"cell {check}"]  # a new Python has no variables


@pytest.mark.long
def test_an_exercise_alone_is_blank_each_time_and_nothing_is_lost(open_fresh, site_url):
    whole, other = (site_url + ALONE.replace("?only=exercise-2", to) for to in ("", "?only=x"))
    page = open_fresh(whole.removeprefix(site_url))
    page.evaluate(TYPED, "mine = 1")
    page.goto(site_url + ALONE)
    page.locator(".book-alone").wait_for()
    seen = texts(page)
    assert [text.partition(":")[0] for text in seen if "Exercise" in text] == ["Exercise 2"]
    assert not {"Goal", "Exercises", "Recap"} & set(seen)
    assert any("Concat and reshape" in text for text in seen)
    page.evaluate(TYPED, "first = 1")
    page.reload()
    assert page.locator(".tl-edit:visible textarea").input_value() == "first = 1"
    for number, tries in enumerate((["first = 1"], ["first = 1", "second = 2"])):
        page.goto("about:blank")
        page.goto(site_url + ALONE)
        page.locator(".tl-mine summary").click()
        assert page.locator(".tl-mine pre").all_inner_texts() == tries
        assert page.locator(".tl-edit").count() == 0
        if not number:
            page.evaluate(TYPED, "second = 2")
    for address in (whole, other):
        page.goto("about:blank")
        page.goto(address)
        assert page.locator("#goal").is_visible()
        assert page.evaluate(TYPED) == "mine = 1"
        assert page.locator(".tl-mine").count() == 0


@pytest.mark.long
def test_lines_in_order_are_a_try_too_and_nothing_there_runs(open_fresh, site_url):
    page = open_fresh(ALONE.replace("2", "1"))
    page.locator("tl-parsons ul .tl-add").first.click()
    line = page.locator("tl-parsons ol code").inner_text()
    page.goto("about:blank")
    page.goto(site_url + ALONE.replace("2", "1"))
    assert page.locator("tl-parsons ol code").count() == 0
    assert page.locator(".tl-mine pre").text_content() == line
    assert not page.locator(".tl-run").is_visible()


def test_the_index_leads_to_every_exercise_alone(open_page, site_dir):
    page = open_page("book/exercises.html")
    links = page.locator(".book-exercises td:first-child a")
    found = set(links.evaluate_all("all => all.map((a) => a.href.split('/').at(-1))"))
    ids = r'<p id="(exercise-\d)"|<section id="(the-task)"'
    assert found == {
        f"{each.name}.html?only={name}#{name}"
        for each in pages()
        for pair in re.findall(ids, (site_dir / "notebooks" / f"{each.name}.html").read_text())
        for name in pair
        if name
    }
    page.get_by_label("Exercises with").fill("parsons induction")
    assert page.locator(".book-exercises tbody tr:visible").count() == 1
    assert page.locator(".cards-filter output").inner_text() == "1 exercises"


def test_a_pasted_configuration_is_read_in_the_page(open_stand_in):
    page = open_stand_in("book/models.html")
    llama = {"model_type": "llama", "hidden_size": 24, "num_hidden_layers": 2}
    texts = [llama | {"num_attention_heads": 3}, llama | {"num_attention_heads": 3, "attn_pool": 2}]
    page.get_by_label("A config.json").fill(json.dumps(texts[0]))
    page.get_by_role("button", name="Read it here").click()
    card = page.locator(".tl-python output")
    card.locator("figure").wait_for()
    assert "2 × full attention" in card.inner_text()
    assert "6,291,456" in card.inner_text()
    page.get_by_label("A second one").fill(json.dumps(texts[1]))
    page.get_by_role("button", name="Read it here").click()
    page.locator(".tl-python [role=status]", has_text="llama has attn_pool=2").wait_for()


def test_the_table_of_models_is_filtered(open_fresh):
    page = open_fresh("book/models.html")
    rows = page.locator(".cards-all tbody tr")
    every = rows.count()
    page.get_by_label("Models with").fill("latent 2026")
    shown = [row.inner_text() for row in rows.all() if row.is_visible()]
    assert 0 < len(shown) < every
    assert all("2026" in text for text in shown)
    assert page.locator(".cards-filter output").inner_text() == f"{len(shown)} models"


def test_a_hunt_is_played_and_what_is_typed_comes_back(open_stand_in):
    page = open_stand_in("book/hunt.html")
    form, output = page.locator(".tl-python").first, page.locator(".tl-python output").first
    page.get_by_role("button", name="Another one like this").click()
    output.get_by_text("It has one mistake.").wait_for()
    assert page.get_by_label("Number", exact=True).input_value() == "1"
    page.get_by_label("The number of the wrong line").fill("99")
    page.get_by_role("button", name="This line").click()
    form.get_by_role("status").get_by_text("There is no line 99").wait_for()
    found = [(s.task.name, s.mistake.name) for s in hunt.suspects(1, last_chapter=8)]
    page.get_by_label("Number", exact=True).fill(str(found.index(("softmax", "wrong_axis"))))
    page.get_by_role("button", name="Try the property").click()
    output.get_by_text("✓ It fails “rows sum to 1” in the case “ordinary scores”").wait_for()
    page.get_by_label("Your test").fill("def test(f):\n    return True")
    page.get_by_role("button", name="Score it").click()
    page.get_by_text("It catches 0 of").wait_for()
    page.reload()
    assert page.get_by_label("The number of the wrong line").input_value() == "99"
