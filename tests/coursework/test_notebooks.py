"""What works in Jupyter counts: grader and kernel give every kind of notebook the same points.

`notebooks/points.json` holds what a real kernel made of each kind, once; `make test-all` asks it
again. Wrong kinds are among them, so that agreement means something.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import nbformat
import pytest

from coursework.grader.batch import points, set_bench
from coursework.grader.release import release
from tests.coursework.notebooks import corpus
from tests.sampling import every

KINDS = {kind.name: kind for kind in corpus.kinds()}
KERNEL = json.loads(corpus.POINTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory, bubblewrap):
    """An exam and its sandbox."""
    return set_bench(corpus.exam(), tmp_path_factory.mktemp("library"), seconds=10)


@pytest.fixture(scope="module")
def graded(request, bench):
    """The record of every kind that this run asks for."""
    here = [item for item in request.session.items if item.path == request.path]
    names = sorted({i.callspec.params["name"] for i in here if "graded" in i.fixturenames})
    with ThreadPoolExecutor(2) as pool:
        records = pool.map(lambda name: bench.grade(KINDS[name].content()), names)
        return dict(zip(names, records, strict=True))


@pytest.mark.parametrize("name", every(4, KINDS))
def test_the_grader_gives_a_notebook_the_points_that_it_earns_in_a_kernel(graded, name):
    assert points(graded[name]) == KERNEL[name], graded[name]


def test_every_kind_was_run_in_a_kernel_and_right_and_wrong_ones_are_among_them():
    assert KERNEL.keys() == KINDS.keys()
    assert sum(earned == 10 for earned in KERNEL.values()) > 100
    assert sum(earned == 0 for earned in KERNEL.values()) > 30


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_kernel_gives_a_notebook_the_points_that_were_recorded(name):
    assert corpus.points_in_a_kernel(KINDS[name], corpus.exam()) == KERNEL[name]


REMARKS = {
    "unknown_name_above_in_the_cell": "Code cell 2 raised an error: line 1: NameError",
    "not_python": "Code cell 2 cannot be read as Python, so it did not run: line ",
    "python_of_tomorrow": "cell 2 was run with a newer Python, and is graded with {1}: 3.99, line ",
    "name_of_tomorrow": "a newer Python, and is graded with {1}: 3.99, line 1: ImportError: cannot",
    "name_of_no_python": "Code cell 3 raised an error: line 1: ImportError: cannot",
    "right_cell_above_the_stub": "Code cell 2 has the definition that counts",
    "wrong_one_above_run_last": "the last of several that were run: {0}; also in code cell 3",
}


@pytest.mark.parametrize("name", REMARKS)
def test_a_remark_says_what_to_mend_and_where(graded, name):
    said = [": ".join(remark) for remark in graded[name]["remarks"]]
    version = "{}.{}".format(*sys.version_info)
    words = REMARKS[name].format(*corpus.exam().functions, version)
    assert any(words in line for line in said), said


@pytest.mark.parametrize("name", ["right_without_a_batch_alone"])
def test_the_first_test_that_raised_names_the_line_and_no_other(graded, name):
    said = [r["said"] for r in graded[name]["results"] if r["said"].startswith("it raised")]
    assert len(said) > 1
    where = KINDS[name].run()[1].splitlines().index('        raise ValueError("no batch, please")')
    assert said[0] == f"it raised ValueError in line {where + 1} of code cell 2"
    assert set(said[1:]) == {"it raised ValueError"}


@pytest.mark.parametrize(
    ("line", "earned"), [("tutorial_lib.causal_mask(3)", 10), ("raise NotImplementedError", 0)]
)
@pytest.mark.usefixtures("bubblewrap")
def test_a_cell_goes_on_behind_a_function_that_is_withheld_here_alone(tmp_path, line, earned):
    exam = corpus.exam()
    withheld = replace(exam.assignment, withheld=("causal_mask",))
    bench = set_bench(replace(exam, assignment=withheld), tmp_path)
    cells = [dict(cell) for cell in KINDS["as_asked"].cells]
    cells[-1]["source"] = f"import tutorial_lib\n{line}\n{cells[-1]['source']}"
    assert points(bench.grade(corpus.Kind("", cells).content())) == earned


NO_NOTEBOOKS = {
    **dict.fromkeys((b"", b"{", b"[" * 100_000, b"\xff\xfe{"), "its JSON cannot be read"),
    **dict.fromkeys((b"{}", b"3"), "it has no list of cells"),
}
CELL = {"cell_type": "code", "source": ""}
MANY = json.dumps({"cells": [CELL] * 20_000}).encode()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        *((content, f"it is not a notebook, {why}") for content, why in NO_NOTEBOOKS.items()),
        (MANY, "it has more than 9999 code cells"),
    ],
)
def test_what_is_no_notebook_is_out_of_as_many_points_as_any_and_told_once(bench, content, why):
    record = bench.grade(content)
    assert record["problem"] == f"Not graded: {why}."
    assert sum(result["points"] for result in record["results"]) == bench.exam.out_of
    assert {result["said"] for result in record["results"]} == {"not run"}
    assert points(record) == 0


def test_a_notebook_for_students_has_no_counts_and_no_python_of_ours(tmp_path):
    notebook = nbformat.read(release("kv_cache", tmp_path), as_version=4)
    assert notebook.metadata.language_info == {"name": "python"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 3
    assert {cell.execution_count for cell in code} == {None}
    assert {o.get("execution_count") for cell in code for o in cell.outputs} == {None}
