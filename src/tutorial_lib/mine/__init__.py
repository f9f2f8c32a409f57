"""Check mine: is a NumPy function of any names, arguments and axes what it should be?

    mine.check(attend, "attention")

The function is called with arrays in every order of axes and arguments that fits, of the axes that
its comments name if they name any, and compared with the library's. A wrong one is named if exactly
one mistake gives its values.
"""

import copy
import inspect
import itertools
import linecache
import re
from functools import partial
from typing import NamedTuple

import numpy as np

from tutorial_lib.mine import kinds
from tutorial_lib.mine.kinds import D_K, D_MODEL, NAMES, QKV, SPECS, B, G, H, S, T, rope
from tutorial_lib.practice import calls
from tutorial_lib.practice.account import difference_text, lay_out, print_text
from tutorial_lib.practice.diagnosis import WrongValue, explain_difference

SIZES = {  # name of an argument that wants a number -> the number
    r"causal|is_c": True,
    r"rep|per_|group_?size": H // G,
    r"seq_?len|num_(tok|quer)|tgt_len|^rows$|(?-i:^[TLN]$)": T,
    r"num_keys|src_len|kv_len|^cols$|(?-i:^[SM]$)": S,
    r"temperature|^tau$": 1.0,
    r"^scal(e|ing)(_factor)?$": D_K**-0.5,
    r"(^|_)(n|num)_?(kv|g|key)|^g$|group|kv_?h": G,
    r"(head|key|value|v|qk)_?dim|head_?size|^(hd|dh|hs)$|d_?k$|d_?head|^d$|dk$": D_K,
    r"head|cabez|k(ö|oe)pf|t[eê]te|^n?h?$": H,
    r"d_?model|embed|dim": D_MODEL,
    r"base|theta": 10_000.0,
}
AXIS_SIZES = {  # name of an axis in a comment -> its sizes
    r"^b(s|sz)?$|batch": {B},
    r"heads?$|^n?h$": {H, G},
    r"^([tnli]|q|time|.*(quer|tok|seq|pos).*)$": {T},
    r"^([sjmk]|.*key.*)$": {S},
    r"^1$": {1},
}
AXES = r"[\[(]((?:\.\.\.|\w)[^(),\[\]=:]{0,12}(?:,[^(),\[\]=:]{0,13})+)[\])]"
LISTED = re.compile(r"\b(lists?|tuples?|dict\w*|each|per)\b", re.IGNORECASE)
GIVES = re.compile("return|->|→|result|output|gives?\\b", re.IGNORECASE)
BIAS = re.compile(r"^b_?(q|k|v|o|in|qkv|out|proj)+$|bias|_b$", re.IGNORECASE)
PARAMS = re.compile(r"^(param\w*|p|w|weights|sd|state_dict|matrices|model|layer)$", re.IGNORECASE)
INPUTS = re.compile("^(x_?)?(q|k|v|kv|quer(y|ies)|keys?|val(ue)?s?)(_?(in|x|inputs?))?$", re.I)
STANDS_FOR = {"cache": {"past_K", "past_V"}, "W_QKV": set(QKV), "params": {*QKV, "W_O"}}
STANDS_FOR |= {"inputs": {*"QKV"}, "kv": {*"KV"}}
OTHER_FORMS = {"length": "length of a buffer", "positions": "positions of a batch"}
NO_ARRAYS = {"mask", "positions", "axis"}
ARRAY_OF = {"cache": "past_K", "params": "W_Q", "inputs": "Q", "kv": "K"}
CACHE = re.compile(r"^(layer_)?(past|kv|cache|state|mem(ory)?)(_?(kv|cache|key_values?|state))?$")
LENGTH = re.compile(r"pos|idx|index|offset|len|fill|past|^(t|i|n|start|cur|step|ptr|used)$")
ADDED = re.compile("bias|additive", re.IGNORECASE)  # a mask of 0 and -inf
MASKED = "(hid|mask|pad|ignor|block|forbid|drop|exclud)"
HIDES = re.compile(
    rf"^hid|ignore|blocked|forbid|(True\W+|\b1(\.0)?( ?[=:] ?| ))((?!not? |0 )\w+ ){{0,6}}{MASKED}",
    re.IGNORECASE,
)
MENDS = {known.says: known.mend for several in kinds.MISTAKES.values() for known in several}
BOOLEAN = re.compile(r"True|\bbool|\b1(\.0?)?( ?[=:]| means| for| where| if)")
SHOWS = re.compile(rf"(False\W+|(?<!\.)\b0(\.0)?( ?[=:] ?| ))(\w+ ){{0,4}}{MASKED}", re.IGNORECASE)
COLUMNS = re.compile(r"first [\w·*]+ columns|all (of )?(the )?q", re.IGNORECASE)  # of W_QKV
FAR = "large|thousand|far above"  # cases whose scores are large
LENGTHS = re.compile(r"len(s|gths?)?$|^l(ongueurs|(ä|ae)ngen|ongitudes|unghezze)$")
ZEROS = re.compile(
    r"\b(z[eé]ros?|null\w*|ceros?|nan|empty|nothing|sees? no|weights? 0)\b", re.IGNORECASE
)
MOST_ORDERS = 120  # of the arguments, where their names say nothing


class MineError(ValueError):
    """A function that cannot be asked; says what it would have to take."""


