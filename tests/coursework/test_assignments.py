"""Every assignment is fit to be given out: text, points, cases and mistakes belong together.

`make coursework-check` hands in every mistake of every assignment; here the reference and the
untouched notebook go through the sandbox, and each mistake through the judge.
"""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest

import tutorial_lib
from book._static.run_cell import run_cell
from coursework.grader import assignment
from coursework.grader.assignment import (
    FOLDER,
    AssignmentError,
    Mistake,
    assignment_folder,
    read_notebook,
    set_exam,
)
from coursework.grader.batch import prove, set_bench
from coursework.grader.judge import RIGHT, judge
from coursework.grader.release import check, measure, release, unseen
from coursework.grader.release import wrong_handin as hand_in_mistake
from tests.chapters.pages import code_cells, printed, read, tags
from tests.chapters.test_run_cell import run_through
from tests.coursework.printed import size
from tests.sampling import every
from tutorial_lib.practice.mistake import Edit, apply_edits, read_mistakes

BOOK = Path(__file__).resolve().parents[2] / "book"
NAMES = assignment.assignment_names()
TEACHING = "\n".join(p.read_text(encoding="utf-8") for p in sorted(BOOK.glob("teaching*.md")))
LEAST_MISTAKES = 4


@pytest.fixture(scope="module", params=NAMES)
def exam(request):
    """An assignment with the hidden cases of one seed."""
    return set_exam(request.param, 2027)


def subject(name):
    """The chapter or part that an assignment's text names first: the one that it is on."""
    text = "\n".join(cell.source for cell in read_notebook(name).cells)
    return re.search(r"chapter \d\d|Part [IVX]+", text)[0].removeprefix("chapter ")


def test_pages_for_teachers_name_assignments_that_there_are_each_with_its_chapter():
    """An instructor's own is in no list: the pages need not name it."""
    listed = re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", TEACHING, re.MULTILINE)
    assert len(dict(listed)) == len(listed)
    assert {name for name, _ in listed} <= {*NAMES}
    assert listed == [(name, subject(name)) for name, _ in listed]
    named = re.findall(r"assignment `(\w+)`|coursework (?:release|grade) (\w+)", TEACHING)
    assert named
    assert {one or other for one, other in named} <= set(NAMES)


def test_pages_for_teachers_name_the_assignments_that_need_torch(exam):
    needing = re.search(r"The assignments ([^.]*) need PyTorch", TEACHING)[1]
    listed = f"| `{exam.name}` |" in TEACHING
    assert (listed and exam.assignment.torch) == (f"`{exam.name}`" in needing)


NEW = '", arrays(13, H=3, S=24), 2, True'
CHANGED = {  # in a file of `heads`, what is changed into what, and how many tests are others then
    "a word of the text": ("assignment.ipynb", "scale of its own", "own scale", 0),
    "a comment of the solution": ("assignment.ipynb", "# (..., S / size, width)", "# a mean", 0),
    "a label, points, what is new": ("grading.py", 'tokens", arrays(13, H=3, S=24), 1', NEW, 0),
    "one case": ("grading.py", "S=240", "S=720", 1),
    "the tolerance": ("grading.py", "axes=AXES", "axes=AXES, rtol=1e-5", 7),
    "what reports name": ("grading.py", '"head", "query"', '"head", "row"', 7),
    "what is withheld": ("grading.py", "axes=AXES),))", 'axes=AXES),), ("causal_mask",))', 7),
    "the solution": ("assignment.ipynb", "range(Q.shape[-3])", "range(K.shape[-3])", 7),
    "a mistake": ("mistakes.txt", "+ 2 ** (h + 1)", "+ 2 ** (h + 2)", 7),
    "what a mistake leaves": ("mistakes.txt", "keeps: 4", "keeps: 3", 0),
}


@pytest.mark.parametrize(("file", "was", "now", "others"), CHANGED.values(), ids=CHANGED)
def test_a_test_is_another_where_what_it_judges_by_has_changed(file, was, now, others, spoil):
    before = {test.digest for test in set_exam("heads", 1).tests}
    spoil(file, was, now)
    assert len({test.digest for test in set_exam("heads", 1).tests} - before) == others


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("exam", every(4, NAMES), indirect=True)
def test_reference_has_all_points_and_the_untouched_notebook_none(exam):
    with tempfile.TemporaryDirectory() as folder:
        prove(set_bench(exam, folder))


def untold(task, tests):
    """Return the mistakes that lose no points or are taken for others, and for which.

    A mistake always has its own name among those that fit, so a case that leaves no other settles
    it: the smallest cases come first, and large ones are asked of what is left.
    """
    left = {mistake.name: None for mistake in task.mistakes}
    for test in sorted(tests, key=size):
        if not left:
            break
        for mistake, wrong in zip(task.mistakes, test.wrong, strict=True):
            if mistake.name in left and wrong is not None:
                reply = ("verdicts", [not v for v in wrong]) if task.is_test else ("value", wrong)
                said, named = judge(test, *reply)
                if said != RIGHT or task.is_test:
                    left[mistake.name] = {*named} & (left[mistake.name] or {*named})
        left = {name: fits for name, fits in left.items() if fits != {name}}
    return left


