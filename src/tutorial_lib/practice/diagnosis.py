"""What kind of difference there is between a reader's values and the right ones.

A kind of difference makes claims about the first case that differs, such as "each number is √d_k
times the right one". A claim is told only if it holds in every case that differs, whose sizes are
others; `holds` asks a claim of a case that no check has used, too.
"""

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations

import numpy as np

from tutorial_lib.practice.calls import (
    Answers,
    Case,
    as_arrays,
    call,
    fault,
    first_difference,
    same,
)
from tutorial_lib.practice.mistake import with_inner
from tutorial_lib.practice.slips import omissions, slips

TABLE = """
    X dY: T d_model
    context: S d_model
    Q dQ dprojected rotate.X: H T d_k
    K: G S d_k
    V: G S d_v
    scores weights mask: H T S
    heads dheads: H T d_v
    concat_tokens_first.heads: T H d_v
    W W_Q: H d_model d_k
    W_V: G d_model d_v
    project_sliced_input.W: H d_in d_out
    state: H d_k d_v
    b: H d_k
    E: words d_model
    ids is_token target: T
    logits: T words
    packed: T columns
    result: T d_v
    merge_parts.heads linear_backward.W linear_backward.dY:
"""  # the last axes of an argument, by its name or that of a function too; a batch may come before
AXES = {
    name: axes.split()
    for names, axes in (line.split(":") for line in TABLE.strip().splitlines())
    for name in names.split()
}
WORDS = {"n_heads": "H", "width": "d_model", "n_kv_heads": "G", "groups": "G"}
NOUNS = {"B": "sentence", "H": "head", "G": "head", "T": "token", "S": "token"}


@dataclass(frozen=True)
class Seen:
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

    def instead(self, function, **inputs):
        """Return the same part of what a function gives with other inputs; None if it fails."""
        given, case = self.case.inputs | inputs, self.case
        names = [n for n in given if given[n] is not DROPPED]
        arguments = {n: given[n] for n in names if n in case.arguments}
        options = {n: given[n] for n in names if n not in case.arguments}
        outcome = call(function, replace(case, arguments=arguments, options=options))
        return None if outcome.error else _part(outcome, self.part)


DROPPED = object()
LEAST_BITS = 24  # some 200 claims are tried


def _part(outcome, name):
    value = outcome.value
    with suppress(Exception):  # it is no record, or has no such part
        for part in name.split(", ") if name else ():
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
    holds: Callable[[Seen], bool]

    def is_true_of(self, seen):
        """Whether it holds; what cannot be asked of a case does not."""
        with suppress(Exception):
            return bool(self.holds(seen))
        return False

    def is_true_of_all(self, seen):
        """Whether it holds in every case."""
        return all(map(self.is_true_of, seen))


def diagnose(answers: Answers) -> Claim | None:
    """Say what kind of difference there is; None where no claim holds in all cases that differ."""
    seen = list(differing(answers))
    if len({s.part for s in seen}) != 1 or sum(map(_bits, seen)) < LEAST_BITS:
        return None
    with np.errstate(all="ignore"):
        claims = chain.from_iterable(kind(seen) for kind in KINDS)
        return next((claim for claim in claims if claim.is_true_of_all(seen)), None)


def _bits(seen):
    """Return about how much a value can tell: of a few small numbers many claims hold by chance."""
    if seen.right.dtype.kind == "b":
        return seen.right.size
    if seen.right.dtype.kind == "f":
        return LEAST_BITS * np.unique(seen.right).size / 2
    return float(np.log2(1 + np.abs(np.unique(seen.right).astype(float))).sum())


def differing(answers):
    """Yield a Seen for each case whose value has the right shape and differs."""
    for i in answers.wrong:
        outcome, right = answers.outcomes[i], answers.rights[i]
        if outcome.error or fault(outcome.value, right):
            continue
        part, value, wanted = first_difference(outcome.value, right)
        yield Seen(answers.cases[i], value, wanted, part, answers.function, answers.reference)