class CallConvention(NamedTuple):
    """How a function is called: the axes, and the role or the number of each argument."""

    axes: str
    lay: object
    arguments: dict
    own: bool = False  # it has a causal mask of its own
    sure: bool = True  # its arguments can be no others
    exact: bool = False  # the words name its axes

    def __str__(self):
        given = ", ".join(f"{name} = {role}" for name, role in self.arguments.items())
        return f"taken as {given}; axes {self.axes}"


def _argument_assignments(function, spec):
    """Yield what the arguments may be, {name: role or number}; their names decide if they can."""
    takes, optional = inspect.signature(function).parameters, {"mask", "positions", "W_O"}
    named = _roles_from_names(takes, spec.roles)
    asked = [n for n in takes if named[n] is None and takes[n].default is takes[n].empty]
    known = {name: role for name, role in named.items() if role is not None}
    given = {*known.values()}.union(*map(STANDS_FOR.get, STANDS_FOR.keys() & known.values()))
    missing = [role for role in spec.roles if role not in given]
    needed = [role for role in missing if spec.by_name or role not in optional]
    others = [("X", "W_QKV", "W_O"), ("X", "params")] if {*QKV} < {*missing} else []
    lists = [missing, needed, *([r for r in other if r not in given] for other in others)]
    letters = [n for n in known if len(n) == 1 and not isinstance(known[n], str)]
    several = (asked + [n for n in letters if n.isupper()], asked, asked + letters)
    for names, roles in itertools.product(several, lists):
        if len(names) == len(roles) and not (spec.by_name and names):
            for order in itertools.islice(itertools.permutations(roles), MOST_ORDERS):
                roles_of = known | dict(zip(names, order, strict=True))
                yield {name: roles_of[name] for name in takes if name in roles_of}
            return


def _roles_from_names(takes, roles):
    """Return what each argument is by its name; a scale or a base with a default stays as it is."""
    named = {}
    for name in sorted(takes, key=partial(_is_of_many, takes)):
        role = _role_from_name(re.sub("(?<=[a-z])(?=[A-Z])", "_", name), roles, named.values())
        own = isinstance(role, float) and takes[name].default is not takes[name].empty
        own |= role == "axis" and takes[name].default not in (takes[name].empty, None, -1)
        alone = len(takes) == 1 and role not in (*roles, "inputs", "cache")
        named[name] = None if own or alone else role
    return {name: named[name] for name in takes}


def _is_of_many(takes, name):
    """Whether a name is the plural or the capital of another's: keys beside k, K beside k."""
    several = name[0].lower() in takes and name in ("keys", "values", "vals")
    return several or (name[-1] == "s" and name[:-1] in takes) or name.lower() in {*takes} - {name}


def _role_from_name(name, roles, taken):
    """Return the role that the name of an argument says, or the number; None where it says none."""
    if "past_K" in roles and CACHE.search(name.lower()):
        return "cache"
    if "W_Q" in roles and BIAS.search(name):
        return "bias of 0"
    if "positions" in roles and (table := kinds.table_from_name(name)):
        return table
    for role in ("W_QKV", *roles) if "W_Q" in roles else roles:
        again = role == "x" and re.search("^k|k$", name.lower())  # rotated like the queries
        if (role not in taken or again) and re.search(NAMES[role], name, re.IGNORECASE):
            return role
    if "W_O" in roles and PARAMS.search(name):
        return "params"
    if {"W_O", "past_K"} & {*roles} == {"W_O"} and INPUTS.search(name):
        return "X"
    if "Q" in roles and re.search("^(qkv|inputs?|kv)$", name.lower()):
        return "kv" if name.lower() == "kv" else "inputs"
    if "past_K" not in roles and kinds.MASK.search(name):
        return "mask"
    if "scores" in roles and name in ("axis", "dim"):
        return "axis"
    if "past_K" in roles and LENGTH.search(name):
        return "length"
    number = next((n for p, n in SIZES.items() if re.search(p, name, re.IGNORECASE)), None)
    return D_K if name == "dim" and "X" not in roles else number


def _forms(arguments, text, source):
    """Yield the arguments with each form of a mask, of matrices in dicts, and of a length."""
    forms = {role: [role, other] for role, other in OTHER_FORMS.items()}
    forms |= {role: [role, f"{role} by name"] for role in ("W_QKV", *QKV, "W_O")}
    if re.search(r"\[\W*v(alues?)?\W+k|q\w*\W+v(alues?)?\W+k(eys?)?\b", text):
        forms["inputs"] = ["inputs QVK"]
    forms |= kinds.table_forms(arguments.values())
    choices = []
    for name, role in arguments.items():
        if role == "mask" and LENGTHS.search(name):
            choices.append(["mask lengths"])
        elif role == "mask" and HIDES.search(f"{name} {text}") and not SHOWS.search(text):
            choices.append(["mask turned"])
        elif role == "mask" and (ADDED.search(name) or "additive" in text):
            choices.append(["mask added"])
        elif role == "mask":
            choices.append(["mask", "mask added"][: 2 - bool(BOOLEAN.search(text))])
        elif re.search(rf"\b{name}(\[\W?\w+\W?\])?\.append\(", source):
            choices.append([f"{role} in a list"])
        else:
            choices.append(forms.get(role, [role]))
    for chosen in itertools.product(*choices):
        tables = {role.partition(" ")[2] for role in map(str, chosen) if role[:3] in ("cos", "sin")}
        named = {role[-7:] == "by name" for role in map(str, chosen) if role[:2] == "W_"}
        if len(tables) < 2 and len(named) < 2:
            yield dict(zip(arguments, chosen, strict=True))


