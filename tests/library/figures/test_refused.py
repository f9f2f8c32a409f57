"""What cannot be drawn is refused: what was given, what was expected, how to mend it."""

from functools import partial

import numpy as np
import pytest

from tests.library.figures.drawing import PAIR, diagram
from tests.library.figures.reading import stored_text
from tests.library.test_errors import refuse
from tutorial_lib import figures
from tutorial_lib.figures import Block

ABC, X = ["a", "b", "c"], np.linspace(0.2, 0.9, 3)
line_chart = partial(figures.line_chart, labels="xy", caption="")
spread_chart = partial(figures.spread_chart, label="", caption="")
ARRAY_CALLS = {  # name -> what draws that array, of three entries along each axis
    "weights": lambda array: figures.attention_maps(array, ABC, caption=""),
    "X": lambda array: figures.signed_maps({"X": array}, rows=ABC, columns=ABC, caption=""),
    "y": lambda array, log=(): line_chart(X, {"y": array}, log=log),
    "values": partial(figures.bar_chart, rows=ABC, columns=ABC, label="", caption=""),
    "run": lambda array, log=(): spread_chart({"first": X, "run": array}, log=bool(log)),
}


def drawable_array(name, *entries):
    """An array that can be drawn, with these at its first places."""
    array = np.outer(X, X) if name in ("weights", "X", "values") else X.copy()
    array.flat[: len(entries)] = entries
    return array


@pytest.mark.parametrize("name", ARRAY_CALLS)
def test_each_array_has_its_axes_a_name_for_each_entry_and_finite_numbers(name):
    call, array = ARRAY_CALLS[name], drawable_array(name)
    call(array)
    refuse(f"TypeError: {name} is a list; expected a NumPy array", lambda: call(array.tolist()))
    refuse(f"ShapeError: {name} has shape … Drop an axis", lambda: call(array[None, None]))
    refuse("ShapeError: … has … 2 … 3", lambda: call(array[:-1]))
    array.flat[1] = np.nan
    refuse(f"ValueError: {name} is nan at position (", lambda: call(array))


@pytest.mark.parametrize("name", ["weights", "values"])
def test_numbers_outside_0_to_1_are_refused_but_for_a_rounding_error(name):
    call, limit = ARRAY_CALLS[name], np.inf if name == "values" else 1
    near, exact_array = drawable_array(name, -9e-10, 1 + 9e-10), drawable_array(name, 0, 1)
    assert stored_text(call(near)) == stored_text(call(exact_array))
    near.flat[0] = -1.1e-9
    sentence = f"{name} is -1.1e-09 at position … expected 0 to {limit}. … signed_maps"
    refuse(f"ValueError: {sentence}", lambda: call(near))


@pytest.mark.parametrize("name", ["y", "run"])
def test_a_number_without_a_logarithm_is_refused(name):
    array = drawable_array(name, 0)
    sentence = f"{name} is 0.0 at position … positive numbers … Leave log= out"
    refuse(f"ValueError: {sentence}", lambda: ARRAY_CALLS[name](array, log=name))


def arc(*arc_pairs):
    """Arcs of one kind."""
    return figures.arcs(ABC, {"far": arc_pairs}, caption="")


REFUSALS = {
    "ShapeError: weights has shape (2, 3), but key_tokens has 2 entries, ['a', 'b']; expected 3, "
    "one for each along that axis. Make": (
        lambda: figures.attention_maps(np.eye(2, 3), ["a", "b"], caption="")
    ),
    "ValueError: 0.123456 is not a fraction … up to 1000 … decimals": (
        lambda: figures.signed_maps({"s": np.array([[0.123456]])}, fractions=True, caption="")
    ),
    "ValueError: at is nan at position": lambda: spread_chart({"a": X}, at=np.nan),
    "TypeError: steps is True, a bool; expected a whole number": lambda: figures.watch([], 0, True),
    "ValueError: series is {}; expected a dict with at least one entry. Give each": (
        lambda: line_chart(X, {})
    ),
    # Arcs, the second map.
    "ValueError: kinds is {'far': ()}; expected pairs of two positions from 0 to 2": arc,
    "ValueError: kinds is {'far': ((3, 1),)}; expected": lambda: arc((3, 1)),
    "ValueError: 'a' lacks 'norm'; expected a tuple of norm, attend, MLP. Give ()": (
        lambda: figures.block_map({"a": "norm"}, layers=2, caption="")
    ),
    "TypeError: layers is 2.0": lambda: figures.block_map({"a": ()}, layers=2.0, caption=""),
    # Block diagrams.
    "ValueError: alt is ' '; expected the picture in words": lambda: diagram(PAIR, alt=" "),
    "TypeError: 'map' is a dict; expected a Diagram. Wrap its blocks: Diagram({'Q'": (
        lambda: figures.block_diagram({"map": PAIR}, caption="", alt="A pair.")
    ),
    "ValueError: blocks 'a' and 'c' of 'map' lie on top of each other … Move": (
        lambda: diagram(PAIR | {"c": Block(0.5, 0.5)})
    ),
    "ValueError: 'map' has an arrow ('a', 'z'), but no block 'z' … ['a', 'b']. Correct": (
        lambda: diagram(PAIR, ("a", "z"))
    ),
    "ValueError: 'map' has an arrow ('a', 'c') without room; expected 14 pixels … apart": (
        lambda: diagram({"a": Block(0, 0), "c": Block(1.1, 0)}, ("a", "c"))
    ),
    "ValueError: the text of block 'a' … has 84 by 40 … Break": (
        lambda: diagram({"a": Block(0, 0, "a " * 9)})
    ),
    "ValueError: the label 'keys and values' of 'map' would lie on block 'a' … Move": (
        lambda: diagram(PAIR, ("a", "b", "keys and values"))
    ),
}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_what_cannot_be_drawn_is_refused_in_words(sentence):
    refuse(sentence, REFUSALS[sentence])
