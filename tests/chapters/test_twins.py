"""Chapter and library hold the same functions."""

import pytest
from nbformat.v4 import new_notebook

from tests.chapters.pages import NAMES, advises, listed, written
from tests.chapters.planted import code
from tests.chapters.twins import (
    claims,
    import_faults,
    keeper_faults,
    rival_definitions,
)
from tools.chapters import pages

CHAPTER = "04_multi_head_attention"
SPLIT = """\
def split_heads(X, n_heads):
    *batch, T, width = X.shape
    pieces = X.reshape(*batch, T, n_heads, width // n_heads)  # (..., T, H, d)
    return np.swapaxes(pieces, -3, -2)  # (..., H, T, d)"""


@pytest.mark.parametrize("name", NAMES)
def test_keepers_equal_their_twins_in_the_library(name):
    found = keeper_faults(name, written(name))
    assert not found, listed(found, name)


@pytest.mark.parametrize("name", NAMES)
def test_no_chapter_redefines_a_keeper(name):
    found = rival_definitions(name, written(name))
    assert not found, listed(found, name)


@pytest.mark.parametrize("name", NAMES)
def test_imported_keepers_say_where_they_were_built(name):
    found = import_faults(name, written(name))
    assert not found, listed(found, name)


def test_docstrings_name_chapters_that_there_are():
    numbers = {page.number for page in pages()}
    wrong = {name: number for name, number in claims().items() if number not in numbers}
    assert not wrong, f"there is no such chapter: correct *Built in chapter* of {wrong}"


def faults(source, tags=("keeper",)):
    """Return the faults of a chapter 04 with one keeper cell."""
    return keeper_faults(CHAPTER, new_notebook(cells=[code("cell", source, tags=tags)]))


def test_a_twin_may_differ_in_docstring_annotations_and_checks_at_the_door():
    annotated = SPLIT.replace("X, n_heads", "X: object, n_heads: int = 1").replace(" = 1)", ")")
    assert faults(SPLIT) == []
    assert faults(f"@require_cache_restored_on_error\n{SPLIT}") == []
    assert faults(f"@cached\n{SPLIT}") != []
    assert (
        faults(annotated.replace("):\n", ") -> object:\n    'Cut.'\n    require_mask(X)\n")) == []
    )


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("-3, -2)  #", "-3, -1)  #"),
        ("n_heads, width // n_heads", "width // n_heads, n_heads"),
        ("(X, n_heads)", "(X, *, n_heads)"),
        ("def split", "@cache\ndef split"),
    ],
)
def test_a_changed_line_is_shown_as_a_diff(good, bad):
    (fault,) = faults(SPLIT.replace(good, bad))
    assert "\n--- library\n+++ chapter\n@@" in fault
    assert bad.partition("\n")[0].removesuffix("  #") in fault


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{SPLIT}\n\n\nsplit_heads(X, 2)", "alone in its cell"),
        ("n_heads = 2", "alone in its cell"),
        (SPLIT + "\n" * 9 + "    # end", "at most 12 lines"),
        (SPLIT.replace("split_heads", "cut_heads"), "has 0 functions cut_heads"),
        (SPLIT.replace("split_heads", "cut_heads"), "by docstrings of the library ['split_heads']"),
    ],
)
def test_a_keeper_cell_is_rejected(source, expected):
    assert any(expected in fault for fault in faults(source))
    assert all(map(advises, faults(source)))


def test_a_missing_keeper_is_noticed():
    assert faults(SPLIT, tags=()) == [
        "its keepers are [], by docstrings of the library ['split_heads']: "
        "give its cell the tag keeper, or correct the docstring"
    ]


@pytest.mark.parametrize(
    "source",
    [
        "def softmax(scores):\n    return scores",
        "def outer():\n    def softmax(scores):\n        return scores",
        "softmax = np.exp",
        "class trace:\n    pass",
        SPLIT,
    ],
)
def test_a_rival_of_a_keeper_is_rejected(source):
    assert rival_definitions(CHAPTER, new_notebook(cells=[code("cell", source)]))


@pytest.mark.parametrize(
    ("source", "accepted"),
    [
        ("for trace in range(3):\n    pass", True),
        ("trace = 3", True),
        ("def trace(X):\n    return X", False),
        ("for softmax in range(3):\n    pass", False),
        ("for split_heads in range(3):\n    pass", False),
    ],
)
def test_a_variable_may_have_the_name_of_a_keeper_that_a_later_chapter_builds(source, accepted):
    found = rival_definitions(CHAPTER, new_notebook(cells=[code("cell", source)]))
    assert (not found) is accepted


@pytest.mark.parametrize(
    ("source", "accepted"),
    [
        ("from tutorial_lib import softmax  # built in chapter 03", True),
        ("from tutorial_lib import (\n    show,\n    softmax,  # built in chapter 03\n)", True),
        ("from tutorial_lib.attention import softmax  # built in chapter 03", True),
        ("from tutorial_lib import show", True),
        ("from tutorial_lib import softmax", False),
        ("from tutorial_lib import softmax  # built in chapter 02", False),
        ("from tutorial_lib import split_heads  # built in chapter 04", False),
    ],
)
def test_an_import_names_the_chapter_of_a_keeper(source, accepted):
    found = import_faults(CHAPTER, new_notebook(cells=[code("cell", source)]))
    assert (found == []) == accepted
