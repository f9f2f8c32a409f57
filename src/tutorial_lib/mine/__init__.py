"""Check mine: is a NumPy function of any names, arguments and axes what it should be?

    mine.check(attend, "attention")

The function is called with arrays in every order of axes and arguments that fits, and compared with
the library's. A wrong one is named if exactly one mistake gives its values.
"""

import copy
import inspect
import itertools
import re
from typing import NamedTuple

import numpy as np

from tutorial_lib.mine.kinds import (
    AXES,
    CHOSEN,
    D_K,
    D_MODEL,
    EMPTY_ROWS,
    MASK,
    NAMES,
    OVERFLOW,
    QKV,
    SPECS,
    G,
    H,
)
from tutorial_lib.practice.account import lay_out, print_text
from tutorial_lib.practice.calls import variables_of

SIZES = {  # name of an argument that wants a number -> the number
    r"causal|is_c": True,
    r"(n|num)_?(kv|g|key)|^g$|group|kv_?h": G,
    r"head_?dim|d_?k$|d_?head|^d$|dk$": D_K,
    r"head|^h$|^n?h$": H,
    r"d_?model|embed|dim": D_MODEL,
}
PACKED = re.compile(NAMES["W_QKV"], re.IGNORECASE)
STANDS_FOR = {"cache": {"past_K", "past_V"}, "W_QKV": set(QKV)}
CACHE = re.compile(r"^(layer_)?(past|kv|cache|state|mem(ory)?)(_?(kv|cache|key_values?|state))?$")
ADDED = re.compile("bias|additive", re.IGNORECASE)  # a mask of 0 and -inf
MOST_ORDERS = 120  # of the arguments, where their names say nothing


class MineError(ValueError):
    """A function that cannot be asked; says what it would have to take."""


class CallConvention(NamedTuple):
    """How a function is called: the axes, and the role or the number of each argument."""

    axes: str
    lay: object
    arguments: dict

    def __str__(self):
        given = ", ".join(f"{name} = {role}" for name, role in self.arguments.items())
        return f"taken as {given}; axes {self.axes}"


def _argument_assignments(function, spec):
    """Yield what the arguments may be, {name: role or number}; their names decide if they can."""
    takes, roles = inspect.signature(function).parameters, spec.roles
    named = {}
    for name in takes:
        named[name] = _role_from_name(name, roles, named.values())
    asked = [name for name, meaning in named.items() if meaning is None]
    asked = [name for name in asked if takes[name].default is inspect.Parameter.empty]
    known = {name: meaning for name, meaning in named.items() if meaning is not None}
    roles_given = set(known.values()).union(
        *map(STANDS_FOR.get, STANDS_FOR.keys() & known.values())
    )
    if set(roles) <= roles_given and not asked:
        yield known
        if "cache" in known.values():
            yield {n: "cache by name" if role == "cache" else role for n, role in known.items()}
        return
    if spec.by_name:
        return
    if set(QKV) < set(roles) and len({*asked, *(n for n in known if known[n] in AXES)}) == 3:
        roles = ["X", "W_QKV", "W_O"]
    names = [name for name in takes if name in asked or known.get(name) in roles]
    numbers = {name: value for name, value in known.items() if value not in roles}
    for order in itertools.islice(itertools.permutations(roles), MOST_ORDERS):
        yield dict(zip(names, order, strict=False)) | numbers


def _role_from_name(name, roles, taken):
    """Return the role that the name of an argument says, or the number; None where it says none."""
    if "past_K" in roles and CACHE.search(name.lower()):
        return "cache"
    if "W_Q" in roles and PACKED.search(name):
        return "W_QKV"
    for role in roles:
        if role not in taken and roles[role].search(name):
            return role
    if MASK.search(name):
        return "mask"
    return next((n for p, n in SIZES.items() if re.search(p, name, re.IGNORECASE)), None)


class _CacheUnderAnyName(dict):
    """Cached keys and values under any name that begins or ends with k or v."""

    def __init__(self, K, V):
        super().__init__(k=K, v=V)

    def __missing__(self, name):
        return self["v" if name.lower().strip("cahe_s")[:1] == "v" or "val" in name else "k"]


def _lacks_needed_argument(way, case):
    """Whether no argument takes what is special in a case."""
    roles = set(way.arguments.values())
    if "mask" in case.given:
        return "mask" not in roles and not _is_asked_by_a_flag(way, case)
    if "cached" in case.label and "T" not in way.axes:  # it takes one token
        return not case.label.startswith("1 ")
    return "from 40" in case.label and "positions" not in roles


