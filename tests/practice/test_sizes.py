"""No check passes a function by an accident of sizes, such as a width taken for another.

In a case all lengths differ, and none is the product or the ratio of others. Two may be the same
where the label says so, or a mask is causal and square: another case then tells them apart.
"""

import inspect
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from coursework.grader import assignment
from tests.practice.axes import Unclear, lengths
from tests.practice.rooms import MISTAKES, asked
from tests.practice.sizes import (
    accidents,
    missing_masks,
    never_apart,
    one_batch,
    one_number,
    one_width,
    packed_alike,
)
from tutorial_lib.attention import attention_scores, causal_mask
from tutorial_lib.practice.calls import Case

SAID_OF_ALL = {  # no case tells apart what the labels say is one length
    "multi_head_attention": "keys from X must give a result, to be named; check_trace asks others",
}
ONE_WIDTH = {"leaking_pairs": "the layers that it is given divide, and not the function"}
FEWER_MASKS = {
    "leaking_pairs": "a mask is (T, T)",
    "receptive_field": "a mask is (T, T)",
    "for_torch_layer": "a mask is (B, 1, T, S) or (B, H, T, S)",
}
ONE_BATCH = {  # by their annotations they might
    "ablate": "ids are documents, as chapter 22 has them",
    "fold_block": "a batch is one more axis before heads, which it never names",
}
BY_PROMISE = {"promises": "most of its promises are of the layer of chapter 06, where G = H"}
each_check = pytest.mark.parametrize("name", MISTAKES)


def require_none(faults, excuse=None):
    """Fail with the faults as sentences; with an excuse, where there is none to excuse."""
    faults = list(faults)
    assert not faults or excuse, "\n".join(faults)
    assert faults or not excuse, f"nothing is wrong any more: take away the excuse ({excuse})"


@each_check
def test_no_length_of_a_case_follows_from_others(name):
    require_none(accidents(name, asked(name)[1]))


@each_check
def test_lengths_that_a_label_calls_the_same_differ_in_another_case(name):
    require_none(never_apart(name, asked(name)[1]), SAID_OF_ALL.get(name))


@each_check
def test_heads_side_by_side_are_asked_in_two_numbers_and_widths(name):
    require_none(packed_alike(name, asked(name)[1]))


@each_check
def test_a_root_of_a_width_is_asked_with_two_widths(name):
    require_none(one_width(name, *asked(name)), ONE_WIDTH.get(name))


@each_check
def test_masks_differ_between_heads_and_between_sentences(name):
    require_none(missing_masks(name, asked(name)[1]), FEWER_MASKS.get(name))


@each_check
def test_a_number_that_is_given_is_another_in_another_case(name):
    require_none(one_number(name, asked(name)[1]))


@each_check
def test_a_function_that_takes_batches_is_asked_with_one_and_without(name):
    right, cases = asked(name)
    annotations = inspect.get_annotations(inspect.unwrap(right)).values()
    axes = [text for text in annotations if isinstance(text, str) and not text.startswith("mask")]
    if hasattr(right, "contract") and any("..." in text for text in axes):
        require_none(one_batch(name, cases), ONE_BATCH.get(name))


def hidden_cases(name):
    """The hidden cases of each task of an assignment, with their arguments by name."""
    found = {}
    with patch.object(
        assignment, "_call_on_copies", return_value=np.zeros(1)
    ):  # which takes seconds
        tests = assignment.set_exam(name, 1).tests
    for test in tests:
        if test.task.is_test:
            continue  # it chooses its inputs itself
        names = inspect.signature(test.right).parameters
        arguments = dict(zip(names, test.case.arguments, strict=True))
        found.setdefault(test.task.function, []).append(Case(test.case.label, arguments))
    return found.values()


@pytest.mark.parametrize("name", assignment.assignment_names())
def test_no_length_of_a_hidden_case_follows_from_others(name):
    """Where each case asks one property, the one that asks all tells the lengths apart."""
    faults = []
    for cases in hidden_cases(name):
        whole = [case for case in cases if case.label == "all together"]
        faults += accidents(name, whole or cases, each_ratio=False)
        for rule in (never_apart, packed_alike, missing_masks):
            faults += rule(name, cases)
    require_none(faults, BY_PROMISE.get(name))


def case(label="planted", **given):
    """A case of arrays in these shapes; what is no shape stays."""
    arrays = {name: np.zeros(n) for name, n in given.items() if isinstance(n, tuple)}
    return Case(label, given | arrays)


SQUARE = case(scores=(3, 5, 5), mask=None)
SAID_SO = case("as many keys as queries", scores=(3, 5, 5))
CAUSAL = Case("planted", SQUARE.arguments | {"mask": causal_mask(5)})
ALIKE, APART = (case(Q=(4, 7, 10), V=(4, 17, d_v), n_kv_heads=6) for d_v in (15, 13))
TWO, THREE = (case(packed=(5, 3 * n * 8), n_heads=n) for n in (2, 3))
NARROW, WIDE = (case(Q=(3, 5, d), K=(3, 7, d)) for d in (8, 17))
MASKS = np.tri(5, 7), np.zeros((2, 1, 5, 7)), np.arange(105).reshape(3, 5, 7) > 50
MASKED = [Case("planted", {"mask": mask}) for mask in MASKS]
in_one = partial(accidents, each_ratio=False)  # where ratios may agree if another case differs
PLANTED = [  # a rule, what is given to it behind a name, and what it says, or nothing
    (accidents, [[SQUARE]], "planted, 'planted': S = T by accident"),
    (accidents, [[case(Q=(6, 5, 24), n_kv_heads=4)]], "G*H = d_k by accident"),
    (accidents, [[ALIKE, APART]], "G*d_k = H*d_v by accident"),
    (accidents, [[case(X=(5, 24), W_O=(24, 24), n_heads=3)]], "H*d_v = d_model by accident"),
    (accidents, [[SAID_SO, CAUSAL, case(X=(5, 13), mask=(3, 5, 5))]], ""),
    (in_one, [[ALIKE, APART]], ""),
    (never_apart, [[SAID_SO, CAUSAL]], "S = T in every case"),
    (packed_alike, [[TWO, THREE]], "Ask two cases that differ in each factor"),
    (one_width, [attention_scores, [NARROW, NARROW]], "it takes the root of {8} in all cases"),
    (one_number, [[TWO, TWO]], "n_heads is 2 in all cases"),
    (missing_masks, [MASKED], "planted: add a case with a mask that differs between sentences"),
]


@pytest.mark.parametrize(("rule", "given", "says"), PLANTED)
def test_an_accident_is_noticed_and_what_is_none_is_not(rule, given, says):
    found = list(rule("planted", *given))
    assert len(found) == bool(says), found
    assert all(says in fault for fault in found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"Q_of_mine": (3, 5)}, "Add them to TABLE"),
        ({"Q": (3, 5, 8), "K": (3, 7, 9)}, "d_k is 8 and, by K, 9. Mend the axes of K in TABLE"),
        ({"packed": (5, 70), "n_heads": 3}, "70, which its factors are not"),
    ],
)
def test_what_the_table_does_not_say_is_noticed(given, says):
    with pytest.raises(Unclear, match=says):
        lengths("planted", case(**given))