def _alike(one, other):
    if one is None or other is None or np.shape(one) != np.shape(other):
        return False
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind == "b" or other.dtype.kind == "b":
        return one.dtype.kind == other.dtype.kind and bool((one == other).all())
    if "c" in (one.dtype.kind, other.dtype.kind) or one.size == 0:
        return False
    size = np.abs(other[np.isfinite(other)]).max(initial=1e-300)
    rtol = 1e-5 if "float32" in (one.dtype.name, other.dtype.name) else 1e-8
    return bool(np.isclose(one, other, rtol=rtol, atol=rtol * size, equal_nan=True).all())


def _says(says, chapter, change):
    """Make a claim that a change of the right value, of (right, Seen), gives the reader's."""

    def holds(seen):
        return _alike(seen.value, change(seen.right, seen))

    return Claim(says, chapter, holds)


# --- as if another input had been given ---


def _other_inputs(all_seen):
    """Yield claims that the value is the right one for other inputs."""
    seen = all_seen[0]
    for name, given in seen.case.inputs.items():
        for says, change in _changes(seen, name, given):
            yield _as_if(says, name, change)
    for one, other in combinations(seen.case.inputs, 2):
        yield _exchanged(one, other)
    for name, given in seen.case.inputs.items():
        if _is_array(given):
            yield _not_used(name)


def _is_array(given):
    return hasattr(given, "shape") and hasattr(given, "ndim") and given.ndim > 0


def _kind(given):
    return str(getattr(given, "dtype", type(given).__name__)).removeprefix("torch.")


def _changes(seen, name, given):
    """Yield (what is claimed, change of the input)."""
    if name in seen.case.options and given is not None:
        yield f"`{name}` were not used", lambda A: DROPPED
    yield from _as_kind(name, given)
    if not _is_array(given):
        return
    for axis in range(min(2, given.ndim), 1 + min(given.ndim, 4)):
        counted = counted_by(seen, given.shape, axis) or f"index of axis {-axis}" * (axis > 1)
        if counted and given.shape[-axis] > 1:
            says = f"every {counted} of `{name}` were the first"
            yield says, lambda A, axis=axis: _first(A, axis)
    if given.ndim > 1 and given.shape[-1] == given.shape[-2]:
        yield f"`{name}` were transposed", lambda A: A.swapaxes(-1, -2)


def _as_kind(name, given):
    """Yield what an input of its kind may be taken for: a switch, a count, a number, or arrays."""
    kind = _kind(given)
    if "int" in kind:
        yield f"`{name}` were larger by 1", lambda A: A + 1
        yield f"`{name}` were smaller by 1", lambda A: A - 1
        yield f"`{name}` were twice as large", lambda A: 2 * A
    if "bool" in kind:
        other = "exchanged, True for False" if _is_array(given) else str(not given)
        yield f"`{name}` were {other}", lambda A: A ^ True
        yield f"`{name}` were True everywhere", lambda A: A | True
    if "float" in kind:
        yield f"`{name}` were the negative", lambda A: -A


def _first(A, axis):
    """Repeat the first of an axis, counted from the end, over the whole of it."""
    if A.ndim < axis:
        return A
    index = [slice(None)] * A.ndim
    index[A.ndim - axis] = slice(0, 1)
    return A * 0 + A[tuple(index)] if _kind(A) != "bool" else (A & False) | A[tuple(index)]


def _as_if(says, name, change):
    def holds(seen):
        given = seen.case.inputs.get(name)
        if given is None:
            return False
        return _alike(seen.value, seen.instead(seen.reference, **{name: change(given)}))

    chapter = {"mask": 10, "positions": 16}.get(name, 0)
    return Claim(f"the result is what it would be if {says}", chapter, holds)


def _exchanged(one, other):
    def holds(seen):
        given = seen.case.inputs
        if not {one, other} <= set(given) or type(given[one]) is not type(given[other]):
            return False
        swapped = {one: given[other], other: given[one]}
        return _alike(seen.value, seen.instead(seen.reference, **swapped))

    return Claim(
        f"the result is what it would be if `{one}` and `{other}` were exchanged", 0, holds
    )


