"""The code cells of a notebook's file, in the order of their runs."""

import pytest

from coursework.grader.worker_cells import code_cells


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
