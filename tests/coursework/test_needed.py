"""Of a notebook runs what the graded function needs, in the notebook's order, and nothing else."""

import ast

import pytest

from coursework.grader.needed import code_cells, needed, statements


def chosen(*cells, wanted=("f",)):
    """The statements that are run, as text."""
    return [ast.unparse(statement) for _, statement in needed(cells, wanted)[0]]


def test_only_what_the_function_leans_on_is_run():
    cells = (
        "import numpy as np\nimport matplotlib.pyplot as plt",
        "plt.plot([1])\nprint('x')",
        "def g(x):\n    return np.sin(x) + C",
        "C = 3\nD = 4",
        "def f(x):\n    return g(x)",
    )
    assert chosen(*cells) == [
        "import numpy as np",
        "def g(x):\n    return np.sin(x) + C",
        "C = 3",
        "def f(x):\n    return g(x)",
    ]


def test_last_definition_counts_and_a_stub_is_harmless():
    assert chosen("def f(x):\n    return None", "def f(x):\n    return x")[-1].endswith("x")


@pytest.mark.parametrize(
    "change",
    ["T[0] = 1", "T.append(1)", "T.rows = 2", "for i in range(2):\n    T[i] = i", "T += [2]"],
)
def test_what_changes_a_needed_name_is_run_too(change):
    assert chosen("T = [0, 0]", change, "def f():\n    return T")[1] == change


def test_calls_of_a_module_that_change_nothing_are_left_out():
    cells = (
        "import numpy as np",
        "np.testing.assert_allclose(f(2), 3)",
        "def f(x):\n    return np",
    )
    assert chosen(*cells) == ["import numpy as np", "def f(x):\n    return np"]


def test_a_local_name_of_a_function_needs_no_global_one():
    cells = ("X = slow()", "def f(y):\n    X = y\n    return [X for X in y]")
    assert chosen(*cells) == [cells[1]]


@pytest.mark.parametrize(
    "statement",
    [
        "from numpy import *",
        "if True:\n\n    def h():\n        return 1\nelse:\n    h = None",
        "def set_h():\n    global h\n    h = 1",
        "with open('x') as h:\n    pass",
        "h, other = (1, 2)",
        "class h:\n    pass",
    ],
)
def test_names_are_bound_in_many_ways(statement):
    assert chosen(statement, "def f():\n    return h()")[0] == statement


def test_default_values_and_decorators_are_needed():
    cells = ("d = 1", "def wrap(g):\n    return g", "@wrap\ndef f(x=d):\n    return x")
    assert chosen(*cells) == list(cells)


def test_lines_for_ipython_go_and_a_remark_stays():
    pairs, remarks = needed(["%matplotlib inline\n!ls\nk = 1", "def f():\n    return k"], ["f"])
    assert next(ast.unparse(statement) for _, statement in pairs) == "k = 1"
    assert remarks == [(1, "magic", "")]


def test_a_line_that_begins_with_a_percent_sign_may_be_python():
    body, left_out = statements("x = (7\n% 3)")
    assert (ast.unparse(body[0]), left_out) == ("x = 7 % 3", False)


@pytest.mark.parametrize("source", ["def f(:", "x = 1\0", "(" * 1000, "-" * 100_000 + "1"])
def test_a_cell_that_is_not_python_is_left_out_with_a_remark(source):
    pairs, remarks = needed([source, "def f():\n    return 1"], ["f"])
    assert [number for number, _ in pairs] == [2]
    assert remarks[0][:2] == (1, "syntax")


def test_cells_come_as_text_or_as_lists_of_lines():
    notebook = {"cells": [{"cell_type": "code", "source": ["a\n", "b"]}, {"cell_type": "markdown"}]}
    assert code_cells(notebook) == ["a\nb"]


@pytest.mark.parametrize("notebook", [[], None, {}, {"cells": 3}, "text"])
def test_what_has_no_cells_is_no_notebook(notebook):
    with pytest.raises(ValueError, match="list of cells"):
        code_cells(notebook)
