"""The page's own runner shows of the student's version of a chapter what is stored."""

import pytest

from book._static.run_cell import MOST, run_cell
from coursework.grader.assignment import without_solutions
from coursework.grader.release import student_version
from tests.chapters.pages import NAMES, code_cells, printed, tags, written
from tests.chapters.planted import code, good, stdout
from tools.chapters import pages


def shows(source, variables=None):
    """Return whether a cell ended, and what it showed as pairs of kind and text."""
    shown = []
    variables = {} if variables is None else variables
    ended = run_cell(source, "cell 1", variables, lambda *pair: shown.append(pair))
    return ended, shown


def run_through(notebook):
    """Run all cells; list the ids of those that fail or show something else than is stored."""
    found, names = [], {"__name__": "__main__"}
    for cell in code_cells(notebook):
        ended, shown = shows(cell.source, names)
        stored = [_stored(output) for output in cell.outputs]
        if not ended or "".join(text for _, text in shown) != "".join(stored):
            found.append(cell.id)
    return found


def _stored(output):
    if "text" in output:
        return output.text
    return output.data.get("text/html") or output.data["text/plain"]


ELSEWHERE = {page.name for page in pages() if not page.runs_in_browser}
VERSIONS = [pytest.param(n, marks=[pytest.mark.long] * (n in ELSEWHERE)) for n in NAMES]


@pytest.mark.parametrize("name", VERSIONS)
def test_students_version_runs_from_top_to_bottom_and_shows_what_is_stored(name):
    assert run_through(student_version(name)) == []


@pytest.mark.parametrize("name", VERSIONS)
def test_students_version_is_the_chapter_without_its_solutions(name):
    chapter, student = written(name), student_version(name)
    kept = [cell for cell in chapter.cells if "solution" not in tags(cell)]
    assert len(kept) < len(chapter.cells)
    for before, after in zip(kept[1:], student.cells[1:], strict=True):
        assert after.source == before.source
        assert outputs_of(after) == outputs_of(before)
    first = kept[0].source
    assert "/blob/main/notebooks/" in first
    assert student.cells[0].source == first.replace("/main/notebooks/", "/main/student/")
    counts = [cell.execution_count for cell in code_cells(student)]
    assert counts == list(range(1, len(counts) + 1))
    assert any("not done yet" in printed(cell) for cell in code_cells(student))


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_solution_is_left(name):
    lines = {True: set(), False: set()}
    for cell in written(name).cells:
        lines["solution" in tags(cell)] |= {line.strip() for line in cell.source.splitlines()}
    own = {line for line in lines[True] - lines[False] if len(line) > 12}
    assert own
    text = "\n".join(cell.source for cell in code_cells(student_version(name)))
    assert [line for line in own if line in text] == []


def outputs_of(cell):
    """Return what a cell shows, without the number of its run."""
    return [{**output, "execution_count": None} for output in cell.get("outputs", [])]


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
    assert run_through(without_solutions(notebook)) == ["stub-user", "name-user", "liar"]


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