class _Named(dict):
    """Arrays under one letter each that are given for any name, number or attribute."""

    def __missing__(self, name):
        if isinstance(name, int):
            return list(self.values())[name]
        word = re.sub(r"^(w(eights?)?_?|b(ias)?_?|c_|cached?_?|past_?|prev_?)+", "", name.lower())
        letter = {"a": "q", "i": "q", "p": "o"}.get(word[:1], word[:1])
        array = dict.get(self, letter, next(iter(self.values())))
        return np.zeros(max(array.shape)) if name == "b" or BIAS.search(name) else array

    def __iter__(self):
        return iter(self.values())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name) if hasattr(np.ndarray, name) else self[name]

    def __array__(self, dtype=None, copy=None):
        if len(self) == 1:
            raise ValueError("a record of one matrix is no array")
        return np.stack(list(self.values()))


def _roles_of(way):
    return {str(role).partition(" ")[0] for role in way.arguments.values()}


def _lacks_needed_argument(way, case):
    """Whether no argument takes what is special in a case."""
    if case.beside is not None:
        return not {"mask", "True"} <= _roles_of(way)
    if "mask" in case.given:
        taken = "mask" in _roles_of(way) or _has_flag(way, case)
        lengths = "mask lengths" in way.arguments.values() and case.label != kinds.PADDED
        return lengths or (not taken and not (way.own and case.causal))
    if way.own:
        return True
    if "axis" in case.given:
        return "axis" not in _roles_of(way) or way.axes == "(d)" or "keys first" in way.axes
    if "cached" in case.label and "T" not in way.axes:  # it takes one token
        return not case.label.startswith("1 ")
    return "from 40" in case.label and not _roles_of(way) & {"positions", *kinds.TABLES}


def _arguments(way, case):
    """Return what a function is given on a case, in its own axes."""
    given, array = {}, partial(_array_of_role, way, case)
    for name, role in way.arguments.items():
        role, _, form = role.partition(" ") if isinstance(role, str) else (role, "", "")
        if role in ("cache", "inputs", "kv", "params"):
            given[name] = _record(role, way, lambda one, form=form: _formed(array(one), form, way))
        elif role == "bias":
            packed = re.search("qkv|in_?p|in_|attn", name.lower())
            given[name] = np.zeros(D_MODEL * (3 if packed else 1))
        elif role in kinds.TABLES:
            given[name] = kinds.TABLES[role][1](form, case.given["positions"])
        elif role in ("length", "axis"):
            given[name] = S if role == "length" else case.given.get(role, -1)
        elif role is True:
            given[name] = case.causal or " new" in case.label
        elif not isinstance(role, str):
            given[name] = role
        elif role in {"W_QKV", *case.given} and not (role == "mask" and _has_flag(way, case)):
            given[name] = _formed(array(role), form, way)
    return copy.deepcopy(given)


def _record(role, way, array):
    """Return the arrays of a cache, of the inputs or of the matrices, under their letters."""
    matrices = ["W_QKV", "W_O"] if "W_QKV" in way.axes else [*QKV, "W_O"]
    inputs = "QVK" if "inputs QVK" in way.arguments.values() else "QKV"
    roles = {"cache": ["past_K", "past_V"], "inputs": inputs, "kv": "KV"}.get(role, matrices)
    return _Named({re.sub("^(W|past)_", "", one)[0].lower(): array(one) for one in roles})


def _array_of_role(way, case, role):
    if role == "W_QKV":
        return way.lay(role, np.stack([case.given[one] for one in QKV]))
    x = case.given[role]
    if role == "mask":
        return _mask_of(way, case, x if case.beside is None else case.beside)
    if role[:4] == "past" and "length of a buffer" in way.arguments.values():
        x = _in_buffer(x)
    return way.lay(role, x)


def _mask_of(way, case, x):
    """Return a mask (T, S), one of the keys of each sequence, or one of the shape of the scores."""
    if x.ndim == 2:
        return x.T if "keys first" in way.axes else x[0] if "one query" in way.axes else x
    if case.label == kinds.PADDED:
        return x[:, 0, 0] if "B" in way.axes else x[0, 0, 0]
    return x.reshape([n for n in x.shape[:2] if n > 1] + [*x.shape[2:]])


def _in_buffer(x):
    """Return rows of a cache in a buffer that has empty rows behind them."""
    return np.concatenate([x, np.zeros_like(x[..., :4, :])], axis=-2)[..., : S + 4, :]


def _formed(x, form, way):
    if form == "in a list":
        return list(x) if "cache (S" in way.axes else [x]
    if form == "by name":
        return _Named(w=x)
    if form == "of a batch":
        return np.repeat(x[None], B, axis=0)
    if form == "lengths":
        return x.sum(axis=-1)
    return np.where(x, 0.0, -np.inf) if form == "added" else ~x if form == "turned" else x


def _has_flag(way, case):
    """Whether a causal flag stands for the mask of a case."""
    return case.causal and True in way.arguments.values() and case.beside is None


def _lacks_mask_only(function, way, case):
    """Whether a function has to be given a mask, and a case has none."""
    if "empty" in case.label and not ZEROS.search(_comments(function)):
        return True
    takes = inspect.signature(function).parameters
    masks = {name for name, role in way.arguments.items() if str(role).startswith("mask")}
    return "mask" not in case.given and any(takes[n].default is takes[n].empty for n in masks)


