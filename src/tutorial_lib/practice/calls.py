"""Call a reader's function on a case, whatever it returns or raises, and compare two values."""

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property

import numpy as np

LONGEST = 300  # letters of an error that are quoted
HELD = {"float16": (1e-2, 1e-2), "float32": (1e-5, 1e-5)}  # rtol and atol; else those of float64


@dataclass(frozen=True)
class Case:
    """One call: a label for the reader, positional arguments by name, keyword options."""

    label: str
    arguments: dict
    options: dict = field(default_factory=dict)

    @property
    def inputs(self):
        """All that is given, by name."""
        return {**self.arguments, **self.options}


@dataclass(frozen=True)
class Outcome:
    """What a call did: returned a value, or failed; `error` says how, for the reader."""

    value: object = None
    error: str = ""


def variables_of(code, error_class, scope=None):
    """Return the variables that a reader's code sets, which may use NumPy and the names of a scope.

    Parameters
    ----------
    code : text of Python
    error_class : class of what is raised for code that is no Python, or that raises an error
    scope : dict of names; those that begin with _ are left out
    """
    variables = {n: v for n, v in (scope or {}).items() if not n.startswith("_")} | {"np": np}
    try:
        exec(compile(code, "<your code>", "exec"), variables)
    except SyntaxError as wrong:
        raise error_class(f"Line {wrong.lineno} of your code is no Python: {wrong.msg}.") from None
    except Exception as wrong:
        raise error_class(f"Your code raised {type(wrong).__name__}: {wrong}.") from wrong
    return variables


def call(function, case):
    """Return the Outcome on copies of the case's inputs, with arrays of NumPy for other arrays."""
    arguments, options = copy.deepcopy((case.arguments, case.options))
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments.values(), **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a reader's function, so SystemExit too
        return Outcome(error=f"it raised {type(error).__name__}{_error_text(error)}")
    try:
        if changed := _changed_input_text(case, {**arguments, **options}):
            return Outcome(error=changed)
        return Outcome(value=tensors_to_arrays(value))
    except Exception as error:
        raised = f"{type(error).__name__} when read{_error_text(error)}"
        return Outcome(error=f"it returned {type_text(value)}, which raised {raised}")


def _error_text(error):
    """Return what an error says, on one line, shortened, without its full stop."""
    said = ""
    with suppress(Exception):
        said = " ".join(str(error).split())
    said = said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
    said = said.rstrip(" .") if not said.endswith("…") else said
    return f": {said}" if said else ""


def _changed_input_text(case, inputs_after_call):
    """Say which input was changed; "" when none was."""
    for name, before in case.inputs.items():
        old, new = arrays_of(before), arrays_of(inputs_after_call[name])
        if len(old) == len(new) and all(map(_equal_arrays, old, new)):
            continue
        if callable(before):
            return f"it changed its input {name}; remove what you put there"
        return f"it changed its input {name}; compute with a copy of it"
    return ""


def _equal_arrays(array, expected):
    return np.array_equal(array, expected, equal_nan=array.dtype.kind in "fc")


def arrays_of(value):
    """Return the arrays of an input: itself, the fields of a record, or what a module holds."""
    if is_dataclass(value):
        return [array for part in vars(value).values() for array in arrays_of(part)]
    if hasattr(value, "named_modules"):
        hooks = [len(part._forward_hooks) for part in value.modules()]
        return [np.array(hooks), *map(tensors_to_arrays, value.state_dict().values())]
    value = tensors_to_arrays(value)
    return [value] if isinstance(value, np.ndarray) else []


def tensors_to_arrays(value):
    """Turn tensors, alone or in a tuple, into arrays; all else stays."""
    if type(value) in (tuple, list):
        return type(value)(map(tensors_to_arrays, value))
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if hasattr(value, "detach") and hasattr(value, "dtype"):
        return value.detach().cpu().resolve_conj().resolve_neg().numpy()
    return value


def _is_record(expected):
    return is_dataclass(expected) or isinstance(expected, tuple)


def _record_fields(record):
    """Return the parts of a record, or of several results, by name."""
    if is_dataclass(record):
        return vars(record)
    return {f"result {place}": part for place, part in enumerate(record)}


def part_pairs(value, expected):
    """Return (name, part, right part) of two records of one kind, without those None in both."""
    given = _record_fields(value)
    pairs = ((name, given[name], right) for name, right in _record_fields(expected).items())
    return [pair for pair in pairs if not pair[1] is pair[2] is None]


