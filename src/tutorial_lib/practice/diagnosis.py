"""What kind of difference there is between a reader's values and the right ones.

A kind of difference makes claims about the first case that differs, such as "each number is √d_k
times the right one". A claim is told only if it holds in every case that differs, whose sizes are
others; `holds` asks a claim of a case that no check has used, too.
"""

import inspect
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from itertools import chain, combinations

import numpy as np

from tutorial_lib.practice.calls import (
    Case,
    call,
    fault,
    first_difference,
    same,
)
from tutorial_lib.practice.slips import omission_mutants, one_token_mutants

LEAST_BITS = 24  # some 200 claims are tried


@dataclass(frozen=True)
class WrongValue:
    """One case with a reader's value and the right one, of one part of the result.

    Parameters
    ----------
    case : Case
    value, right : arrays of one shape
    part : name of the part of a record; "" of a whole
    own, reference : the reader's function and the right one
    """

    case: Case
    value: np.ndarray
    right: np.ndarray
    part: str
    own: Callable
    reference: Callable

    def rerun_with(self, function, **inputs):
        """Return the same part of what a function gives with other inputs; None if it fails."""
        given, case = self.case.inputs | inputs, self.case
        arguments = {n: given[n] for n in given if n in case.arguments}
        options = {n: given[n] for n in given if n not in case.arguments}
        outcome = call(function, replace(case, arguments=arguments, options=options))
        return None if outcome.error else _part_of_outcome(outcome, self.part)


def _part_of_outcome(outcome, part_name):
    value = outcome.value
    with suppress(Exception):  # it is no record, or has no such part
        for part in part_name.split(", ") if part_name else ():
            value = value[int(part[7:])] if part.startswith("result ") else getattr(value, part)
        return None if value is None else np.asarray(value)
    return None


@dataclass(frozen=True)
class Claim:
    """A sentence on a difference, the chapter that explains it, and whether it is true of a case.

    Parameters
    ----------
    says : a clause
    chapter : number; 0 where none explains it
    holds : function of a Seen → bool
    """

    says: str
    chapter: int
    holds: Callable[[WrongValue], bool]

    def is_true_of(self, seen):
        """Whether it holds; what cannot be asked of a case does not."""
        with suppress(Exception):
            return bool(self.holds(seen))
        return False

    def told_of(self, n_cases):
        """Tell it of the number of cases that differ, with its chapter."""
        where = "In every case that differs" if n_cases > 1 else "Here"
        return f"{where}, {self.says}{f'; see chapter {self.chapter:02}' if self.chapter else ''}"


def explain_difference(wrong: Iterable[WrongValue]) -> Claim | None:
    """Say what kind of difference there is; None where no claim holds in all cases that differ."""
    seen = list(wrong)
    if len({s.part for s in seen}) != 1 or sum(map(_information_bits, seen)) < LEAST_BITS:
        return None
    with np.errstate(all="ignore"):
        claims = chain.from_iterable(kind(seen) for kind in KINDS)
        return next((claim for claim in claims if all(map(claim.is_true_of, seen))), None)


def _information_bits(seen):
    """Return about how much a value can tell: of a few small numbers many claims hold by chance."""
    if seen.right.dtype.kind == "b":
        return seen.right.size
    if seen.right.dtype.kind == "f":
        return LEAST_BITS * np.unique(seen.right).size / 2
    return float(np.log2(1 + np.abs(np.unique(seen.right).astype(float))).sum())


def wrong_values(answers):
    """Yield a Seen for each case whose value has the right shape and differs."""
    for i in answers.wrong:
        outcome, right = answers.outcomes[i], answers.expected_values[i]
        if outcome.error or fault(outcome.value, right):
            continue
        part, value, wanted = first_difference(outcome.value, right)
        yield WrongValue(answers.cases[i], value, wanted, part, answers.function, answers.reference)


