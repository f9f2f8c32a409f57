"""Every chapter has the order of all chapters, a review that of reviews; departures are noticed."""

import copy

import pytest

from tests.chapters.anatomy import faults, pieces, sections
from tests.chapters.pages import FIRST_REVIEW, NAMES, advises, listed, written

CHAPTER = "05_concatenation"


@pytest.mark.parametrize("name", NAMES)
def test_page_has_the_order_of_its_kind(name):
    found = faults(name, written(name))
    assert not found, listed(found, name)


def test_no_two_sections_have_one_label():
    titles = [title for name in NAMES for title in sections(pieces(written(name)))]
    twice = {title for title in titles if ": " in title and titles.count(title) > 1}
    assert not twice, f"two sections are called {twice}: change one label"


EDITS = [  # words of the chapter, what stands in their place, what is said of it
    ("## Idea", "# Idea", "one level-1 heading"),
    ("[Open in Colab]", "[Colab](", "no text link to Colab"),
    ("## Quiz", "## Test yourself", "level-2 headings"),
    ("## Look: causal leaks from a wrong reshape", "## Look", "label of 2 to 6 words"),
    ("**concat**", "concat", "top does not show the map"),
    ("`heads → concat`", "heads", "Goal does not show its arrow"),
    ("About", "Around", "its minutes"),
    ("- **Why**", "- Why", "opens with ['You get', 'One number']"),
    ("../book/notation.md", "x.md", "does not link to the notation once"),
    ("## Check:", "### Round 4\n\n## Check:", "round 4 has 0 code cells"),
    ("#### Deeper: three joins", "### Deeper: three joins", "has ###: write ####"),
    ("#### Deeper: three joins that fail\n\n", "#### Deeper: joins\n\n- ", "write its result"),
    ("## Quiz", "## Quiz\n\n### Deeper: x\n\nSo.", "is in Quiz"),
    ("## Recap", "## Recap\n\nSee *Deeper*.", "name 'Deeper*."),
    ('prediction("05', 'prediction("04', "predictions are"),
    ("checks.check_concat_heads(", "print(", "Check calls no check"),
    ("\n> ", "\n", "the claim as a quotation"),
    ("**Exercise 2:", "**Exercise 3:", "numbered ['1', '3'"),
    ('parsons("05', 'parsons("04', "need one Parsons"),
    ("<summary>Hint 3", "<summary>And", "has 2 hints"),
    ('quiz("05', 'quiz("04', "Quiz needs one cell"),
    ("def concat_by_loops(heads):", "def f():" + "\n    x = 1" * 13, "lines, more than 12"),
    ("def strides(", f"x = {'1' * 82}\ndef strides(", "86 columns, more than 85"),
]
CELLS = [  # words of a cell, what is done to it, what is said of it
    ('prediction("05_concatenation", 2)', "drop", "predictions are"),
    ('prediction("05_concatenation", 2)', "untag", "shows its code"),
    ("joined = np.concatenate(list(heads)", "untag", "no closed answer"),
    ("maps = {", "clear", "Look shows neither a figure nor an exhibit"),
    ("for name, depends in maps", "clear", "prints no sentence"),
    ("# tril: on the diagonal", "clear", "measures nothing"),
    ("def concat_tokens_first(heads):\n    return None", "drop", "goes t c h S"),
    ("checks.check_concat_tokens_first(", "clear", "not done yet"),
    ("def concat_tokens_first(heads):\n    return heads", "drop", "goes t s c h"),
    ("def concat_tokens_first(heads):\n    return heads", "untag", "goes t s c h c"),
    ("def concat_tokens_first(heads):\n    return heads", "clear", "define and check"),
]
OF_A_REVIEW = [
    ("## What you can do now", "## Build", "level-2 headings"),
    ("(04_multi_head_attention.ipynb", "(x.ipynb", "no link to 04_multi_head_attention"),
    ("| **concat** |", "| concat |", "no row for the step"),
    ('quiz("review_part_1")', 'quiz("x")', "Quiz needs one cell"),
    ("checks.check_layer_from_memory(", "print(", "the task: goes"),
    ("suspect.check_found(evidence", "print(evidence", "the bug hunt: goes"),
]


def cell_with(notebook, words):
    """Return the first cell that has these words."""
    return next(cell for cell in notebook.cells if words in cell.source)


def require_noticed(name, notebook, told):
    """Require that a changed page has a fault with these words, and that faults say what to do."""
    found = faults(name, notebook)
    assert any(told in fault for fault in found), found
    assert all(advises(fault) for fault in found), found


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [*((CHAPTER, *edit) for edit in EDITS), *((FIRST_REVIEW, *edit) for edit in OF_A_REVIEW)],
)
def test_other_words_are_noticed(name, old, new, told):
    notebook = copy.deepcopy(written(name))
    cell = cell_with(notebook, old)
    cell.source = cell.source.replace(old, new)
    require_noticed(name, notebook, told)


@pytest.mark.parametrize(("words", "change", "told"), CELLS)
def test_a_changed_cell_is_noticed(words, change, told):
    notebook = copy.deepcopy(written(CHAPTER))
    cell = cell_with(notebook, words)
    if change == "drop":
        notebook.cells.remove(cell)
    elif change == "clear":
        cell.outputs = []
    else:
        cell.metadata.tags = []
    require_noticed(CHAPTER, notebook, told)
