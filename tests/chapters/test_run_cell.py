"""The page's own runner shows of the student's version of a chapter what is stored."""

import builtins

import pytest

from book._static.run_cell import MOST, run_cell
from coursework.grader.assignment import without_solutions
from coursework.grader.release import student_version
from tests.chapters.pages import NAMES, code_cells, printed, tags, written
from tests.chapters.planted import code, good, stdout
from tests.conftest import found_weights
from tools.chapters import page, pages
from tutorial_lib.models.real.model import MISSING


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


OWN = "move what they use out of the solutions, or give them the tag solution too"
ELSEWHERE = {page.name for page in pages() if not page.runs_in_browser}
VERSIONS = [pytest.param(n, marks=[pytest.mark.long] * (n in ELSEWHERE)) for n in NAMES]
# Of each part that runs in a page the chapter that takes least; nbval runs every cell of all.
RUN = ("06_output_projection", "14_kv_cache", "23_capstone")
SAMPLED = [pytest.param(n, marks=[pytest.mark.long] * (n not in RUN)) for n in NAMES]


@pytest.mark.parametrize("name", SAMPLED)
def test_students_version_runs_from_top_to_bottom_and_shows_what_is_stored(name):
    if page(name).needs_weights and not found_weights():
        pytest.skip(MISSING)
    other = run_through(student_version(name))
    assert not other, (
        f"cells {other} show something else than is stored. Run: make chapter NB={name}. If it "
        f"does not help, they need a solution, which a student does not have: {OWN}"
    )


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
    assert own, f"{name} has no solution: give a cell the tags solution and hide-cell"
    text = "\n".join(cell.source for cell in code_cells(student_version(name)))
    left = [line for line in own if line in text]
    assert not left, f"lines of a solution stand in other cells too: change them there: {left}"


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


def test_text_is_cut_and_shown_at_once_where_the_cell_goes_on_printing_for_ever():
    shown = []
    source = f"print('x' * {MOST - 1})\nfor _ in range(9): print('y')\nseen = len(shown)"
    variables = {"shown": shown}
    assert run_cell(source, "cell 1", variables, lambda *pair: shown.append(pair))
    assert variables["seen"] == len(shown) == 1


def test_display_shows_a_value_and_gives_a_place_that_shows_the_next():
    source = "display(1, 'a')\nplace = display('<b>', display_id=True)\nplace.update(3)\nprint(4)"
    assert shows(source) == (
        True,
        [
            ("text", "1'a'"),
            ("live 1", "<pre>&#x27;&lt;b&gt;&#x27;</pre>"),
            ("live 1", "<pre>3</pre>"),
            ("stdout", "4\n"),
        ],
    )
    assert not hasattr(builtins, "display")


def test_two_places_of_a_cell_are_told_apart_and_html_is_shown_as_it_is():
    source = """class Bold:
    def _repr_mimebundle_(self):
        return {"text/html": "<b>x</b>"}
one, two = display(Bold(), display_id=True), display(2, display_id=True)
one.update(Bold())"""
    kinds = [("live 1", "<b>x</b>"), ("live 2", "<pre>2</pre>"), ("live 1", "<b>x</b>")]
    assert shows(source) == (True, kinds)


def test_display_of_a_notebook_is_there_again_after_a_cell(monkeypatch):
    monkeypatch.setattr(builtins, "display", print, raising=False)
    assert shows("display(1)") == (True, [("text", "1")])
    assert builtins.display is print


BEFORE = ["08-own-task", "08-own-training", "08-own-right", "08-own-heads"]
SHORT = {"TRAIN = False": "TRAIN = True", "5e-3, 300": "5e-3, 2"}
CHANGES = {
    "as it stands": {},
    "one layer, four heads, narrow": {"= 2, 2, 64": "= 1, 4, 32"},
    "three layers, one head": {"= 2, 2, 64": "= 3, 1, 16"},
    "one period": {"(4, 12), 5e-3": "(6, 6), 5e-3"},
    "no step": {"5e-3, 2": "5e-3, 0"},
}


def own_training(changes):
    """Run chapter 08's cells of an own training with these changes; return what they show."""
    cells = {cell.id: cell.source for cell in code_cells(written("08_gradients"))}
    [imports] = [source for source in cells.values() if "from tutorial_lib.elements" in source]
    shares = [s for s in cells.values() if "after_copies =" in s or "def weight_after_copies" in s]
    assert len(shares) == 2
    variables = {"__name__": "__main__"}
    given = "trained = TinyModel.of(checkpoint('copying'))\n"
    given += "fresh = sample_sequences(np.random.default_rng(99), 128)\ngiven = fresh[0][:, :-1]"
    found = []
    for source in [imports, given, *shares, *(cells[name] for name in BEFORE)]:
        for old, new in (SHORT | changes).items():
            source = source.replace(old, new)
        found.append(shows(source, variables))
    return found[-4:], variables


@pytest.mark.parametrize("change", CHANGES)
def test_own_training_of_chapter_08_runs_with_what_a_reader_changes(change):
    found, variables = own_training(CHANGES[change])
    assert [ended for ended, _ in found] == [True] * 4
    assert {kind for kind, _ in found[1][1]} == {"live 1"}
    steps = 0 if change == "no step" else 2
    assert f"tep {steps} of 2" in found[1][1][-1][1] or steps == 0
    assert (
        len(variables["mine"].layers)
        == {"= 2": 2, "= 1": 1, "= 3": 3}[CHANGES[change].get("= 2, 2, 64", "= 2")[:3]]
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"(4, 12), 5e-3": "(4, 12), float('nan')"},
            "rate=nan; expected 0 steps or more and a rate above 0",
        ),
        ({"5e-3, 2": "5e-3, -2"}, "steps=-2 and rate=0.005; expected 0 steps"),
        ({"(4, 12), 5e-3": "(12, 4), 5e-3"}, "expected the shortest, at least 1, and then"),
        ({"(4, 12), 5e-3": "(4, 40), 5e-3"}, "below 32, so that a block repeats"),
        ({"= 2, 2, 64": "= 2, 3, 64"}, "does not split into n_heads=3"),
        ({"= 2, 2, 64": "= 0, 2, 64"}, "layer"),
    ],
)
def test_own_training_that_cannot_be_says_why_and_leaves_a_model(change, says):
    (_, (ended, shown), *_), variables = own_training(change)
    assert not ended
    assert says in shown[-1][1]
    assert variables["mine"] is variables["trained"]
