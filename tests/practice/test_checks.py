"""A check accepts every right implementation, and turns down what is right by chance."""

from dataclasses import is_dataclass
from itertools import combinations

import numpy as np
import pytest

import tutorial_lib as tl
from tests.lazy import torch
from tests.practice.rooms import MISTAKES, account, asked
from tests.practice.variants import NARROW, VARIANTS
from tests.sampling import every
from tutorial_lib.practice.account import WIDTH
from tutorial_lib.practice.calls import arrays_of, call
from tutorial_lib.practice.mistake import Edit, apply_edits


def reference(name):
    """The right function."""
    return asked(name)[0]


def in_every_part(change, value):
    """A value with every array of it changed: itself, of a tuple, or of a record of results."""
    if isinstance(value, tuple):
        return tuple(in_every_part(change, part) for part in value)
    if isinstance(value, tl.Gradients):
        return tl.Gradients(*in_every_part(change, tuple(vars(value).values())))
    if hasattr(value, "detach"):  # a tensor
        return torch.tensor(change(value.detach().numpy()))
    return change(value) if isinstance(value, np.ndarray) else value


def in_type(name, kind, *, inputs=False):
    """The right function, its result (and its inputs) converted to another type of numbers."""
    right = reference(name)

    def convert(array):
        return array.astype(kind) if array.dtype.kind == "f" else array

    def variant(*arguments, **options):
        if inputs:
            arguments = [in_every_part(convert, argument) for argument in arguments]
        return in_every_part(convert, right(*arguments, **options))

    return variant


def in_layout(name, lay):
    """The right function, its result laid out in memory in another way."""
    return lambda *arguments, **options: in_every_part(lay, reference(name)(*arguments, **options))


def parts_of(answer):
    """The arrays of an answer: itself, of a tuple, or of a record of results."""
    answer = tuple(vars(answer).values()) if isinstance(answer, tl.Gradients) else answer
    return [p for p in answer if p is not None] if isinstance(answer, tuple) else [answer]


def kinds_of(name):
    """The kinds of numbers in the arrays that a function returns, such as {"f"}."""
    try:
        right, cases = asked(name)
    except ModuleNotFoundError:  # `make check`, where the tests of this function are skipped
        return {"needs PyTorch"}
    parts = [part for case in cases for part in parts_of(call(right, case).value)]
    return {kind_of(part) for part in parts}


def kind_of(part):
    """The kind of numbers in an array, or that it is one number, or neither."""
    if isinstance(part, np.ndarray):
        return part.dtype.kind
    return "number" if isinstance(part, bool | int | float | np.generic) else "no array"


KINDS = {name: kinds_of(name) for name in MISTAKES}
ARRAYS = [name for name, kinds in KINDS.items() if not kinds & {"no array", "number"}]
FLOATS = [name for name in ARRAYS if KINDS[name] == {"f"}]
NUMBERS = [name for name, kinds in KINDS.items() if kinds == {"number"}]
LEAST = {"attend_rows"}  # one of its numbers is the least that float64 holds
KEPT = {"flash_backward", "outputs_of"}  # a record and a module, whose numbers keep their type


def floats_but(*left_out):
    """Parametrise with the functions that return floats, but for some."""
    return pytest.mark.parametrize("name", [n for n in FLOATS if n not in set().union(*left_out)])


def drawn_alike(one, other):
    """Whether the shorter array is the start of the other one, up to a factor."""
    n = min(one.size, other.size)
    if n < 4:
        return False
    one, other = one.ravel()[:n].astype(float), other.ravel()[:n].astype(float)
    with np.errstate(invalid="ignore"):  # NaN and infinity are among the cases
        return abs(one @ other) > (1 - 1e-6) * np.linalg.norm(one) * np.linalg.norm(other)