def test_each_mistake_loses_points_and_is_named(exam):
    for task in exam.assignment.tasks:
        assert len(task.mistakes) >= LEAST_MISTAKES
        assert untold(task, [test for test in exam.tests if test.task is task]) == {}


def test_points_are_for_the_idea_and_every_mistake_shows_in_a_public_cell(exam):
    """In an assignment whose cases say which of them ask what is new."""
    for task in exam.assignment.tasks:
        if any(test.case.idea for test in exam.tests if test.task is task):
            assert task.chapter
            assert measure(exam, task, lambda line: None) == []
            assert unseen(exam, task) == []


SPOILT = {  # of `heads`, so that a rule is broken
    "the idea is worth little": ("2, idea=True", "1, idea=True", "are 2 and worth 2 of 8 points"),
    "the idea is spread": ("S=10), 1)", "S=10), 1, True)", "are 3 and worth 5 of 10 points"),
    "the chapter is paid": ("d_v=11), 2)", "d_v=11), 3)", "own function earns 3 of 11 points"),
    "zeros are paid": ("(2 * rng", "(0 * rng", "zeros earns 10 of 10 points"),
    "a mistake leaves much": ("keeps: 4", "keeps: 9", "one_size keeps 9 points; the most is 6"),
}


@pytest.mark.parametrize(("was", "now", "fault"), SPOILT.values(), ids=SPOILT)
def test_points_for_something_else_are_a_fault(was, now, fault, spoil):
    spoil("mistakes.txt" if "keeps" in was else "grading.py", was, now)
    exam = set_exam("heads", 1)
    faults = measure(exam, exam.assignment.tasks[0], lambda line: None)
    assert [f for f in faults if fault in f], faults


def test_text_says_how_many_points_there_are_and_which_functions_are_asked_for(exam):
    text = "\n".join(cell.source for cell in read_notebook(exam.name).cells[:6])
    said = [int(n) for n in re.findall(r"(\d+) points\b", text)]
    assert exam.out_of in (*said, sum(said))
    for function in exam.functions:
        assert f"`{function}(" in text


def test_a_handout_says_once_how_it_is_graded(exam, tmp_path):
    handout = nbformat.read(release(exam.name, tmp_path), as_version=4)
    title, how = handout.cells[0].source.split("\n\n")
    assert title == read_notebook(exam.name).cells[0].source
    assert all(f"`{function}`" in how for function in exam.functions)
    assert ("PyTorch" in how) == exam.assignment.torch
    assert ("to 7 digits" in how) != any(task.is_test for task in exam.assignment.tasks)
    assert not [cell for cell in handout.cells[1:] if "hand in" in cell.source.lower()]


def test_labels_set_cases_apart_and_give_no_value_away(exam):
    labels = [(test.task.function, test.case.label) for test in exam.tests]
    assert len(set(labels)) == len(labels)
    assert not re.search(r"\d\.\d", " ".join(label for _, label in labels))


def test_another_seed_gives_other_inputs_and_the_same_seed_the_same(exam, monkeypatch):
    monkeypatch.setattr(
        assignment, "_call_on_copies", lambda *_, torch: np.zeros(1)
    )  # inputs are enough
    same, other = set_exam(exam.name, 2027), set_exam(exam.name, 2028)
    assert all(map(equal_inputs, exam.tests, same.tests))
    changed = [not equal_inputs(*pair) for pair in zip(exam.tests, other.tests, strict=True)]
    assert sum(changed) >= len(changed) / 2


def equal_inputs(one, other):
    """Say whether two hidden tests have the same arguments."""
    return all(map(np.array_equal, one.case.arguments, other.case.arguments))


def test_public_cells_show_what_is_stored_and_solutions_come_last(exam):
    notebook = assignment.without_solutions(read(assignment_folder(exam.name) / "assignment.ipynb"))
    assert run_through(notebook) == []
    assert any("not done yet" in printed(cell) for cell in code_cells(notebook))
    solution = ["solution" in tags(cell) for cell in read_notebook(exam.name).cells]
    assert solution == sorted(solution)


def test_public_cells_answer_once_the_solution_stands_in_the_stubs_place(exam):
    cells = code_cells(read_notebook(exam.name))
    solved = assignment.solution_source(exam.name, exam.functions)
    public = [cell.source for cell in cells if "solution" not in tags(cell)]
    stub = next(i for i, source in enumerate(public) if "return None" in source)
    tried = [source for source in public[stub:] if "return None" not in source]
    shown, names = [], {"__name__": "__main__"}
    for source in (*public[:stub], solved, *tried):
        assert run_cell(source, "cell", names, lambda *pair: shown.append(pair)), shown
    assert tried
    assert not [text for _, text in shown if "not done yet" in text]