def _call(function, way, case):
    """Return the array of the right shape that a function gives on a case, or None, and a fault."""
    if _lacks_needed_argument(way, case) or _lacks_mask_only(function, way, case):
        return None, "skip"
    faults = []
    for same in _with_wider_masks(way, case):
        value, fault = _call_once(function, way, same)
        if value is not None:
            return value, fault
        faults.append(fault)
    if re.search(FAR, case.label) or "axis" in case.given:
        return way.lay("right", case.right * np.nan), f"{faults[0]} on {case.label}"
    return None, faults[0]


def _with_wider_masks(way, case):
    """Yield a case, and again with its mask in the shape of the scores."""
    yield case
    mask = case.given.get("mask")
    if mask is not None and mask.ndim == 2 and "mask" in _roles_of(way):
        for heads in ((B, H), (B, 1), (1, H)):
            if (heads[0] == 1 or "B" in way.axes) and (heads[1] == 1 or "H" in way.axes):
                wide = np.broadcast_to(mask, (*heads, *mask.shape))
                yield case._replace(given=case.given | {"mask": wide})


def _call_once(function, way, case):
    try:
        given, before = _arguments(way, case), _arguments(way, case)
        with np.errstate(all="ignore"):
            values, again = (_arrays_in(function(**x)) for x in (given, _arguments(way, case)))
    except Exception as error:  # of a reader's function, which need not take a mask beside a flag
        raised = f"it raised {type(error).__name__}: {error}"
        return None, raised if case.beside is None else "skip"
    wanted = way.lay("right", case.right).shape
    fits = [array for array in values if array.shape == wanted]
    if not values:
        return None, "it returned no array: is its last line a return?"
    if not fits:
        return None, f"it returned {[array.shape for array in values]}, expected {wanted}"
    if not _arrays_equal(values, again):
        return fits[0], "it gives other values when it is called again: is a dropout left on?"
    changed = [name for name in given if not _arrays_equal(given[name], before[name])]
    if forbidden := [name for name in changed if not _may_change(function, way, name)]:
        return fits[0], f"it changes its argument {forbidden[0]}"
    values += [array for name in changed for array in _arrays_in(given[name])]
    return fits[0], _fault_of_cache(values, way, case)


def _may_change(function, way, name):
    """Whether an argument is a buffer, a list or a record, or may change on purpose."""
    buffer = "|past" * ("length of a buffer" in way.arguments.values())
    purpose = r"(?i)(?<!not )(?<!never )\b(in.?place|on purpose|overwrit(es|ten))\b"
    kept = re.match(f"cache|past.*list{buffer}", str(way.arguments[name]))
    return bool(kept or re.search(purpose, function.__doc__ or ""))


def _arrays_equal(one, other):
    one, other = _arrays_in(one), _arrays_in(other)
    same = partial(np.array_equal, equal_nan=True)
    return len(one) == len(other) and all(map(same, one, other))


def _fault_of_cache(values, way, case):
    """Say whether a step that returns more than its outputs lacks the grown cache among it."""
    if [*way.arguments.values()].count("x") == len(values) == 2 and not _arrays_equal(*values):
        return "queries and keys are not rotated alike"
    if "past_K" not in case.given or len(values) < 2:
        return ""
    if "in a list" in str(way):
        return ""
    pairs = (v for v in values if v.ndim and len(v) == 2)  # keys and values
    values = [*values, *itertools.chain.from_iterable(pairs)]
    found = [
        [i for i, v in enumerate(values) if any(_is_close(v, x) for x in grown)]
        for grown in (_grown(letter, way, case) for letter in "KV")
    ]
    for places, name in zip(found, ("keys", "values"), strict=True):
        if not places:
            return f"the {name} that it returns are not the cached ones and then the new ones"
    exchanged = "cache" in way.arguments.values() and found[0][0] > found[1][0]
    return "the keys and values that it returns are exchanged" if exchanged else ""


def _grown(letter, way, case):
    """Return what a cache of keys or of values may be after a step, in the axes of a way."""
    given = case.given
    new = given[letter] if letter in given else given["X"][:, None] @ given[f"W_{letter}"]
    at = S + np.arange(new.shape[-2])
    rotated = [rope(new, at), rope(new, at, half=True)] if letter == "K" else []
    grown = [np.concatenate([given[f"past_{letter}"], x], axis=-2) for x in (new, *rotated)]
    return [way.lay("past", x) for x in (*grown, *map(_in_buffer, grown))]


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
    close = partial(np.allclose, rtol=rtol, atol=rtol * scale, equal_nan=True)
    return value.shape == right.shape and close(value, right)


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
    errors, one_row, wrong = [], None, None
    for asked in _specs(function, kind):
        if wrong and asked.cases[0].label == kinds.PADDED != wrong[2].cases[0].label:
            break
        best = list(_try_calls(function, asked, errors))
        right = _right_calls(best, asked, function)
        named = _named_calls(best, asked, function)
        best.sort(key=lambda found: found[0][0] != "wrong")  # a fault may be that of wrong axes
        if right and all(_is_narrow(way, best) for _, way in right):
            fails = any(shown == asked.cases[0].label for (_, shown), _ in best)
            one_row, right = one_row or (fails and right[0][1]), []
        if right or named:
            more = f", with as many keys as queries: {wrong[0][0]} otherwise" if wrong else ""
            (words, shown), way = (right or named)[0]
            return _print_verdict(kind, (words, shown + more), way, fitting=[w for _, w in right])
        wrong = wrong or next(((*found, asked) for found in best if _is_sure(found[1])), None)
    if one_row:
        return _print_verdict(kind, ("it is right for one row, and fails for several", ""), one_row)
    if wrong:
        return _print_verdict(kind, *wrong[:2], _differences(function, *wrong[1:]))
    return _print_error(function, kind, errors)