def _close(value, expected):
    if value is None or expected is None or np.shape(value) != np.shape(expected):
        return False
    value, expected = np.asarray(value), np.asarray(expected)
    if value.dtype.kind == "b" or expected.dtype.kind == "b":
        return value.dtype.kind == expected.dtype.kind and bool((value == expected).all())
    if "c" in (value.dtype.kind, expected.dtype.kind) or value.size == 0:
        return False
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1e-300)
    rtol = 1e-5 if "float32" in (value.dtype.name, expected.dtype.name) else 1e-8
    return bool(np.isclose(value, expected, rtol=rtol, atol=rtol * size, equal_nan=True).all())


def _claim_of_change(sentence, chapter, change):
    """Make a claim that a change of the right value gives the reader's."""
    return Claim(sentence, chapter, lambda seen: _close(seen.value, change(seen.right)))


# --- the right numbers in another order, or times a factor ---


def _order_claims(all_seen):
    """Yield claims that the right numbers are at other positions."""
    right = all_seen[0].right
    for i, j in combinations(range(1, 1 + min(right.ndim, 4)), 2):
        if right.shape[-i] == right.shape[-j]:
            says = f"axes {-j} and {-i} have changed places"
            yield _claim_of_change(says, 5, lambda A, i=i, j=j: np.swapaxes(A, -i, -j))
    for i, j in ((1, 2), (2, 3)):
        says = f"axes {-j} and {-i} are exchanged by a reshape, which moves no numbers"
        yield _claim_of_change(says, 5, lambda A, i=i, j=j: _axes_exchanged_by_reshape(A, i, j))
    if right.dtype.kind != "b":
        yield Claim("the right numbers are there in a different order", 0, _is_reordered)


def _axes_exchanged_by_reshape(array, axis, other_axis):
    if 1 in (array.shape[-axis], array.shape[-other_axis]):
        return None
    return array.swapaxes(-axis, -other_axis).reshape(array.shape)


def _is_reordered(seen):
    value, right = (np.sort(A, axis=None).astype(float) for A in (seen.value, seen.right))
    return _close(value, right) and bool(np.unique(right).size > 2)


def _factor_claims(all_seen):
    """Yield claims that each number is the right one times a size, or times one number."""
    factors = [_common_factor(seen) for seen in all_seen]
    if None in factors:
        return
    for name, size in sizes_of(all_seen[0]).items():
        for text, power in ((name, 1), (f"1/{name}", -1), (f"√{name}", 0.5), (f"1/√{name}", -0.5)):
            if size > 1 and math.isclose(factors[0], size**power, rel_tol=1e-6):
                says = f"every number is {text} times the right one"
                yield Claim(says, 3 * (name == "d_k"), _is_scaled_by_size(name, power))
    if np.allclose(factors, factors[0], rtol=1e-6):
        says = f"every number is {factors[0]:.4g} times the right one"
        says = "every sign is reversed" if factors[0] == -1 else says
        yield _claim_of_change(says, 0, lambda A: factors[0] * A)


def _common_factor(seen):
    """Return the one ratio of the value to the right one; None if there are several."""
    if seen.right.dtype.kind == "b":
        return None
    value, right = (A.astype(float).ravel() for A in (seen.value, seen.right))
    finite = np.isfinite(right)
    large = finite & (np.abs(right) > 1e-9 * np.abs(right[finite]).max(initial=0))
    if not large.any() or not np.isfinite(value[large]).all():
        return None
    factor = float(np.median(value[large] / right[large]))
    return factor if _close(value, factor * right) and abs(factor) > 1e-9 else None


def _is_scaled_by_size(name, power):
    return lambda seen: _close(seen.value, seen.right * float(sizes_of(seen)[name]) ** power)


def sizes_of(seen):
    """Return the lengths of a case that its signatures name: {"H": 3, "d_k": 8, …}."""
    given = seen.case.inputs
    owners = [(seen.reference, given)]
    owners += [(type(value), vars(value)) for value in given.values() if is_dataclass(value)]
    found = {}
    for owner, parts in owners:
        for name, axes in owner.contract.axes.items() if hasattr(owner, "contract") else ():
            shape = np.shape(parts.get(name))
            pairs = zip(axes.names[::-1], shape[::-1], strict=False)
            found |= {symbol: n for symbol, n in pairs if symbol.isidentifier()}
    return found


# --- as if another input had been given ---


