"""Every chapter has the order of all chapters, a review that of reviews; departures are noticed."""

import pytest

from tests.chapters.anatomy import UNLIT, faults, next_map, pieces, sections
from tests.chapters.pages import NAMES, advises, listed, written
from tests.chapters.planted import (
    CHAPTER,
    HINT,
    HINTS,
    OTHER,
    REVIEW,
    cell_of,
    chapter,
    code,
    review,
    stdout,
    text,
)


@pytest.mark.parametrize("name", NAMES)
def test_page_has_the_order_of_its_kind(name):
    found = faults(name, written(name))
    assert not found, listed(found, name)


def test_no_two_sections_have_one_label():
    titles = [title for name in NAMES for title in sections(pieces(written(name)))]
    twice = {title for title in titles if ": " in title and titles.count(title) > 1}
    assert not twice, f"two sections are called {twice}: change one label"


def test_a_good_chapter_and_a_good_review_have_no_faults():
    assert faults(CHAPTER, chapter()) == []
    assert faults(REVIEW, review()) == []


def edit(name, old, new):
    """Return a change of the text of one cell."""

    def change(notebook):
        cell = cell_of(notebook, name)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return change


def retag(name, *tags):
    """Return a change of the tags of one cell."""
    return lambda notebook: cell_of(notebook, name).metadata.update(tags=list(tags))


def clear(name):
    """Return a change that takes away a cell's outputs."""
    return lambda notebook: cell_of(notebook, name).update(outputs=[])


def drop(name):
    """Return a change that takes away a cell."""
    return lambda notebook: notebook.cells.remove(cell_of(notebook, name))


def move(name, before):
    """Return a change that moves a cell in front of another."""

    def change(notebook):
        cell = cell_of(notebook, name)
        notebook.cells.remove(cell)
        notebook.cells.insert(notebook.cells.index(cell_of(notebook, before)), cell)

    return change


def add(cell, before):
    """Return a change that puts a new cell in front of another."""

    def change(notebook):
        notebook.cells.insert(notebook.cells.index(cell_of(notebook, before)), cell)

    return change


def unfold(name):
    """Return a change that leaves a cell open in Jupyter."""
    return lambda notebook: cell_of(notebook, name).metadata.pop("jupyter")


def long(lines):
    """Return a cell of so many lines."""
    return code("long", "\n".join(f"x = {n}" for n in range(lines)))


def crowd(notebook):
    """Give the chapter five exercises."""
    for n in (3, 4, 5):
        add(text(f"task-{n}", f"**Exercise {n}: more.** Add one."), "quiz")(notebook)


