"""The mask to paint, as bytes: a named mask is what it says, and one of the four leaks."""

import json
import re
from html import unescape

import numpy as np
import pytest

from tests.elements.test_elements import Tree
from tutorial_lib import causal_mask, embed, running_example, trace
from tutorial_lib.elements.exhibits import paint_mask
from tutorial_lib.elements.exhibits.paint.element import draw_mask
from tutorial_lib.elements.exhibits.pairs import mask_to_hex
from tutorial_lib.variants.patterns import window_mask

HTML = paint_mask().html
[DATA] = [attrs for _, attrs in Tree(HTML).tags if "data-made" in attrs]
MADE, FOUR, OTHER = json.loads(DATA["data-made"])
EXAMPLE = running_example()
TOKENS = ["dogs", "that", "bark", "cats", "sleep"]
# Two documents in one row, the positions of each counted from 0.
X = np.concatenate(
    [embed(EXAMPLE.vocabulary.ids(some), EXAMPLE.E, EXAMPLE.P) for some in (TOKENS[:3], TOKENS[3:])]
)


def unpacked(digits):
    """The mask that two digits of base 16 write for each row."""
    assert re.fullmatch("([01][0-9a-f])+", digits)
    rows = [f"{int(digits[i : i + 2], 16):05b}" for i in range(0, len(digits), 2)]
    return np.array([[digit == "1" for digit in row] for row in rows])


def library(looks, X=X):
    """Weights and Y of the last of the first tokens as queries, all of these as keys."""
    context = X[: looks.shape[1]]
    made = trace(context[-len(looks) :], EXAMPLE.params, context=context, mask=looks)
    return made.weights, made.Y


def changes(looks):
    """By how much each output changes when each token is replaced: (T, S)."""
    before, found = library(looks)[1], []
    for s in range(looks.shape[1]):
        changed = X.copy()
        changed[s] = OTHER
        found.append(np.abs(library(looks, changed)[1] - before).max(axis=-1))
    return np.stack(found, axis=-1)


def mask_of(kind, T, align):
    """What each kind says, pair by pair."""
    shift = 0 if align == "top-left" else 5 - T
    own, here = range(shift, shift + T), range(5 - T, 5)
    documents = [0, 0, 0, 1, 1]
    fits = {
        "causal": lambda t, s: True,
        "padded": lambda t, s: s < 3,
        "packed": lambda t, s: documents[here[t]] == documents[s],
        "window": lambda t, s: own[t] - s < 2,
    }[kind]
    return np.array([[s <= own[t] and fits(t, s) for s in range(5)] for t in range(T)])


@pytest.mark.parametrize("made", MADE, ids=lambda made: "-".join(map(str, made[:3])))
def test_mask_with_a_name_is_what_it_says_and_both_its_lines_make_it(made):
    kind, align, T, digits, numpy_line, torch_line = made
    mask = unpacked(digits)
    np.testing.assert_array_equal(mask, mask_of(kind, T, align))
    if align == "bottom-right" and kind in ("causal", "window"):
        named = causal_mask(T, 5) if kind == "causal" else window_mask(T, 5, 2)
        np.testing.assert_array_equal(mask, named)
    found = eval(numpy_line, {"np": np})
    assert found.dtype == bool
    np.testing.assert_array_equal(found, mask)
    torch = pytest.importorskip("torch")
    found = eval(torch_line, {"torch": torch})
    assert found.dtype == torch.bool
    np.testing.assert_array_equal(found.numpy(), mask)


def test_names_are_four_in_both_sizes_and_both_alignments():
    sizes = [(5, "bottom-right"), (3, "bottom-right"), (3, "top-left")]
    kinds = ["causal", "padded", "packed", "window"]
    assert [made[:3] for made in MADE] == [[k, c, T] for T, c in sizes for k in kinds]


def test_one_of_the_four_masks_leaks_and_two_of_them_are_one_array():
    found = []
    for digits, reads, T in FOUR:
        looks = unpacked(digits) ^ (reads == "hide")
        assert len(looks) == T
        later = np.triu(np.ones((5, 5), dtype=bool), k=1)[-T:]
        found.append(int(((changes(looks) > 1e-9) & later).sum()))
    assert found == [0, 0, 10, 0]
    assert FOUR[0][0] == FOUR[2][0]
    verdicts = re.findall(r">mask \w</th><td>[^<]*</td><td>(\w+)", HTML)
    assert verdicts == ["yes" if count else "no" for count in found]


@pytest.mark.parametrize("T", [5, 3])
def test_lines_of_code_make_any_mask_also_the_opposite_of_a_named_one(T):
    rng = np.random.default_rng(10)
    masks = [rng.random((T, 5)) < share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    masks += [~mask_of(kind, T, "bottom-right") for kind in ("causal", "padded", "window")]
    for mask in masks:
        html = draw_mask(mask=mask_to_hex(mask), queries=T).html
        numpy_line, torch_line = re.findall("<code>mask = (.*?)</code>", html)
        np.testing.assert_array_equal(eval(unescape(numpy_line), {"np": np}), mask)
        torch = pytest.importorskip("torch")
        found = eval(unescape(torch_line), {"torch": torch})
        assert found.dtype == torch.bool
        np.testing.assert_array_equal(found.numpy(), mask)
