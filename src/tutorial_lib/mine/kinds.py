"""What a function of attention should be, in which layouts people write it, and what goes wrong.

The mistakes are edits of the functions here, in `mistakes.txt`.
"""

import itertools
import math
import re
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.practice.inputs import normal
from tutorial_lib.practice.mistake import apply_edits, read_mistakes

B, H, G, T, S, D_K, D_V, D_MODEL = 2, 6, 3, 5, 7, 16, 11, 96  # d_model is H·d_k
QKV = ("W_Q", "W_K", "W_V")
FREQUENCIES = 10_000.0 ** (-np.arange(0, D_K, 2) / D_K)
MASK = re.compile(
    "mask|allow|visib|keep|bias|valid|pad|see|look|^real|(^|_)ok$|len(gth)?s$|^l(ongueurs|(ä|ae)ngen)$"
    "|^hid(e|den)?$|^m$",
    re.IGNORECASE,
)


class Case(NamedTuple):
    """Arrays by role in the library's axes, options by role, and the right value.

    `beside` is the mask that is handed over beside a causal flag, where both count.
    """

    label: str
    given: dict
    right: np.ndarray
    causal: bool = False
    beside: np.ndarray | None = None


class FunctionSpec(NamedTuple):
    """What a function should be.

    Parameters
    ----------
    roles : role -> pattern of the names that people give it, in their usual order
    layouts : words -> function of a role and an array of the library's axes
    cases : tuple of Case
    rights : functions of a case's arrays that are right; the values of the first are the cases'
    wrong : words of a mistake -> function of a case's arrays
    by_name : whether the names of its arguments have to say all roles
    """

    roles: dict
    layouts: dict
    cases: tuple
    wrong: dict
    rights: tuple
    by_name: bool = False


def weigh(scores, mask=None):
    """Return the weights; a row in which everything is hidden has zeros."""
    visible = scores if mask is None else np.where(mask, scores, -np.inf)
    largest = visible.max(axis=-1, keepdims=True)
    exps = np.exp(visible - np.where(np.isfinite(largest), largest, 0))
    sums = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(sums > 0, sums, 1)


def attend(Q, K, V, mask=None):
    """Attention of queries, keys and values."""
    scores = Q @ np.swapaxes(K, -1, -2) / Q.shape[-1] ** 0.5
    return weigh(scores, mask) @ V


def grouped(Q, K, V, mask=None):
    """Attention whose query heads share keys and values."""
    n = Q.shape[-3] // K.shape[-3]
    keys, values = np.repeat(K, n, axis=-3), np.repeat(V, n, axis=-3)
    return attend(Q, keys, values, mask)


def layer(X, W_O, mask=None, **given):
    """The layer of X and its matrices."""
    W_Q, W_K, W_V = map(given.get, QKV)
    Q, K, V = (X[:, None] @ W for W in (W_Q, W_K, W_V))
    heads = attend(Q, K, V, mask)
    concat = np.swapaxes(heads, 1, 2).reshape(*X.shape[:-1], -1)
    return concat @ W_O


def transposed(W):
    """Transpose the matrix of all heads."""
    fused = W.transpose(1, 0, 2).reshape(D_MODEL, D_MODEL)
    return fused.T.reshape(D_MODEL, H, D_K).transpose(1, 0, 2)


def step(Q, K, V, past_K, past_V):
    """New tokens on cached keys and values."""
    keys, values = np.concatenate([past_K, K], axis=-2), np.concatenate([past_V, V], axis=-2)
    return attend(Q, keys, values, causal_mask(Q.shape[-2], keys.shape[-2]))


def rotary_step(Q, K, past_K, *, half=False, late=False, **values):
    """A step that rotates keys before they are cached, or all of them later."""
    new = np.arange(Q.shape[-2])
    Q, K = rope(Q, S + new, half), rope(K, S + new, half)
    past_K = rope(past_K, np.arange(S), half) if late else past_K
    return step(Q=Q, K=K, past_K=past_K, **values)


def rope(x, positions, half=False):
    """Rotary positions, in either layout of the pairs."""
    d, turned = x.shape[-1], np.empty_like(x)
    angles = positions[:, None] * 10_000.0 ** (-np.arange(0, d, 2) / d)
    c, s = np.cos(angles), np.sin(angles)
    first, second = places(d, half)
    a, b = x[first], x[second]
    turned[first], turned[second] = a * c - b * s, a * s + b * c
    return turned