def _print_error(function, kind, errors):
    """Print the error of a function that raises it on just the axes that its words name."""
    if re.search(r"\b(lists?|tuples?|dict\w*)\b", _comments(function)):
        errors = [(error, way._replace(exact=False)) for error, way in errors]
    code = re.sub(r'("""|\'\'\')(.|\n)*?\1|#.*', "", _source(function))
    arrays = {*"QKVXx", *QKV, "W_O", "scores", "past_K", "past_V"}
    for error, way in reversed(errors):
        known = way.sure and way.exact and {*map(str, way.arguments.values())} <= arrays
        if known and not re.search(
            r"(?<![\w.])([5-9]|[1-9]\d+)\b|Assertion|^it ret", code + error[:30]
        ):
            return _print_verdict(kind, (error, "the axes that its comments name"), way)
    tried = "; ".join(dict.fromkeys(error for error, _ in errors[:3])) or "no argument has a role"
    raise MineError(f"No order of axes and arguments fits: {tried}.")


def _specs(function, kind):
    """Return what a kind is asked; first the masks of a batch's lengths if the words name them."""
    padded, stated = kinds.PADDED_SPECS.get(kind, ()), _axes_in_words(function)
    masks = [n for n in inspect.signature(function).parameters if kinds.MASK.search(n)]
    first = {(axes[0][0], len(axes[0]) > 2) for n, axes in stated.items() if n not in masks}
    in_front = any("pad" in name.lower() or LENGTHS.search(name) for name in masks) or any(
        len(axes) <= 2 and (axes[0], True) in first for n in masks for axes in stated.get(n, ())
    )
    specs = (*padded, *SPECS[kind]) if in_front else (*SPECS[kind], *padded)
    return (make() for make in specs)


def _rank(asked, found):
    """Right values say most; of scores, axis 0 is mostly that of the queries."""
    words = found[0][0]
    rare = re.search("over the (heads|batch)", words)
    rare = rare if "mask" in asked.roles else "over the queries" not in words
    return words in asked.wrong, "scores" in asked.roles and bool(rare)


def _is_sure(way):
    """Whether the arguments are known by their names, or no order of three arrays is right."""
    given = {*way.arguments.values()}
    return way.sure or given == {*"QKV"} or {"X", *QKV} <= given <= {"X", *QKV, "W_O", H}


def _right_calls(best, asked, function):
    """Return the right ones; none if all are of rare axes, or if axes that are stated fail."""
    right = [way for (words, _), way in best if words == "right"]
    axes = " ".join(way.axes for _, way in best)
    rare = all("X (T, B" in way.axes for way in right) and "X (B, T" in axes
    rare &= not re.search("[\"'][tslnqi]b", _source(function))
    cut = "W (d_model, H·d)" in axes and all(map(_cut_by_number, right))
    role, given = next(iter(asked.roles)), asked.cases[0].given
    stated = _axes_in_words(function) if re.search(r"[\])] or [\[(]", _comments(function)) else {}
    for axes in itertools.chain(*stated.values()):  # each of these has to be right
        fits = [way for _, way in best if way.lay(role, given[role]).ndim == len(axes)]
        rare |= bool(fits) and not any(way in right for way in fits)
    return [] if rare or cut else [found for found in best if found[1] in right]


def _named_calls(best, asked, function):
    """Return those whose mistake is certain, the most telling first."""
    named = [found for found in best if _is_certain_mistake(found, asked, function)]
    if any("W (d_model, H·d)" in way.axes for _, way in best):
        named = [found for found in named if not _cut_by_number(found[1])]
    return sorted(named, key=partial(_rank, asked))


def _is_certain_mistake(found, asked, function):
    """Whether a known mistake was found, or a fault where the values are right.

    A causal mask of its own, or one beside a single shape, may be for equal lengths only.
    """
    (words, shown), way = found
    if words not in {"right", "wrong", *asked.wrong}:
        return bool(shown)
    text = _comments(function)
    square = way.own or "True" in _roles_of(way)
    square |= len(set(re.findall(r"[\[(](\w+, ?\w+[\w, ]*)[\])]", text))) == 1
    square &= words == kinds.FIRST_CORNER and not re.search(
        "last|newest|corner|align|past", text, re.I
    )
    masks = [case.given["mask"] for case in asked.cases if "mask" in case.given]
    unequal = "mask" not in _roles_of(way) and any(mask.shape[1] != T for mask in masks)
    unequal &= words in kinds.DIAGONAL
    unsplit = words == kinds.ONE_HEAD and H not in way.arguments.values()
    return words in asked.wrong and not (square or unequal or unsplit)


def _cut_by_number(way):
    """Whether a layer is given matrices for each head, and the number of heads to cut others."""
    per_head = re.match(r"W \((H, d_model|d_model, H), d\)", way.axes)
    return bool(per_head) and H in way.arguments.values()


def _is_narrow(way, found):
    """Whether a way has one row of scores, and a fuller one that fits as well is not right."""
    if way.axes.startswith("one "):
        return any(other.axes != way.axes for _, other in found)
    if way.axes == "(d)":
        return not re.search("row|vec", " ".join(way.arguments))
    failed = any("H" in other.axes and verdict[0] != "right" for verdict, other in found)
    return way.axes.startswith(("(T, d), cache", "(d), cache")) and failed