@pytest.mark.parametrize("name", MISTAKES)
def test_no_array_of_a_case_can_stand_in_for_another(name):
    for case in asked(name)[1]:
        given = {**case.arguments, **case.options}.items()
        arrays = [(n, v) for n, v in given if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
        for (one_name, one), (other_name, other) in combinations(arrays, 2):
            assert not drawn_alike(one, other), f"{case.label}: {one_name} and {other_name}"


def same(one, other):
    """Whether two calls, or parts of them, give the same: equal numbers in equal shapes."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict | tuple):
        one, other = (v if isinstance(v, dict) else dict(enumerate(v)) for v in (one, other))
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return same(vars(one), vars(other))
    if hasattr(one, "shape"):
        return np.array_equal(one, other, equal_nan=True)
    return one is other or (not callable(one) and one == other)


@pytest.mark.parametrize("name", MISTAKES)
def test_every_case_of_a_check_asks_what_no_other_asks_and_says_what(name):
    for one, other in combinations(asked(name)[1], 2):
        assert one.label != other.label
        assert not same(one.arguments | one.options, other.arguments | other.options), one.label


@pytest.mark.parametrize("name", MISTAKES)
def test_right_function_is_right(name, capsys):
    with np.errstate(all="raise"):
        said = account(name, reference(name), capsys)
    assert said.startswith(f"✓ {name}: right on\n")
    assert max(map(len, said.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("name", "function"),
    [pytest.param(name, function, id=f"{name}: {label}") for name, label, function in VARIANTS],
)
def test_right_variant_is_right(name, function, capsys):
    assert account(name, function, capsys).startswith(f"✓ {name}: right on\n")


@pytest.mark.parametrize(
    ("name", "edit"),
    [pytest.param(name, edit, id=f"{name}: {label}") for name, label, *edit in NARROW],
)
def test_function_for_some_inputs_alone_is_turned_down(name, edit, capsys):
    narrow = apply_edits(reference(name), [Edit("", *edit)])
    assert account(name, narrow, capsys).startswith(f"✗ {name}: ")


@pytest.mark.parametrize("kind", [np.array, lambda answer: np.array(answer)[()]])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_be_one_of_numpy_or_an_array(name, kind, capsys):
    def variant(*arguments, **options):
        answer = reference(name)(*arguments, **options)
        return tuple(map(kind, answer)) if isinstance(answer, tuple) else kind(answer)

    assert account(name, variant, capsys).startswith("✓")


@floats_but(LEAST)
def test_result_in_single_precision_is_right(name, capsys):
    assert account(name, in_type(name, np.float32), capsys).startswith("✓")


@floats_but(LEAST, KEPT)
def test_all_in_single_precision_is_right(name, capsys):
    assert account(name, in_type(name, np.float32, inputs=True), capsys).startswith("✓")


@floats_but(LEAST, {"log_softmax"})
def test_result_in_half_precision_is_right(name, capsys):
    assert account(name, in_type(name, np.float16), capsys).startswith("✓")


@pytest.mark.parametrize("name", ARRAYS)
def test_memory_order_of_the_result_does_not_matter(name, capsys):
    def lay(array):  # every second place in memory, and read-only
        return np.broadcast_to(np.repeat(array, 2, axis=-1)[..., ::2], array.shape)

    assert account(name, in_layout(name, lay), capsys).startswith("✓")


@pytest.mark.parametrize("name", every(4, FLOATS))
def test_error_of_a_millionth_is_found_and_shown(name, capsys):
    said = account(name, in_layout(name, lambda array: array * (1 + 1e-6) + 1e-6), capsys)
    assert said.startswith(f"✗ {name}: ")
    if "digits, and 10 are asked" not in said:
        given, right = said.splitlines()[0].rstrip(".").split(" is ")[1].split(" and should be ")
        assert given != right


@pytest.mark.parametrize("name", every(4, FLOATS))
def test_last_number_alone_wrong_is_found_and_shown(name, capsys):
    def spoil(array):
        wrong = array.copy()
        wrong.flat[-1] += 1
        return wrong

    said = account(name, in_layout(name, spoil), capsys)
    assert said.startswith(f"✗ {name}: ")
    given, right = said.splitlines()[0].rstrip(".").split(" is ")[1].split(" and should be ")
    assert given != right


@pytest.mark.parametrize("name", every(4, ARRAYS))
def test_every_check_notices_a_changed_input(name, capsys):
    def change(value):
        if hasattr(value, "W_O"):  # the params of a layer, or of a variant
            change(value.W_O)
        elif hasattr(value, "detach"):
            change(value.numpy())
        elif isinstance(value, np.ndarray):
            value[...] = np.roll(value, 1) ^ True if value.dtype == bool else value[::-1].copy() + 1

    def wrong(*arguments, **options):
        result = reference(name)(*arguments, **options)
        for value in arguments:
            change(value)
        return result

    _, cases = asked(name)
    takes_arrays = any(arrays_of(given) for case in cases for given in case.arguments.values())
    expected = "it changed its input " if takes_arrays else f"✓ {name}: right on"
    assert expected in account(name, wrong, capsys)
