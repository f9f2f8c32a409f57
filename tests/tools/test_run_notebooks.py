"""The tool that refreshes outputs: one stored form, all or nothing, the same bytes again."""

import json
import os
import re

import pytest
from nbformat.v4 import new_notebook

from tests.chapters.planted import METADATA, cell_of, code, good, stdout, stored_text, text
from tools import blas_matrix, run_notebooks
from tools.run_notebooks import (
    SETTINGS,
    Unreadable,
    Unsteady,
    changed_outputs,
    main,
    notebook_text,
)

SOURCES = {
    "streams": "import sys\n\nprint('a', flush=True)\nprint('b')\nsys.stdout.write('c\\n');",
    "settings": f"import os\n\n{{name: os.environ[name] for name in {sorted(SETTINGS)}}}",
}


def messy():
    """Return a notebook with old outputs, counts and leftovers of an editor."""
    cells = [text("title", "# Title")]
    cells += [code(name, source, stdout("old\n")) for name, source in SOURCES.items()]
    for count, cell in enumerate(cells, start=7):
        cell.metadata = {"tags": ["hide-output"], "collapsed": True, "scrolled": False}
        if cell.cell_type == "code":
            cell.execution_count = count
            cell.metadata["jupyter"] = {"outputs_hidden": True}
            cell.metadata["execution"] = {"iopub.execute_input": "2026-08-01T12:00:00Z"}
    return new_notebook(
        cells=cells, metadata={"widgets": {}, "kernelspec": {"display_name": "old", "name": "old"}}
    )


def stored(path, notebook):
    """Write a notebook and return its file."""
    path.write_text(notebook_text(notebook), encoding="utf-8")
    return path


def test_outputs_are_refreshed_and_a_second_run_leaves_the_bytes(tmp_path, capsys, monkeypatch):
    path = stored(tmp_path / "messy.ipynb", messy())
    assert main([str(path)]) == 0
    first = path.read_bytes()
    assert main([str(path)]) == 0
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["messy.ipynb"]
    printed = capsys.readouterr().out.splitlines()
    compared = ["  2 of 3 cells show something else than was stored. Is each change meant?"]
    compared += ["    cell 2 (id streams)  import sys", "    -old", "    +a", "    +b"]
    assert printed[:7] == ["messy", "  refreshed", *compared]
    assert printed[-2:] == ["messy", "  unchanged"]

    notebook = json.loads(first)
    assert notebook["metadata"] == METADATA
    assert [cell["id"] for cell in notebook["cells"]] == ["title", "streams", "settings"]
    _, streams, settings = notebook["cells"]
    assert [streams["execution_count"], settings["execution_count"]] == [1, 2]
    assert streams["metadata"] == {"jupyter": {"outputs_hidden": True}, "tags": ["hide-output"]}
    assert [output["text"] for output in streams["outputs"]] == [["a\n", "b\n", "c\n"]]
    (shown,) = settings["outputs"]
    assert eval("".join(shown["data"]["text/plain"])) == SETTINGS
    assert first.endswith(b"}\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("print('a')\nhalf = 1 / 0", "ZeroDivisionError: division by zero"),
        ("import os\n\nos._exit(1)", "Kernel died"),
    ],
)
def test_a_failing_cell_is_shown_and_the_file_untouched(tmp_path, capsys, source, reason):
    notebook = messy()
    notebook.cells[2].source = source
    path = stored(tmp_path / "failing.ipynb", notebook)
    other = stored(tmp_path / "other.ipynb", messy())
    assert main([str(path), str(other)]) == 1
    assert path.read_text(encoding="utf-8") == notebook_text(notebook)
    assert other.read_text(encoding="utf-8") == notebook_text(messy())
    told = capsys.readouterr().err
    assert "failing.ipynb: cell 3 (id settings) failed" in told
    assert source.splitlines()[-1] in told
    assert reason in told
    assert "\x1b" not in told


ROUNDED = """\
import numpy as np

A = np.random.default_rng(0).standard_normal((300, 300))
print(float((A @ A @ A @ A)[0, :9].sum()))
"""