def _arguments(way, case):
    """Return what a function is given on a case, in its own axes."""
    given = {}
    for name, role in way.arguments.items():
        if role in ("cache", "cache by name"):
            pair = [way.lay("past", case.given[past]) for past in ("past_K", "past_V")]
            given[name] = tuple(pair) if role == "cache" else _CacheUnderAnyName(*pair)
        elif role == "W_QKV":
            given[name] = way.lay(role, np.stack([case.given[one] for one in QKV]))
        elif role is True:
            given[name] = case.causal or case.label.endswith("cached")
        elif not isinstance(role, str):
            given[name] = role
        elif role in case.given and not (role == "mask" and _is_asked_by_a_flag(way, case)):
            given[name] = way.lay(role, case.given[role])
            if role == "mask" and ADDED.search(name):
                given[name] = np.where(given[name], 0.0, -np.inf)
    return copy.deepcopy(given)


def _is_asked_by_a_flag(way, case):
    return case.causal and True in way.arguments.values()


def _call(function, way, case):
    """Return the array of the right shape that a function gives on a case, or None, and a fault."""
    if _lacks_needed_argument(way, case):
        return None, "skip"
    try:
        given, before = _arguments(way, case), _arguments(way, case)
        with np.errstate(all="ignore"):
            values = _arrays_in(function(**given))
    except Exception as error:  # of a reader's function
        return None, f"it raised {type(error).__name__}: {error}"
    wanted = way.lay("right", case.right).shape
    fits = [array for array in values if array.shape == wanted]
    if not values:
        return None, "it returned no array: is its last line a return?"
    if not fits:
        return None, f"it returned {[array.shape for array in values]}, expected {wanted}"
    changed = [name for name in given if not _arrays_equal(given[name], before[name])]
    if changed and not str(way.arguments[changed[0]]).startswith("cache"):
        return fits[0], f"it changes its argument {changed[0]}"
    values += [array for name in changed for array in _arrays_in(given[name])]
    return fits[0], _fault_of_cache(values, way, case)


def _arrays_equal(one, other):
    one, other = _arrays_in(one), _arrays_in(other)
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def _fault_of_cache(values, way, case):
    """Say whether a step that returns more than its outputs lacks the grown cache among it."""
    if "past_K" not in case.given or len(values) < 2:
        return ""
    given = case.given
    new = given["K"] if "K" in given else given["X"][:, None] @ given["W_K"]
    wanted = way.lay("past", np.concatenate([given["past_K"], new], axis=-2))
    if any(v.shape == wanted.shape and _is_close(v, wanted) for v in values):
        return ""
    return "the keys that it returns are not the cached ones and behind them the new ones"


