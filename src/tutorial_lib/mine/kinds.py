"""What a function of attention should be, in which layouts people write it, and what goes wrong."""

import itertools
import math
import re
from functools import partial
from typing import NamedTuple

import numpy as np

from tutorial_lib.attention import attention_weights, causal_mask, softmax
from tutorial_lib.practice.inputs import normal
from tutorial_lib.variants.positions import rope_frequencies, rotate

B, H, G, T, S, D_K, D_V, D_MODEL = 2, 6, 2, 5, 7, 8, 11, 48  # d_model is H·d_k
QKV = ("W_Q", "W_K", "W_V")
MASK = re.compile("mask|allow|visib|keep|^m$", re.IGNORECASE)
CHOSEN = {  # what is no mistake of a function that takes no argument of a role -> the role, and it
    "a causal mask is always applied": ("mask", "with a causal mask of its own"),
    "the output projection W_O is missing": ("W_O", "without an output projection"),
}


class Case(NamedTuple):
    """Arrays by role in the library's axes, options by role, and the right value."""

    label: str
    given: dict
    right: np.ndarray
    causal: bool = False


class FunctionSpec(NamedTuple):
    """What a function should be.

    Parameters
    ----------
    roles : role -> pattern of the names that people give it, in their usual order
    layouts : words -> function of a role and an array of the library's axes
    cases : tuple of Case
    rights : functions of a case's arrays that are right, too
    wrong : words of a mistake -> function of a case's arrays
    by_name : whether the names of its arguments have to say all roles
    """

    roles: dict
    layouts: dict
    cases: tuple
    wrong: dict
    rights: tuple = ()
    by_name: bool = False


def _weigh(scores, mask):
    return attention_weights(scores, mask=mask)


def attend(Q, K, V, mask=None, **parts):
    """Attention in one line, of which every part can be exchanged for a wrong one.

    Parameters
    ----------
    parts : `scale`, a number; `weigh`, of scores and mask; `share`, what is done to keys and values
    """
    share, weigh = parts.get("share", (None, None)), parts.get("weigh", _weigh)
    K, V = (x if change is None else change(x) for x, change in zip((K, V), share, strict=True))
    scores = Q @ np.swapaxes(K, -1, -2) * parts.get("scale", Q.shape[-1] ** -0.5)
    return weigh(scores, mask) @ V


def layer(**given):
    """The layer of X and its four matrices; more parts: `split` and `merge`, of arrays of heads."""
    projected, W_O, mask = _project(given), given.pop("W_O"), given.pop("mask", None)
    split, merge = given.pop("split", None), given.pop("merge", _merge_heads)
    heads = attend(*(projected if split is None else map(split, projected)), mask, **given)
    return merge(heads) @ W_O


def _project(given):
    """Take X and its matrices out of what is given; return Q, K and V."""
    X = given.pop("X")
    return [X[:, None] @ given.pop(name) for name in QKV]


def step(**given):
    """New tokens on cached keys and values; more parts: `limit`, of the numbers of tokens."""
    K = np.concatenate([given.pop("past_K"), given.pop("K")], axis=-2)
    V = np.concatenate([given.pop("past_V"), given.pop("V")], axis=-2)
    Q, limit = given.pop("Q"), given.pop("limit", causal_mask)
    return attend(Q, K, V, limit(Q.shape[-2], K.shape[-2]), **given)


def rope(x, positions, *, half=False, frequencies=None):
    """Rotary positions, in either layout of the pairs."""
    if frequencies is None:
        frequencies = rope_frequencies(x.shape[-1])
    return rotate(x, positions, frequencies, half=half)


def _merge_heads(heads):
    return np.swapaxes(heads, -3, -2).reshape(len(heads), heads.shape[-2], -1)