def test_an_output_that_rounding_decides_is_refused_with_its_cell_and_both_values(tmp_path):
    cells = [code("steady", "print(1 / 3)"), code("rounded", ROUNDED)]
    path = stored(tmp_path / "planted.ipynb", new_notebook(cells=cells))
    before = path.read_bytes()
    others = blas_matrix.other_processors()  # one of them may be what this run imitates
    with pytest.raises(Unsteady) as refused:
        run_notebooks.refresh(path, others=others)
    here, there = re.findall(r"^    [-+](\S+)$", str(refused.value), re.MULTILINE)
    assert here != there
    assert float(here) == pytest.approx(float(there), rel=1e-9)
    assert str(refused.value).startswith("cell 2 (id rounded)")
    assert path.read_bytes() == before
    cells[1].source = ROUNDED.replace("float(", "round(").replace(".sum())", ".sum(), 4)")
    run_notebooks.refresh(stored(path, new_notebook(cells=cells)), others=others)
    assert path.read_bytes() != before


def test_chapters_are_run_as_other_processors_too_and_a_file_given_by_its_path_is_not(
    tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(blas_matrix, "other_processors", lambda: {"another": {}})
    monkeypatch.setattr(
        run_notebooks, "refresh", lambda path, others, report: asked.append((path.stem, others))
    )
    path = stored(tmp_path / "file.ipynb", messy())
    assert main([str(path)]) == main(["05_concatenation"]) == 0
    assert asked == [("file", {}), ("05_concatenation", {"another": {}})]


def test_an_unknown_name_lists_the_chapters(capsys):
    assert main(["99_unwritten"]) == 2
    assert "99_unwritten. Give a path, or one of 01_embeddings" in capsys.readouterr().err


def test_whatever_editor_saved_a_notebook_its_stored_form_is_one():
    saved = json.loads(notebook_text(good()))
    saved["metadata"] = {"kernelspec": {"display_name": ".venv", "name": "attention"}, "vscode": {}}
    saved["nbformat_minor"] = 2
    for cell in saved["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")
        cell["metadata"] |= {"collapsed": True, "execution": {"shell.execute_reply": "12:00"}}
        cell |= {"execution_count": 41} if cell["cell_type"] == "code" else {}
    assert stored_text(json.dumps(saved, indent=4, sort_keys=True)) == notebook_text(good())


def test_a_cell_is_folded_as_its_tags_ask():
    notebook = json.loads(notebook_text(good()))
    notebook["cells"][3]["metadata"]["tags"] = ["hide-output"]
    metadata = json.loads(stored_text(json.dumps(notebook)))["cells"][3]["metadata"]
    assert metadata == {"jupyter": {"outputs_hidden": True}, "tags": ["hide-output"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"cells": [\n<<<<<<< HEAD', "line 2 column 1 .* Correct that line, or undo the edit"),
        ("[]", "no list of cells. Save it as a notebook of format 4"),
        ('{"worksheets": []}', "no list of cells"),
    ],
)
def test_what_is_no_notebook_is_told_and_left(tmp_path, capsys, text, says):
    with pytest.raises(Unreadable, match=says):
        stored_text(text)
    path = tmp_path / "broken.ipynb"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == 1
    assert re.match(f"\nbroken.ipynb: .*{says}", capsys.readouterr().err)
    assert path.read_text(encoding="utf-8") == text


def test_an_output_that_has_changed_is_shown_by_its_lines_and_a_new_cell_is_not():
    before, after = good(), good()
    cell_of(after, "text").outputs[0].text = "share 0.25\n"
    cell_of(after, "figure").outputs[0].data["text/html"] = "<svg/>"
    after.cells.append(code("more", "print(1)", stdout("1\n")))
    assert changed_outputs(before, after) == [
        ['cell 4 (id text)  print("share", 4 / 7)', "-share 0.5714285714285714", "+share 0.25"],
        ["cell 5 (id figure)  Dot(0.5714)", "  a picture or an element"],
    ]
    assert changed_outputs(before, good()) == []
    after.cells = [text(cell.id, "words") for cell in before.cells]  # in place of code
    assert changed_outputs(before, after) == []
