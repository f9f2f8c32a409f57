"""The page's own runner shows of a cell what the notebook has stored, and needs no solution."""

import pytest
from chapters import NAMES, code_cells, printed, tags, written
from planted import code, good, stdout
from run_cell import MOST, run_cell


def shows(source, variables=None):
    """Return whether a cell ended, and what it showed as pairs of kind and text."""
    shown = []
    variables = {} if variables is None else variables
    ended = run_cell(source, "cell 1", variables, lambda *pair: shown.append(pair))
    return ended, shown


def is_solution(cell):
    """Whether a cell goes when a chapter is handed to students."""
    return "solution" in tags(cell)


def run_student(notebook):
    """Run all cells; list the ids of those that fail or show something else than is stored.

    What solutions name, only solutions see: all other cells run as in the student's version.
    """
    found, names, solved = [], {"__name__": "__main__"}, {}
    for cell in code_cells(notebook):
        variables = names | solved if is_solution(cell) else names
        known = dict(variables)
        ended, shown = shows(cell.source, variables)
        new = {name: x for name, x in variables.items() if known.get(name) is not x}
        kept = {name: x for name, x in solved.items() if name not in new}
        solved = kept | new if is_solution(cell) else kept
        stored = [_stored(output) for output in cell.outputs]
        if not ended or "".join(text for _, text in shown) != "".join(stored):
            found.append(cell.id)
    return found


def _stored(output):
    if "text" in output:
        return output.text
    return output.data.get("text/html") or output.data["text/plain"]


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_shows_what_is_stored_and_needs_no_solution(name):
    assert run_student(written()[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_student_version_has_something_left_to_do(name):
    student = [cell for cell in code_cells(written()[name]) if not is_solution(cell)]
    assert any(is_solution(cell) for cell in written()[name].cells)
    assert sum("not done yet" in printed(cell) for cell in student) >= 1


def test_a_cell_that_leans_on_a_solution_is_noticed():
    notebook = good()
    notebook.cells = [
        code("stub", "answer = None"),
        code("solution", "answer = 42\nreason = 'given'", tags=["solution"]),
        code("stub-user", "print(answer)", stdout("42\n")),
        code("name-user", "print(reason)", stdout("given\n")),
        code("also-solution", "print(reason)", stdout("given\n"), tags=["solution"]),
        code("liar", "print(1)", stdout("2\n")),
    ]
    assert run_student(notebook) == ["stub-user", "name-user", "liar"]


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