def _source(function):
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _comments(function):
    """Return the docstring and the comments of a function."""
    return "\n".join([function.__doc__ or "", *re.findall("#.*", _source(function))])


def _unpacked_shapes(function):
    """Return the shapes that a function unpacks, as comments would name them."""
    line = r"^ *\(?([\w, ]+,[\w, ]+)\)? *= *(\w+)\.shape *(?:#|;|$)"
    source = _source(function)
    found = [(name, axes) for axes, name in re.findall(line, source, re.MULTILINE)]
    again = "|".join(re.findall(r"^ *([\w, ]+?) *=[^=]", source, re.MULTILINE))
    for terms, *names in re.findall(r"einsum\(.(\w+,\w+)->\w+., (\w+), (\w+)\)", source):
        pairs = zip(names, map(", ".join, terms.split(",")), strict=True)
        found += [(name, axes) for name, axes in pairs if not re.search(rf"\b{name}\b", again)]
    return "\n".join(f"{name} ({axes})" for name, axes in found)


def _axes_in_words(function):
    """Return {name of an argument: axes that the docstring gives it, else those of comments}.

    Axes of the result are under "return"; those that follow no name, under "", are of one array.
    """
    takes = inspect.signature(function).parameters
    comments = "\n".join([*re.findall("#.*", _source(function)), _unpacked_shapes(function)])
    return _axes_in(comments, takes) | _axes_in(function.__doc__ or "", takes)


def _axes_in(text, takes):
    known, stated, at, names = "|".join(map(re.escape, takes)), {}, 0, [""]
    text = _bracketed(text, takes)
    for found in re.finditer(AXES, text):
        between, at = text[at : found.start()], found.end()
        runs = list(re.finditer(rf"\b(?:{known})\b(?:(?:[ ,/&]|and)+(?:{known})\b)*", between))
        if GIVES.search(between[runs[-1].end() if runs else 0 :]):
            names = ["return"]
        elif runs:
            names = re.findall(rf"\b(?:{known})\b", runs[-1][0])
        elif not re.fullmatch(r"\W*(\w{1,5}\W*)?", between):
            names = [""]
        axes = [axis.strip("' ") for axis in found[1].split(",") if axis.strip()]
        if LISTED.search(between):
            axes = ["...", *axes]
        for name in names if {"k", "v"} - {*map(str.lower, axes)} else ():  # a pair of arrays
            stated.setdefault(name, []).append(axes)
    return stated


def _bracketed(text, takes):
    """Return a text whose axes without brackets have some: "q: H,T,d", "x[t][d]", "q: n x d"."""

    def named(start):
        return ", ".join(name for name in takes if name.startswith(start[1])) or start[0]

    text = re.sub(r"\b(\w+)\*(?=\W)", named, text.replace("][", ", "))
    bare = r"(?<=: )(\w+(?:(?:,| [x×] )\w+)+|\w(?: \w){1,3})(?=$|[;.,]|  )"
    split = partial(re.sub, " [x×] |,| ", ", ")
    return re.sub(bare, lambda found: f"({split(found[1])})", text, flags=re.MULTILINE)


def _agreeing_layouts(stated, asked, arguments):
    """Return the layouts that agree best with the axes that the words state, and how well."""
    roles = {name: str(role).partition(" ")[0] for name, role in arguments.items()}
    roles = {name: ARRAY_OF.get(role, role) for name, role in roles.items()} | {"return": "right"}
    first, arrays = next(iter(asked.roles)), {"right", "W_QKV", *asked.cases[0].given} - NO_ARRAYS
    if not any(roles.get(name) == first for name in stated):
        roles[""] = first
    alike = {n: axes for n, axes in stated.items() if len({*map(len, axes)}) == 1}
    known = {roles[n]: axes for n, axes in alike.items() if roles.get(n) in arrays}
    for some, strict in itertools.product((known, {first: known.get(first)}), (True, False)):
        several = {role: axes for role, axes in some.items() if axes}
        fits = [way for way in asked.layouts if _agrees(several, asked, way, strict)]
        if several and fits:
            return fits, strict and some is known
    return [way for way in asked.layouts if not re.search("keys first|queries", way)], False


def _agrees(several, asked, way, strict):
    """Whether one of the shapes that the words state for each array is that of a layout."""
    first, case = several.get(next(iter(asked.roles))), asked.cases[0]
    if "T·d" in way or (re.search("keys first|queries", way) and not first):
        return False
    if "keys first" in way and not re.search("key|^[sjk]$", first[0][-2].lower()):
        return False
    given = case.given | {"right": case.right}
    if "W_QKV" in several or "W_QKV" in way:
        given |= dict.fromkeys(("W_QKV", *QKV), np.stack([given[one] for one in QKV]))
    packed = {*QKV} if "W_QKV" in way else ()
    layouts = {r: asked.layouts[way]("W_QKV" if r in packed else r, given[r]) for r in several}
    if "queries" in way:
        return _names_groups(first[0], layouts["Q"].shape)
    return all(
        any(_axes_agree(axes, layouts[role].shape, strict, role) for axes in stated)
        for role, stated in several.items()
    )


def _names_groups(words, shape):
    """Whether words name the axes of KV heads and of tokens where a shape has them."""
    places = {G: "^g$|gr|kv|^k$", T: "^[tnlsiq]$|time|tok|seq|len|pos|quer"}
    return len(words) == len(shape) and all(
        re.search(pattern, words[shape.index(size)].lower()) for size, pattern in places.items()
    )