def grow(notebook):
    """Make half of the cells longer than the median allows."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and "tags" not in cell.metadata:
            cell.source += "\nx = 1" * 6


CHANGES = {
    "second title": (edit("idea", "## Idea", "# Idea"), "one level-1 heading"),
    "other file's Colab link": (edit("opening", CHAPTER, OTHER), "no text link"),
    "badge": (edit("opening", "[Open in Colab]", "[![Colab](badge.svg)]"), "no text link"),
    "heading missing": (edit("myth", "## Myth and measurement", "### Myth"), "level-2 headings"),
    "heading misspelt": (edit("quiz", "Quiz", "Test yourself"), "level-2 headings"),
    "headings swapped": (move("look", "check"), "level-2 headings"),
    "no label": (edit("look", ": weights of dogs", ""), "label of 2 to 6 words"),
    "long label": (edit("look", "dogs", "dogs in both of the maps"), "label of 2 to 6"),
    "map unlit": (edit("opening", "**project**", "project"), "top does not show the map"),
    "map without a step": (edit("opening", "score · ", ""), "top does not show the map"),
    "map in another order": (edit("opening", "score · mix", "mix · score"), "top does not show"),
    "map lit in half": (edit("opening", "· mix", "· **mix"), "top does not show the map"),
    "map twice": (edit("opening", "## Goal", f"{UNLIT}\n\n## Goal"), "top does not show the map"),
    "no arrow": (edit("opening", "`X → Q, K, V`", "Q"), "Goal does not show its arrow"),
    "no minutes": (edit("opening", "About 5 minutes", "Long minutes"), "its minutes"),
    "200 words too many": (edit("idea", "Why?", f"Why? {'word ' * 400}"), "outside Deeper"),
    "no budget": (lambda notebook: notebook.metadata.pop("visible_words"), "budget of words"),
    "no reason": (edit("opening", "- **Why**", "- Why"), "opens with ['You get', 'One number']"),
    "no notation": (edit("opening", "notation.md", "x.md"), "does not link to the notation once"),
    "glossary twice": (edit("opening", "notation.md", "glossary.md"), "to the glossary once"),
    "recap without an arrow": (edit("recap", next_map(CHAPTER), UNLIT), "the next arrow"),
    "recap without a map": (edit("recap", next_map(CHAPTER), ""), "the next arrow"),
    "no rounds": (edit("build", "### Round 1: one head", ""), "0 rounds"),
    "five rounds": (edit("build", "one head", "a" + "\n### Round" * 4), "5 rounds"),
    "keeper outside Build": (move("keeper", "measured"), "outside Build"),
    "prediction missing": (drop("prediction-2"), "predictions are"),
    "prediction of another chapter": (edit("prediction-2", CHAPTER, OTHER), "predictions are"),
    "predictions swapped": (move("prediction-2", "prediction-1"), "predictions are"),
    "prediction shows its code": (retag("prediction-1"), "shows its code"),
    "answer open on the page": (retag("answer-1"), "no closed answer"),
    "answer open in Jupyter": (unfold("answer-1"), "no closed answer"),
    "answer empty": (clear("answer-1"), "no closed answer"),
    "hidden without a question": (retag("sentence", "hide-output"), "without a prediction"),
    "no check": (edit("checked", "check_project_heads(", "print("), "calls no check"),
    "no figure": (clear("figure"), "Look shows neither a figure nor an exhibit"),
    "no picture": (clear("picture"), "Idea shows neither a figure nor an exhibit"),
    "no sentence": (clear("sentence"), "prints no sentence"),
    "no claim": (edit("myth", "> ", ""), "the claim as a quotation"),
    "no source": (edit("myth", "https://arxiv.org/abs/", ""), "a link to a source"),
    "no measurement": (clear("measured"), "measures nothing"),
    "one exercise": (edit("task", "**Exercise 2: with a bias.**", "Also:"), "numbered ['1']"),
    "five exercises": (crowd, "has 5 exercises, more than 4: replace one"),
    "numbers out of order": (edit("task", "Exercise 2", "Exercise 3"), "numbered ['1', '3']"),
    "no Parsons problem": (drop("parsons"), "need one Parsons"),
    "Parsons problem elsewhere": (move("parsons", "measured"), "need one Parsons"),
    "Parsons problem shows its code": (retag("parsons"), "shows its code"),
    "no stub": (drop("stub"), "goes t c h S"),
    "check after the hints": (move("hints", "unsolved"), "goes t s h c S"),
    "no hints": (edit("hints", HINT, "Think."), "goes t s c t S"),
    "two hints": (edit("hints", HINTS[2], ""), "has 2 hints"),
    "no solution": (drop("solution"), "goes t s c h:"),
    "solution first": (move("solution", "unsolved"), "goes t s S c h"),
    "solution untagged": (retag("solution"), "goes t s c h c"),
    "text after the solution": (add(text("after", "As you saw."), "quiz"), "exercise 2: goes"),
    "solved already": (clear("unsolved"), "not done yet"),
    "solution not checked": (edit("solution", "check_biased(biased)", "x"), "define and check"),
    "solution fails": (clear("solution"), "define and check"),
    "solution open on the page": (retag("solution", "solution"), "is not folded"),
    "solution open in Jupyter": (unfold("solution"), "is not folded"),
    "solution elsewhere": (retag("measured", "solution"), "outside Exercises"),
    "no quiz": (drop("questions"), "Quiz needs one cell"),
    "quiz of another chapter": (edit("questions", CHAPTER, OTHER), "Quiz needs one cell"),
    "quiz shows its code": (retag("questions"), "quiz shows its code"),
    "13 lines": (add(long(13), "check"), "13 lines"),
    "86 columns": (add(code("wide", "x = " + "1" * 82), "check"), "86 columns"),
    "long cells": (grow, "in the median"),
}


def assert_noticed(name, notebook, case):
    """Make a change of a good page: its fault is said, and each fault says what to do."""
    change, expected = case
    change(notebook)
    found = faults(name, notebook)
    assert any(expected in fault for fault in found), found
    assert all(advises(fault) for fault in found), found


@pytest.mark.parametrize("case", CHANGES)
def test_departure_is_noticed(case):
    assert_noticed(CHAPTER, chapter(), CHANGES[case])


def deepened():
    """Return the chapter with a Deeper in its round and one in each section that may have one."""
    notebook = chapter()
    in_round = "#### Deeper: in loops\n\nThe loops agree. They are slower."
    others = {"build": "Idea", "look": "Check", "myth": "Look", "puzzle": "Myth"}
    add(text("loops", in_round), "check")(notebook)
    for n in range(8):
        add(code(f"loop-{n}", "x = 1"), "check")(notebook)
    for before, section in others.items():
        result = f"### Deeper: more of {section}\n\nThe rest is 4 (Vaswani et al. 2017)."
        add(text(f"deeper-{section}", result), before)(notebook)
        add(code(f"deep-{section}", "x = 1"), before)(notebook)
    add(text("deeper-again", "### Deeper: again\n\nAnd more."), "puzzle")(notebook)
    edit("opening", "20 of doing", "20 of doing; with *Deeper*, 10 and 20")(notebook)
    return notebook


def test_a_deeper_has_its_place_and_its_cells_are_not_counted():
    assert faults(CHAPTER, deepened()) == []


RESULT = "The loops agree. They are slower."
TERM = RESULT.replace("loops", "**bias**")
DEEPER_CHANGES = {
    "in Quiz": (edit("quiz", "## Quiz", "## Quiz\n\n### Deeper: x\n\nSo."), "is in Quiz"),
    "of a section in a round": (edit("loops", "#### ", "### "), "has ###: write ####"),
    "of a round in a section": (edit("deeper-Look", "### ", "#### "), "has ####: write ###"),
    "before a heading of its round": (
        add(text("torch", "#### In PyTorch\n\nSo."), "check"),
        "comes before 'In PyTorch'",
    ),
    "before a heading of its section": (
        add(text("more", "### More\n\nSo."), "puzzle"),
        "comes before 'More'",
    ),
    "a keeper in it": (move("keeper", "loop-1"), "a keeper, is in"),
    "a prediction in it": (move("prediction-1", "loop-1"), "a prediction, is in"),
    "a check in it": (move("checked", "look"), "a check, is in"),
    "no result": (edit("loops", RESULT, ""), "paragraph of 0 sentences"),
    "result without an end": (edit("loops", RESULT, "In loops:"), "paragraph of 0 sentences"),
    "result of three sentences": (edit("loops", RESULT, RESULT + " So."), "of 3 sentences"),
    "result in a list": (edit("loops", RESULT, f"- {RESULT}"), "write its result"),
    "result below a cell": (edit("loops", RESULT, "$$x$$\n\nSo."), "write its result"),
    "figure of Look in it": (move("figure", "deep-Look"), "Look shows neither"),
    "sentence of Look in it": (move("sentence", "deep-Look"), "prints no sentence"),
    "a term of a task in it": (edit("loops", RESULT, TERM), "use 'bias': move it"),
    "a function of Look in it": (edit("loop-1", "x = 1", "def weights(): x"), "uses weights"),
    "named in a task": (edit("task", "Add one.", "See *Deeper*."), "name 'Deeper*.'"),
    "eight cells outside it": (edit("loops", "#### Deeper: in loops", ""), "code cells: split"),
}


@pytest.mark.parametrize("case", DEEPER_CHANGES)
def test_departure_of_a_deeper_is_noticed(case):
    assert_noticed(CHAPTER, deepened(), DEEPER_CHANGES[case])


REVIEW_CHANGES = {
    "chapter's Colab link": (edit("opening", REVIEW, CHAPTER), "no text link"),
    "heading of a chapter": (edit("abilities", "What you can do now", "Build"), "level-2 headings"),
    "headings swapped": (move("recap", "quiz"), "level-2 headings"),
    "map unlit": (edit("opening", "**mix**", "mix"), "top does not show the map"),
    "no minutes": (edit("opening", "About 5 minutes", "Long minutes"), "its minutes"),
    "recap without its map": (edit("recap", next_map(REVIEW), ""), "the next arrow"),
    "a chapter left out": (edit("abilities", f"({CHAPTER}.ipynb)", "(1)"), f"no link to {CHAPTER}"),
    "a step left out": (edit("abilities", "| **concat** |", "| concat |"), "no row for the step"),
    "prediction counted from 2": (edit("prediction-1", "1)", "2)"), "predictions are"),
    "no quiz": (drop("questions"), "Quiz needs one cell"),
    "quiz of a chapter": (edit("questions", REVIEW, CHAPTER), "Quiz needs one cell"),
    "no stub": (drop("stub"), "the task: goes t c h S"),
    "no hints": (drop("hints"), "the task: goes t s c S"),
    "solved already": (clear("unsolved"), "the task: the stored output"),
    "solution not checked": (edit("solution", "check_biased(biased)", "x"), "define and check"),
    "solution open": (unfold("solution"), "the task: its solution is not folded"),
    "solution elsewhere": (
        add(code("early", "x = 1", stdout("1\n"), tags=["solution"]), "quiz"),
        "outside The task",
    ),
    "no use": (drop("use"), "uses the answer"),
    "use that stays without the solution": (retag("use"), "uses the answer"),
    "use that shows nothing": (clear("use"), "uses the answer"),
    "13 lines": (add(long(13), "quiz"), "13 lines"),
}


@pytest.mark.parametrize("case", REVIEW_CHANGES)
def test_departure_of_a_review_is_noticed(case):
    assert_noticed(REVIEW, review(), REVIEW_CHANGES[case])


def test_a_chapter_is_no_review_and_a_review_no_chapter():
    assert any("level-2 headings" in fault for fault in faults(REVIEW, chapter()))
    assert any("level-2 headings" in fault for fault in faults(CHAPTER, review()))


def test_a_short_and_a_long_round_are_noticed():
    short, long_round = chapter(), chapter()
    edit("check", "## Check", "### Round 2\n\nNothing.\n\n## Check")(short)
    for n in range(3):
        add(code(f"more-{n}", "x = 1"), "keeper")(long_round)
    assert any("round 2 has 0" in fault for fault in faults(CHAPTER, short))
    assert any("round 1 has 10" in fault for fault in faults(CHAPTER, long_round))


def test_twelve_lines_are_accepted():
    notebook = chapter()
    add(long(12), "check")(notebook)
    assert not any("lines" in fault for fault in faults(CHAPTER, notebook))