def _other_input_claims(all_seen):
    """Yield claims that the value is the right one for other inputs."""
    inputs = all_seen[0].case.inputs
    for name, given in inputs.items():
        for says, change in _plausible_input_changes(given):
            yield _changed_input_claim(f"`{name}` were {says}", name, change)
    for one, other in combinations(inputs, 2):
        yield _swapped_inputs_claim(one, other)
    for name, given in inputs.items():
        if _is_array(given):
            yield Claim(f"the result does not depend on `{name}`", 0, _ignores_input(name))


def _is_array(given):
    return hasattr(given, "shape") and hasattr(given, "ndim") and given.ndim > 0


def _dtype_name(given):
    return str(getattr(given, "dtype", type(given).__name__)).removeprefix("torch.")


def _plausible_input_changes(given):
    """Yield what an input of its kind may be taken for, and the change of it."""
    if "bool" in _dtype_name(given):
        yield (
            "exchanged, True for False" if _is_array(given) else str(not given),
            lambda A: A ^ True,
        )
        yield "True everywhere", lambda A: A | True
    if "float" in _dtype_name(given):
        yield "the negative", lambda A: -A
    if _is_array(given) and given.ndim > 1 and given.shape[-1] == given.shape[-2]:
        yield "transposed", lambda A: A.swapaxes(-1, -2)


def _changed_input_claim(change_text, name, change):
    def holds(seen):
        given = seen.case.inputs.get(name)
        if given is None:
            return False
        return _close(seen.value, seen.rerun_with(seen.reference, **{name: change(given)}))

    return Claim(f"the result is what it would be if {change_text}", 10 * (name == "mask"), holds)


def _swapped_inputs_claim(name, other_name):
    def holds(seen):
        given = seen.case.inputs
        if type(given[name]) is not type(given[other_name]):
            return False
        swapped = {name: given[other_name], other_name: given[name]}
        return _close(seen.value, seen.rerun_with(seen.reference, **swapped))

    says = f"the result is what it would be if `{name}` and `{other_name}` were exchanged"
    return Claim(says, 0, holds)


def _ignores_input(name):
    def holds(seen):
        given = seen.case.inputs[name]
        others = [given * 0, 0.37 * given + 0.11]
        if _dtype_name(given) == "bool":
            others = [~given]
        elif "int" in _dtype_name(given):
            others = [given * 0, given[..., ::-1] * 1]
        known = seen.value.dtype.kind != "f" or np.isfinite(seen.value).any()
        return bool(known) and all(
            _close(seen.value, seen.rerun_with(seen.own, **{name: other}))
            and not _close(seen.right, seen.rerun_with(seen.reference, **{name: other}))
            for other in others
        )

    return holds


# --- sums, and NaN ---


def _row_sum_claims(all_seen):
    """Yield claims on what sums to 1, where the right value's rows do or are empty."""
    seen = all_seen[0]
    if seen.right.dtype.kind != "f" or seen.right.ndim < 1 or not _rows_sum_to_1(seen.right):
        return
    says = "its rows do not sum to 1: divided by their sums they are right"
    yield Claim(says, 3, _is_unnormalised)
    yield Claim("its rows do not sum to 1", 3, lambda s: not _rows_sum_to_1(s.value))


def _rows_sum_to_1(weights):
    total = weights.sum(axis=-1)
    return bool((np.isclose(total, 1) | (total == 0)).all() and np.isclose(total, 1).any())


def _is_unnormalised(seen):
    total = seen.value.sum(axis=-1, keepdims=True)
    divided = seen.value / np.where(total == 0, 1, total)
    return not _rows_sum_to_1(seen.value) and _close(divided, seen.right)


def _nan_claims(all_seen):
    """Yield claims on NaN where the right value has none."""
    seen = all_seen[0]
    if seen.value.dtype.kind != "f" or np.isfinite(seen.value).all():
        return
    if not np.isfinite(seen.right).all():
        return
    name = "NaN" if np.isnan(seen.value).any() else "infinity"
    yield Claim(f"it holds {name}, and is right wherever it does not", 3, _right_where_finite)
    yield Claim(f"it holds {name}", 3, lambda s: not np.isfinite(s.value).all())


