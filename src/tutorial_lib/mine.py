"""Check mine: is a NumPy function of any names, arguments and axes what it should be?

    mine.check(attend, "attention")

The function is called with arrays in every order of axes and arguments that fits, and compared with
the library's. A wrong one is named if exactly one mistake gives its values.
"""

import copy
import inspect
import itertools
import re
from functools import partial
from typing import NamedTuple

import numpy as np

from tutorial_lib.attention import attention_weights, causal_mask, softmax
from tutorial_lib.practice.account import lay_out, print_text
from tutorial_lib.practice.inputs import normal
from tutorial_lib.variants.positions import rope_frequencies, rotate

B, H, G, T, S, D_K, D_V, D_MODEL = 2, 6, 2, 5, 7, 8, 11, 48  # d_model is H·d_k
SIZES = {  # name of an argument that wants a number -> the number
    r"causal|is_c": True,
    r"(n|num)_?(kv|g|key)|^g$|group|kv_?h": G,
    r"head_?dim|d_?k$|d_?head|^d$|dk$": D_K,
    r"head|^h$|^n?h$": H,
    r"d_?model|embed|dim": D_MODEL,
}
ORDINARY = {r"causal|is_c": False}  # outside of the case that asks for it
MASK = re.compile("mask|allow|visib|keep|^m$", re.IGNORECASE)
CACHE = re.compile(r"^(layer_)?(past|kv|cache|state|mem(ory)?)(_?(kv|cache|key_values?|state))?$")
MOST_ORDERS = 120  # of the arguments, where their names say nothing
LETTERS = {"Q": "q", "K": "k", "V": "v"}


class MineError(ValueError):
    """A function that cannot be asked; says what it would have to take."""


class Case(NamedTuple):
    """Arrays by role in the library's axes, options by role, and the right value."""

    label: str
    given: dict
    right: np.ndarray
    causal: bool = False


class Kind(NamedTuple):
    """What a function should be.

    Parameters
    ----------
    roles : role -> pattern of the names that people give it, in their usual order
    layouts : words -> function of a role and an array of the library's axes
    cases : tuple of Case
    rights : functions of a case's arrays that are right, too
    wrong : words of a mistake -> function of a case's arrays
    """

    roles: dict
    layouts: dict
    cases: tuple
    wrong: dict
    rights: tuple = ()


def _weigh(scores, mask):
    return attention_weights(scores, mask=mask)


def attend(Q, K, V, mask=None, *, scale=None, weigh=_weigh, share=(None, None)):
    """Attention in one line, of which every part can be exchanged for a wrong one."""
    K, V = (x if change is None else change(x) for x, change in zip((K, V), share, strict=True))
    scores = Q @ np.swapaxes(K, -1, -2) * (Q.shape[-1] ** -0.5 if scale is None else scale)
    return weigh(scores, mask) @ V


def layer(X, W_Q, W_K, W_V, W_O, mask=None, *, split=None, merge=None, **parts):
    """The layer, of which every part can be exchanged for a wrong one."""
    projected = [X[:, None] @ W for W in (W_Q, W_K, W_V)]
    heads = attend(*(projected if split is None else map(split, projected)), mask, **parts)
    return (merge or _side_by_side)(heads) @ W_O


def step(Q, K, V, past_K, past_V, *, mask=causal_mask, **parts):
    """New tokens on cached keys and values."""
    K, V = np.concatenate([past_K, K], axis=-2), np.concatenate([past_V, V], axis=-2)
    return attend(Q, K, V, mask(Q.shape[-2], K.shape[-2]), **parts)


def rope(x, positions, *, half=False, sign=1, base=10_000.0, frequencies=None):
    """Rotary positions, in either layout of the pairs."""
    if frequencies is None:
        frequencies = rope_frequencies(x.shape[-1], base=base)
    return rotate(x, positions, sign * frequencies, half=half)


