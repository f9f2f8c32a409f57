"""Ask a reader's layer for each of its promises, and say in a sentence which one is broken.

The layer is `attention(X, params, *, rates=None, window=None, sink=-inf, cache=None)` → (Y, cache).
It is asked by what it does; how it is written counts for its lines alone.
"""

from dataclasses import dataclass
from types import CodeType

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.models.own_layer import OwnLayer, go_forward
from tutorial_lib.models.promises import drift, leak, slope
from tutorial_lib.multihead import multi_head_attention, trace
from tutorial_lib.practice import feeding
from tutorial_lib.practice.account import normal
from tutorial_lib.projection import Params
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.grouped import GroupedParams

B, T, H, D_MODEL, D_K, D_V = 2, 7, 4, 12, 6, 5
WINDOW, FAR, MOST_LINES = 4, 1000, 40
RATES, SINK = np.array([1.0, 0.3]), np.array([0.5, -1.0, 2.0, 0.0])  # 2 of 3 pairs turn


class Broken(Exception):
    """What was seen of a promise that is not kept."""


class NotDone(Exception):
    """The layer returns None."""


@dataclass(frozen=True)
class Asked:
    """A reader's layer, every answer of which is looked at before it is used."""

    function: object

    def both(self, X, params, **options):
        """Call it; return Y and the cache."""
        given = X.copy()
        try:
            with np.errstate(all="ignore"):
                out = self.function(given, params, **options)
        except Exception as error:
            said = f": {error}".rstrip(".") if str(error) else ""
            raise Broken(f"it raised {type(error).__name__}{said}") from error
        if out is None:
            raise NotDone
        if not isinstance(out, tuple) or len(out) != 2:
            size = f" of {len(out)}" if isinstance(out, tuple) else ""
            raise Broken(f"it returned {_a(out)}{size}; expected the pair (Y, cache)")
        if not np.array_equal(given, X):
            raise Broken("it changed its input X; compute with a copy of it")
        return _rows(out[0], X), out[1]

    def rows(self, X, params, **options):
        """Call it; return Y."""
        return self.both(X, params, **options)[0]

    def of(self, params, **options):
        """The layer as a function of X alone."""
        return lambda X: self.rows(X, params, **options)


def _a(value):
    if value is None or isinstance(value, np.ndarray):
        return "None" if value is None else "an array"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _rows(Y, X):
    """Y as an array of finite floats in the shape of X."""
    if not isinstance(Y, np.ndarray) or Y.dtype.kind != "f":
        kind = f"an array of {Y.dtype}" if isinstance(Y, np.ndarray) else _a(Y)
        raise Broken(f"its Y is {kind}; expected an array of floats of shape {X.shape}")
    if Y.shape != X.shape:
        raise Broken(f"its Y has shape {Y.shape} for X of shape {X.shape}; expected the same")
    if not np.isfinite(Y).all():
        raise Broken("its Y holds NaN or infinity; X holds neither")
    return Y


