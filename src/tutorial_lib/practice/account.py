"""Call the reader's function, compare it with the library's, and put the result into words.

A function may return tensors of torch where the library's returns arrays.
"""

import copy
import inspect
import textwrap
from dataclasses import dataclass, field, is_dataclass

import numpy as np

WIDTH = 78  # columns of an account; a page shows 85


@dataclass(frozen=True)
class Case:
    """One call: a label for the reader, positional arguments by name, keyword options."""

    label: str
    arguments: dict
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a call did: returned a value, or came to grief; `grief` says how, for the reader."""

    value: object = None
    grief: str = ""


def _call(function, case):
    """Call on copies of the case's inputs, and notice when they were changed."""
    arguments, options = copy.deepcopy((case.arguments, case.options))
    misfit = _misfit(function, case)
    if misfit:
        return Outcome(grief=misfit)
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments.values(), **options)
    except Exception as error:
        said = f": {error}".rstrip(".") if str(error) else ""
        return Outcome(grief=f"it raised {type(error).__name__}{said}")
    for name, given in {**case.arguments, **case.options}.items():
        pairs = zip(_arrays(given), _arrays({**arguments, **options}[name]), strict=True)
        if not all(np.array_equal(*pair, equal_nan=True) for pair in pairs):
            copied = (
                "take away what you put there" if callable(given) else "compute with a copy of it"
            )
            return Outcome(grief=f"it changed its input {name}; {copied}")
    return Outcome(value=_as_arrays(value))


def _as_arrays(value):
    """Turn tensors, alone or several in a tuple, into NumPy arrays; all else stays as it is."""
    if isinstance(value, tuple | list):
        return type(value)(_as_arrays(part) for part in value)
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _misfit(function, case):
    """Say why the function cannot take the case's arguments; '' when it can."""
    wanted = ", ".join([*case.arguments, *(f"{name}=…" for name in case.options)])
    try:
        inspect.signature(function).bind(*case.arguments.values(), **case.options)
    except TypeError as error:
        return f"it must take ({wanted}), but Python says: {error}"
    except ValueError:
        return ""  # some functions written in C do not tell what they take
    return ""


def _arrays(value):
    """Return the arrays of an input: itself, the fields of a record, or what a module holds."""
    if is_dataclass(value):
        return [array for part in vars(value).values() for array in _arrays(part)]
    if hasattr(value, "named_modules"):
        hooks = [len(part._forward_hooks) for part in value.modules()]
        return [np.array(hooks), *map(_as_arrays, value.state_dict().values())]
    value = _as_arrays(value)
    return [value] if isinstance(value, np.ndarray) else []


def _is_record(expected):
    return is_dataclass(expected) or isinstance(expected, tuple)


def _fields(record):
    """Return the parts of a record, or of several results, by name."""
    if is_dataclass(record):
        return vars(record)
    return {f"result {place}": part for place, part in enumerate(record)}


def _parts(value, expected):
    """Return (name, part, right part) of two records of one kind, without those None in both."""
    given = _fields(value)
    pairs = ((name, given[name], right) for name, right in _fields(expected).items())
    return [pair for pair in pairs if not pair[1] is pair[2] is None]


def _fault_of_record(value, expected):
    """Say which part of a record, or of several results, is of the wrong kind or shape."""
    if isinstance(expected, tuple):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            size = f", not of {len(value)}" if isinstance(value, tuple | list) else ""
            return f"it returned {_a(value)}; expected a tuple of {len(expected)}{size}"
    elif type(value) is not type(expected):
        return f"it returned {_a(value)}; expected {_a(expected)}"
    for name, part, right in _parts(value, expected):
        if part is None or right is None:
            return f"its {name} is {_a(part)}; expected {_kind(right) if part is None else None}"
        if fault := _fault(part, right):
            return fault.replace("it returned", f"its {name} is", 1)
    return ""


def _fault(value, expected):
    """Say what is wrong with the kind or the shape of a value; '' when both are right."""
    if _is_record(expected):
        return _fault_of_record(value, expected)
    wanted = f"expected {_kind(expected)}"
    if isinstance(expected, np.ndarray) and not isinstance(value, np.ndarray):
        return f"it returned {_a(value)}; {wanted}"
    if not isinstance(value, np.ndarray | np.generic | bool | int | float):
        return f"it returned {_a(value)}; {wanted}"
    if np.asarray(value).dtype.kind not in "biuf":
        return f"it returned an array of {value.dtype}; {wanted}"
    if (np.asarray(value).dtype == bool) != (np.asarray(expected).dtype == bool):
        return f"it returned {_kind(value)}; {wanted}"
    if np.shape(value) != np.shape(expected):
        return f"it returned shape {np.shape(value)}; expected {np.shape(expected)}"
    return ""


def _a(value):
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _kind(value):
    array = np.asarray(value)
    words = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}
    if not isinstance(value, np.ndarray):
        return {"b": "True or False"}.get(array.dtype.kind, "a number")
    return f"an array of {words.get(array.dtype.kind, array.dtype)} of shape {array.shape}"