def _axes_agree(words, shape, strict, role):
    """Whether the names of axes are as many as those of a shape, and mean its sizes."""
    if words[0] == "...":
        words, shape = words[1:], shape[1 - len(words) :]
    if not strict or len(words) != len(shape):
        return len(words) == len(shape)
    if len(words) == 4 and words[2:] == ["N", "H"]:  # JAX counts N heads of the width H
        words = [*words[:2], "heads", ""]
    words = ["" if word == "N" and {*words} & {*"TLS"} else word for word in words]  # a batch
    found = ([n for p, n in AXIS_SIZES.items() if re.search(p, word.lower())] for word in words)
    tokens = {1, T, S, S + 4} if role != "scores" else set()  # keys may be named like queries
    return all(
        size in known[0] or (known[0] <= tokens and size in tokens)
        for known, size in zip(found, shape, strict=True)
        if known
    )


def _try_calls(function, asked, errors):
    """Yield (verdict, way) of each way of calling that fits; the fullest axes decide."""
    ways = _ways(function, asked)
    for axes, group in itertools.groupby(ways, key=lambda way: way.axes):
        found = ""
        for way in group:
            added = "mask added" in way.arguments.values()
            if added and found not in ("", "wrong", kinds.ADDED):
                continue
            answers = [_call(function, way, case) for case in asked.cases]
            heard = [i for i, (_, fault) in enumerate(answers) if fault != "skip"]
            errors += [(answers[i][1], way) for i in heard if answers[i][0] is None]
            is_step = asked.cases[0].label[0] == "1"
            if heard and all(answers[i][0] is not None for i in (heard[:1] if is_step else heard)):
                judge = _verdict_of_step if is_step else _verdict
                found, shown = judge(function, asked, way, answers, heard)
                yield (found, shown), way
        if found and axes.startswith("(T, d)"):  # one row alone would hide a wrong axis
            return


def _ways(function, asked):
    """Yield the ways in which a function may be called, layout by layout."""
    text, source, stated = _comments(function), _source(function), _axes_in_words(function)
    orders = list(_argument_assignments(function, asked))
    fits = [_agreeing_layouts(stated, asked, arguments) for arguments in orders]
    by_name = _roles_from_names(inspect.signature(function).parameters, asked.roles)
    guessed = {r for order in orders[:1] for n, r in order.items() if by_name[n] != r}
    sure = len(orders) == 1 and not guessed & {"mask", "positions"}
    for axes, lay in asked.layouts.items():
        if "H·3·d" in axes and COLUMNS.search(text):
            continue
        forms = [
            (form, exact)
            for arguments, (layouts, exact) in zip(orders, fits, strict=True)
            if axes in layouts
            for form in _forms(arguments, text, source)
        ]
        for (form, exact), own in itertools.product(forms, (False, True)):
            way = CallConvention(axes, lay, form, own, sure, exact)
            if not _is_odd(way, asked.cases[0].given):
                yield way


def _is_odd(way, given):
    """Whether a way gives no number that its axes need, matrices in another form, or two masks."""
    roles, axes = _roles_of(way), way.axes
    is_flat = "H·d)" in axes[:12] and H not in way.arguments.values()
    is_flat |= "T·d" in axes and T not in way.arguments.values()
    heads = len(given["W_Q"]) > 1 if "cache" in axes and "W_O" in given else False
    is_flat |= heads and not re.search(r"\bH[,)]", axes) and H not in way.arguments.values()
    other = "params" not in roles and ("W_QKV" in axes) != ("W_QKV" in roles)
    other |= "one token" in axes and "positions" not in roles
    return is_flat or other or bool(way.own and roles & {"mask", "True"})


def _verdict_of_step(function, asked, way, answers, heard):
    """Judge a step by several new tokens only if it takes them, and hides later ones from each."""
    words, shown = "wrong", ""
    if all(answers[i][0] is not None for i in heard):
        words, shown = _verdict(function, asked, way, answers, heard)
    told = f"{function.__name__} {_comments(function)}"
    several = re.search("chunk|several|prefill|new tokens", told, re.I)
    if not several and words not in {"right", *asked.wrong} - {kinds.SEVERAL}:
        one = [i for i in heard if asked.cases[i].label[:2] == "1 "]
        words, shown = _verdict(function, asked, way, answers, one)
        shown += ", and not several" * (words == "right" and heard != one)
    return words, shown


def _verdict(function, asked, way, answers, heard):
    """Return the words, and what is seen."""
    rights = [[c.right for c in asked.cases]]
    rights += [[f(**c.given) for c in asked.cases] for f in asked.rights[1:]]
    fits = [
        [_is_close(answers[i][0], way.lay("right", right[i])) for i in heard] for right in rights
    ]
    fault = next((answers[i][1] for i in heard if answers[i][1]), "")
    labels = ["a causal mask of its own"] if way.own else [asked.cases[i].label for i in heard]
    if any(map(all, fits)):
        return fault or "right", ", ".join(labels)
    names, shown = _names_of(asked, way, answers, heard, fits[0])
    if names == [kinds.NO_OUTPUT] and not _roles_of(way) & {"W_O", "params"}:
        return "right", f"{shown}, without an output projection"
    if names == [kinds.TILED] and re.search(r"\w % \w|modulo", function.__doc__ or ""):
        return "right", f"{', '.join(labels)}, with KV heads tiled, as its comments say"
    if len(names) == 1 and not (fault and names[0] in kinds.IN_EMPTY_ROWS):
        return names[0], shown
    return fault or "wrong", "" if fault else shown


