"""The code cells of a notebook's file, in the order of their runs."""

import pytest

from coursework.grader.worker_cells import code_cells


def code(source, **fields):
    """A code cell of a notebook's JSON."""
    return {"cell_type": "code", "source": source, **fields}


def counted(*counts):
    """Code cells a, b, … with execution counts."""
    return [code("abcd"[i], execution_count=count) for i, count in enumerate(counts)]


OLD = [{"cell_type": "code", "input": [n], "prompt_number": i} for n, i in (("a", 9), ("b", 8))]
ORDERED = {  # a notebook, and the sources of its code cells
    "lines": ({"cells": [code(["a\n", "b"]), {"cell_type": "markdown"}, code("c")]}, ["a\nb", "c"]),
    "cells that were not run stay behind the one above": (
        {"cells": counted(7, None, 2, 5)},
        ["c", "d", "a", "b"],
    ),
    "counts of two kernels": ({"cells": counted(3, 1, 3)}, ["a", "b", "c"]),
    "version 3": ({"worksheets": [{"cells": OLD}], "nbformat": 3}, ["b", "a"]),
    "half a pair of surrogates": (
        {"cells": [code("\ud83d x"), code("\ud83d\ude00")]},
        ["\N{REPLACEMENT CHARACTER} x", "😀"],
    ),
}


@pytest.mark.parametrize(("notebook", "sources"), ORDERED.values(), ids=ORDERED)
def test_cells_come_in_the_order_of_their_runs(notebook, sources):
    assert list(code_cells(notebook).values()) == sources


def test_a_cell_keeps_its_place_as_its_number():
    assert list(code_cells({"cells": counted(7, None, 2, 5)})) == [3, 4, 1, 2]


@pytest.mark.parametrize("notebook", [[], None, {}, {"cells": 3}, "text", {"worksheets": [3, {}]}])
def test_what_has_no_cells_is_no_notebook(notebook):
    with pytest.raises(ValueError, match="list of cells"):
        code_cells(notebook)