def table_from_name(name):
    """Return which table of a rotation the name of an argument says, or None."""
    return next(
        (role for role, (words, _) in TABLES.items() if re.search(words, name.lower())), None
    )


def table_forms(roles):
    """Return the forms in which tables are handed over: width, axes and rows."""
    rows = ["some", "many"][: 1 + bool({"positions", "start"} & {*map(str, roles)})]
    wide = list(map(" ".join, itertools.product(("half", "halves", "pairs"), ("T", "T1"), rows)))
    forms = {role: [f"{role} {form}" for form in wide] for role in ("cos", "sin", "angles")}
    forms["turns"] = [f"turns half {axes} {n}" for axes in ("T", "T1") for n in rows]
    return forms | {"freqs": ["freqs", *forms["angles"], *forms["turns"]]}


def _table(of_angles, form, positions):
    """Return a function of the angles as (T, d/2), in both halves, or twice for each pair."""
    width, axes, rows = form.split()
    positions = np.arange(64) if rows == "many" else positions
    angles = positions[:, None] * FREQUENCIES
    angles = {"half": angles, "halves": np.tile(angles, 2)}.get(width, np.repeat(angles, 2, -1))
    return of_angles(angles if axes == "T" else angles[:, None])


def places(d, half):
    """Return where the first and the second entries of the pairs are."""
    cuts = (slice(d // 2), slice(d // 2, d)) if half else (slice(0, d, 2), slice(1, d, 2))
    return [np.s_[..., cut] for cut in cuts]


MISTAKES = read_mistakes(Path(__file__).with_name("mistakes.txt"))
LARGE = ("overflow", "whole_maximum", "mean", "from_0", "hidden_maximum")  # what large scores show
PADDED, KEY_AXIS = "padded keys", {"scores": -1, "K": -2, "X": -2}
EMPTY = ("empty_uniform", "empty_unmasked", "empty_nan")
SQUARE = tuple(m.name for m in MISTAKES["weigh"] if "keepdims" in m.name)
OF_MASKS = tuple(m.name for m in MISTAKES["weigh"] if re.search("mask|hidden|token", m.says))


def _says(name, section="weigh"):
    return next(mistake.says for mistake in MISTAKES[section] if mistake.name == name)


NOT_USED, OVERFLOW, EXCHANGED, ADDED = map(_says, ("unused", "overflow", "exchanged", "added"))
FIRST_CORNER = _says("first_corner")
DIAGONAL = {_says(name) for name in ("sees_next", "not_itself", "wrong_way")}
IN_EMPTY_ROWS = {_says(name) for name in EMPTY}
IN_ANY_ROW = {_says(name) for name in (*LARGE, *EMPTY)}
SEVERAL, NO_OUTPUT = _says("both_directions", "step"), _says("no_output", "layer")
ONE_HEAD, TILED = _says("one_head", "layer"), _says("tiled", "grouped")


def _wrong(right, *sections, without=(), **options):
    """Return the wrong forms of a function and what they get wrong, by its words."""
    found = {}
    for section, mistake in ((name, mistake) for name in sections for mistake in MISTAKES[name]):
        if mistake.name not in without:
            edits = [replace(edit, where=edit.where or section) for edit in mistake.edits]
            found[mistake.says] = partial(apply_edits(right, edits), **options)
    return found


def _cases(right, given, **masks):
    """Return cases without a mask and with each."""
    found = [Case("without a mask", given, right(**given))]
    for label, mask in masks.items():
        more = given | {"mask": mask}
        found.append(Case(f"a {label} mask", more, right(**more), label == "causal"))
    if "scattered" in masks:
        more = given | {"mask": masks["scattered"] & masks["causal"]}
        label = "a mask beside the causal flag"
        found.append(Case(label, more, right(**more), True, masks["scattered"]))
    return tuple(found)


def _scattered(n_keys):
    """Return a mask that hides keys in no order, and in no row all."""
    return (np.random.default_rng(4).random((T, n_keys)) < 0.6) | (np.arange(n_keys) == 0)


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


def _lay_merged(way, role, x):
    way = "BT(Hd)"["B" not in way :] if role == "right" else way
    return _lay_heads(way, role, x)


def _lay_in_groups(way, role, x):
    if role not in ("Q", "right"):
        return _lay_heads(way.replace("N", "").replace("G", "H"), role, x)
    return _rearranged(x.reshape(B, G, -1, *x.shape[2:]), "BGNTd", way)


HEADS = _head_layouts("BHTd", "BTHd", "TBHd", "BHdT", "BTdH", "HTd", "THd", "HdT", "TdH")
FLAT = _head_layouts("BT(Hd)", "T(Hd)")
MERGED = {  # what people return side by side: the heads of a token
    f"{_axes_text(way)}, output side by side": partial(_lay_merged, way)
    for way in ("BHTd", "BTHd", "TBHd", "HTd", "THd")
}
IN_GROUPS = {
    f"queries {_axes_text(way)}": partial(_lay_in_groups, way)
    for way in ("BGNTd", "GNTd", "BTGNd", "TGNd")
}
BUFFER = _head_layouts("(Td)")
ONE_QUERY = {"one query (d)": lambda role, x: x[0, 0, 0] if role in ("Q", "right") else x[0, 0]}
ONE_TOKEN = {"one token (d)": lambda role, x: x[-1] if x.ndim == 1 else x[0, 0, -1]}
ROWS = HEADS | _head_layouts("dT", "Td", "BTd") | BUFFER
KEYS_FIRST = {
    f"{axes}, keys first": lay for axes, lay in _head_layouts("BHdT", "HdT", "dT").items()
}
SCORES = KEYS_FIRST | BUFFER | _head_layouts("BHTd", "HTd", "BTd", "Td", "d")
AXES = dict.fromkeys(QKV, "HDd") | {"W_QKV": "3HDd", "W_O": "HdD", "X": "BTD", "right": "BTD"}
WEIGHTS = [("D(Hd)", "(Hd)D"), ("(Hd)D", "D(Hd)"), ("HDd", "(Hd)D"), ("DHd", "HdD"), ("HDd", "HdD")]
WEIGHTS += [(way, "(Hd)D") for way in ("D(3Hd)", "D(H3d)", "3D(Hd)")]
WEIGHTS += [(way, "D(Hd)") for way in ("(3Hd)D", "(H3d)D", "3(Hd)D")]


def _lay_cached(new, past, role, x):
    return _rearranged(x, "BHSd", past) if role[:4] == "past" else _rearranged(x, "BHTd", new)


def _lay_layer(weights, text, cache, role, x):
    """Lay out an array of a layer, or of a step whose caches have their own way."""
    if role.startswith("past"):
        return _rearranged(x, "BHSd", cache)
    if role == "right" and x.ndim == 4:
        return _rearranged(x, "BHTd", text.replace("D", "(Hd)" if "H" in cache else "d"))
    x = x.reshape(-1, D_K, D_MODEL) if role == "W_O" else x
    way = weights[role == "W_O"] if role[0] == "W" else text
    return _rearranged(x, AXES[role], way) if role in AXES else x


def _layer_layouts(weights, texts, caches=("",)):
    found = {}
    for (way, out), text, cache in itertools.product(weights, texts, caches):
        batch = "B" * ("B" in text and bool(cache))
        cache = f"S{batch}{cache[1:]}" if text[0] + cache[:1] == "TS" else batch + cache
        words = f"W{'_QKV' * ('3' in way)} {_axes_text(way)}, W_O {_axes_text(out)}"
        words += f", X {_axes_text(text)}, cache {_axes_text(cache)}"
        found[re.sub(r", \w+ \(\)", "", words)] = partial(_lay_layer, (way, out), text, cache)
    return found


LAYERS = _layer_layouts(WEIGHTS, ("BTD", "TBD", "BDT", "DT", "TD"))
STEPS = _layer_layouts(WEIGHTS, ("BTD", "TBD", "TD", "BD", "D"), ("HSd", "SHd", "S(Hd)"))
NEW_AND_PAST = {"BHTd": "BHSd", "BTHd": "BSHd", "TBHd": "SBHd", "HTd": "HSd", "THd": "SHd"}
NEW_AND_PAST |= {"dT": "dS", "BHd": "BHSd BSHd SBHd", "Hd": "HSd SHd", "BTd": "BSd"}
CACHED = {
    f"{_axes_text(new)}, cache {_axes_text(past)}": partial(_lay_cached, new, past)
    for new, pasts in (NEW_AND_PAST | {"Td": "Sd", "d": "Sd"}).items()
    for past in pasts.split()
}
STEPS |= _layer_layouts([("Dd", ""), ("D(3d)", "")], ("BTD", "TD", "BD", "D"), ["Sd"])
TABLES = {  # role -> pattern of its names, and function of its form and the positions
    "start": ("start|offset", lambda form, positions: int(positions[0])),
    "cos": ("^c$|cos(?!_?sin)", partial(_table, np.cos)),
    "sin": ("^s$|(?<!cos)(?<!cos_)sin(?!g)", partial(_table, np.sin)),
    "turns": ("cis|complex|phas|rotor", partial(_table, lambda angles: np.exp(1j * angles))),
    "angles": ("angle|^thetas$", partial(_table, np.asarray)),
    "freqs": ("freq|^omegas?$|^inv", lambda form, positions: FREQUENCIES),
}
NEW = "new|t|step|heads?|states?|layer|in|inputs?|h"  # behind q, k or v
NAMES = {
    "Q": r"^((x_?)?qn?|quer(y|ies)(_\w+)?|qs|new_q.*|q_.*)$",
    "K": rf"^((x_?)?kn?|keys?|ks|new_k.*|k(ey)?s?_({NEW}))$",
    "V": rf"^((x_?)?vn?|val(ue)?s?|vs|new_v.*|v(al(ue)?)?s?_({NEW}))$",
    "past_K": r"(past|cach|prev|old|mem|buf).*k|k.*(cach|past|prev|old|mem|buf)"
    r"|^([cp]k|k[cp]?|keys|ks|k_?(list|hist|store))$",
    "past_V": r"(past|cach|prev|old|mem|buf).*v|v.*(cach|past|prev|old|mem|buf)"
    r"|^([cp]v|v[cp]?|val(ue)?s|vs|v_?(list|hist|store))$",
    "X": r"^((new_)?(x|inp(uts?)?|hidden(_states)?|tokens?|seq)(_?(t|new|step|in))?|emb.*)$",
    "W_QKV": r"^(?!b).*(qkv|in_?proj|c_attn|w_?(attn|in|packed))",
    "W_Q": r"^w_?q|^q_?(w|proj|mat|kernel)",
    "W_K": r"^w_?k|^k_?(w|proj|mat|kernel)",
    "W_V": r"^w_?v|^v_?(w|proj|mat|kernel)",
    "W_O": r"^w_?o|^o_?(w|proj|mat|kernel)|^out|^dense|^proj$|c_proj|proj_?w",
    "scores": r"score|logit|^(s|x|z|a|e|sim.*|att.*)$",
    "mask": MASK.pattern,
    "x": r"^(x|x?_?q|x?_?k|quer(y|ies)|keys?|[qk]_(heads?|states?)|vec.*|t|tensor|h|u|a|states?)$",
    "positions": r"pos|^(m|p|t|idx|ids|indices|steps|where)$",
}


def _roles(*names):
    return {name: re.compile(NAMES[name], re.IGNORECASE) for name in names}


def _attention_spec(equal=False):
    wrong = _wrong(attend, "attend", "weigh", without=(*LARGE[2:], *EMPTY))
    layouts = ROWS | MERGED | ONE_QUERY | (FLAT if equal else {})
    return FunctionSpec(
        _roles("Q", "K", "V"), layouts, _sized_cases(attend, H, equal), wrong, (attend,)
    )


def _sized_cases(right, n_kv_heads, equal):
    n_keys, d_v = (T, D_K) if equal else (S, D_V)
    given = {"Q": 2 * normal(1, B, H, T, D_K), "K": normal(2, B, n_kv_heads, n_keys, D_K)}
    given["V"] = normal(3, B, n_kv_heads, n_keys, d_v)
    masks = {"causal": causal_mask(T, n_keys), "scattered": _scattered(n_keys)}
    cases = _cases(right, given, **masks)
    far = {n: np.round(8 * given[n]) / 8 for n in "QK"} | {"V": given["V"]}  # exact in float32
    far["K"] += 2000.0 * (np.arange(D_K) == 0)
    far["Q"][..., 0] = 8 * (-1.0) ** np.arange(T)  # so all scores of a row are large, or low
    return (*cases, Case("large scores", far, right(**far)))


def _grouped_spec(equal=False):
    without = (*LARGE[2:], *EMPTY, "heads_of_a_token")
    wrong = _wrong(grouped, "grouped", "attend", "weigh", without=without)
    layouts = HEADS | IN_GROUPS | MERGED | (FLAT if equal else {})
    return FunctionSpec(
        _roles("Q", "K", "V"), layouts, _sized_cases(grouped, G, equal), wrong, (grouped,)
    )


def _softmax_spec(equal=False):
    n_keys = T if equal else S
    ordinary = np.round(3072 * normal(5, B, H, T, n_keys)) / 1024  # behind 1e4, exact in float32
    far = ordinary + 1e4 * (np.arange(n_keys) == 2)
    apart = ordinary + np.array([0.0, 0.0, 1e4, -1e4, 0.0])[:, None]
    given = {"ordinary scores": ordinary, "scores of ten thousand": far}
    given["rows far above and below"] = apart
    cases = tuple(Case(label, {"scores": s}, softmax_along(s)) for label, s in given.items())
    cases += (Case("axis=-2", {"scores": ordinary, "axis": -2}, softmax_along(ordinary, axis=-2)),)
    wrong = _wrong(softmax_along, "weigh", without=OF_MASKS)
    return FunctionSpec(_roles("scores"), SCORES, cases, wrong, (softmax_along,))


def softmax_along(scores, axis=-1):
    """Weights along an axis."""
    return np.swapaxes(weigh(np.swapaxes(scores, axis, -1)), axis, -1)


def _weights_spec(equal=False):
    causal = causal_mask(T, T if equal else S)
    masks = {"causal": causal, "partly empty": causal & (np.arange(T) != 2)[:, None]}
    masks["scattered"] = _scattered(T if equal else S)
    scores = np.round(3072 * normal(6, B, H, *causal.shape)) / 1024  # exact in float32, far too
    scores += np.array([0, -8, 8, -8, 8])[:, None]
    far = scores + 1e4 * ~causal[0] * causal[-1] - 2e4 * (np.arange(T) == 3)[:, None]
    cases = _cases(weigh, {"scores": scores}, **masks)[1:]
    more = {"scores": far, "mask": causal}
    cases += (Case("large scores", more, weigh(far, causal), causal=True),)
    wrong = _wrong(weigh, "weigh", without=("always_causal", "mean", "from_0"))
    return FunctionSpec(_roles("scores", "mask"), SCORES, cases, wrong, (weigh,))


def _layer_spec():
    given = {"X": normal(9, B, T, D_MODEL)}
    given |= {n: normal(10 + i, H, D_MODEL, D_K) / 7 for i, n in enumerate(QKV)}
    given["W_O"] = normal(13, H * D_K, D_MODEL) / 7
    wrong = _wrong(
        layer, "attend", "weigh", "layer", without=(*LARGE, *EMPTY, "keys_averaged", "first_corner")
    )
    cases = _cases(layer, given, causal=causal_mask(T))
    return FunctionSpec(_roles("X", *QKV, "W_O"), LAYERS, cases, wrong, (layer,))


def _rotary_spec():
    x, late = normal(15, B, H, T, D_K), 40 + np.arange(T)
    given = {"positions from 0": np.arange(T), "positions from 40": late}
    cases = tuple(Case(n, {"x": x, "positions": p}, rope(x, p)) for n, p in given.items())
    wrong = {
        f"{words} ({layout})": function
        for half, layout in ((False, "pairs of neighbours"), (True, "pairs in halves"))
        for words, function in _wrong(rope, "rope", half=half).items()
    }
    rights = (rope, partial(rope, half=True))
    return FunctionSpec(_roles("x", "positions"), ROWS | ONE_TOKEN, cases, wrong, rights)


def _step_cases(right, given, new):
    """Return a case of one new token, one of three, and one of large scores."""
    cases = []
    for n in (1, 3):
        more = given | {name: x[..., :n, :] for name, x in new.items()}
        cases.append(Case(f"{n} new on {S} cached", more, right(**more)))
    far = cases[0].given | {x: 100 * cases[0].given[x] for x in (*{*new} - {"V"}, "past_K")}
    return (*cases, Case("1 new, large scores", far, right(**far)))


def _cache_spec(d_v=D_V):
    new = {"Q": normal(20, B, H, 3, D_K), "K": normal(21, B, H, 3, D_K)}
    new["V"] = normal(22, B, H, 3, d_v)
    past = {"past_K": normal(23, B, H, S, D_K), "past_V": normal(24, B, H, S, d_v)}
    without = "unused always_causal queries_as_keys turned_weights heads_of_a_token last_lost"
    without = (*LARGE, *EMPTY, *SQUARE, *without.split())
    wrong = _wrong(step, "step", "attend", "weigh", without=without)
    styles = [{"half": half, "late": late} for half in (False, True) for late in (False, True)]
    for style in styles:
        layout = "pairs in halves" if style["half"] else "pairs of neighbours"
        layout += ", keys rotated when they are read" * style["late"]
        for words, function in _wrong(rotary_step, "rotary_step", **style).items():
            wrong[f"{words} ({layout})"] = function
    rights = (step, *(partial(rotary_step, **style) for style in styles))
    cases = _step_cases(step, past, new)
    return FunctionSpec(_roles(*new, *past), CACHED, cases, wrong, rights)


def _projected_step(function, **given):
    """A step that takes X and its matrices: those of the layer, or of the heads without W_O."""
    X, W_O = given.pop("X"), given.pop("W_O", None)
    heads = function(**{name[2]: X[:, None] @ given.pop(name) for name in QKV}, **given)
    return heads if W_O is None else np.swapaxes(heads, 1, 2).reshape(*X.shape[:2], -1) @ W_O


def _cache_layer_spec(outputs=("W_O",), heads=H):
    given = {n: normal(30 + i, heads, D_MODEL, D_K) / 7 for i, n in enumerate(QKV)}
    given |= {name: normal(33, heads * D_K, D_MODEL) / 7 for name in outputs}
    given |= {f"past_{n}": normal(34 + i, B, heads, S, D_K) for i, n in enumerate("KV")}
    cases = _step_cases(partial(_projected_step, step), given, {"X": normal(36, B, 3, D_MODEL)})
    alone = _cache_spec(d_v=D_K)
    wrong = {words: partial(_projected_step, wrong) for words, wrong in alone.wrong.items()}
    rights = tuple(partial(_projected_step, right) for right in alone.rights)
    roles = _roles("X", *QKV, *outputs, "past_K", "past_V")
    return FunctionSpec(roles, STEPS, cases, wrong, rights, by_name=True)


def _padded_spec(make):
    """Return a spec whose mask hides the last keys of each sequence of a batch."""
    asked = make()
    given = asked.cases[0].given
    n = next(given[x].shape[at] for x, at in KEY_AXIS.items() if x in given)
    given = given | {"mask": (np.arange(n) < np.array([[n - 2], [n - 1]]))[:, None, None]}
    return asked._replace(cases=(Case(PADDED, given, asked.rights[0](**given)),))


FORMS = {  # of a kind, tried in this order
    "softmax": (_softmax_spec, partial(_softmax_spec, equal=True)),
    "weights": (_weights_spec, partial(_weights_spec, equal=True)),
    "attention": (_attention_spec, partial(_attention_spec, equal=True)),
    "layer": (_layer_spec,),
    "rotary": (_rotary_spec,),
    "cache": (
        _cache_layer_spec,
        partial(_cache_layer_spec, heads=1),
        partial(_cache_layer_spec, outputs=()),
        partial(_cache_spec, d_v=D_K),
        _cache_spec,
    ),
    "grouped": (_grouped_spec, partial(_grouped_spec, equal=True)),
}
SPECS = {kind: tuple(map(lru_cache, forms)) for kind, forms in FORMS.items()}
PADDED_SPECS = {  # of what takes a mask
    kind: tuple(lru_cache(partial(_padded_spec, make)) for make in SPECS[kind])
    for kind in ("weights", "attention", "layer", "grouped")
}
