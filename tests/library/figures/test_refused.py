"""What cannot be drawn is refused: what was given, what was expected, how to mend it."""

import numpy as np
import pytest

from tests.library.figures.drawing import PAIR, diagram
from tutorial_lib import figures
from tutorial_lib.errors import ShapeError
from tutorial_lib.figures import Block

EYE = np.eye(3)
X3 = np.arange(3)


def with_entry(value):
    """A 3 by 3 array with one other entry."""
    array = np.full((3, 3), 0.25)
    array[1, 2] = value
    return array


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (
            ShapeError,
            ["(3, 3)", "2 names", "one for each", "key_tokens"],
            lambda: figures.attention_maps(EYE, ["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["(2, 3)", "2 for the keys", "one for each", "key_tokens"],
            lambda: figures.attention_maps(np.ones((2, 3)), ["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["(1, 1, 3, 3)", "(H, T, S)", "Drop an axis"],
            lambda: figures.attention_maps(EYE[None, None], "abc", caption=""),
        ),
        (
            ShapeError,
            ["empty", "at least one", "filtered"],
            lambda: figures.attention_maps(np.zeros((0, 3)), [], caption=""),
        ),
        (
            TypeError,
            ["list", "NumPy array", "asarray"],
            lambda: figures.attention_maps([[1.0]], ["a"], caption=""),
        ),
        (
            ValueError,
            ["nan at position (1, 2)", "finite", "isfinite"],
            lambda: figures.attention_maps(with_entry(np.nan), "abc", caption=""),
        ),
        (
            ValueError,
            ["1.25 at position (1, 2)", "0 to 1", "signed_maps"],
            lambda: figures.attention_maps(with_entry(1.25), "abc", caption=""),
        ),
        (
            ValueError,
            ["-0.25 at position (1, 2)", "0 to 1", "signed_maps"],
            lambda: figures.attention_maps(with_entry(-0.25), "abc", caption=""),
        ),
        (
            ShapeError,
            ["'X' has 3 rows", "2 names", "one name", "pass 3"],
            lambda: figures.signed_maps({"X": EYE}, rows=["a", "b"], caption=""),
        ),
        (
            ShapeError,
            ["'X' has 3 columns", "4 names", "one name", "pass 3"],
            lambda: figures.signed_maps({"X": EYE}, columns="abcd", caption=""),
        ),
        (
            ValueError,
            ["X is nan at position (1, 2)", "finite", "isfinite"],
            lambda: figures.signed_maps({"X": with_entry(np.nan)}, caption=""),
        ),
        (
            ValueError,
            ["arrays is {}", "at least one", "Give each a name"],
            lambda: figures.signed_maps({}, caption=""),
        ),
        (
            TypeError,
            ["X is a list", "NumPy array", "asarray"],
            lambda: figures.signed_maps({"X": [[1, 2]]}, caption=""),
        ),
        (
            ShapeError,
            ["X has shape (1, 3, 4)", "expected (rows, columns)", "Drop an axis"],
            lambda: figures.signed_maps({"X": np.ones((1, 3, 4))}, caption=""),
        ),
        (
            ShapeError,
            ["'y' has 2 points", "x has 3", "one for each", "same length"],
            lambda: figures.line_chart(X3, {"y": X3[:2]}, labels=("x", "y"), caption=""),
        ),
        (
            ValueError,
            ["'y' is 0", "position 0", "positive", "log="],
            lambda: figures.line_chart(X3, {"y": X3}, labels="xy", log=("y",), caption=""),
        ),
        (
            ValueError,
            ["series is []", "dict", "Give each a name"],
            lambda: figures.line_chart(X3, [], labels=("x", "y"), caption=""),
        ),
        (
            ValueError,
            ["y is nan at position (2,)", "finite", "isfinite"],
            lambda: figures.line_chart(
                X3, {"y": X3 + np.array([0, 0, np.nan])}, labels="xy", caption=""
            ),
        ),
        (
            ShapeError,
            ["values has shape (3, 3)", "2 names of columns", "expected one for each", "Pass 3"],
            lambda: figures.bar_chart(EYE, "abc", "xy", label="", caption=""),
        ),
        (
            ShapeError,
            ["values has shape (3,)", "(rows, columns)", "values[None]"],
            lambda: figures.bar_chart(X3, "abc", "x", label="", caption=""),
        ),
        (
            ValueError,
            ["values has -1", "no number below 0", "signed_maps"],
            lambda: figures.bar_chart(-EYE, "abc", "xyz", label="", caption=""),
        ),
        (
            ValueError,
            ["values is inf at position (1, 2)", "finite", "isfinite"],
            lambda: figures.bar_chart(with_entry(np.inf), "abc", "xyz", label="", caption=""),
        ),
        (
            ShapeError,
            ["'b' has 2 runs", "the first row has 3", "as many in each"],
            lambda: figures.spread_chart({"a": X3, "b": X3[:2]}, label="", caption=""),
        ),
        (
            ValueError,
            ["'a' has 0", "logarithmic", "Leave log=True out"],
            lambda: figures.spread_chart({"a": X3}, label="", caption="", log=True),
        ),
        (
            ShapeError,
            ["'s' has 3 entries", "2 names", "one for each bar", "pass 3 names"],
            lambda: figures.bar_panels({"s": X3}, "ab", caption=""),
        ),
        (
            ShapeError,
            ["s has shape (3, 3)", "expected (names)", "Drop an axis"],
            lambda: figures.bar_panels({"s": EYE}, "abc", caption=""),
        ),
        (
            ValueError,
            ["s is inf at position (1,)", "finite", "isfinite"],
            lambda: figures.bar_panels({"s": np.array([0, np.inf])}, "ab", caption=""),
        ),
        (
            ValueError,
            ["0.7853981633974483 is not a fraction", "up to 1000", "decimals"],
            lambda: figures.bar_panels(
                {"s": np.array([np.pi / 4])}, "a", fractions=True, caption=""
            ),
        ),
        (
            ValueError,
            ["panels is {}", "at least one", "Give each a name"],
            lambda: figures.bar_panels({}, "ab", caption=""),
        ),
        (
            TypeError,
            ["s is a list", "NumPy array", "asarray"],
            lambda: figures.bar_panels({"s": [1, 2]}, "ab", caption=""),
        ),
        (
            ValueError,
            ["alt is ' '", "picture in words", "which block leads"],
            lambda: diagram(PAIR, alt=" "),
        ),
        (
            ValueError,
            ["panels is {}", "at least one", "Give each a name"],
            lambda: figures.block_diagram({}, caption="", alt="Nothing."),
        ),
        (
            ValueError,
            ["blocks of 'map' is {}", "at least one", "Give each a name"],
            lambda: diagram({}),
        ),
        (
            TypeError,
            ["'map' is a dict", "expected a Diagram", "Diagram({"],
            lambda: figures.block_diagram({"map": PAIR}, caption="", alt="A pair."),
        ),
        (
            TypeError,
            ["block 'a' of 'map' is a tuple", "expected a Block", "Block(0, 0, 'Q')"],
            lambda: diagram({"a": (0, 0, "a")}),
        ),
        (
            TypeError,
            ["block 'a' of 'map' has x, y, width, height ('a', 0, 1, 1)", "four numbers", "name"],
            lambda: diagram({"a": Block("a", 0, "Q")}),
        ),
        (
            TypeError,
            ["block 'a' of 'map' has shade='x'", "a number from 0 to 1", "Give one"],
            lambda: diagram({"a": Block(0, 0, shade="x")}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has x, y, width, height (0, nan, 1, 1)", "finite", "in units"],
            lambda: diagram({"a": Block(0, np.nan)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map'", "(0, 0, 0, 1)", "lengths above 0"],
            lambda: diagram({"a": Block(0, 0, width=0)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has shade=1.5", "expected 0 to 1", "Divide by the largest"],
            lambda: diagram({"a": Block(0, 0, shade=1.5)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has shade=nan", "expected 0 to 1"],
            lambda: diagram({"a": Block(0, 0, shade=np.nan)}),
        ),
        (
            ValueError,
            ["block 'a' of 'map' has head=-1", "number of a head", "0, 1, 2"],
            lambda: diagram({"a": Block(0, 0, head=-1)}),
        ),
        (
            ValueError,
            ["'a' and 'c' of 'map'", "on top of each other", "a place for each", "Move one"],
            lambda: diagram(PAIR | {"c": Block(0.5, 0.5)}),
        ),
        (
            ValueError,
            ["arrow ('a', 'z')", "no block 'z'", "['a', 'b']", "Correct the name"],
            lambda: diagram(PAIR, ("a", "z")),
        ),
        (
            ShapeError,
            ["arrow ('a',)", "two names", "('Q', 'scores')"],
            lambda: diagram(PAIR, ("a",)),
        ),
        (
            ShapeError,
            ["arrow 'ab'", "two names", "('Q', 'scores')"],
            lambda: diagram(PAIR, "ab"),
        ),
        (
            ValueError,
            ["arrow ('a', 'c') without room", "14 pixels", "Move them apart"],
            lambda: diagram({"a": Block(0, 0), "c": Block(1.1, 0)}, ("a", "c")),
        ),
        (
            ValueError,
            ["text of block 'a' of 'map'", "has 84 by 40", "room", "Break its lines"],
            lambda: diagram({"a": Block(0, 0, "a long text for it")}),
        ),
        (
            ValueError,
            ["text of block 'a' of 'map'", "has 84 by 40", "room", "Break its lines"],
            lambda: diagram({"a": Block(0, 0, "one\ntwo\nthree")}),
        ),
        (
            ValueError,
            ["label 'keys and values' of 'map'", "on block 'a'", "Move the blocks apart"],
            lambda: diagram(PAIR, ("a", "b", "keys and values")),
        ),
        (
            ShapeError,
            ["unit has shape ()", "two lengths", "(84, 40)"],
            lambda: diagram(PAIR, unit=72),
        ),
        (
            ValueError,
            ["unit is (72, 0)", "above 0", "(84, 40)"],
            lambda: diagram(PAIR, unit=(72, 0)),
        ),
        (
            ValueError,
            ["'Y' has subscripts 'ij,jk'", "expected letters", "'htd,hsd->hts'"],
            lambda: figures.tensor_network({"Y": ("ij,jk", ["A", "B"])}, caption=""),
        ),
        (
            ValueError,
            ["'Y' has x in its result, 'ix'", "expected letters of 'ij,jk'"],
            lambda: figures.tensor_network({"Y": ("ij,jk->ix", ["A", "B"])}, caption=""),
        ),
        (
            ValueError,
            ["'Y' has 1 names for 2 operands", "one for each"],
            lambda: figures.tensor_network({"Y": ("ij,jk->ik", ["A"])}, caption=""),
        ),
        (
            ValueError,
            ["chains is {}", "at least one", "Give each a name"],
            lambda: figures.tensor_network({}, caption=""),
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(error, parts, call):
    with pytest.raises(error) as raised:
        call()
    for part in parts:
        assert part in str(raised.value)
