"""What the page's own runner shows of a cell is what the notebook has stored."""

import pytest
from chapters import REQUIRED, code_cells, written
from run_cell import MOST, run_cell


def shows(source, variables=None):
    """Return whether a cell ended, and what it showed as pairs of kind and text."""
    shown = []
    ended = run_cell(source, "cell 1", variables or {}, lambda *pair: shown.append(pair))
    return ended, shown


@pytest.mark.parametrize("name", REQUIRED)
def test_every_cell_of_part_one_shows_what_is_stored(name):
    variables = {"__name__": "__main__"}
    for cell in code_cells(written()[name]):
        ended, shown = shows(cell.source, variables)
        stored = [o.get("text") or o["data"]["text/html"] for o in cell.outputs]
        assert ended, cell.id
        assert "".join(text for _, text in shown) == "".join(stored), cell.id


def test_texts_of_one_kind_are_joined_and_kinds_keep_their_order():
    source = "import sys\nfor c in 'ab':\n    print(c)\nprint('c', file=sys.stderr)\n'd'"
    assert shows(source) == (True, [("stdout", "a\nb\n"), ("stderr", "c\n"), ("text", "'d'")])


@pytest.mark.parametrize("source", ["", "# nothing", "x = 1", "None", "print(end='')"])
def test_nothing_to_show_is_nothing(source):
    ended, shown = shows(source)
    assert ended
    assert "".join(text for _, text in shown) == ""


@pytest.mark.parametrize("source", ["raise SystemExit", "raise KeyboardInterrupt", "1 / 0", "("])
def test_cell_that_fails_says_so_and_does_not_end_its_caller(source):
    ended, [(kind, text)] = shows(source)
    assert (ended, kind) == (False, "error")
    assert '"<cell 1>"' in text
    assert "run_cell.py" not in text


@pytest.mark.parametrize("portion", [1, 7, 64, MOST, 2 * MOST])
def test_text_beyond_the_most_is_cut_and_that_is_said_once(portion):
    _, shown = shows(f"for _ in range({2 * MOST // portion + 1}): print('x' * {portion}, end='')")
    assert "".join(text for _, text in shown) == "x" * MOST + "\n… The rest is not shown.\n"