def _not_used(name):
    def holds(seen):
        given = seen.case.inputs[name]
        others = [~given] if _kind(given) == "bool" else [given * 0, 0.37 * given + 0.11]
        if "int" in _kind(given):
            others = [given * 0, given[..., ::-1] * 1]
        return _has_numbers(seen.value) and all(
            _alike(seen.value, seen.instead(seen.own, **{name: other}))
            and not _alike(seen.right, seen.instead(seen.reference, **{name: other}))
            for other in others
        )

    return Claim(f"the result does not depend on `{name}`", 0, holds)


def _has_numbers(value):
    return value.dtype.kind != "f" or bool(np.isfinite(value).any())


# --- as if an inner step were another ---


def _inner_steps(all_seen):
    """Yield claims that a step inside the function is another."""
    scales = [_with_scores(f"the scores are {says}", size) for says, size in SCALES.items()]
    scales = [claim for claim in scales if claim.is_true_of_all(all_seen)]
    if len(scales) > 1:  # their sizes agree in these cases
        yield Claim("the scores are not divided by √d_k, but by another number", 3, scales[0].holds)
    yield from scales


def _power(name, power):
    return lambda sizes: sizes[name] ** power if name in sizes else None


SCALES = {  # what stands in place of a division by √d_k
    "not divided by √d_k": lambda sizes: 1.0,
    "divided by d_k instead of √d_k": _power("d_k", -1),
    "multiplied by √d_k instead of divided by it": _power("d_k", 0.5),
    "divided by √H instead of √d_k": _power("H", -0.5),
    "divided by √S instead of √d_k": _power("S", -0.5),
    "divided by √T instead of √d_k": _power("T", -0.5),
    "divided by √d_model instead of √d_k": _power("d_model", -0.5),
    "divided by the root of d_model // H instead of √d_k": lambda sizes: (
        (sizes["d_model"] // sizes["H"]) ** -0.5 if {"d_model", "H"} <= set(sizes) else None
    ),
    "divided by 2 whatever d_k is": lambda sizes: 0.5,
    "divided by 8 whatever d_k is": lambda sizes: 0.125,
}


def _with_scores(says, size):
    """Make a claim that the function is the right one on scores that are scaled by a size."""

    def holds(seen):
        change = partial(_scaled_scores, size=size, seen=seen)
        if seen.reference.__name__ == "attention_scores":
            other = change(seen.reference)
        else:
            other = with_inner(seen.reference, "attention_scores", change)
        return other is not None and _alike(seen.value, seen.instead(other))

    return Claim(says, 3, holds)


def _scaled_scores(scores, size, seen):
    def other(Q, K):
        factor = size(sizes_of(seen) | {"d_k": Q.shape[-1]})
        return None if factor is None else scores(Q, K) * math.sqrt(Q.shape[-1]) * factor

    return other


# --- the right numbers in another order ---


def _orders(all_seen):
    """Yield claims that the right numbers are at other positions."""
    seen = all_seen[0]
    for one, other in combinations(range(1, 1 + min(seen.right.ndim, 4)), 2):
        if seen.right.shape[-one] == seen.right.shape[-other]:
            says = f"axes {-other} and {-one} have changed places"
            yield _says(says, 5, lambda A, s, one=one, other=other: np.swapaxes(A, -one, -other))
    for one, other in ((1, 2), (2, 3)):
        says = f"axes {-other} and {-one} are exchanged by a reshape, which moves no numbers"
        yield _says(says, 5, lambda A, s, one=one, other=other: _reshaped(A, one, other))
    if seen.right.dtype.kind != "b":
        yield Claim("the right numbers are there in a different order", 0, _reordered)


def _reordered(seen):
    value, right = (np.sort(A, axis=None).astype(float) for A in (seen.value, seen.right))
    return _alike(value, right) and bool(np.unique(right).size > 2)


def _reshaped(A, one, other):
    return (
        None if 1 in (A.shape[-one], A.shape[-other]) else A.swapaxes(-one, -other).reshape(A.shape)
    )


# --- the right numbers, changed one by one ---


def sizes_of(seen):
    """Return the lengths of a case by their symbols: {"H": 3, "d_k": 8, …}."""
    found = {symbol: n for symbol, n in _lengths(seen) if symbol != "B"}
    for name, given in seen.case.inputs.items():
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            found[WORDS.get(name, name)] = int(given)
    return found


def _lengths(seen):
    """Yield (symbol, length) of each axis that has a name; of several axes of a batch none has."""
    function = seen.reference.__name__.lstrip("_")
    for name, given in seen.case.inputs.items():
        arrays = {n: getattr(given, n) for n in ("W_Q", "W_V") if hasattr(given, n)}
        for array_name, array in (arrays or {name: given}).items():
            axes = AXES.get(f"{function}.{array_name}", AXES.get(array_name))
            if axes and hasattr(array, "shape"):
                axes = ["B", *axes] if len(array.shape) == len(axes) + 1 else axes
                pairs = zip(reversed(axes), reversed(array.shape), strict=False)
                yield from ((symbol, n) for symbol, n in pairs if n > 1)


def counted_by(seen, shape, axis):
    """Say what an axis, from the end, counts: what has its length, as in a case no two are equal.

    A "row" of a matrix, if it is nothing else; "" where nothing is known.
    """
    found = {NOUNS.get(symbol, "") for symbol, n in _lengths(seen) if n == shape[-axis]}
    noun = found.pop() if len(found) == 1 else ""
    return "row" if axis == 2 and noun in ("", "token") else noun


def _factors(all_seen):
    """Yield claims that each number is the right one times a factor: a size, or always the same."""
    factors = [_factor(seen) for seen in all_seen]
    if None in factors:
        return
    sizes = _sizes_for(all_seen[0], factors[0])
    sizes = [claim for claim in sizes if claim.is_true_of_all(all_seen)]
    if not np.allclose(factors, factors[0], rtol=1e-6):
        yield from sizes
        return
    factor = factors[0]
    says = "every sign is reversed" if factor == -1 else _times(f"{factor:.4g}")
    says = f"{says}, as {sizes[0].says.split()[3]} is here" if sizes else says
    yield _says(says, 0, lambda A, s: factor * A)


def _sizes_for(seen, factor):
    sizes = sizes_of(seen)
    for name in sizes:
        for text, power in ((name, 1), (f"1/{name}", -1), (f"√{name}", 0.5), (f"1/√{name}", -0.5)):
            if sizes[name] > 1 and math.isclose(factor, sizes[name] ** power, rel_tol=1e-6):
                change = partial(_scaled, name=name, power=power)
                yield _says(_times(text), 3 * ("d_k" in name), change)


def _times(factor):
    return f"every number is {factor} times the right one"


def _factor(seen):
    """Return the one ratio of the value to the right one; None if there are several."""
    if seen.right.dtype.kind == "b":
        return None
    value, right = (A.astype(float).ravel() for A in (seen.value, seen.right))
    kept = np.isfinite(right) & (
        np.abs(right) > 1e-9 * np.abs(right[np.isfinite(right)]).max(initial=0)
    )
    if not kept.any() or not np.isfinite(value[kept]).all():
        return None
    factor = float(np.median(value[kept] / right[kept]))
    return factor if _alike(value, factor * right) and abs(factor) > 1e-9 else None


def _scaled(A, seen, name, power):
    return A * float(sizes_of(seen)[name]) ** power


# --- True and False ---


def _booleans(all_seen):
    """Yield claims on True and False."""
    seen = all_seen[0]
    if seen.right.dtype.kind != "b" or seen.right.size < 2:
        return
    yield _says("True and False are exchanged", 0, lambda A, s: ~A)
    if seen.right.ndim > 1:
        for k, where in enumerate(("the diagonal", "the one above the diagonal")):
            says = f"{where} is {{}} where it should be {{}}"
            yield _says(says.format("False", "True"), 3, lambda A, s, k=k: A & ~_diagonal(A, k))
            yield _says(says.format("True", "False"), 3, lambda A, s, k=k: A | _diagonal(A, k))
    for one, other in ((True, False), (False, True)):
        says = f"it is {one} at too many positions, and {other} at none too many"
        yield Claim(says, 0, lambda s, one=one: _only_more(s, one))


def _diagonal(A, k):
    """The diagonal that ends in the bottom right corner, k columns on."""
    T, S = A.shape[-2:]
    return np.eye(T, S, k=S - T + k, dtype=bool)


def _only_more(seen, given):
    """Whether all entries that differ are `given`."""
    return bool((seen.value[seen.value != seen.right] == given).all())


# --- sums, and NaN ---


def _sums(all_seen):
    """Yield claims on what sums to 1, where the right value's rows do or are empty."""
    seen = all_seen[0]
    if seen.right.dtype.kind != "f" or seen.right.ndim < 1 or not _sums_to_1(seen.right):
        return
    says = "its rows do not sum to 1: divided by their sums they are right"
    yield Claim(says, 3, _not_divided)
    yield Claim("its rows do not sum to 1", 3, lambda s: not _sums_to_1(s.value))


def _sums_to_1(A):
    total = A.sum(axis=-1)
    return bool((np.isclose(total, 1) | (total == 0)).all() and np.isclose(total, 1).any())


def _not_divided(seen):
    total = seen.value.sum(axis=-1, keepdims=True)
    divided = seen.value / np.where(total == 0, 1, total)
    return not _sums_to_1(seen.value) and _alike(divided, seen.right)


def _nan(all_seen):
    """Yield claims on NaN where the right value has none."""
    seen = all_seen[0]
    if seen.value.dtype.kind != "f" or np.isfinite(seen.value).all():
        return
    if not np.isfinite(seen.right).all():
        return
    name = "NaN" if np.isnan(seen.value).any() else "infinity"
    if seen.case.inputs.get("mask") is not None:
        rows = "the rows in which the mask hides every key"
        yield Claim(f"it holds {name} in {rows}, and is right elsewhere", 3, _nan_in_empty_rows)
    yield Claim(f"it holds {name}, and is right wherever it does not", 3, _right_where_finite)
    yield Claim(f"it holds {name}", 3, lambda s: not np.isfinite(s.value).all())


def _right_where_finite(seen):
    finite = np.isfinite(seen.value)
    some = finite.any() and not finite.all()
    return bool(some) and _alike(seen.value[finite], seen.right[finite])


def _nan_in_empty_rows(seen):
    rows = np.asarray(as_arrays(seen.case.inputs["mask"])).any(axis=-1, keepdims=True)
    finite = np.isfinite(seen.value)
    return _right_where_finite(seen) and (finite == np.broadcast_to(rows, finite.shape)).all()


# --- a part of it ---


def _row_factors(all_seen):
    """Yield claims that rows are right but for a factor of their own."""
    seen = all_seen[0]
    if seen.right.dtype.kind != "f":
        return
    for axis in (1, 2):
        if seen.right.ndim >= axis and seen.right.shape[-axis] > 2:
            counted = "row" if axis == 1 else "column"
            says = f"every {counted} is right but for a factor of its own"
            chapter = 17 if "sink" in seen.case.inputs else 3
            yield Claim(says, chapter, lambda s, axis=axis: _own_factor(s, axis))


def _own_factor(seen, axis):
    value, right = (np.moveaxis(A.astype(float), -axis, -1) for A in (seen.value, seen.right))
    weight = np.einsum("...i,...i->...", right, right)
    factor = np.einsum("...i,...i->...", value, right) / np.where(weight == 0, 1, weight)
    none_is_0 = (np.abs(factor[weight > 0]) > 1e-9).all()
    return bool(none_is_0) and _alike(value, factor[..., None] * right)


def _single(all_seen):
    """Yield claims that only one index of an axis is right, or only one is wrong."""
    seen = all_seen[0]
    for axis in (2, 3, 4, 1):
        if seen.right.ndim < axis or seen.right.shape[-axis] < 3:
            continue
        counted = f"{{}} {counted_by(seen, seen.right.shape, axis) or 'index'} (axis {-axis})"
        counted = counted if axis > 1 else "{} entry of each row"
        for index, named in ((0, "first"), (-1, "last")):
            for wrong, told in ((False, "right"), (True, "wrong")):
                says = f"only the {counted.format(named)} is {told}"
                yield Claim(says, 0, lambda s, a=axis, i=index, w=wrong: _only_one(s, a, i, w))


def _close_entries(seen):
    if seen.right.dtype.kind == "b":
        return seen.value == seen.right
    size = np.abs(seen.right[np.isfinite(seen.right)]).max(initial=1e-300)
    return np.isclose(seen.value, seen.right, rtol=1e-7, atol=1e-9 * size, equal_nan=True)


def _only_one(seen, axis, index, wrong):
    found = (~np.moveaxis(_close_entries(seen), -axis, 0)).reshape(seen.right.shape[-axis], -1)
    expected = np.full(len(found), not wrong)
    expected[index] = wrong
    return len(found) > 1 and bool((found.any(axis=-1) == expected).all())


def _weights(all_seen):
    """Yield claims on keys that have weight and should have none, or the reverse."""
    seen = all_seen[0]
    if seen.right.dtype.kind != "f" or seen.right.ndim < 2 or not (seen.right == 0).any():
        return
    yield Claim("numbers that should be 0 are not", 10, lambda s: _some(s.value, s.right))
    yield Claim("numbers are 0 that should not be", 10, lambda s: _some(s.right, s.value))


def _some(one, other):
    """Whether one has numbers where the other has 0."""
    return bool(((one != 0) & (other == 0)).any())


# --- a slip ---


def _by_slip(all_seen):
    """Yield claims that one token of the right function is another, or something left out."""
    seen = all_seen[0]
    try:
        source = inspect.getsource(inspect.unwrap(seen.reference))
    except (OSError, TypeError):
        return  # it is written in C, or in a cell
    if "while " in source:
        return  # a slip might never end
    for slip in chain(slips(seen.reference), omissions(seen.reference)):
        says = f"the result is what it would be with {slip.says}"

        def holds(seen, slip=slip):
            return _alike(seen.value, seen.instead(slip.function))

        yield Claim(says, 0, holds)


KINDS = (
    _booleans,
    _orders,
    _factors,
    _inner_steps,
    _other_inputs,
    _sums,
    _nan,
    _row_factors,
    _by_slip,
    _single,
    _weights,
)


def of_shape(value, right):
    """Say how the shape of a value comes about; "" where its numbers are not the right ones.

    Parameters
    ----------
    value, right : arrays of two shapes
    """
    if not isinstance(right, np.ndarray) or not isinstance(value, np.ndarray):
        return ""
    if value.dtype.kind not in "biuf":
        return ""
    for one, other in combinations(range(1, 1 + right.ndim), 2):
        if _alike(value, np.swapaxes(right, -one, -other)):
            return f"axes {-other} and {-one} have changed places"
    if value.size != right.size:
        for axis in range(1, 1 + right.ndim):
            if _alike(value, right.sum(axis=-axis)):
                return f"it is added up along axis {-axis}"
            if _alike(value, right.mean(axis=-axis)):
                return f"it is averaged along axis {-axis}"
            length = right.shape[-axis]
            n = min(value.shape[-axis], length) if value.ndim == right.ndim else length
            if _alike(value, np.take(right, range(n), axis=-axis)):
                return f"it is cut along axis {-axis}: {n} of {length}"
        return ""
    if value.squeeze().shape == right.squeeze().shape and _alike(value.squeeze(), right.squeeze()):
        return f"an axis of length 1 is {'missing' if value.ndim < right.ndim else 'too many'}"
    return "the numbers and their order are right" if _alike(value.ravel(), right.ravel()) else ""


def coarse(answers):
    """Return how far values are off at most, where all of it is rounding; None where it is not.

    Returns
    -------
    error : the largest difference as a part of the largest number, at most 2e-5
    """
    errors = [0.0]
    for seen in differing(answers):
        if seen.right.dtype.kind != "f" or not np.isfinite(seen.right).all():
            return None
        size = np.abs(seen.right).max(initial=1e-300)
        errors.append(float(np.abs(seen.value - seen.right).max()) / size)
    return max(errors) if 0 < max(errors) <= 2e-5 else None


def draws(answers):
    """Whether a second call of the first case that differs gives another value."""
    first = answers.wrong[0]
    again, before = call(answers.function, answers.cases[first]), answers.outcomes[first]
    return not again.error and not before.error and not same(again.value, before.value)