def params_of(G=H, seed=230):
    """Arrays of a layer with G key heads."""
    shapes = (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    arrays = [normal(seed + n, *shape) / 2 for n, shape in enumerate(shapes)]
    return GroupedParams(*arrays)


def plain():
    """Params of the layer of chapter 06."""
    return Params(*vars(params_of()).values())


def right(X, params, **options):
    """The rows that the layer promises."""
    return go_forward(X, OwnLayer(params, **options)).Y


def _require_equal(Y, expected, when):
    if not np.allclose(Y, expected, rtol=1e-9, atol=1e-11):
        off = np.abs(Y - expected).max(axis=-1)
        place = tuple(int(n) for n in np.unravel_index(off.argmax(), off.shape))
        row, wanted = Y[place], expected[place]
        n = int(np.abs(row - wanted).argmax())
        index = ", ".join(map(str, (*place, n)))
        raise Broken(f"{when}, Y[{index}] is {row[n]:.4f} and should be {wanted[n]:.4f}")


ALL = {"rates": RATES, "window": WINDOW, "sink": SINK}


def _form(layer):
    X = normal(231, T, D_MODEL)
    kept = KVCache.empty(params_of(2), T)
    _, cache = layer.both(X, params_of(2), cache=kept, **ALL)
    if cache is None:
        raise Broken("it was given a cache and returned None for it; expected the longer one")
    layer.rows(normal(232, B, T, D_MODEL), plain())
    params = plain()
    layer.rows(X, params)
    if any(not np.array_equal(*pair) for pair in zip(*_arrays(params, plain()), strict=True)):
        raise Broken("it changed an array of params; compute with a copy of it")


def _arrays(*records):
    return [list(vars(record).values()) for record in records]


def _no_leak(layer):
    X, other = normal(233, T, D_MODEL), normal(234, T, D_MODEL)
    for label, options in (("", {}), ("with all options, ", ALL)):
        moved = leak(layer.of(params_of(2), **options), X, other)
        if not moved < 1e-9:
            raise Broken(f"{label}a row moves by {moved:.2g} when tokens after it are exchanged")


def _parity(layer):
    for X in (normal(235, T, D_MODEL), normal(236, B, T, D_MODEL), normal(237, 1, D_MODEL)):
        expected = multi_head_attention(X, plain(), mask=causal_mask(X.shape[-2]))
        _require_equal(layer.rows(X, plain()), expected, f"for X of shape {X.shape}")
    sharp = Params(400 * plain().W_Q, *_arrays(plain())[0][1:])
    expected = multi_head_attention(X := normal(238, T, D_MODEL), sharp, mask=causal_mask(T))
    _require_equal(layer.rows(X, sharp), expected, "with scores in the thousands")


def _gradient(layer):
    X, dY, params = normal(239, T, D_MODEL), normal(240, T, D_MODEL), plain()
    found = multi_head_attention_backward(trace(X, params, mask=causal_mask(T)), dY)
    given = {"X": X, **vars(params)}
    for n, (name, array) in enumerate(given.items()):
        along = normal(241 + n, *array.shape)

        def loss(changed, name=name):
            own = {**given, name: changed}
            layer_of = Params(*(own[W] for W in ("W_Q", "W_K", "W_V", "W_O")))
            return (layer.rows(own["X"], layer_of) * dY).sum()

        rises, expected = slope(loss, array, along), (getattr(found, f"d{name}") * along).sum()
        if not abs(rises - expected) < 1e-6 * max(1, abs(expected)):
            raise Broken(f"its slope in {name} is {rises:.4f}; the gradient gives {expected:.4f}")


def _groups(layer):
    X = normal(246, B, T, D_MODEL)
    for G in (1, H, 2):
        params = params_of(G)
        expected = multi_head_attention(X, params.expanded(), mask=causal_mask(T))
        _require_equal(layer.rows(X, params), expected, f"with {G} key head{'s' * (G > 1)} of {H}")


def _shift(layer):
    X, before, params = normal(247, T, D_MODEL), normal(248, FAR, D_MODEL), params_of(2)
    still = layer.rows(X, params, rates=np.zeros(2))
    _require_equal(still, right(X, params), "with rates of 0")
    turned = layer.rows(X, params, rates=RATES)
    _require_equal(turned, right(X, params, rates=RATES), "with rates")
    options = {"rates": RATES, "window": WINDOW}
    moved = drift(layer.of(params, **options), X, before, WINDOW)
    if not moved < 1e-8:
        raise Broken(f"after {FAR:,} other tokens a row moves by {moved:.2g}")


def _window(layer):
    X, params = normal(249, T, D_MODEL), params_of(2)
    for window in (T, WINDOW, 1, 2 * T):
        expected = right(X, params, window=min(window, T))
        rows = layer.rows(X, params, window=window)
        _require_equal(rows, expected, f"with a window of {window} for {T} tokens")


def _sink(layer):
    X, params = normal(250, T, D_MODEL), params_of(2)
    none = layer.rows(X, params, sink=np.full(H, -np.inf))
    _require_equal(none, right(X, params), "with a sink of minus infinity")
    sharp = GroupedParams(900 * params.W_Q, *_arrays(params)[0][1:])
    for label, given, sink in (
        ("a sink for each head", params, SINK),
        ("sinks in the thousands", sharp, 1500 * SINK),
    ):
        expected = right(X, given, sink=sink)
        _require_equal(layer.rows(X, given, sink=sink), expected, f"with {label}")


def _cache(layer):
    params = params_of(2)
    X = normal(251, T, D_MODEL)
    whole, _ = layer.both(X, params, cache=KVCache.empty(params, T), **ALL)
    _require_equal(whole, right(X, params, **ALL), "with all options and an empty cache")

    def empty(room, **options):
        return KVCache.empty(params, room, **options)

    def step(X, cache):
        return layer.both(X, params, cache=cache, **ALL)

    try:
        feeding.ask(feeding.Layer(step, empty, D_MODEL))
    except feeding.Found as found:
        raise Broken(found.seen or "in pieces it returns None") from found


def _lines(layer):
    lines = lines_of(layer.function)
    if lines > MOST_LINES:
        raise Broken(f"it has {lines} lines of code; expected {MOST_LINES} at most")


def lines_of(function):
    """Count the lines of a function that hold code; 0 where Python does not tell."""
    code = getattr(function, "__code__", None)
    return len(_numbered(code)) if code else 0


def _numbered(code):
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    own = {line for *_, line in code.co_lines() if line}
    return own.union(*(_numbered(part) for part in inner))


PROMISES = {
    "form": (_form, "it takes X, params and four options, and returns (Y, cache)"),
    "no leak": (_no_leak, "no row moves when a later token does"),
    "parity": (_parity, "without options it is the causal layer of chapter 06"),
    "gradient": (_gradient, "its slopes are those that chapter 08 computes"),
    "groups": (_groups, "G key heads are G heads copied, from G = 1 to G = H"),
    "window": (_window, "w keys and no other; a window of T is none"),
    "shift": (_shift, "turned, it knows distances alone: 1,000 tokens further on nothing moves"),
    "sink": (_sink, "a sink takes its share; at minus infinity there is none"),
    "cache": (_cache, "read in pieces, in a batch, padded, it gives the same rows"),
    "forty lines": (_lines, "it has forty lines of code at most"),
}


def broken(function):
    """Ask for every promise; return {name: what was seen}, "" where it is kept.

    Raises
    ------
    NotDone : the layer returns None
    """
    found, layer = {}, Asked(function)
    for name, (ask, _) in PROMISES.items():
        try:
            ask(layer)
            found[name] = ""
        except Broken as told:
            found[name] = str(told)
    return found


def first_broken(function):
    """Ask for one promise after the other; return (name, what was seen, those kept before).

    Raises
    ------
    NotDone : the layer returns None
    """
    kept, layer = [], Asked(function)
    for name, (ask, _) in PROMISES.items():
        try:
            ask(layer)
        except Broken as told:
            return name, str(told), kept
        kept.append(name)
    return None, "", kept


def probes():
    """Calls that tell one mistake from another: (X, params, options, sizes of pieces, padding)."""
    X, texts, two = normal(252, T, D_MODEL), normal(253, B, T, D_MODEL), params_of(2)
    sharp = GroupedParams(900 * two.W_Q, two.W_K, two.W_V, two.W_O)
    return [
        (X, plain(), {}, None),
        (X, two, {}, None),
        (X, two, {"rates": RATES}, None),
        (X, two, {"window": WINDOW}, None),
        (X, two, {"sink": SINK}, None),
        (X, two, {"sink": np.full(H, -np.inf)}, None),
        (X, sharp, {"sink": 1500 * SINK}, None),
        (texts, two, ALL, np.array([2, 0])),
    ]


def answers(function):
    """What a layer gives for each of the probes; None where it comes to grief."""
    return [_answer(Asked(function), *probe) for probe in probes()]


def _answer(layer, X, params, options, pad):
    try:
        if pad is None:
            return layer.rows(X, params, **options)
        cache, rows = KVCache.empty(params, T, batch=(B,), pad=pad), []
        for start, end in ((0, 3), (3, 4), (4, T)):
            Y, cache = layer.both(X[:, start:end], params, cache=cache, **options)
            rows.append(Y)
        return np.concatenate(rows, axis=-2)
    except (Broken, NotDone):
        return None


def alike(one, other):
    """Whether two layers answered all probes in the same way."""
    return all(
        (a is None and b is None)
        or (a is not None and b is not None and np.allclose(a, b, rtol=1e-9, atol=1e-11))
        for a, b in zip(one, other, strict=True)
    )