def _names_of(asked, way, answers, heard, fits):
    """Return the words of the mistakes that give the answers, and the first case that differs."""
    shown = asked.cases[heard[fits.index(False)]].label
    names = _mistakes_that_give(answers, asked, way, heard)
    far = [i for i in heard if re.search(FAR, asked.cases[i].label)]
    near = [i for i in heard if i not in far]
    if not names and re.search(FAR, shown) and fits[0]:
        return [kinds.OVERFLOW] * any(not np.isfinite(answers[i][0]).all() for i in far), shown
    if not names:  # a missing shift shows on large scores, beside the mistake
        names = _mistakes_that_give(answers, asked, way, near)
        names = [n for n in names if all(_is_lost((n, asked, way), answers, i) for i in far)]
        shown += ", and more on large scores" * (len(names) == 1)
    return names, shown


def _is_lost(named, answers, index):
    """Whether large scores leave no number of a function's or a mistake's, or give the same."""
    words, asked, way = named
    with np.errstate(all="ignore"):
        value = way.lay("right", asked.wrong[words](**asked.cases[index].given))
    both = np.isfinite([answers[index][0], value]).all()
    return not both or _is_close(answers[index][0], value)


def _mistakes_that_give(answers, asked, way, heard):
    """Return the words of the mistakes that give the values of these cases."""
    return [
        words
        for words, wrong in asked.wrong.items()
        if _mistake_gives_answers((words, wrong), asked, way, answers, heard)
        and not (words == kinds.EXCHANGED and "mask added" in way.arguments.values())
        and not (way.own and words == kinds.NOT_USED and "mask" not in asked.cases[0].given)
    ]


def _mistake_gives_answers(mistake, asked, way, answers, heard):
    """Whether a mistake gives the values of every case; rows that see nothing do not count."""
    (words, wrong), is_right, is_told = mistake, True, False
    for index in heard:
        case = asked.cases[index]
        try:
            with np.errstate(all="ignore"):
                value = wrong(**case.given)
        except (ValueError, IndexError, TypeError):  # these arrays do not fit the mistake
            return False
        if np.shape(value) != case.right.shape:
            return False
        rows = np.broadcast_to(_rows_that_count(words, case, value), value.shape)
        is_right &= _is_close(value[rows], case.right[rows])
        rows, value = way.lay("right", rows), way.lay("right", value)
        if not _is_close(answers[index][0][rows], value[rows]):
            return False
        is_told |= np.isfinite(value[rows]).any()
    return is_told and not is_right


def _rows_that_count(words, case, value):
    """Return which rows see and hide something; all where the mistake is one of any row."""
    mask = case.given.get("mask")
    if mask is None or case.label == kinds.PADDED or words in kinds.IN_ANY_ROW:
        return True
    return (mask.any(axis=-1) & ~mask.all(axis=-1))[:, None] & value.any(axis=-1, keepdims=True)


def _differences(function, way, asked):
    """Return sentences: the first row that differs, and what kind of difference there is."""
    seen = []
    for case in asked.cases:
        own = partial(_value_with, case, lambda case: _call(function, way, case)[0])
        right = partial(_value_with, case, lambda case: way.lay("right", _right_of(asked, case)))
        value = own()
        if value is not None and not _is_close(value, right()):
            taken = _roles_of(way) & case.given.keys() if case.beside is None else ()
            again = calls.Case(case.label, {}, {role: case.given[role] for role in taken})
            seen.append(WrongValue(again, value, right(), "", own, right))
    rows = [f"There {difference_text(one.value, one.right)}" for one in seen[:1]]
    claim = explain_difference(seen)
    return rows if claim is None else [*rows, claim.told_of(len(seen))]


def _value_with(case, value_of, **given):
    """Return what a function of a case gives with some other inputs."""
    return value_of(case._replace(given=case.given | given))


def _right_of(asked, case):
    return asked.rights[0](**case.given)


def _print_verdict(kind, verdict, way, differences=(), fitting=()):
    words, shown = verdict
    axes, scope = list(dict.fromkeys(one.axes for one in fitting)), []
    verdict = [f"✗ {kind}: {words}", *[f"Seen on: {shown}"] * bool(shown)]
    if words == "wrong":
        verdict = [f"✗ {kind}: its values are others on this input: {shown}", *differences]
    elif words == "right":
        verdict = [f"✓ {kind}: right; asked: {shown}"]
        scope = [f"It holds for these axes too: {' · '.join(axes[1:])}"] * (len(axes) > 1)
        scope += ["It was not right with a batch axis"] * all("(B" not in one for one in axes)
    elif mend := MENDS.get(words.partition(" (pairs ")[0]):
        verdict.append(mend)
    print_text(lay_out(*verdict, f"T{str(way)[1:]}", *scope))
    return words


def check_text(kind, code, name=None):
    """Check a function that code defines, the last one if none is named; return the words.

    Raises
    ------
    MineError : code that is no Python, that raises an error, or that does not define the function
    """
    variables = calls.variables_of(code, MineError)
    linecache.cache["<your code>"] = len(code), None, code.splitlines(keepends=True), "<your code>"
    functions = {n: f for n, f in variables.items() if inspect.isfunction(f)}
    if not functions:
        raise MineError("There is no function in the code. Paste one that begins with def.")
    if name and name not in functions:
        raise MineError(f"There is no function {name!r}. Give one of {', '.join(functions)}.")
    return check(functions[name or list(functions)[-1]], kind)
