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
attention_maps = partial(figures.attention_maps, caption="")
signed_maps = partial(figures.signed_maps, caption="")
bar_panels = partial(figures.bar_panels, caption="")
arcs = partial(figures.arcs, caption="")
tensor_network = partial(figures.tensor_network, caption="")
block_map = partial(figures.block_map, layers=2, caption="")
mask_panels = partial(figures.mask_panels, caption="")
line_chart = partial(figures.line_chart, labels="xy", caption="")
bar_chart = partial(figures.bar_chart, rows=ABC, columns=ABC, label="", caption="")
spread_chart = partial(figures.spread_chart, label="", caption="")
task_maps = partial(figures.task_maps, heads=ABC, tasks=ABC, caption="")
ARRAY_CALLS = {  # name -> what draws that array, of three entries along each axis
    "weights": lambda array: attention_maps(array, ABC),
    "X": lambda array: signed_maps({"X": array}, rows=ABC, columns=ABC),
    "x": lambda array, log=(): line_chart(array, {"y": X}, log=log),
    "y": lambda array, log=(): line_chart(X, {"y": array}, log=log),
    "values": bar_chart,
    "s": lambda array: bar_panels({"s": array}, ABC),
    "run": lambda array, log=(): spread_chart({"first": X, "run": array}, log=bool(log)),
    "seed": lambda array: task_maps({"seed": array}, X),
    "baseline": lambda array: task_maps({"seed": np.outer(X, X)}, array),
}


def drawable_array(name, *entries):
    """An array that can be drawn, with these at its first places."""
    array = np.outer(X, X) if name in ("weights", "X", "values", "seed") else X.copy()
    array.flat[: len(entries)] = entries
    return array


@pytest.mark.parametrize("name", ARRAY_CALLS)
def test_each_array_has_its_axes_a_name_for_each_entry_and_finite_numbers(name):
    call, array = ARRAY_CALLS[name], drawable_array(name)
    call(array)
    refuse(f"TypeError: {name} is a list; expected a NumPy array", lambda: call(array.tolist()))
    refuse(f"ShapeError: {name} has shape … Drop an axis", lambda: call(array[None, None]))
    refuse(f"ShapeError: {name} has shape … is empty", lambda: call(array[..., :0]))
    refuse("ShapeError: … has … 2 … 3", lambda: call(array[:-1]))
    refuse("ShapeError: … has … 2 … 3", lambda: call(array[..., :-1]))
    for array.flat[1] in (np.nan, np.inf):
        refuse(f"ValueError: {name} is {array.flat[1]} at position (", lambda: call(array))


@pytest.mark.parametrize("name", ["weights", "seed", "baseline", "values"])
def test_numbers_outside_0_to_1_are_refused_but_for_a_rounding_error(name):
    call, limit = ARRAY_CALLS[name], np.inf if name == "values" else 1
    near, exact_array = drawable_array(name, -9e-10, 1 + 9e-10), drawable_array(name, 0, 1)
    assert stored_text(call(near)) == stored_text(call(exact_array))
    for near.flat[0] in (-1.1e-9, *[1 + 1.1e-9] * (limit == 1)):
        sentence = f"{name} is {near.flat[0]} at position … expected 0 to {limit}. … signed_maps"
        refuse(f"ValueError: {sentence}", lambda: call(near))


@pytest.mark.parametrize("name", ["x", "y", "run"])
def test_a_number_without_a_logarithm_is_refused(name):
    array = drawable_array(name)
    ARRAY_CALLS[name](array, log=name)
    for array[1] in (0, -1e-9):
        sentence = f"{name} is {array[1]} at position … positive numbers … Leave log= out"
        refuse(f"ValueError: {sentence}", lambda: ARRAY_CALLS[name](array, log=name))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("arrays", signed_maps),
        ("series", lambda none: line_chart(X, none)),
        ("runs", spread_chart),
        ("panels", lambda none: bar_panels(none, ABC)),
        ("scores", lambda none: task_maps(none, X)),
        ("masks", mask_panels),
        ("kinds", lambda none: arcs(ABC, none)),
        ("chains", tensor_network),
        ("models", block_map),
        ("blocks of 'map'", diagram),
        ("panels", lambda none: figures.block_diagram(none, caption="", alt="Nothing.")),
    ],
)
def test_nothing_at_all_is_refused(name, call):
    for none in ({}, []):
        sentence = f"{name} is {none}; expected a dict with at least one entry. Give each a name"
        refuse(f"ValueError: {sentence}", lambda none=none: call(none))


def arc(*arc_pairs):
    """Arcs of one kind."""
    return arcs(ABC, {"far": arc_pairs})


def network(subscripts):
    """A tensor network of one chain."""
    return tensor_network({"Y": (subscripts, "AB")})


def block(**block_fields):
    """A diagram whose block has these fields."""
    return diagram({"a": Block(**{"x": 0, "y": 0} | block_fields)})


