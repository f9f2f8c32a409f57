"""The tool that refreshes outputs: one stored form, all or nothing, the same bytes again."""

import json
import os

import pytest
from nbformat.v4 import new_notebook

from tests.chapters.planted import METADATA, code, good, stdout, text
from tools.run_notebooks import SETTINGS, dumps, main, normalise

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
    path.write_text(dumps(notebook), encoding="utf-8")
    return path


def test_outputs_are_refreshed_and_a_second_run_leaves_the_bytes(tmp_path, capsys):
    path = stored(tmp_path / "messy.ipynb", messy())
    assert main([str(path)]) == 0
    first = path.read_bytes()
    assert main([str(path)]) == 0
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["messy.ipynb"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["messy", "    2 of 3  import sys", "    3 of 3  import os"]
    assert printed[3::4] == ["  refreshed", "  unchanged"]

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
    assert path.read_text(encoding="utf-8") == dumps(notebook)
    assert other.read_text(encoding="utf-8") == dumps(messy())
    told = capsys.readouterr().err
    assert "failing.ipynb: cell 3 (id settings) failed" in told
    assert source.splitlines()[-1] in told
    assert reason in told
    assert "\x1b" not in told


def test_an_unknown_name_lists_the_chapters(capsys):
    assert main(["99_unwritten"]) == 2
    assert "99_unwritten. Give a path, or one of 01_embeddings" in capsys.readouterr().err


def test_what_is_in_the_stored_form_stays():
    assert dumps(normalise(good())) == dumps(good())
