"""What the docstring of a keeper ends in runs, and shows what it says."""

import ast
import doctest
from importlib import import_module

import numpy as np
import pytest

import tutorial_lib
from tests.chapters.twins import LIBRARY, claims

KEEPERS = {
    node.name: f"tutorial_lib.{'.'.join(path.relative_to(LIBRARY).with_suffix('').parts)}"
    for path in sorted(LIBRARY.rglob("*.py"))
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name in claims()
}


def examples(function, names):
    """The examples of a function's docstring, in which NumPy is `np`."""
    names = {**vars(tutorial_lib), "np": np, **names}
    [found] = doctest.DocTestFinder(recurse=False).find(function, function.__name__, globs=names)
    return found


def complaints(found):
    """What is wrong with the examples of a docstring, as doctest tells it."""
    said, last = [], found.examples[-1].want.strip() if found.examples else "an example"
    if not found.docstring.rstrip().endswith(last):
        said.append(f"the docstring of {found.name} does not end in a call and what it gives")
    doctest.DocTestRunner().run(found, out=said.append)
    return said


@pytest.mark.parametrize("name", KEEPERS)
def test_docstring_of_a_keeper_ends_in_lines_that_run(name):
    module = import_module(KEEPERS[name])
    assert complaints(examples(getattr(module, name), vars(module))) == []


def planted(docstring):
    """A function with a docstring."""

    def function():
        pass

    function.__doc__ = docstring
    return function


@pytest.mark.parametrize(
    ("docstring", "says"),
    [
        ("Do.", "does not end in a call"),
        ("Do.\n\n>>> np.ones(2).shape\n(2,)\n\nAnd more.", "does not end in a call"),
        ("Do.\n\n>>> np.ones(2).shape\n(3,)", "Expected:\n    (3,)\nGot:\n    (2,)"),
        ("Do.\n\n>>> numpy.ones(2)\n2", "NameError"),
    ],
)
def test_docstring_that_does_not_run_is_noticed(docstring, says):
    assert any(says in said for said in complaints(examples(planted(docstring), {})))