REFUSALS = {
    # Names, fractions, masks, steps.
    "ShapeError: weights has shape (2, 3), but key_tokens has 2 entries, ['a', 'b']; expected 3, "
    "one for each along that axis. Make": lambda: attention_maps(np.eye(2, 3), ["a", "b"]),
    "ValueError: 0.123456 is not a fraction … up to 1000 … decimals": (
        lambda: bar_panels({"s": np.array([0.123456])}, "a", fractions=True)
    ),
    "ValueError: at is nan at position": lambda: spread_chart({"a": X}, at=np.nan),
    "ValueError: at is 0 at … positive": lambda: spread_chart({"a": X}, at=0, log=True),
    "ValueError: heads has no 'seed', only ['other']; expected one for each map. Give it": (
        lambda: task_maps({"seed": drawable_array("seed")}, X, heads={"other": ABC})
    ),
    "TypeError: 'a' is no array of booleans; expected True … Compare first, for example weights > "
    "0": lambda: mask_panels({"a": np.eye(2)}),
    "TypeError: 'b' is no array of booleans": lambda: mask_panels({"b": [[True]]}),
    "ShapeError: 'c' has shape (2,)": lambda: mask_panels({"c": np.eye(2, dtype=bool)[0]}),
    "TypeError: steps is True, a bool; expected a whole number": lambda: figures.watch([], 0, True),
    # Arcs, the second map, tensor networks.
    "ValueError: tokens is empty; expected at least one word": lambda: arcs([], {"a": [(1, 0)]}),
    "ValueError: kinds has no arc, only ['far']; expected pairs of two positions. Give": arc,
    "ValueError: 'far' has an arc (1,); expected two positions from 0 to 2": lambda: arc((1,)),
    "ValueError: 'far' has an arc (3, 1); expected two positions": lambda: arc((3, 1)),
    "ValueError: 'far' has an arc (1, -1); expected two positions": lambda: arc((1, -1)),
    "ValueError: 'far' has an arc (1, 1) from a word to itself … Leave": lambda: arc((1, 1)),
    "ValueError: 'a' lacks 'norm'; expected a tuple of norm, attend, MLP. Give ()": (
        lambda: block_map({"a": "norm"})
    ),
    "ValueError: 'a' lacks ['norm', 'add']; expected": lambda: block_map({"a": ["norm", "add"]}),
    "TypeError: layers is 2.0": lambda: block_map({"a": ()}, layers=2.0),
    "ValueError: 'Y' has subscripts 'ij,jk'; expected letters … hts": lambda: network("ij,jk"),
    "ValueError: 'Y' has x in its result, 'ix' … letters of 'ij,jk'": lambda: network("ij,jk->ix"),
    "ValueError: 'Y' has 2 names for 1 operands … one for each": lambda: network("ij->i"),
    # Block diagrams.
    "ValueError: alt is ' '; expected the picture in words": lambda: diagram(PAIR, alt=" "),
    "TypeError: 'map' is a dict; expected a Diagram. Wrap its blocks: Diagram({'Q'": (
        lambda: figures.block_diagram({"map": PAIR}, caption="", alt="A pair.")
    ),
    "TypeError: block 'a' of 'map' is a tuple; expected a Block. Give its place": (
        lambda: diagram({"a": (0, 0, "a")})
    ),
    "TypeError: x of block 'a' of 'map' is a str; expected a number": lambda: block(x="a"),
    "TypeError: height of block 'a' of 'map' is a bool": lambda: block(height=True),
    "TypeError: shade of block 'a' of 'map' is a str": lambda: block(shade="x"),
    "ValueError: block 'a' … (0, nan, 1, 1); expected finite … in units": lambda: block(y=np.nan),
    "ValueError: block 'a' … (0, 0, 0, 1) … lengths above 0": lambda: block(width=0),
    "ValueError: block 'a' … shade=1.5; expected 0 to 1. Divide": lambda: block(shade=1.5),
    "ValueError: block 'a' … shade=nan; expected 0 to 1": lambda: block(shade=np.nan),
    "ValueError: block 'a' … head=-1; expected the number of a head": lambda: block(head=-1),
    "ValueError: blocks 'a' and 'c' of 'map' lie on top of each other … Move": (
        lambda: diagram(PAIR | {"c": Block(0.5, 0.5)})
    ),
    "ValueError: 'map' has an arrow ('a', 'z'), but no block 'z' … ['a', 'b']. Correct": (
        lambda: diagram(PAIR, ("a", "z"))
    ),
    "ShapeError: 'map' has an arrow ('a',); expected two names": lambda: diagram(PAIR, ("a",)),
    "ShapeError: 'map' has an arrow 'ab'; expected two names": lambda: diagram(PAIR, "ab"),
    "ValueError: 'map' has an arrow ('a', 'c') without room; expected 14 pixels … apart": (
        lambda: diagram({"a": Block(0, 0), "c": Block(1.1, 0)}, ("a", "c"))
    ),
    "ValueError: the text of block 'a' … has 84 by 40 … Break": lambda: block(text="a " * 9),
    "ValueError: the text of block 'a' … needs 14 by 51": lambda: block(text="a\nb\nc"),
    "ValueError: the label 'keys and values' of 'map' would lie on block 'a' … Move": (
        lambda: diagram(PAIR, ("a", "b", "keys and values"))
    ),
    "ValueError: unit is 72; expected two lengths above 0 … (84, 40)": (
        lambda: diagram(PAIR, unit=72)
    ),
    "ValueError: unit is (72, 0); expected two lengths": lambda: diagram(PAIR, unit=(72, 0)),
    "ValueError: unit is (inf, 9); expected two": lambda: diagram(PAIR, unit=(float("inf"), 9)),
}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_what_cannot_be_drawn_is_refused_in_words(sentence):
    refuse(sentence, REFUSALS[sentence])
