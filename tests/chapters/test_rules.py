"""Every notebook keeps to the rules, and each rule rejects what it is there for."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell

from tests.chapters.pages import NAMES, advises, listed, written
from tests.chapters.planted import cell_of, code, good, stored_text
from tests.chapters.rules import FORBIDDEN, markdown_faults, violations
from tools.chapters import ROOT, page

MARKDOWN = [*sorted((ROOT / "book").rglob("*.md")), ROOT / "README.md"]
BANKS = sorted((ROOT / "src/tutorial_lib/practice").glob("*/bank.json"))


@pytest.mark.parametrize("name", NAMES)
def test_notebook_keeps_to_the_rules(name):
    found = violations(written(name), may_import_torch=page(name).may_import_torch)
    assert not found, listed(found, name)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_as_the_tool_stores_it(name):
    text = page(name).path.read_text(encoding="utf-8")
    as_stored = stored_text(text) == text
    assert as_stored, f"an editor has saved it in a form of its own. Run: make chapter NB={name}"


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_page_avoids_the_words_we_do_not_use(path):
    found = FORBIDDEN.findall(path.read_text(encoding="utf-8"))
    assert not found, f"{path.relative_to(ROOT)} has {found}: write the sentence without"


@pytest.mark.parametrize("path", BANKS, ids=lambda path: path.parent.name)
def test_bank_avoids_the_words_we_do_not_use(path):
    bank = json.loads(path.read_text(encoding="utf-8"))
    found = FORBIDDEN.findall(json.dumps(bank, ensure_ascii=False))
    assert not found, f"{path.relative_to(ROOT)} has {found}: write the sentence without"


def test_message_about_a_page_ends_in_the_command_and_one_about_others_does_not():
    assert listed(["a: remove it"], NAMES[0]).endswith(f"make chapter NB={NAMES[0]}")
    assert listed(["a: remove it"]) == "\n  a: remove it"


def test_a_good_notebook_has_no_violations():
    assert violations(good()) == []


def test_a_chapter_about_pytorch_may_import_it():
    notebook = good()
    run("import torch")(notebook)
    assert violations(notebook, may_import_torch=True) == []


def add(cell):
    """Return a change that appends a cell."""

    def change(notebook):
        if cell.cell_type == "code":
            cell.execution_count = len([c for c in notebook.cells if c.cell_type == "code"]) + 1
        notebook.cells.append(cell)

    return change


def run(source):
    """Return a change that appends a code cell."""
    return add(new_code_cell(source, id="planted"))


def note(text):
    """Return a change that appends a Markdown cell."""
    return add(new_markdown_cell(text, id="planted"))


def output(**data):
    """Return a change that appends a cell with one display output."""
    kinds = {kind.replace("__", "/").replace("_xml", "+xml"): text for kind, text in data.items()}
    return add(code("planted", "show()", new_output("display_data", data=kinds)))


def drop_id(notebook):
    """Take the id from one cell."""
    del notebook.cells[0]["id"]


def edit_setup(notebook):
    """Change a word of the setup cell."""
    setup = cell_of(notebook, "setup")
    setup.source = setup.source.replace("--no-deps", "--upgrade")


def tag(name):
    """Return a change that tags one cell."""
    return lambda notebook: cell_of(notebook, "text").metadata.update(tags=[name])


def setting(name, **metadata):
    """Return a change that gives one cell metadata."""
    return lambda notebook: cell_of(notebook, name).metadata.update(metadata)


def setting_of_output(notebook):
    """Give metadata to the output of one cell."""
    cell_of(notebook, "value").outputs[0].metadata.update({"filenames": {"image/png": "x.png"}})


BROKEN = {
    "count missing": (lambda n: cell_of(n, "text").update(execution_count=None), "text has None"),
    "counts swapped": (lambda n: cell_of(n, "text").update(execution_count=9), "text has 9"),
    "id missing": (drop_id, "id of its own"),
    "id twice": (lambda n: n.cells[0].update(id="text"), "id of its own"),
    "setup edited": (edit_setup, "setup cell"),
    "setup untagged": (lambda n: cell_of(n, "setup").metadata.clear(), "setup cell"),
    "too heavy": (output(text__plain="x" * 800_000), "more than 750"),
    "raw cell": (add(new_raw_cell("print(1)", id="planted")), "raw cell"),
    "empty cell": (run(""), "is empty"),
    "nbval tag": (tag("nbval-ignore-output"), "nbval-ignore-output is no tag"),
    "skip tag": (tag("nbval-skip"), "nbval-skip is no tag"),
    "raises tag": (tag("raises-exception"), "raises-exception is no tag"),
    "nbclient's skip tag": (tag("skip-execution"), "skip-execution is no tag"),
    "nbval comment": (run("x = 1\n# NBVAL_IGNORE_OUTPUT"), "NBVAL_IGNORE"),
    "old nbval comment": (run("## PYTEST_VALIDATE_IGNORE_OUTPUT\nx = 1"), "PYTEST_VALIDATE"),
    "hidden output": (setting("text", mystnb={"remove_output": True}), "remove_output"),
    "false caption": (setting("figure", mystnb={"figure": {"caption": "a"}}), "as its tags ask"),
    "metadata of text": (setting("title", mystnb={"a": 1}), "as its tags ask"),
    "folded without a tag": (setting("text", jupyter={"outputs_hidden": True}), "as its tags ask"),
    "other words": (
        setting("text", tags=["hide-cell"], mystnb={"code_prompt_show": "7 %"}),
        "as its tags ask",
    ),
    "metadata of an output": (setting_of_output, "expected none"),
    "magic": (run("%matplotlib inline"), "not plain Python"),
    "cell magic": (run("%%time\nx = 1"), "not plain Python"),
    "shell command": (run("!ls"), "not plain Python"),
    "semicolon": (run("4 / 7;"), "hides its value"),
    "semicolon, comment": (run("4 / 7;  # quiet"), "hides its value"),
    "clear_output": (run("from IPython.display import clear_output"), "clear_output"),
    "display_id": (run("display(1, display_id='a')"), "display_id"),
    "magic by call": (run("get_ipython().run_line_magic('time', '1')"), "get_ipython"),
    "path in code": (run("open('/srv/data/x.txt')"), "absolute path"),
    "clock": (run("from time import perf_counter"), "show a record instead"),
    "clock in else": (run("if MEASURE:\n    pass\nelse:\n    import time"), "show a record"),
    "measuring": (run("MEASURE = True"), "MEASURE"),
    "training": (run("steps = 3\nTRAIN = True"), "TRAIN"),
    "torch": (run("import torch"), "imports torch"),
    "torch, measuring": (run("if MEASURE:\n    import torch"), "imports torch"),
    "our torch": (run("from tutorial_lib import pytorch"), "tutorial_lib.pytorch"),
    "png": (output(text__plain="a", image__png="iVBORw0"), "image/png"),
    "widget": (output(text__plain="a", application__x="{}"), "application/x"),
    "png in html": (
        output(text__plain="a", text__html='<b src="data:image/png;base64,">'),
        "raster",
    ),
    "png beside a mask": (
        output(
            text__plain="a",
            text__html='<i style="mask-image:url(data:image/png;base64,)"></i>'
            '<b style="background:url(data:image/png;base64,)"></b>',
        ),
        "raster",
    ),
    "image from elsewhere": (output(text__plain="a", text__html='<img src="a.svg">'), "raster"),
    "png in svg": (output(text__plain="a", image__svg_xml="<svg><image href=''/></svg>"), "raster"),
    "no text form": (output(text__html="<b>a</b>"), "without a text form"),
    "address": (output(text__plain="object at 0x7f3a5c001d60"), "memory address"),
    "path": (output(text__plain="wrote /srv/data/x.txt"), "absolute path"),
    "Windows path": (output(text__plain="wrote C:\\data"), "absolute path"),
    "bare figure": (output(text__plain="<Figure size 640x480 with 1 Axes>"), "bare object"),
    "bare axes": (output(text__plain="<Axes: >"), "bare object"),
    "forbidden word": (note("It simply works."), "'simply'"),
    "forbidden word in a comment": (run("x = 1  # Obviously"), "'Obviously'"),
    "attachment": (add(new_markdown_cell("a", id="p", attachments={"a": {}})), "attached"),
    "role": (note("see {doc}`intro`"), "role"),
    "directive": (note("```{note}\nLook.\n```"), "directive"),
    "colon directive": (note(":::{tip}\nLook.\n:::"), "directive"),
    "myst comment": (note("% later"), "comment"),
    "target": (note("(weights)=\n## Weights"), "target"),
    "substitution": (note("by {{ author }}"), "substitution"),
    "remote image": (note("![badge](https://example.org/badge.svg)"), "outside the file"),
    "image tag": (note('<img src="https://example.org/a.png">'), "outside the file"),
    "path in prose": (note("Open `/srv/data/x.txt`."), "absolute path"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_rules_reject(case):
    change, expected = BROKEN[case]
    notebook = good()
    change(notebook)
    found = violations(notebook)
    assert any(expected in violation for violation in found), found
    assert all(advises(violation) for violation in found), found


@pytest.mark.parametrize("stream", ["stderr", "error"])
def test_rules_reject_what_went_wrong(stream):
    wrong = {
        "stderr": new_output("stream", name="stderr", text="careful"),
        "error": new_output("error", ename="ValueError", evalue="no", traceback=[]),
    }
    notebook = good()
    add(code("planted", "f()", wrong[stream]))(notebook)
    assert any(stream in violation for violation in violations(notebook))


def test_rules_let_ordinary_markdown_pass():
    text = (
        "Weights, shape `(..., H, T, S)`: $e^{a-c}$ and $$\\frac{Q K^\\top}{\\sqrt{d_k}}$$\n"
        "<details><summary>Hint</summary>\n\n</details>\n\n"
        "and/or [paper](https://arxiv.org/abs/1706.03762), [references](../book/references.md)\n"
        "```python\nx = {'a': 1}\n```\n"
    )
    assert list(markdown_faults(text)) == []


def test_rules_let_a_reader_measure():
    notebook = good()
    run("MEASURE = False\nif MEASURE:\n    import time\n\n    print(time.perf_counter())")(notebook)
    assert violations(notebook) == []
