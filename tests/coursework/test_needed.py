"""Which cells of a notebook the graded function needs, in the order of their runs."""

import ast
import subprocess
import sys

import pytest

from coursework.grader.needed import Cell, code_cells, needed, read, statements_for


def cells_of(sources):
    """Cells of these sources, in their order."""
    return [Cell(number, source) for number, source in enumerate(sources, start=1)]


def chosen(*sources):
    """The numbers of the cells that are run for a function `f`."""
    pairs, _ = needed(cells_of(sources), ["f"])
    return sorted({number for number, _ in pairs})


def remarks(*sources):
    """What is remarked on cells that are read for a function `f`."""
    return needed(cells_of(sources), ["f"])[1]


def test_only_cells_that_the_function_leans_on_are_run_and_these_whole():
    cells = (
        "import numpy as np\nimport matplotlib.pyplot as plt",
        "plt.plot([1])\nprint('x')",
        "def g(x):\n    return np.sin(x) + C",
        "C = 3\nprint(C)",
        "def f(x):\n    return g(x)",
    )
    assert chosen(*cells) == [1, 3, 4, 5]
    pairs, _ = needed(cells_of(cells), ["f"])
    assert [ast.unparse(s) for number, s in pairs if number == 4] == ["C = 3", "print(C)"]


@pytest.mark.parametrize(
    "trial",
    [
        "while True:\n    f(3)",
        "print(f(3).sum(), f(T).mean())",
        "f(3)",
        "import matplotlib.pyplot as plt\nplt.plot(f(2), np.ones(3))",
        "np.testing.assert_allclose(f(2), 3)",
        "benchmark(f)",
        "x = [f(n) for n in range(9)]",
        "display(T)",
    ],
)
def test_a_trial_stays_out(trial):
    cells = ("import numpy as np", "T = [0]", "def f():\n    return np, T[0]", trial)
    assert chosen(*cells) == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        "T[0] = 1",
        "T.append(1)",
        "T.rows = 2",
        "for i in range(2):\n    T[i] = i",
        "for i in range(2):\n    T.append(i)",
        "T += [2]",
        "[T.append(i) for i in range(2)]",
        "last = T.pop()",
        "T.setdefault('x', []).append(1)",
        "async for i in fill(T):\n    T.append(i)",
        "async with fill(2):\n    T.append(1)",
        "[T.append(i) async for i in fill(2)]",
        "del T[0]",
        "if (T := 3):\n    pass",
        "%time T.append(1)",
        "%%capture\nT.append(1)",
        "T = !ls",
    ],
)
def test_a_cell_that_may_change_a_needed_name_is_run(change):
    assert 2 in chosen("T = [0, 0]", change, "def f():\n    return T", "def fill(x):\n    pass")


def test_another_name_that_is_bound_again_changes_nothing():
    assert chosen("T = [0]", "row = T", "row = 3", "def f():\n    return T") == [1, 4]
    assert chosen("T = [0]", "row = T + T", "row[0] = 3", "def f():\n    return T") == [1, 4]
    local = "def g(x):\n    row = T\n    return row"
    assert chosen("T = [0]", local, "row = []\nrow.append(1)", "def f():\n    return T") == [1, 4]


def test_every_cell_is_chosen_where_it_is_asked_for():
    cells = ("def fill(t):\n    t[0] = 1", "T = [0]", "def f():\n    return T", "fill(T)")
    assert chosen(*cells) == [2, 3]
    pairs, _ = needed(cells_of(cells), ["f"], every=True)
    assert [number for number, _ in pairs] == [1, 2, 3, 4]


def test_a_function_that_counts_its_own_calls_does_not_bring_every_trial():
    assert chosen("n = 0\ndef f():\n    global n\n    n += 1", "while True:\n    f()") == [1]


def test_what_a_cell_reads_while_it_runs_was_bound_above_it():
    cells = ("K = 1", "def f(K):\n    return K\nf(K)", "K = slow()")
    assert chosen(*cells) == [1, 2]
    assert chosen("def f(x):\n    return K", "K = 1", "K = 2") == [1, 2, 3]
    assert chosen("K = slow()", "K = 1\ndef f(x):\n    return x\nf(K)") == [2]


def test_a_local_name_of_a_function_needs_no_global_one():
    cells = ("X = slow()", "def f(y):\n    X = y\n    X.append(1)\n    return [X for X in y]")
    assert chosen(*cells) == [2]


@pytest.mark.parametrize(
    "statement",
    [
        "from numpy import *",
        "if True:\n\n    def h():\n        return 1\nelse:\n    h = None",
        "def set_h():\n    global h\n    h = 1",
        "with open('x') as h:\n    pass",
        "h, other = (1, 2)",
        "class h:\n    pass",
        "for h in (1, 2):\n    pass",
        "[h := n for n in range(3)]",
        "import h.part",
        "h: int = 3",
    ],
)
def test_names_are_bound_in_many_ways(statement):
    assert chosen(statement, "def f():\n    return h()") == [1, 2]


def test_default_values_and_decorators_are_needed():
    assert chosen("d = 1", "def wrap(g):\n    return g", "@wrap\ndef f(x=d):\n    return x") == [
        1,
        2,
        3,
    ]


def test_the_last_definition_counts_and_it_is_said_which_one_that_is():
    two = ("def f():\n    return 1", "def f():\n    return 2")
    assert remarks(*two) == [(2, "again", "f; also in code cell 1")]
    assert remarks("\n".join(two)) == [(1, "again", "f; also in the same cell")]
    assert remarks(two[0]) == []


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "...",
        "return",
        "return None",
        "'text'\n    return None",
        "raise NotImplementedError",
    ],
)
def test_a_definition_that_does_nothing_does_not_undo_one_that_does_something(body):
    stub = f"def f():\n    {body}"
    done = "def f():\n    return 1"
    assert chosen(done, stub) == [1]
    assert remarks(done, stub) == [(1, "again", "f; also in code cell 2")]
    assert chosen(stub, done) == [1, 2], "above it was there while other cells ran"
    assert chosen(stub, stub) == [1, 2]