def _same(value, expected):
    """Compare two values; half and single precision are compared to the digits they hold."""
    if _fault(value, expected):
        return False
    if _is_record(expected):
        return all(_same(part, right) for _, part, right in _parts(value, expected))
    value, expected = np.asarray(value), np.asarray(expected)
    if value.dtype.kind != "f":
        return np.array_equal(value, expected)
    held = {"float16": (1e-2, 1e-2), "float32": (1e-5, 1e-5)}
    rtol, atol = held.get(value.dtype.name, (1e-10, 1e-12))
    return bool(np.isclose(value, expected, rtol=rtol, atol=atol, equal_nan=True).all())


def _difference(value, expected):
    """Show the first row that differs, with as many decimals as tell the two apart."""
    if _is_record(expected):
        pairs = _parts(value, expected)
        name, part, right = next(pair for pair in pairs if not _same(*pair[1:]))
        return f"in {name}, {_difference(part, right)}"
    value, expected = np.atleast_1d(value), np.atleast_1d(expected)
    index = next(i for i in np.ndindex(value.shape[:-1]) if not _same(value[i], expected[i]))
    place = f"row [{', '.join(str(i) for i in index)}] is" if index else "it is"
    row, right = value[index], expected[index]
    first = next(i for i in range(len(row)) if not _same(row[i], right[i]))
    for decimals in (3, 6, 9, 12):
        given, wanted = _row(row, first, decimals), _row(right, first, decimals)
        if given != wanted:
            break
    return f"{place} {given} and should be {wanted}"


def _row(row, first, decimals):
    """Print six entries: those from the start, or from the first wrong one if it lies behind."""
    start = 0 if first < 6 else first
    texts = [_entry(entry, decimals) for entry in row[start : start + 6].tolist()]
    return ", ".join(["…"] * (start > 0) + texts + ["…"] * (start + 6 < len(row)))


def _entry(entry, decimals):
    if not isinstance(entry, float):
        return str(entry)
    return f"{round(entry, decimals) + 0.0:.{decimals}f}"


def _name_mistake(mistakes, reference, values, cases):
    """Find the named mistake that gives these very values on every case."""
    for mistake in mistakes:
        wrong = mistake.of(reference)
        outcomes = (_call(wrong, case) for case in cases)
        pairs = zip(values, outcomes, strict=True)
        if all(not outcome.grief and _same(value, outcome.value) for value, outcome in pairs):
            return mistake
    return None


def told(*sentences):
    """Lay sentences out for a page: each on a line of its own, indented where it goes on."""
    ended = [text if text[-1] in ".…" else f"{text}." for text in sentences]
    page = textwrap.TextWrapper(
        WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(page.fill(text) for text in [ended[0], *(f"  {text}" for text in ended[1:])])


def account(name, function, reference, cases, mistakes=()):
    """Call, compare, and put the result into words; name the mistake if it is one of these."""
    if not callable(function):
        return f"✗ {name}: got {_a(function)}; give the function itself, not a result."
    outcomes = [_call(function, case) for case in cases]
    if all(outcome.value is None and not outcome.grief for outcome in outcomes):
        return f"○ {name}: not done yet (it returns None)."
    expected = [_call(reference, case).value for case in cases]
    values = [outcome.value for outcome in outcomes]
    mistake = _name_mistake(mistakes, reference, values, cases)
    for case, outcome, right in zip(cases, outcomes, expected, strict=True):
        fault = outcome.grief or _fault(outcome.value, right)
        if not fault and _same(outcome.value, right):
            continue
        seen = f"{case.label}: {fault or _difference(outcome.value, right)}"
        if not mistake:
            return told(f"✗ {name}: {seen}")
        said = [f"✗ {name}: {mistake.says}", *([] if fault else [seen])]
        return told(*said, mistake.mend)
    labels = textwrap.fill("; ".join(case.label for case in cases) + ".", WIDTH - 2)
    return f"✓ {name}: right on\n" + textwrap.indent(labels, "  ")


def against(mistakes):
    """Return `check(name, function, reference, cases)` of a room, which prints an account.

    Parameters
    ----------
    mistakes : the room's wrong functions, a tuple of Mistake for each name
    """

    def check(name, function, reference, cases):
        print(account(name, function, reference, cases, mistakes[name]))

    return check


def normal(seed, *shape):
    """Draw standard normal numbers; the same seed gives the same."""
    return np.random.default_rng(seed).standard_normal(shape)


B, T, S, H, D_MODEL, D_K, D_V = 2, 5, 7, 3, 13, 8, 11  # none is product or ratio of others
WIDE = 17  # another d_k, so that a scale that is right at one width alone is seen


def masks():
    """Return masks for scores (B, H, T, S), as people have them: {label: booleans}."""
    causal = np.tri(T, S, k=S - T, dtype=bool)
    real = np.arange(S) < np.array([S - 3, S])[:, None, None, None]  # (B, 1, 1, S)
    own = np.random.default_rng(44).random((B, H, T, S)) < 0.6
    own[..., 1] = True  # each query sees a key
    return {
        "a causal mask": causal,
        "padding of each sentence": real,
        "a causal mask and padding": causal & real,
        "a mask for each head": own[0],
        "a mask for each sentence and head": own,
        "a row with nothing to look at": causal & (np.arange(T) != 2)[:, None],
    }