def _arrays_in(value):
    """Return the arrays of a result: itself, or those of a tuple, a list or a dict."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [array for part in value for array in _arrays_in(part)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | np.generic) else []


def _is_close(value, right):
    rtol = 2e-5 if value.dtype == np.float32 else 1e-6
    scale = np.abs(right[np.isfinite(right)]).max(initial=1e-30)
    return bool(np.allclose(value, right, rtol=rtol, atol=rtol * scale, equal_nan=True))


def check(function, kind):
    """Say whether a function is what it should be, or what is wrong, and how it was called.

    Parameters
    ----------
    function : of NumPy arrays
    kind : one of SPECS

    Returns
    -------
    words : "right", the words of a known mistake, or "wrong"

    Raises
    ------
    MineError : an unknown kind, or a function that no order of arguments and axes fits
    """
    if kind not in SPECS:
        raise MineError(f"kind is {kind!r}; give one of {', '.join(SPECS)}.")
    errors, one_row = [], None
    for asked in (make() for make in SPECS[kind]):
        best = list(_try_calls(function, asked, errors))
        right = [found for found in best if found[0][0] == "right"]
        named = [found for found in best if found[0][0] in asked.wrong]
        best.sort(key=lambda found: found[0][0] != "wrong")  # a fault may be that of wrong axes
        if right and all(way.axes == "(d)" for _, way in right):
            one_row = one_row or right[0][1]
        elif best and (named or not one_row):
            return _print_verdict(kind, *(right or named or best)[0], [w for _, w in right])
    if one_row:
        return _print_verdict(kind, ("it is right for one row, and fails for several", ""), one_row)
    tried = "; ".join(dict.fromkeys(errors[:3])) or "no argument has a role"
    raise MineError(f"No order of axes and arguments fits: {tried}.")


def _try_calls(function, asked, errors):
    """Yield (verdict, way) of each way of calling that fits; the fullest axes decide."""
    for axes, lay in asked.layouts.items():
        found = False
        for arguments in _argument_assignments(function, asked):
            if ("W_QKV" in axes) != ("W_QKV" in arguments.values()):
                continue
            way = CallConvention(axes, lay, arguments)
            answers = [_call(function, way, case) for case in asked.cases]
            heard = [i for i, (_, fault) in enumerate(answers) if fault != "skip"]
            errors += [answers[i][1] for i in heard if answers[i][0] is None]
            if heard and all(answers[i][0] is not None for i in heard):
                found = True
                yield _verdict(asked, way, answers, heard), way
        if found and axes.startswith("(T, d)"):  # one row alone would hide a wrong axis
            return


def _verdict(asked, way, answers, heard):
    """Return the words, and what is seen."""
    for index in heard:
        if fault := answers[index][1]:
            return fault, ""
    rights = [[c.right for c in asked.cases]]
    rights += [[f(**c.given) for c in asked.cases] for f in asked.rights]
    fits = [
        [_is_close(answers[i][0], way.lay("right", right[i])) for i in heard] for right in rights
    ]
    if any(map(all, fits)):
        return "right", ", ".join(asked.cases[i].label for i in heard)
    shown = asked.cases[heard[fits[0].index(False)]].label
    names = [
        words
        for words, wrong in asked.wrong.items()
        if _mistake_gives_answers(wrong, asked, way, answers, heard)
    ]
    taken = {"mask" if role is True else role for role in way.arguments.values()}
    for role, words in (CHOSEN[name] for name in names if name in CHOSEN):
        if role not in taken:
            return "right", f"{shown}, {words}"
    return (names[0] if len(names) == 1 else "wrong"), shown


def _mistake_gives_answers(wrong, asked, way, answers, heard):
    """Whether a mistake gives the values of every case; rows that see nothing do not count."""
    for index in heard:
        case = asked.cases[index]
        try:
            with np.errstate(all="ignore"):
                value = wrong(**case.given)
        except (ValueError, IndexError):  # these arrays do not fit the mistake
            return False
        rows = np.broadcast_to(_rows_that_count(wrong, case), np.shape(value))
        right, rows = way.lay("right", value), way.lay("right", rows)
        given = answers[index][0]
        if np.shape(right) != given.shape or not _is_close(given[rows], right[rows]):
            return False
    return True


def _rows_that_count(wrong, case):
    """Return which rows see and hide something, (T, 1); all where empty rows are the mistake."""
    mask = case.given.get("mask")
    if mask is None or wrong in EMPTY_ROWS.values() or wrong in OVERFLOW.values():
        return True
    return (mask.any(axis=-1) & ~mask.all(axis=-1))[:, None]


def _print_verdict(kind, verdict, way, fitting=()):
    words, shown = verdict
    axes, scope = list(dict.fromkeys(one.axes for one in fitting)), []
    verdict = [f"✗ {kind}: {words}", *[f"Seen on: {shown}"] * bool(shown)]
    if words == "wrong":
        verdict = [f"✗ {kind}: its values are others on this input: {shown}"]
    elif words == "right":
        verdict = [f"✓ {kind}: right; asked: {shown}"]
        scope = [f"It holds for these axes too: {' · '.join(axes[1:])}"] * (len(axes) > 1)
        scope += ["It was not right with a batch axis"] * all("(B" not in one for one in axes)
    print_text(lay_out(*verdict, f"T{str(way)[1:]}", *scope))
    return words


def check_text(kind, code, name=None):
    """Check a function that code defines, the last one if none is named; return the words.

    Raises
    ------
    MineError : code that is no Python, that raises an error, or that does not define the function
    """
    variables = variables_of(code, MineError)
    functions = {n: f for n, f in variables.items() if inspect.isfunction(f)}
    if not functions:
        raise MineError("There is no function in the code. Paste one that begins with def.")
    if name and name not in functions:
        raise MineError(f"There is no function {name!r}. Give one of {', '.join(functions)}.")
    return check(functions[name or list(functions)[-1]], kind)