def test_our_own_code_is_taken_by_statements():
    source = "import numpy as np\nx = 1\n\n\ndef f():\n    return np\n\n\nprint(x)"
    found = [ast.unparse(statement) for statement in statements_for([source], ["f"])]
    assert found == ["import numpy as np", "def f():\n    return np"]


def lines_of(source):
    """A cell's statements after IPython, as text with the line of each."""
    return [(statement.lineno, ast.unparse(statement)) for statement in read(source)[0]]


IPYTHON_LINES = """

!pip install \\
   numpy
x = 1
np.repeat?
files = !ls
%time y = 2
z = %time 3
w = %timeit -o z
if x:
    %time y = 3
v = (7
% 3)
"""


def test_every_statement_of_a_cell_with_lines_for_ipython_keeps_its_line():
    assert lines_of(IPYTHON_LINES) == [
        (3, "get_ipython().system('pip install     numpy')"),
        (5, "x = 1"),
        (6, "get_ipython().run_line_magic('pinfo', 'np.repeat')"),
        (7, "files = get_ipython().getoutput('ls')"),
        (8, "y = 2"),
        (9, "z = 3"),
        (10, "w = get_ipython().run_line_magic('timeit', '-o z')"),
        (11, "if x:\n    y = 3"),
        (13, "v = 7 % 3"),
    ]


def test_cells_of_magics_that_run_code_are_that_code_and_others_nothing():
    assert lines_of("\n%%time\n%%prun -q\nx = 1\n%time y = 2") == [(4, "x = 1"), (5, "y = 2")]
    assert lines_of("%%capture out --no-stderr\nx = 1")[1:] == [(2, "x = 1")]
    [(_, text)] = lines_of("%%timeit\nx = 1")
    assert text == "get_ipython().run_cell_magic('timeit', '', 'x = 1\\n')"
    assert lines_of("%prun -l 5 f()") == [(1, "get_ipython().run_line_magic('prun', '-l 5 f()')")]


@pytest.mark.parametrize(
    "source", [">>> x = 1\n>>> y = 2", "In [3]: x = 1\n   ...: y = 2", "  x = 1\n  y = 2"]
)
def test_prompts_and_indentation_go(source):
    assert lines_of(source) == [(1, "x = 1"), (2, "y = 2")]


def test_plain_cells_are_read_without_loading_anything_of_ipython():
    code = (
        "import sys; from coursework.grader import needed; needed.read('x = 1');"
        "assert not [name for name in sys.modules if name.startswith('IPython')];"
        "assert needed._transformer.cache_info().currsize == 0; needed.read('!ls');"
        "assert not [name for name in sys.modules if name.startswith('IPython')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_remark_stays_on_a_cell_with_lines_for_ipython_if_it_is_run():
    assert remarks("%matplotlib inline\nk = 1", "!ls", "def f():\n    return k") == [
        (1, "magic", "")
    ]


@pytest.mark.parametrize("source", ["def f(:", "x = 1\0", "(" * 1000, "-" * 100_000 + "1"])
def test_a_cell_that_is_not_python_is_left_out_with_a_remark(source):
    pairs, found = needed(cells_of([source, "def f():\n    return 1"]), ["f"])
    assert [number for number, _ in pairs] == [2]
    assert found[0][:2] == (1, "syntax")


def test_a_remark_on_a_cell_says_the_line():
    assert remarks("x = 1\n!ls\ny = = 2")[0][2].startswith("line 3: SyntaxError")


def code(source, **fields):
    """A code cell of a notebook's JSON."""
    return {"cell_type": "code", "source": source, **fields}


def sources(*cells, **notebook):
    """The sources of a notebook's code cells in the order of their runs."""
    return [cell.source for cell in code_cells({"cells": list(cells), **notebook})]


def test_cells_come_as_text_or_as_lists_of_lines():
    assert sources(code(["a\n", "b"]), {"cell_type": "markdown"}, code("c")) == ["a\nb", "c"]


def test_cells_come_in_the_order_of_their_counts_and_others_stay_behind_the_one_above():
    cells = [code(name, execution_count=n) for name, n in zip("abcd", (7, None, 2, 5), strict=True)]
    assert sources(*cells) == ["c", "d", "a", "b"]
    assert [cell.number for cell in code_cells({"cells": cells})] == [3, 4, 1, 2]


def test_counts_of_two_kernels_say_nothing_of_the_order():
    cells = [code(name, execution_count=n) for name, n in zip("abc", (3, 1, 3), strict=True)]
    assert sources(*cells) == ["a", "b", "c"]


def test_a_notebook_of_version_3_is_read():
    cells = [
        {"cell_type": "code", "input": [name], "prompt_number": 9 - i}
        for i, name in enumerate("ab")
    ]
    notebook = {"worksheets": [{"cells": cells}], "nbformat": 3}
    assert [cell.source for cell in code_cells(notebook)] == ["b", "a"]


def test_half_a_pair_of_surrogates_is_replaced_and_a_whole_one_is_its_character():
    assert sources(code("\ud83d x"), code("\ud83d\ude00")) == ["\N{REPLACEMENT CHARACTER} x", "😀"]


@pytest.mark.parametrize("notebook", [[], None, {}, {"cells": 3}, "text", {"worksheets": [3, {}]}])
def test_what_has_no_cells_is_no_notebook(notebook):
    with pytest.raises(ValueError, match="list of cells"):
        code_cells(notebook)