def _right_where_finite(seen):
    finite = np.isfinite(seen.value)
    some = finite.any() and not finite.all()
    return bool(some) and _close(seen.value[finite], seen.right[finite])


# --- a slip ---


def _mutation_claims(all_seen):
    """Yield claims that one token of the right function is another, or something left out."""
    seen = all_seen[0]
    try:
        source = inspect.getsource(inspect.unwrap(seen.reference))
    except (OSError, TypeError):
        return  # it is written in C, or in a cell
    if "while " in source:
        return  # a slip might never end
    for slip in chain(one_token_mutants(seen.reference), omission_mutants(seen.reference)):
        says = f"the result is what it would be with {slip.says}"

        def holds(seen, slip=slip):
            return _close(seen.value, seen.rerun_with(slip.function))

        yield Claim(says, 0, holds)


# --- a part of it ---


def _boolean_claims(all_seen):
    """Yield claims on True and False."""
    right = all_seen[0].right
    if right.dtype.kind != "b" or right.size < 2:
        return
    yield _claim_of_change("True and False are exchanged", 0, lambda A: ~A)
    for one, other in ((True, False), (False, True)):
        says = f"it is {one} at too many positions, and {other} at none too many"
        yield Claim(says, 0, lambda s, one=one: (s.value[s.value != s.right] == one).all())


def _row_factor_claims(all_seen):
    """Yield claims that rows are right but for a factor of their own."""
    right = all_seen[0].right
    for axis, counted in ((1, "row"), (2, "column")):
        if right.dtype.kind == "f" and right.ndim >= axis and right.shape[-axis] > 2:
            says = f"every {counted} is right but for a factor of its own"
            yield Claim(says, 3, lambda s, axis=axis: _has_factor_per_row(s, axis))


def _has_factor_per_row(seen, axis):
    value, right = (np.moveaxis(A.astype(float), -axis, -1) for A in (seen.value, seen.right))
    weight = np.einsum("...i,...i->...", right, right)
    factor = np.einsum("...i,...i->...", value, right) / np.where(weight == 0, 1, weight)
    none_is_0 = (np.abs(factor[weight > 0]) > 1e-9).all()
    return bool(none_is_0) and _close(value, factor[..., None] * right)


KINDS = (
    _order_claims,
    _factor_claims,
    _other_input_claims,
    _row_sum_claims,
    _nan_claims,
    _row_factor_claims,
    _mutation_claims,
    _boolean_claims,
)


def shape_difference_text(value, right):
    """Say how the shape of a value comes about; "" where its numbers are not the right ones.

    Parameters
    ----------
    value, right : arrays of two shapes
    """
    arrays = isinstance(right, np.ndarray) and isinstance(value, np.ndarray)
    if not arrays or value.dtype.kind not in "biuf":
        return ""
    for one, other in combinations(range(1, 1 + right.ndim), 2):
        if _close(value, np.swapaxes(right, -one, -other)):
            return f"axes {-other} and {-one} have changed places"
    if _close(value.squeeze(), right.squeeze()):
        return f"an axis of length 1 is {'missing' if value.ndim < right.ndim else 'too many'}"
    return "the numbers and their order are right" if _close(value.ravel(), right.ravel()) else ""


def rounding_error(answers):
    """Return how far values are off at most, where all of it is rounding; None where it is not.

    Returns
    -------
    error : the largest difference as a part of the largest number, at most 2e-5
    """
    errors = [0.0]
    for seen in wrong_values(answers):
        if seen.right.dtype.kind != "f" or not np.isfinite(seen.right).all():
            return None
        size = np.abs(seen.right).max(initial=1e-300)
        errors.append(float(np.abs(seen.value - seen.right).max()) / size)
    return max(errors) if 0 < max(errors) <= 2e-5 else None


def is_random(answers):
    """Whether a second call of the first case that differs gives another value."""
    first = answers.wrong[0]
    again, before = call(answers.function, answers.cases[first]), answers.outcomes[first]
    return not again.error and not before.error and not same(again.value, before.value)