def _side_by_side(heads):
    return np.swapaxes(heads, -3, -2).reshape(len(heads), heads.shape[-2], -1)


def _repeated(x):
    return np.repeat(x, H // G, axis=-3)


def _hidden(scores, mask, fill):
    return scores if mask is None else np.where(mask, scores, fill)


def _unstable(scores):
    with np.errstate(all="ignore"):
        return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def _summing_more(scores, mask):
    exps = np.exp(_hidden(scores, mask, -np.inf) - scores.max(axis=-1, keepdims=True))
    return exps / (1 + exps.sum(axis=-1, keepdims=True))


WEIGHINGS = {  # each takes the scores and the mask
    "the softmax runs over the queries and not over the keys": lambda scores, mask: softmax(
        _hidden(scores, mask, -1e9), axis=-2
    ),
    "the softmax runs over the heads": lambda scores, mask: softmax(
        _hidden(scores, mask, -1e9), axis=-3
    ),
    "the whole array sums to 1, not each row": lambda scores, mask: softmax(
        _hidden(scores, mask, -1e9).reshape(1, -1)
    ).reshape(scores.shape),
    "the mask comes after the softmax, so rows no longer sum to 1": lambda scores, mask: (
        softmax(scores) * (1 if mask is None else mask)
    ),
    "hidden scores become 0, so hidden keys still get weight": lambda scores, mask: softmax(
        _hidden(scores, mask, 0)
    ),
    "the mask is added to the scores as 0 and 1": lambda scores, mask: softmax(
        scores + (0 if mask is None else mask)
    ),
    "the mask is not used": lambda scores, mask: softmax(scores),
    "True and False of the mask are exchanged": lambda scores, mask: softmax(
        scores if mask is None else np.where(mask, -1e9, scores)
    ),
    "the softmax is missing": lambda scores, mask: _hidden(scores, mask, 0),
    "one is added to the sum of each row": _summing_more,
    "it returns the logarithm of the weights": lambda scores, mask: np.log(softmax(scores)),
}
OVERFLOW = {
    "large scores overflow: subtract each row's largest score first": lambda scores, mask: (
        _unstable(_hidden(scores, mask, -np.inf))
    ),
}
EMPTY_ROWS = {
    "a row in which everything is hidden gets uniform weights": lambda scores, mask: softmax(
        _hidden(scores, mask, -1e9)
    ),
    "a row in which everything is hidden becomes NaN": lambda scores, mask: np.where(
        (True if mask is None else mask.any(axis=-1, keepdims=True)),
        softmax(_hidden(scores, mask, -1e9)),
        np.nan,
    ),
}
SCALES = {
    "the scores are not divided by the square root of d_k": 1.0,
    "the scores are divided by d_k and not by its square root": 1 / D_K,
    "the scores are multiplied by the square root of d_k": D_K**0.5,
    "the scores are divided by the square root of d_model, not of d_k": D_MODEL**-0.5,
    "the scores are divided by the square root of the number of heads": H**-0.5,
    "the scores are divided by the square root of the number of keys": S**-0.5,
}


def _wrong(function, **fixed):
    """Return the forms of a function whose attention has one wrong part."""
    found = {words: partial(function, scale=scale) for words, scale in SCALES.items()}
    found |= {words: partial(function, weigh=weigh) for words, weigh in WEIGHINGS.items()}
    found["the scores are scaled after the softmax"] = partial(
        function, scale=1.0, weigh=lambda scores, mask: _weigh(scores, mask) * D_K**-0.5
    )
    found["the keys of the first head serve all heads"] = partial(
        function, share=(lambda x: x[..., :1, :, :], fixed.get("value"))
    )
    return found


def _shifted(k):
    """Return a weighing whose causal mask is off by k."""
    return lambda scores, mask: _weigh(
        scores,
        mask if mask is None else np.tri(*mask.shape, k=mask.shape[1] - mask.shape[0] + k) > 0,
    )


SHIFTED = {
    "a token sees the next one, too": _shifted(1),
    "a token does not see itself": _shifted(-1),
    "the causal mask is the wrong way round": lambda scores, mask: _weigh(
        scores, mask if mask is None else ~mask | np.eye(*mask.shape, dtype=bool)
    ),
}


def _exchanged(function, one, other):
    """Return a function in which two of its arguments are taken for each other."""
    return lambda **given: function(**given | {one: given[other], other: given[one]})


def _cases(right, given, **masks):
    """Return cases without a mask and with each."""
    found = [Case("without a mask", given, right(**given))] if "no" not in masks else []
    for label, mask in masks.items():
        if label != "no":
            more = given | {"mask": mask}
            found.append(Case(f"a {label} mask", more, right(**more), label == "causal"))
    return tuple(found)


def _masks(n_keys):
    scattered = np.random.default_rng(4).random((T, n_keys)) < 0.6
    return {"causal": causal_mask(T, n_keys), "scattered": scattered | (np.arange(n_keys) == 1)}


def _qkv(n_kv_heads, n_keys):
    Q, K = 2 * normal(1, B, H, T, D_K), normal(2, B, n_kv_heads, n_keys, D_K)
    return {"Q": Q, "K": K, "V": normal(3, B, n_kv_heads, n_keys, D_V)}


HEADS = {
    "(B, H, T, d)": lambda role, x: x,
    "(B, T, H, d)": lambda role, x: np.swapaxes(x, -3, -2) if x.ndim == 4 else x,
    "(H, T, d)": lambda role, x: x[0] if x.ndim == 4 else x,
    "(T, H, d)": lambda role, x: np.swapaxes(x[0], -3, -2) if x.ndim == 4 else x,
}
ROWS = HEADS | {
    "(T, d)": lambda role, x: x[0, 0] if x.ndim == 4 else x,
    "(B, T, d)": lambda role, x: x[:, 0] if x.ndim == 4 else x,
}
SCORES = ROWS | {"(S)": lambda role, x: x[0, 0, 0] if x.ndim == 4 else x}


def _packed(role, x):
    split = role in ("W_Q", "W_K", "W_V")
    return np.swapaxes(x, 0, 1).reshape(D_MODEL, -1) if split else x


def _out_per_head(role, x):
    return x.reshape(H, D_K, D_MODEL) if role == "W_O" else x


WEIGHTS = {
    "W (d_model, H·d_k)": _packed,
    "W (H·d_k, d_model)": lambda role, x: _packed(role, x).T if role[0] == "W" else x,
    "W (H, d_model, d_k)": lambda role, x: x,
    "W (d_model, H, d_k)": lambda role, x: _out_per_head(
        role, np.swapaxes(x, 0, 1) if x.ndim == 3 and role[0] == "W" else x
    ),
    "W (H, d_model, d_k), W_O (H, d_k, d_model)": _out_per_head,
}


def _one_text(lay):
    return lambda role, x: lay(role, x[0] if role in ("X", "right") else x)


LAYERS = WEIGHTS | {f"{words}, one text": _one_text(lay) for words, lay in WEIGHTS.items()}
NAMES = {
    "Q": r"^(x?q|quer(y|ies)|qs?|q_new|new_q.*|q_t|q_.*)$",
    "K": r"^(x?k|keys?|ks?|k_new|new_k.*|k_t|k_step)$",
    "V": r"^(x?v|val(ue)?s?|vs?|v_new|new_v.*|v_t|v_step)$",
    "past_K": r"(past|cach|prev|old|mem).*k|k.*(cach|past|prev|old|mem)",
    "past_V": r"(past|cach|prev|old|mem).*v|v.*(cach|past|prev|old|mem)",
    "X": r"^(x|inputs?|hidden(_states)?|tokens?|emb.*|seq)$",
    "W_Q": r"^w_?q|^q_?(w|proj|mat|kernel)",
    "W_K": r"^w_?k|^k_?(w|proj|mat|kernel)",
    "W_V": r"^w_?v|^v_?(w|proj|mat|kernel)",
    "W_O": r"^w_?o|^o_?(w|proj|mat|kernel)|^out|^proj$",
    "scores": r"score|logit|^(s|x|z|a|e|sim.*|att.*)$",
    "mask": MASK.pattern,
    "x": r"^(x|q|k|vec.*|t|tensor|h|u|a|states?)$",
    "positions": r"pos|^(m|p|t|idx|ids|indices|steps|where)$",
}


def _roles(*names):
    return {name: re.compile(NAMES[name], re.IGNORECASE) for name in names}


def _attention_kind(equal=False):
    wrong = _wrong(attend) | {
        "keys and values are exchanged": _exchanged(attend, "K", "V"),
        "queries and keys are exchanged": _exchanged(attend, "Q", "K"),
        "the scores compare the keys with themselves": lambda Q, K, V, mask=None: attend(
            K[..., :T, :], K, V, mask
        ),
        "the weights are applied to the keys and not to the values": (
            lambda Q, K, V, mask=None: attend(Q, K, K, mask)
        ),
        "the weights are used transposed": lambda Q, K, V, mask=None: attend(
            Q, K, V, mask, weigh=lambda scores, mask: np.swapaxes(_weigh(scores, mask), -1, -2)
        ),
        "the keys are reshaped where they should be transposed": lambda Q, K, V, mask=None: attend(
            Q, np.swapaxes(K.reshape(*K.shape[:-2], K.shape[-1], -1), -1, -2), V, mask
        ),
    }
    return Kind(_roles("Q", "K", "V"), ROWS, _sized_cases(attend, H, equal), wrong)


def _sized_cases(right, n_kv_heads, equal):
    given = _qkv(n_kv_heads, T if equal else S)
    if equal:
        given["V"] = given["V"][..., :D_K]
    return _cases(right, given, **_masks(T if equal else S))


def _grouped_kind(equal=False):
    right = partial(attend, share=(_repeated, _repeated))
    wrong = _wrong(right, value=_repeated) | {
        "KV heads are tiled, 0 1 0 1, where they should be repeated, 0 0 1 1": partial(
            attend, share=(_tiled, _tiled)
        ),
        "keys are repeated, 0 0 1 1, but values are tiled, 0 1 0 1": partial(
            attend, share=(_repeated, _tiled)
        ),
        "all heads use the first KV head": partial(
            attend, share=(lambda x: x[..., :1, :, :], lambda x: x[..., :1, :, :])
        ),
        "the query heads of a group are averaged": lambda Q, K, V, mask=None: right(
            _repeated(Q.reshape(B, G, H // G, *Q.shape[2:]).mean(axis=2)), K, V, mask
        ),
    }
    return Kind(_roles("Q", "K", "V"), HEADS, _sized_cases(right, G, equal), wrong)


def _tiled(x):
    return np.concatenate([x] * (H // G), axis=-3)


OF_SOFTMAX = [words for words in WEIGHINGS if "mask" not in words and "hidden" not in words]


def _softmax_kind():
    ordinary = 3 * normal(5, B, H, T, S)
    far = ordinary + 1e4 * (np.arange(S) == 2)
    apart = ordinary + 1e4 * (np.arange(T) == 2)[:, None]
    given = {"ordinary scores": ordinary, "scores of ten thousand": far, "a row far above": apart}
    cases = tuple(Case(label, {"scores": s}, softmax(s)) for label, s in given.items())
    weighings = {words: WEIGHINGS[words] for words in OF_SOFTMAX} | OVERFLOW
    wrong = {words: partial(weigh, mask=None) for words, weigh in weighings.items()}
    return Kind(_roles("scores"), SCORES, cases, wrong)


def _weights_kind():
    causal = causal_mask(T, S)
    masks = {"causal": causal, "partly empty": causal & (np.arange(T) != 2)[:, None], "no": None}
    scores = 3 * normal(6, B, H, T, S)
    far = scores + 1e4 * (np.arange(S) == S - 1) - 1e4 * (np.arange(T) == 3)[:, None]
    cases = _cases(_weigh, {"scores": scores}, **masks)
    cases += (Case("large scores", {"scores": far, "mask": causal}, _weigh(far, causal)),)
    return Kind(_roles("scores", "mask"), ROWS, cases, WEIGHINGS | OVERFLOW | EMPTY_ROWS)


def _layer_kind():
    given = {"X": normal(9, B, T, D_MODEL)}
    given |= {n: normal(10 + i, H, D_MODEL, D_K) / 7 for i, n in enumerate(("W_Q", "W_K", "W_V"))}
    given["W_O"] = normal(13, H * D_K, D_MODEL) / 7
    wrong = _wrong(layer) | {words: partial(layer, weigh=weigh) for words, weigh in SHIFTED.items()}
    wrong |= {
        "heads are laid side by side without bringing the token axis forward": partial(
            layer, merge=lambda heads: heads.reshape(len(heads), T, -1)
        ),
        "the entries of the heads take turns where head 0 comes first": partial(
            layer, merge=lambda heads: heads.transpose(0, 2, 3, 1).reshape(len(heads), T, -1)
        ),
        "the output projection W_O is missing": lambda W_O, **rest: layer(
            W_O=np.eye(H * D_K), **rest
        ),
        "W_O is used transposed": lambda W_O, **rest: layer(W_O=W_O.T, **rest),
        "the values are projected with W_K": lambda W_K, W_V, **rest: layer(
            W_K=W_K, W_V=W_K, **rest
        ),
        "queries, keys and values are cut into heads without swapping axes": partial(
            layer, split=lambda x: np.swapaxes(x, 1, 2).reshape(x.shape)
        ),
    }
    cases = _cases(layer, given, causal=causal_mask(T))
    return Kind(_roles("X", "W_Q", "W_K", "W_V", "W_O"), LAYERS, cases, wrong)


def _rotary_kind():
    x, late = normal(15, B, H, T, D_K), 40 + np.arange(T)
    given = {"positions from 0": np.arange(T), "positions from 40": late}
    cases = tuple(Case(n, {"x": x, "positions": p}, rope(x, p)) for n, p in given.items())
    n = np.arange(0, D_K, 2) / D_K
    frequencies = {
        "the frequencies grow from pair to pair": 10_000.0**n,
        "all pairs have the same frequency": np.ones(len(n)),
        "the exponent of the frequencies lacks its 2": 10_000.0 ** (-n / 2),
        "the exponent of the frequencies has its 2 twice": 10_000.0 ** (-2 * n),
    }
    wrong = {}
    for half in (False, True):
        turn = partial(rope, half=half)
        layout = " (pairs in halves)" if half else " (pairs of neighbours)"
        for words, own in frequencies.items():
            wrong[words + layout] = partial(turn, frequencies=own)
        wrong["it rotates the other way" + layout] = partial(turn, sign=-1)
        for words, change in POSITIONS.items():
            wrong[words + layout] = partial(_moved, turn, change)
        for words, parts in ROTATIONS.items():
            wrong[words + layout] = partial(_rotated, half=half, parts=parts)
    wrong |= {
        "the angles are laid out in halves and the pairs are neighbours": partial(
            _mixed, half=False
        ),
        "the angles are laid out for neighbours and the pairs are halves": partial(
            _mixed, half=True
        ),
    }
    return Kind(_roles("x", "positions"), ROWS, cases, wrong, (rope, partial(rope, half=True)))


POSITIONS = {
    "positions begin at 1": lambda positions: positions + 1,
    "the positions given are not used": lambda positions: np.arange(len(positions)),
}
ROTATIONS = {  # of a pair a, b by an angle with cosine c and sine s
    "sine and cosine are exchanged": lambda a, b, c, s: (a * s - b * c, a * c + b * s),
    "the minus sign of the rotation is missing": lambda a, b, c, s: (a * c + b * s, a * s + b * c),
    "the second entry of a pair is computed from the new first one": lambda a, b, c, s: (
        a * c - b * s,
        (a * c - b * s) * s + b * c,
    ),
}


def _moved(turn, change, x, positions):
    return turn(x, change(positions))


def _rotated(x, positions, *, half, parts):
    angles = positions[:, None] * rope_frequencies(x.shape[-1])
    n, turned = x.shape[-1] // 2, x.copy()
    a, b = (np.s_[..., :n], np.s_[..., n:]) if half else (np.s_[..., ::2], np.s_[..., 1::2])
    turned[a], turned[b] = parts(x[a], x[b], np.cos(angles), np.sin(angles))
    return turned


def _mixed(x, positions, *, half):
    angles = positions[:, None] * rope_frequencies(x.shape[-1])
    n = x.shape[-1] // 2
    if half:
        angles, turned = (
            np.repeat(angles, 2, axis=-1),
            np.concatenate([-x[..., n:], x[..., :n]], -1),
        )
    else:
        angles = np.tile(angles, 2)
        turned = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * np.cos(angles) + turned * np.sin(angles)


def _causal(k, T, S):
    return np.tri(T, S, k=S - T + k, dtype=bool)


def _cache_kind():
    cases = []
    for new in (1, 3):
        given = {"Q": normal(20, B, H, new, D_K), "K": normal(21, B, H, new, D_K)}
        given |= {"V": normal(22, B, H, new, D_V), "past_K": normal(23, B, H, S, D_K)}
        given["past_V"] = normal(24, B, H, S, D_V)
        cases.append(Case(f"{new} new on {S} cached", given, step(**given)))
    wrong = _wrong(step) | {
        "the mask is not used": lambda **given: np.zeros(0),  # said below
        "the causal mask begins at the first key, not behind the cached ones": partial(
            step, mask=lambda T, S: np.tri(T, S, dtype=bool)
        ),
        "the new tokens see each other in both directions": partial(
            step, mask=lambda T, S: np.ones((T, S), bool)
        ),
        "a new token sees the one after it, too": partial(step, mask=partial(_causal, 1)),
        "a new token does not see itself": partial(step, mask=partial(_causal, -1)),
        "the cached keys and values are not used": lambda Q, K, V, past_K, past_V: attend(
            Q, K, V, causal_mask(Q.shape[-2])
        ),
        "new keys and values go before the cached ones": lambda Q, K, V, past_K, past_V: step(
            Q, past_K, past_V, K, V
        ),
    }
    return Kind(_roles("Q", "K", "V", "past_K", "past_V"), ROWS, tuple(cases), wrong)


KINDS = {
    "softmax": _softmax_kind,
    "weights": _weights_kind,
    "attention": _attention_kind,
    "layer": _layer_kind,
    "rotary": _rotary_kind,
    "cache": _cache_kind,
    "grouped": _grouped_kind,
}


class Way(NamedTuple):
    """How a function is called: the axes, and the role or the number of each argument."""

    axes: str
    lay: object
    arguments: dict

    def __str__(self):
        given = ", ".join(f"{name} = {role}" for name, role in self.arguments.items())
        return f"taken as {given}; axes {self.axes}"


def _orders(function, roles):
    """Yield what the arguments may be, {name: role or number}; their names decide if they can."""
    takes = inspect.signature(function).parameters
    fixed, asked = {}, []
    for name, parameter in takes.items():
        is_pair = "past_K" in roles and CACHE.search(name.lower())
        fits = [role for role, pattern in roles.items() if pattern.search(name) and not is_pair]
        size = next((n for p, n in SIZES.items() if re.search(p, name, re.IGNORECASE)), None)
        is_needed = parameter.default is parameter.empty
        if len(fits) >= 1 and fits[0] not in fixed.values():
            fixed[name] = fits[0]
        elif is_pair:
            fixed[name] = "cache"
        elif MASK.search(name):
            fixed[name] = "mask"
        elif size is not None:
            fixed[name] = size
        elif is_needed:
            asked.append(name)
    has_pair = {"past_K", "past_V"} if "cache" in fixed.values() else set()
    left = [role for role in roles if role not in {*fixed.values(), *has_pair}]
    if not left and not asked:
        yield fixed
        if has_pair:
            yield {n: "cache by name" if role == "cache" else role for n, role in fixed.items()}
        return
    names = [name for name in takes if name in asked or fixed.get(name) in roles]
    numbers = {name: value for name, value in fixed.items() if value not in roles}
    for order in itertools.islice(itertools.permutations(roles), MOST_ORDERS):
        yield dict(zip(names, order, strict=False)) | numbers


class _NamedPair(dict):
    """Cached keys and values under any name that begins or ends with k or v."""

    def __init__(self, K, V):
        super().__init__(k=K, v=V)

    def __missing__(self, name):
        return self["v" if name.lower().strip("cahe_s")[:1] == "v" or "val" in name else "k"]


def _cannot_say(way, case):
    """Whether no argument takes what is special in a case."""
    roles = set(way.arguments.values())
    if "mask" in case.given:
        return "mask" not in roles and not (case.causal and True in roles)
    return "from 40" in case.label and "positions" not in roles


def _call(function, way, case):
    """Return the array of the right shape that a function gives on a case, or None, and a fault."""
    given = {}
    for name, role in way.arguments.items():
        if isinstance(role, str):
            if role in ("cache", "cache by name"):
                pair = [way.lay("past", case.given[past].copy()) for past in ("past_K", "past_V")]
                given[name] = tuple(pair) if role == "cache" else _NamedPair(*pair)
            elif role in case.given:
                given[name] = way.lay(role, case.given[role].copy())
        elif role is not True:
            given[name] = role
        else:
            given[name] = case.causal or case.label.endswith("cached")
    if _cannot_say(way, case):
        return None, "skip"
    if case.causal and True in way.arguments.values():
        given = {n: v for n, v in given.items() if way.arguments[n] != "mask"}
    given = copy.deepcopy(given)
    before = copy.deepcopy(given)
    try:
        with np.errstate(all="ignore"):
            value = function(**given)
    except Exception as error:  # of a reader's function
        return None, f"it raised {type(error).__name__}: {error}"
    changed = [name for name in given if not _alike(given[name], before[name])]
    values = _arrays_in(value)
    wanted = way.lay("right", case.right).shape
    fits = [array for array in values if array.shape == wanted]
    if not fits:
        return None, f"it returned {[array.shape for array in values]}, expected {wanted}"
    if changed:
        return fits[0], f"it changes its argument {changed[0]}"
    return fits[0], _fault_of_cache(values, way, case)


def _alike(one, other):
    pairs = zip(_arrays_in(one), _arrays_in(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _fault_of_cache(values, way, case):
    """Say whether a step that returns more than its outputs lacks the grown cache among it."""
    if "past_K" not in case.given or len(values) < 2:
        return ""
    grown = np.concatenate([case.given["past_K"], case.given["K"]], axis=-2)
    wanted = way.lay("past", grown)
    if any(v.shape == wanted.shape and np.array_equal(v, wanted) for v in values):
        return ""
    return "the keys that it returns are not the cached ones and behind them the new ones"


def _arrays_in(value):
    """Return the arrays of a result: itself, or those of a tuple, a list or a dict."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [array for part in value for array in _arrays_in(part)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | np.generic) else []


def _same(value, right):
    rtol = 2e-5 if value.dtype == np.float32 else 1e-6
    scale = np.abs(right[np.isfinite(right)]).max(initial=1e-30)
    return bool(np.allclose(value, right, rtol=rtol, atol=rtol * scale, equal_nan=True))


def check(function, kind):
    """Say whether a function is what it should be, or what is wrong, and how it was called.

    Parameters
    ----------
    function : of NumPy arrays
    kind : one of KINDS

    Returns
    -------
    words : "right", the words of a known mistake, or "wrong"

    Raises
    ------
    MineError : an unknown kind, or a function that no order of arguments and axes fits
    """
    if kind not in KINDS:
        raise MineError(f"kind is {kind!r}; give one of {', '.join(KINDS)}.")
    makes = KINDS[kind]
    tries = [makes()] + (
        [makes(equal=True)] if "equal" in inspect.signature(makes).parameters else []
    )
    errors = []
    for asked in tries:
        best = list(_answers(function, asked, errors))
        right = [found for found in best if found[0][0] == "right"]
        if right and all(way.axes == "(S)" for _, way in right):
            return _say(kind, ("it is right for one row, and fails for several", ""), right[0][1])
        named = [found for found in best if found[0][0] != "wrong"]
        if best:
            return _say(kind, *(right or named or best)[0])
    tried = "; ".join(dict.fromkeys(errors[:3])) or "no argument has a role"
    raise MineError(f"No order of axes and arguments fits: {tried}.")


def _answers(function, asked, errors):
    """Yield (verdict, way) of each way of calling that fits; the fullest axes decide."""
    for axes, lay in asked.layouts.items():
        found = False
        for arguments in _orders(function, asked.roles):
            way = Way(axes, lay, arguments)
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
    fits = [[_same(answers[i][0], way.lay("right", right[i])) for i in heard] for right in rights]
    if any(map(all, fits)):
        return "right", ", ".join(asked.cases[i].label for i in heard)
    shown = asked.cases[heard[fits[0].index(False)]].label
    names = [
        words for words, wrong in asked.wrong.items() if _gives(wrong, asked, way, answers, heard)
    ]
    return (names[0] if len(names) == 1 else "wrong"), shown


def _gives(wrong, asked, way, answers, heard):
    """Whether a mistake gives the values of every case; rows that see nothing do not count."""
    for index in heard:
        case = asked.cases[index]
        try:
            with np.errstate(all="ignore"):
                value = wrong(**case.given)
        except (ValueError, IndexError):  # these arrays do not fit the mistake
            return False
        rows = _rows_that_count(wrong, asked, case)
        right = way.lay("right", np.where(rows, value, np.nan))
        given = (
            np.where(np.isnan(right), np.nan, answers[index][0])
            if rows.size > 1
            else answers[index][0]
        )
        if np.shape(right) != np.shape(given) or not _same(given, right):
            return False
    return True


def _rows_that_count(wrong, asked, case):
    """Return which rows see and hide something, (T, 1); all where empty rows are the mistake."""
    mask = case.given.get("mask")
    if mask is None or wrong in EMPTY_ROWS.values() or wrong in OVERFLOW.values():
        return np.array([True])
    return (mask.any(axis=-1) & ~mask.all(axis=-1))[:, None]


def _say(kind, verdict, way):
    words, shown = verdict
    if words == "right":
        print_text(lay_out(f"✓ {kind}: right on {shown}", str(way).capitalize()))
    elif words == "wrong":
        print_text(lay_out(f"✗ {kind}: its values are others on this input: {shown}", str(way)))
    else:
        print_text(lay_out(f"✗ {kind}: {words}", *[f"Seen on: {shown}"] * bool(shown), str(way)))
    return words


def check_text(kind, code):
    """Check the last function that a form's code defines."""
    variables = {"np": np}
    exec(compile(code, "<your code>", "exec"), variables)
    functions = [f for f in variables.values() if inspect.isfunction(f)]
    if not functions:
        raise MineError("There is no function in the code. Paste one that begins with def.")
    check(functions[-1], kind)