def _record_fault(value, expected):
    """Say which part of a record, or of several results, is of the wrong kind or shape."""
    if isinstance(expected, tuple):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            size = f", not of {len(value)}" if isinstance(value, tuple | list) else ""
            return f"it returned {type_text(value)}; expected a tuple of {len(expected)}{size}"
    elif type(value) is not type(expected):
        return f"it returned {type_text(value)}; expected {type_text(expected)}"
    for name, part, right in part_pairs(value, expected):
        if part is None or right is None:
            wanted = None if right is None else kind_text(right)
            return f"its {name} is {type_text(part)}; expected {wanted}"
        if said := fault(part, right):
            return said.replace("it returned", f"its {name} is", 1)
    return ""


def fault(value, expected):
    """Say what is wrong with the kind or the shape of a value; "" when both are right."""
    if _is_record(expected):
        return _record_fault(value, expected)
    wanted = f"expected {kind_text(expected)}"
    if isinstance(value, tuple) and value and same(value[0], expected):
        return f"it returned a tuple of {len(value)}; return only its first part, which is right"
    if isinstance(expected, np.ndarray) and not isinstance(value, np.ndarray):
        return f"it returned {type_text(value)}; {wanted}"
    if not isinstance(value, np.ndarray | np.generic | bool | int | float):
        return f"it returned {type_text(value)}; {wanted}"
    if np.asarray(value).dtype.kind not in "biuf":
        return f"it returned an array of {np.asarray(value).dtype}; {wanted}"
    if (np.asarray(value).dtype == bool) != (np.asarray(expected).dtype == bool):
        return f"it returned {kind_text(value)}; {wanted}"
    if np.shape(value) != np.shape(expected):
        return f"it returned shape {np.shape(value)}; expected {np.shape(expected)}"
    return ""


def type_text(value):
    """Name the type of a value with its article."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def kind_text(value):
    """Say in words what kind of value is expected."""
    array = np.asarray(value)
    words = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}
    if not isinstance(value, np.ndarray):
        return {"b": "True or False"}.get(array.dtype.kind, "a number")
    return f"an array of {words.get(array.dtype.kind, array.dtype)} of shape {array.shape}"


def same(value, expected):
    """Compare two values; half and single precision are compared to the digits they hold."""
    if fault(value, expected):
        return False
    if _is_record(expected):
        return all(same(part, right) for _, part, right in part_pairs(value, expected))
    value, expected = np.asarray(value), np.asarray(expected)
    if value.dtype.kind != "f":
        return np.array_equal(value, expected)
    rtol, atol = HELD.get(value.dtype.name, (1e-10, 1e-12))
    return bool(np.isclose(value, expected, rtol=rtol, atol=atol, equal_nan=True).all())


def has_numbers(value):
    """Whether a value can be compared: numbers, booleans, or a record of these."""
    if _is_record(value):
        return all(part is None or has_numbers(part) for part in _record_fields(value).values())
    known = isinstance(value, np.ndarray | np.generic | bool | int | float)
    return known and np.asarray(value).dtype.kind in "biuf"


def first_difference(value, expected):
    """Return (name of the part or "", value, right value) of the first part that differs."""
    if not _is_record(expected):
        return "", np.asarray(value), np.asarray(expected)
    name, part, right = next(pair for pair in part_pairs(value, expected) if not same(*pair[1:]))
    inner, part, right = first_difference(part, right)
    return f"{name}, {inner}" if inner else name, part, right


@dataclass(frozen=True)
class Answers:
    """What a reader's function gives on each case, beside the values of the right one."""

    function: Callable
    reference: Callable
    cases: tuple

    @cached_property
    def outcomes(self):
        """What the reader's function did on each case."""
        return [call(self.function, case) for case in self.cases]

    @cached_property
    def expected_values(self):
        """The right value of each case."""
        return [call(self.reference, case).value for case in self.cases]

    @cached_property
    def wrong(self):
        """The numbers of the cases that differ, or fail."""
        pairs = zip(self.outcomes, self.expected_values, strict=True)
        return [i for i, (o, right) in enumerate(pairs) if o.error or not same(o.value, right)]

    def matches_of(self, candidate):
        """Say for each case whether another function gives the reader's value, or fails as well."""
        found = []
        for outcome, case in zip(self.outcomes, self.cases, strict=True):
            given = call(candidate, case)
            alike = has_numbers(outcome.value) and not given.error
            alike = alike and same(given.value, outcome.value)
            found.append(bool(given.error) if outcome.error else alike)
        return found