@pytest.mark.usefixtures("bubblewrap")
def test_check_tells_a_mistake_that_is_not_caught_or_taken_for_another(monkeypatch):
    exam = set_exam("heads", 1)
    [task] = exam.assignment.tasks
    first, second, *_ = task.mistakes
    twin = replace(second, name="twin", says=first.says)
    object.__setattr__(task, "mistakes", (first, twin))
    for test in exam.tests:
        object.__setattr__(test, "wrong", (test.wrong[0], test.wrong[0]))
    assert check(exam, told=lambda line: None) == ["twin is reported as nothing"]


def test_a_mistake_that_cannot_be_handed_in_is_told():
    [task] = set_exam("heads", 1).assignment.tasks
    elsewhere = Mistake("elsewhere", "", "", edits=(Edit("softmax", "axis=-1", "axis=-2"),))
    with pytest.raises(AssignmentError, match="edit functions of the solution; softmax is not"):
        hand_in_mistake("heads", task, elsewhere)


def test_withheld_functions_raise_and_others_work(tmp_path):
    (tmp_path / "1").mkdir()
    with pytest.raises(AssignmentError, match="no causal_masks to withhold"):
        assignment.offer_library(tmp_path / "1", assignment.Assignment((), ("causal_masks",)))
    given = assignment.Assignment((), withheld=("causal_mask",))
    assignment.offer_library(tmp_path, given)
    for name in assignment.NOT_OFFERED:
        assert (Path(tutorial_lib.__file__).parent / name).exists()
        assert not (tmp_path / "tutorial_lib" / name).exists()
    source = (tmp_path / "tutorial_lib" / "attention.py").read_text(encoding="utf-8")
    assert "causal_mask is withheld in this assignment" in source
    assert "np.tri" not in source.partition("def causal_mask")[2].partition("def ")[0]


def test_implementations_that_a_test_is_tried_on_have_no_mistake_that_the_book_names():
    """Neither by its name nor by its edit."""

    def bare(text):
        return re.sub(r"\s", "", text)

    names, edits = set(), set()
    for path in Path(tutorial_lib.__file__).parent.glob("practice/*/mistakes.txt"):
        for mistakes in read_mistakes(path).values():
            names |= {m.name for m in mistakes}
            edits |= {(bare(e.old), bare(e.new)) for m in mistakes for e in m.edits}
    own = [m for p in FOLDER.glob("*/implementations.txt") for m in read_mistakes(p)["mistakes"]]
    assert len(own) >= LEAST_MISTAKES
    assert names.isdisjoint(m.name for m in own)
    assert edits.isdisjoint((bare(e.old), bare(e.new)) for m in own for e in m.edits)


@pytest.mark.parametrize("seed", [3, 11, 30])
def test_all_together_in_masks_is_a_token_with_three_ancestors_too(seed):
    everything = set_exam("masks", seed).tests[-1]
    draft = everything.expected[..., everything.case.arguments[2] :]
    assert draft.sum(axis=-1).max() > 3


COMBINED = {"far into a sequence", "all together"}
LOSSES = {  # what a layer loses beside what is combined, when it breaks one promise
    "groups_in_turn": {"keys that heads share"},
    "window_one_too_wide": {"a window", "a ring that has wrapped around"},
    "ring_oldest_first": {"a ring that is not full", "a ring that has wrapped around"},
    "ring_of_the_first_round": {"a ring that has wrapped around"},
    "slopes_added": {"slopes"},
    "sink_left_out": {"sinks, and heads without one", "scores in the thousands"},
    "padding_seen": {"padding at the left"},
}
SINK_LEFT_OUT = (Edit("", "(scores, sink,", "(scores, np.full(len(sink), -np.inf),"),)


@pytest.mark.parametrize("broken", LOSSES)
def test_a_layer_that_breaks_a_promise_keeps_the_points_of_the_others(broken):
    tests = set_exam("promises", 2027).tests
    edits = {m.name: m.edits for m in tests[0].task.mistakes} | {"sink_left_out": SINK_LEFT_OUT}
    layer = apply_edits(tests[0].right, edits[broken])
    replies = [(test.case, layer(*test.case.arguments)) for test in tests]
    pairs = zip(tests, replies, strict=True)
    right = [judge(test, "value", Y)[0] == RIGHT for test, (_, Y) in pairs]
    lost = {case.label for (case, _), kept in zip(replies, right, strict=True) if not kept}
    assert lost - COMBINED == LOSSES[broken]


def test_the_properties_of_the_text_are_the_hidden_cases_with_their_points(exam):
    """Where the text has a table of them; `exam` is every assignment."""
    text = "\n".join(c.source for c in read_notebook(exam.name).cells)
    [*tables] = re.findall(
        r"^\| (?:promise|property) \| points \|\n\|.*\n((?:\|.*\n)+)", text, re.M
    )
    rows = re.findall(r"^\| (.+) \| (\d+) \|$", "".join(tables), re.M)
    cases = [test.case for test in exam.tests]
    assert bool(rows) or not any(case.idea for case in cases)
    for (said, points), case in zip(rows, cases, strict=bool(rows)):
        assert said.startswith(case.label)
        assert int(points) == case.points