def _repeat_kv_heads(x):
    return np.repeat(x, H // G, axis=-3)


def _masked_scores(scores, mask, fill):
    return scores if mask is None else np.where(mask, scores, fill)


def _softmax_without_shift(scores):
    with np.errstate(all="ignore"):
        return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def _softmax_with_extra_one(scores, mask):
    exps = np.exp(_masked_scores(scores, mask, -np.inf) - scores.max(axis=-1, keepdims=True))
    return exps / (1 + exps.sum(axis=-1, keepdims=True))


def _softmaxed(fill=-1e9, axis=-1):
    return lambda scores, mask: softmax(_masked_scores(scores, mask, fill), axis=axis)


def _sum_to_1(scores, mask):
    return softmax(_masked_scores(scores, mask, -1e9).reshape(1, -1)).reshape(scores.shape)


WEIGHINGS = {  # each takes the scores and the mask
    "the softmax runs over the queries and not over the keys: use axis=-1": _softmaxed(axis=-2),
    "the softmax runs over the heads": _softmaxed(axis=-3),
    "the whole array sums to 1, not each row: give the sum axis=-1 and keepdims=True": _sum_to_1,
    "the mask comes after the softmax, so rows no longer sum to 1": lambda scores, mask: (
        softmax(scores) * (1 if mask is None else mask)
    ),
    "hidden scores become 0, so hidden keys still get weight": _softmaxed(fill=0),
    "the mask is added to the scores as 0 and 1": lambda scores, mask: softmax(
        scores + (0 if mask is None else mask)
    ),
    "the mask is not used": lambda scores, mask: softmax(scores),
    "True and False of the mask are exchanged": lambda scores, mask: softmax(
        scores if mask is None else np.where(mask, -1e9, scores)
    ),
    "the softmax is missing": lambda scores, mask: _masked_scores(scores, mask, 0),
    "one is added to the sum of each row": _softmax_with_extra_one,
    "it returns the logarithm of the weights": lambda scores, mask: np.log(softmax(scores)),
}


def _softmax_without_row_maximum(scores, mask, maximum=lambda scores: 0):
    return _softmax_without_shift(_masked_scores(scores - maximum(scores), mask, -np.inf))


OVERFLOW = {
    "large scores overflow: subtract each row's largest score first": _softmax_without_row_maximum,
    "the maximum is that of the whole array: give it axis=-1 and keepdims=True": partial(
        _softmax_without_row_maximum, maximum=np.max
    ),
}


def _weigh_without_keepdims(scores, mask, *, shift, total):
    """Weigh square scores; maxima and sums of rows get their new axis at `shift` and `total`."""
    scores = _masked_scores(scores, mask, -np.inf)
    exps = np.exp(scores - (0 if shift is None else np.expand_dims(scores.max(-1), shift)))
    return exps / np.expand_dims(exps.sum(-1), total)


KEEPDIMS = {
    words: partial(_weigh_without_keepdims, shift=shift, total=total)
    for words, shift, total in (
        ("the sum of each row needs keepdims=True", -1, -2),
        ("the sum of each row needs keepdims=True, and no row's maximum is subtracted", None, -2),
        ("the maximum of each row needs keepdims=True", -2, -1),
        ("the maximum and the sum of each row need keepdims=True", -2, -2),
    )
}
EMPTY_ROWS = {
    "a row in which everything is hidden gets uniform weights": _softmaxed(),
    "a row in which everything is hidden becomes NaN": lambda scores, mask: np.where(
        (True if mask is None else mask.any(axis=-1, keepdims=True)),
        softmax(_masked_scores(scores, mask, -1e9)),
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


def _wrong(function, weighings=None, value=None):
    """Return the forms of a function whose attention has one wrong part."""
    found = {words: partial(function, scale=scale) for words, scale in SCALES.items()}
    weighings = WEIGHINGS | (weighings or {})
    found |= {words: partial(function, weigh=weigh) for words, weigh in weighings.items()}
    found["the scores are scaled after the softmax"] = partial(
        function, scale=1.0, weigh=lambda scores, mask: _weigh(scores, mask) * D_K**-0.5
    )
    found["the keys of the first head serve all heads"] = partial(
        function, share=(lambda x: x[..., :1, :, :], value)
    )
    return found


def _causal(k, T, S):
    """Return a causal mask that is off by k."""
    return np.tri(T, S, k=S - T + k, dtype=bool)


def _shifted(k):
    return lambda scores, mask: _weigh(scores, mask if mask is None else _causal(k, *mask.shape))


SHIFTED = {
    "a token sees the next one, too": _shifted(1),
    "a token does not see itself": _shifted(-1),
    "the causal mask is the wrong way round": lambda scores, mask: _weigh(
        scores, mask if mask is None else ~mask | np.eye(*mask.shape, dtype=bool)
    ),
}


def _first_corner(scores, mask):
    """Weigh with a causal mask of the first corner, and with any other mask as it is."""
    if mask is not None and (mask == causal_mask(*mask.shape)).all():
        mask = np.tri(*mask.shape, dtype=bool)
    return _weigh(scores, mask)


def _cases(right, given, **masks):
    """Return cases without a mask and with each."""
    found = [Case("without a mask", given, right(**given))]
    for label, mask in masks.items():
        more = given | {"mask": mask}
        found.append(Case(f"a {label} mask", more, right(**more), label == "causal"))
    return tuple(found)


def _rearranged(x, axes, wanted):
    """Return x, whose axes have letters, with others: "BHTd" as "BT(Hd)"; a missing one is at 0."""
    letters = re.sub(r"[()]", "", wanted)
    x = x[tuple(slice(None) if axis in letters else 0 for axis in axes)]
    left = [axis for axis in axes if axis in letters]
    x = np.transpose(x, [left.index(axis) for axis in letters])
    sizes = dict(zip(letters, x.shape, strict=True))
    return x.reshape([math.prod(sizes[axis] for axis in part) for part in _parts(wanted)])


def _parts(way):
    return [merged or single for merged, single in re.findall(r"\((\w+)\)|(\w)", way)]


def _axes_text(way):
    return f"({', '.join(map('·'.join, _parts(way)))})".replace("D", "d_model")


def _head_layouts(*ways):
    return {_axes_text(way): partial(_lay_heads, way) for way in ways}


def _lay_heads(way, role, x):
    return _rearranged(x, "BHTd", way) if x.ndim == 4 else x


HEADS = _head_layouts("BHTd", "BTHd", "HTd", "THd")
ROWS = HEADS | _head_layouts("Td", "BTd")
SCORES = ROWS | _head_layouts("d")
AXES = dict.fromkeys(QKV, "HDd") | {"W_QKV": "3HDd", "W_O": "HdD", "X": "BTD", "right": "BTD"}
WEIGHTS = [("D(Hd)", "(Hd)D"), ("(Hd)D", "D(Hd)"), ("HDd", "(Hd)D"), ("DHd", "HdD"), ("HDd", "HdD")]
WEIGHTS += [(way, "(Hd)D") for way in ("D(3Hd)", "D(H3d)", "3D(Hd)")]
WEIGHTS += [(way, "D(Hd)") for way in ("(3Hd)D", "(H3d)D", "3(Hd)D")]


def _lay_layer(weights, text, cache, role, x):
    """Lay out an array of a layer, or of a step whose caches have their own way."""
    if role.startswith("past"):
        return _rearranged(x, "BHSd", cache)
    if role == "right" and x.ndim == 4:
        return _rearranged(x, "BHTd", text.replace("D", "(Hd)" if "H" in cache else "d"))
    x = x.reshape(H, D_K, D_MODEL) if role == "W_O" else x
    way = weights[role == "W_O"] if role[0] == "W" else text
    return _rearranged(x, AXES[role], way) if role in AXES else x


def _layer_layouts(weights, texts, caches=("",)):
    found = {}
    for (way, out), text, cache in itertools.product(weights, texts, caches):
        cache = cache and f"{'B' * ('B' in text)}{cache}"
        words = f"W{'_QKV' * ('3' in way)} {_axes_text(way)}, W_O {_axes_text(out)}"
        words += f", X {_axes_text(text)}, cache {_axes_text(cache)}"
        found[re.sub(r", \w+ \(\)", "", words)] = partial(_lay_layer, (way, out), text, cache)
    return found


LAYERS = _layer_layouts(WEIGHTS, ("BTD", "TD"))
STEPS = _layer_layouts(WEIGHTS, ("BTD", "TD", "BD", "D"), ("HSd", "SHd", "S(Hd)"))
STEPS |= _layer_layouts([("Dd", ""), ("D(3d)", "")], ("BTD", "TD", "BD", "D"), ["Sd"])
NAMES = {
    "Q": r"^(x?q|quer(y|ies)|qs?|q_new|new_q.*|q_t|q_.*)$",
    "K": r"^(x?k|keys?|ks?|k_new|new_k.*|k_t|k_step)$",
    "V": r"^(x?v|val(ue)?s?|vs?|v_new|new_v.*|v_t|v_step)$",
    "past_K": r"(past|cach|prev|old|mem).*k|k.*(cach|past|prev|old|mem)",
    "past_V": r"(past|cach|prev|old|mem).*v|v.*(cach|past|prev|old|mem)",
    "X": r"^((new_)?(x|inp(uts?)?|hidden(_states)?|tokens?|seq)(_?(t|new|step|in))?|emb.*)$",
    "W_QKV": r"^(?!b).*(qkv|in_?proj|c_attn|w_?(attn|in|packed))",
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


def _attention_spec(equal=False):
    wrong = _wrong(attend, KEEPDIMS) | {
        "a causal mask is always applied": lambda Q, K, V, mask=None: attend(
            Q, K, V, causal_mask(Q.shape[-2], K.shape[-2])
        ),
        "its causal mask is aligned to the first corner, as is_causal of PyTorch": partial(
            attend, weigh=_first_corner
        ),
        "keys and values are exchanged": lambda Q, K, V, mask=None: attend(Q, V, K, mask),
        "queries and keys are exchanged": lambda Q, K, V, mask=None: attend(K, Q, V, mask),
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
    return FunctionSpec(_roles("Q", "K", "V"), ROWS, _sized_cases(attend, H, equal), wrong)


def _sized_cases(right, n_kv_heads, equal):
    n_keys, d_v = (T, D_K) if equal else (S, D_V)
    given = {"Q": 2 * normal(1, B, H, T, D_K), "K": normal(2, B, n_kv_heads, n_keys, D_K)}
    given["V"] = normal(3, B, n_kv_heads, n_keys, d_v)
    scattered = np.random.default_rng(4).random((T, n_keys)) < 0.6
    scattered |= np.arange(n_keys) == 1
    return _cases(right, given, causal=causal_mask(T, n_keys), scattered=scattered)


def _grouped_spec(equal=False):
    right = partial(attend, share=(_repeat_kv_heads, _repeat_kv_heads))
    wrong = _wrong(right, value=_repeat_kv_heads) | {
        "KV heads are tiled, 0 1 0 1, where they should be repeated, 0 0 1 1": partial(
            attend, share=(_tiled, _tiled)
        ),
        "keys are repeated, 0 0 1 1, but values are tiled, 0 1 0 1": partial(
            attend, share=(_repeat_kv_heads, _tiled)
        ),
        "a causal mask is always applied": lambda Q, K, V, mask=None: right(
            Q, K, V, causal_mask(T, K.shape[-2])
        ),
        "all heads use the first KV head": partial(
            attend, share=(lambda x: x[..., :1, :, :], lambda x: x[..., :1, :, :])
        ),
        "the query heads of a group are averaged": lambda Q, K, V, mask=None: right(
            _repeat_kv_heads(Q.reshape(B, G, H // G, *Q.shape[2:]).mean(axis=2)), K, V, mask
        ),
    }
    return FunctionSpec(_roles("Q", "K", "V"), HEADS, _sized_cases(right, G, equal), wrong)


def _tiled(x):
    return np.concatenate([x] * (H // G), axis=-3)


OF_SOFTMAX = [words for words in WEIGHINGS if "mask" not in words and "hidden" not in words]


def _softmax_spec(equal=False):
    n_keys = T if equal else S
    ordinary = np.round(3072 * normal(5, B, H, T, n_keys)) / 1024  # behind 1e4, exact in float32
    far = ordinary + 1e4 * (np.arange(n_keys) == 2)
    apart = ordinary + 1e4 * (np.arange(T) == 2)[:, None]
    given = {"ordinary scores": ordinary, "scores of ten thousand": far, "a row far above": apart}
    cases = tuple(Case(label, {"scores": s}, softmax(s)) for label, s in given.items())
    weighings = {words: WEIGHINGS[words] for words in OF_SOFTMAX} | OVERFLOW | KEEPDIMS
    wrong = {words: partial(weigh, mask=None) for words, weigh in weighings.items()}
    return FunctionSpec(_roles("scores"), SCORES, cases, wrong)


def _weights_spec():
    causal = causal_mask(T, S)
    masks = {"causal": causal, "partly empty": causal & (np.arange(T) != 2)[:, None]}
    scores = 3 * normal(6, B, H, T, S)
    far = scores + 1e4 * (np.arange(S) == S - 1) - 1e4 * (np.arange(T) == 3)[:, None]
    cases = _cases(partial(_weigh, mask=None), {"scores": scores}, **masks)[1:]
    cases += (Case("large scores", {"scores": far, "mask": causal}, _weigh(far, causal)),)
    return FunctionSpec(_roles("scores", "mask"), ROWS, cases, WEIGHINGS | OVERFLOW | EMPTY_ROWS)


def _layer_spec():
    given, causal = {"X": normal(9, B, T, D_MODEL)}, causal_mask(T)
    given |= {n: normal(10 + i, H, D_MODEL, D_K) / 7 for i, n in enumerate(QKV)}
    given["W_O"], identity = normal(13, H * D_K, D_MODEL) / 7, np.eye(H * D_K)
    wrong = _wrong(layer, SHIFTED | KEEPDIMS) | {
        "heads are laid side by side without bringing the token axis forward": partial(
            layer, merge=lambda heads: heads.reshape(len(heads), T, -1)
        ),
        "the entries of the heads take turns where head 0 comes first": partial(
            layer, merge=lambda heads: heads.transpose(0, 2, 3, 1).reshape(len(heads), T, -1)
        ),
        "the output projection W_O is missing": lambda **given: layer(**given | {"W_O": identity}),
        "a causal mask is always applied": lambda **given: layer(**given | {"mask": causal}),
        "W_O is used transposed": lambda W_O, **rest: layer(W_O=W_O.T, **rest),
        "the values are projected with W_K": lambda W_K, W_V, **rest: layer(
            W_K=W_K, W_V=W_K, **rest
        ),
        "queries, keys and values are cut into heads without swapping axes": partial(
            layer, split=lambda x: np.swapaxes(x, 1, 2).reshape(x.shape)
        ),
    }
    cases = _cases(layer, given, causal=causal)
    return FunctionSpec(_roles("X", *QKV, "W_O"), LAYERS, cases, wrong)


def _rotary_spec():
    x, late = normal(15, B, H, T, D_K), 40 + np.arange(T)
    given = {"positions from 0": np.arange(T), "positions from 40": late}
    cases = tuple(Case(n, {"x": x, "positions": p}, rope(x, p)) for n, p in given.items())
    wrong = _wrong_rotations(half=False) | _wrong_rotations(half=True)
    wrong["the angles are for halves and the pairs are neighbours"] = partial(_mixed, half=False)
    wrong["the angles are for neighbours and the pairs are halves"] = partial(_mixed, half=True)
    return FunctionSpec(
        _roles("x", "positions"), ROWS, cases, wrong, (rope, partial(rope, half=True))
    )


def _wrong_rotations(*, half):
    """Return the wrong forms of a rotation, of one layout of the pairs."""
    turn = partial(rope, half=half)
    found = {words: partial(turn, frequencies=own) for words, own in FREQUENCIES.items()}
    for words, change in POSITIONS.items():
        found[words] = lambda x, positions, change=change: turn(x, change(positions))
    for words, parts in ROTATIONS.items():
        found[words] = partial(_rotated, half=half, parts=parts)
    layout = "pairs in halves" if half else "pairs of neighbours"
    return {f"{words} ({layout})": function for words, function in found.items()}


EXPONENTS = np.arange(0, D_K, 2) / D_K
FREQUENCIES = {
    "it rotates the other way": -rope_frequencies(D_K),
    "the frequencies grow from pair to pair": 10_000.0**EXPONENTS,
    "all pairs have the same frequency": np.ones(len(EXPONENTS)),
    "the exponent of the frequencies lacks its 2": 10_000.0 ** (-EXPONENTS / 2),
    "the exponent of the frequencies has its 2 twice": 10_000.0 ** (-2 * EXPONENTS),
}
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


def _rotated(x, positions, *, half, parts):
    angles = positions[:, None] * rope_frequencies(x.shape[-1])
    n, turned = x.shape[-1] // 2, x.copy()
    a, b = (np.s_[..., :n], np.s_[..., n:]) if half else (np.s_[..., ::2], np.s_[..., 1::2])
    turned[a], turned[b] = parts(x[a], x[b], np.cos(angles), np.sin(angles))
    return turned


def _mixed(x, positions, *, half):
    angles = positions[:, None] * rope_frequencies(x.shape[-1])
    angles = np.repeat(angles, 2, axis=-1) if half else np.tile(angles, 2)
    right_angles, ones = np.full(len(positions), np.pi / 2), np.ones(x.shape[-1] // 2)
    return x * np.cos(angles) + rope(x, right_angles, half=half, frequencies=ones) * np.sin(angles)


def _step_cases(right, given, new):
    """Return a case of one new token and one of three, the first of those that are new."""
    cases = []
    for n in (1, 3):
        more = given | {name: x[..., :n, :] for name, x in new.items()}
        cases.append(Case(f"{n} new on {S} cached", more, right(**more)))
    return tuple(cases)


def _cache_spec():
    new = {"Q": normal(20, B, H, 3, D_K), "K": normal(21, B, H, 3, D_K)}
    new["V"] = normal(22, B, H, 3, D_V)
    past = {"past_K": normal(23, B, H, S, D_K), "past_V": normal(24, B, H, S, D_V)}
    wrong = _wrong(step) | {
        "the causal mask begins at the first key, not behind the cached ones": partial(
            step, limit=lambda T, S: np.tri(T, S, dtype=bool)
        ),
        "the new tokens see each other in both directions": partial(
            step, limit=lambda T, S: np.ones((T, S), bool)
        ),
        "a new token sees the one after it, too": partial(step, limit=partial(_causal, 1)),
        "a new token does not see itself": partial(step, limit=partial(_causal, -1)),
        "the cached keys and values are not used": lambda Q, K, V, past_K, past_V: attend(
            Q, K, V, causal_mask(Q.shape[-2])
        ),
        "new keys and values go before the cached ones": lambda Q, K, V, past_K, past_V: step(
            Q=Q, K=past_K, V=past_V, past_K=K, past_V=V
        ),
    }
    del wrong["the mask is not used"]  # a step is given none
    return FunctionSpec(_roles(*new, *past), ROWS, _step_cases(step, past, new), wrong)


def _projected_step(function, **given):
    """A step that takes X and its matrices: those of the layer, or of the heads without W_O."""
    W_O = given.pop("W_O", None)
    heads = function(**dict(zip("QKV", _project(given), strict=True)), **given)
    return heads if W_O is None else _merge_heads(heads) @ W_O


def _cache_layer_spec(outputs=("W_O",)):
    given = {n: normal(30 + i, H, D_MODEL, D_K) / 7 for i, n in enumerate(QKV)}
    given |= {name: normal(33, H * D_K, D_MODEL) / 7 for name in outputs}
    given |= {"past_K": normal(34, B, H, S, D_K), "past_V": normal(35, B, H, S, D_K)}
    cases = _step_cases(partial(_projected_step, step), given, {"X": normal(36, B, 3, D_MODEL)})
    wrong = {words: partial(_projected_step, wrong) for words, wrong in _cache_spec().wrong.items()}
    roles = _roles("X", *QKV, *outputs, "past_K", "past_V")
    return FunctionSpec(roles, STEPS, cases, wrong, by_name=True)


SPECS = {  # the forms of a kind are tried in this order
    "softmax": (_softmax_spec, partial(_softmax_spec, equal=True)),
    "weights": (_weights_spec,),
    "attention": (_attention_spec, partial(_attention_spec, equal=True)),
    "layer": (_layer_spec,),
    "rotary": (_rotary_spec,),
    "cache": (_cache_layer_spec, partial(_cache_layer_spec, outputs=()), _cache_spec),
    "grouped": (_grouped_spec, partial(_grouped_spec, equal=True)),
}
