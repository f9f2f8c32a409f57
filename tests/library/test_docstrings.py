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


def docstring_examples(function, namespace):
    """The examples of a function's docstring, in which NumPy is `np`."""
    namespace = {**vars(tutorial_lib), "np": np, **namespace}
    [doc] = doctest.DocTestFinder(recurse=False).find(function, function.__name__, globs=namespace)
    return doc


def complaints(doc):
    """The errors in the examples of a docstring, as doctest writes them."""
    messages, last_result = [], doc.examples[-1].want.strip() if doc.examples else "an example"
    if not doc.docstring.rstrip().endswith(last_result):
        messages.append(f"the docstring of {doc.name} does not end in a call and what it gives")
    doctest.DocTestRunner().run(doc, out=messages.append)
    return messages


@pytest.mark.parametrize("name", KEEPERS)
def test_docstring_of_a_keeper_ends_in_lines_that_run(name):
    module = import_module(KEEPERS[name])
    assert complaints(docstring_examples(getattr(module, name), vars(module))) == []


@pytest.mark.parametrize(
    ("docstring", "message"),
    [
        ("Do.", "does not end in a call"),
        ("Do.\n\n>>> np.ones(2).shape\n(2,)\n\nAnd more.", "does not end in a call"),
        ("Do.\n\n>>> np.ones(2).shape\n(3,)", "Expected:\n    (3,)\nGot:\n    (2,)"),
        ("Do.\n\n>>> numpy.ones(2)\n2", "NameError"),
    ],
)
def test_docstring_that_does_not_run_is_noticed(docstring, message):
    def function():
        pass

    function.__doc__ = docstring
    assert any(message in text for text in complaints(docstring_examples(function, {})))
