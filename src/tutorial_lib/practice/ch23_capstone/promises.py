"""Test a reader's layer for each of its promises, and say in a sentence which one is broken.

The layer is `attention(X, params, *, frequencies=None, window=None, sink=-inf, cache=None)`, which
returns (Y, cache). It is tested by what it does; how it is written counts only for its lines.
"""

from dataclasses import dataclass, replace
from functools import partial
from types import CodeType

import numpy as np

from tutorial_lib.attention import attention_scores, causal_mask
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.own_layer import OwnLayer, forward_pass
from tutorial_lib.models.promises import directional_derivative, drift, leak
from tutorial_lib.multihead import multi_head_attention, trace
from tutorial_lib.practice import cache_tests
from tutorial_lib.practice.cache_tests import NOT_DONE, Failure
from tutorial_lib.practice.inputs import normal
from tutorial_lib.projection import Params, project_heads
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rotate

B, T, H, G, D_MODEL = 7, 9, 6, 3, 12
WIDTHS, ODD = (D_MODEL, 8, 10), (13, 5, 11)  # of d_model, d_k and d_v
WINDOW, FAR, MOST_LINES = 5, 1000, 40
FREQUENCIES = np.array([1.0, 0.3])  # 2 of 4 pairs are rotated
SINK = np.array([0.5, -1.0, 2.0, 0.0, 1.2, -0.3])


def attention(X, params, *, sink=-np.inf, cache=None, **options):
    """Keep every promise; the mistakes of `check_attention` are edits of these lines."""
    frequencies, window = options.get("frequencies"), options.get("window")
    T, H = X.shape[-2], len(params.W_Q)
    old = cache or KVCache.empty(params, T, batch=X.shape[:-2])
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    positions, S = old.positions(T)[..., None, :], old.length + T
    if frequencies is not None:
        Q, K = rotate(Q, positions, frequencies), rotate(K, positions, frequencies)
    seen = old.mask(T)
    if window is not None:
        seen = seen & window_mask(T, S, window)
    now = old.append(K, V)
    K, V = (np.repeat(Z, H // len(params.W_K), axis=-3) for Z in (now.K, now.V))
    weights = attention_with_sink(attention_scores(Q, K), np.full(H, sink), mask=seen)
    return concat_heads(weights @ V) @ params.W_O, cache and now


@dataclass(frozen=True)
class CheckedLayer:
    """A reader's layer, whose results are checked before they are used."""

    function: object

    def outputs_and_cache(self, X, params, **options):
        """Call it; return Y and the cache."""
        call = cache_tests.checked_call
        return call(lambda given: self.function(given, params, **options), X, subject="it")

    def outputs(self, X, params, **options):
        """Call it; return Y."""
        return self.outputs_and_cache(X, params, **options)[0]

    def with_params(self, params, **options):
        """The layer as a function of X alone."""
        return lambda X: self.outputs(X, params, **options)


def sample_grouped_params(n_kv_heads=G, widths=WIDTHS):
    """Arrays of a layer with this number of KV heads, of the widths d_model, d_k and d_v."""
    d_model, d_k, d_v = widths
    keys, values = (n_kv_heads, d_model, d_k), (n_kv_heads, d_model, d_v)
    shapes = (H, d_model, d_k), keys, values, (H * d_v, d_model)
    return GroupedParams(*(normal(230 + n, *shape) / 2 for n, shape in enumerate(shapes)))


def sample_params(widths=WIDTHS):
    """Params of the layer of chapter 06."""
    return Params(*vars(sample_grouped_params(H, widths)).values())


def _sharpened(params, times):
    return replace(params, W_Q=times * params.W_Q)


def reference_layer(X, params, **options):
    """The rows that the layer promises."""
    return forward_pass(X, OwnLayer(params, **options)).Y


def _require_equal(Y, expected, condition):
    if not np.allclose(Y, expected, rtol=1e-9, atol=1e-11):
        off = np.abs(Y - expected).max(axis=-1)
        at = tuple(int(n) for n in np.unravel_index(off.argmax(), off.shape))
        row, wanted = Y[at], expected[at]
        n = int(np.abs(row - wanted).argmax())
        index = ", ".join(map(str, (*at, n)))
        raise Failure(f"{condition}, Y[{index}] is {row[n]:.4f} and should be {wanted[n]:.4f}")


ALL = {"frequencies": FREQUENCIES, "window": WINDOW, "sink": SINK}


def _test_form(layer):
    X = normal(231, T, D_MODEL)
    empty = KVCache.empty(sample_grouped_params(), T)
    _, cache = layer.outputs_and_cache(X, sample_grouped_params(), cache=empty, **ALL)
    if cache is None:
        raise Failure("it was given a cache and returned None for it; expected the longer one")
    layer.outputs(normal(232, B, T, D_MODEL), sample_params())
    params = sample_params()
    layer.outputs(X, params)
    if any((now != vars(sample_params())[name]).any() for name, now in vars(params).items()):
        raise Failure("it changed an array of params; compute with a copy of it")


def _test_no_leak(layer):
    X, other = normal(233, T, D_MODEL), normal(234, T, D_MODEL)
    for label, options in (("", {}), ("with all options, ", ALL)):
        change = leak(layer.with_params(sample_grouped_params(), **options), X, other)
        if not change < 1e-9:
            raise Failure(f"{label}a row changes by {change:.4g} when tokens after it are replaced")


def _test_parity(layer):
    cases = [
        (normal(235 + n, *shape), sample_params(), f"for X of shape {shape}")
        for n, shape in enumerate([(T, D_MODEL), (B, T, D_MODEL), (1, D_MODEL)])
    ]
    odd = "with d_model = {}, d_k = {} and d_v = {}".format(*ODD)
    cases.append((normal(238, T, ODD[0]), sample_params(ODD), odd))
    sharp = _sharpened(sample_params(), 400)
    cases.append((normal(254, T, D_MODEL), sharp, "with scores in the thousands"))
    for X, params, when in cases:
        expected = multi_head_attention(X, params, mask=causal_mask(X.shape[-2]))
        _require_equal(layer.outputs(X, params), expected, when)


def _test_gradient(layer):
    X, dY, params = normal(239, T, D_MODEL), normal(240, T, D_MODEL), sample_params()
    found = multi_head_attention_backward(trace(X, params, mask=causal_mask(T)), dY)
    given = {"X": X, **vars(params)}
    for n, (name, array) in enumerate(given.items()):
        along = normal(241 + n, *array.shape)

        def loss(changed, name=name):
            own = {**given, name: changed}
            return (layer.outputs(own.pop("X"), Params(**own)) * dY).sum()

        rises = directional_derivative(loss, array, along)
        expected = (getattr(found, f"d{name}") * along).sum()
        if not abs(rises - expected) < 1e-6 * max(1, abs(expected)):
            raise Failure(
                f"its derivative in {name} is {rises:.4f}; the gradient gives {expected:.4f}"
            )


def _test_groups(layer):
    X = normal(246, B, T, D_MODEL)
    for heads in (1, H, G, H // G):
        params = sample_grouped_params(heads)
        expected = multi_head_attention(X, params.expanded(), mask=causal_mask(T))
        label = f"with {heads} KV head{'s' * (heads > 1)} for {H} query heads"
        _require_equal(layer.outputs(X, params), expected, label)


def _test_shift(layer):
    X, before, params = normal(247, T, D_MODEL), normal(248, FAR, D_MODEL), sample_grouped_params()
    still = layer.outputs(X, params, frequencies=np.zeros(2))
    _require_equal(still, reference_layer(X, params), "with frequencies of 0")
    rotated = layer.outputs(X, params, frequencies=FREQUENCIES)
    _require_equal(rotated, reference_layer(X, params, frequencies=FREQUENCIES), "with frequencies")
    options = {"frequencies": FREQUENCIES, "window": WINDOW}
    change = drift(layer.with_params(params, **options), X, before, WINDOW)
    if not change < 1e-8:
        raise Failure(f"after {FAR:,} other tokens a row changes by {change:.2g}")


def _test_window(layer):
    X, params = normal(249, T, D_MODEL), sample_grouped_params()
    for window in (T, WINDOW, 1, 2 * T):
        expected = reference_layer(X, params, window=min(window, T))
        rows = layer.outputs(X, params, window=window)
        _require_equal(rows, expected, f"with a window of {window} for {T} tokens")


def _test_sink(layer):
    X, params = normal(250, T, D_MODEL), sample_grouped_params()
    none = layer.outputs(X, params, sink=np.full(H, -np.inf))
    _require_equal(none, reference_layer(X, params), "with a sink of minus infinity")
    for label, given, sink in (
        ("a sink for each head", params, SINK),
        ("sinks in the thousands", _sharpened(params, 900), 1500 * SINK),
    ):
        expected = reference_layer(X, given, sink=sink)
        _require_equal(layer.outputs(X, given, sink=sink), expected, f"with {label}")


def _test_cache(layer):
    params = sample_grouped_params()
    X = normal(251, T, D_MODEL)
    whole, _ = layer.outputs_and_cache(X, params, cache=KVCache.empty(params, T), **ALL)
    _require_equal(whole, reference_layer(X, params, **ALL), "with all options and an empty cache")

    def step(X, cache):
        return layer.outputs_and_cache(X, params, cache=cache, **ALL)

    try:
        cache_tests.test_layer(cache_tests.Layer(step, partial(KVCache.empty, params), D_MODEL))
    except Failure as failure:
        raise Failure(failure.evidence) from failure  # a mistake of the cache has no name here


def _test_line_count(layer):
    lines = count_code_lines(layer.function)
    if lines > MOST_LINES:
        raise Failure(f"it has {lines} lines of code; expected {MOST_LINES} at most")


def count_code_lines(function):
    """Count the lines of a function that hold code; 0 where Python does not tell."""
    code = getattr(function, "__code__", None)
    return len(_code_line_numbers(code)) if code else 0


def _code_line_numbers(code):
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    own = {line for *_, line in code.co_lines() if line}
    return own.union(*(_code_line_numbers(part) for part in inner))


PROMISES = {
    "form": (_test_form, "it takes X, params and four options, and returns (Y, cache)"),
    "no leak": (_test_no_leak, "no row changes when a later token does"),
    "parity": (_test_parity, "without options it is the causal layer of chapter 06"),
    "gradient": (_test_gradient, "its gradients are those that chapter 08 computes"),
    "groups": (
        _test_groups,
        "G KV heads give what their copies for H heads give, from G = 1 to G = H",
    ),
    "window": (_test_window, "a token sees w keys and no other; a window of T hides none"),
    "shift": (
        _test_shift,
        "with RoPE only distances count: 1,000 tokens further on no row changes",
    ),
    "sink": (_test_sink, "a sink takes its weight; at minus infinity it takes none"),
    "cache": (_test_cache, "in chunks, in a batch and padded it gives the same rows"),
    "forty lines": (_test_line_count, "it has forty lines of code at most"),
}


def evidence_by_promise(function):
    """Test one promise after the other: yield (name, what was observed), "" where it is kept."""
    for name in PROMISES:
        yield name, evidence(name, function)


def evidence(name, function):
    """Return what is observed where a promise is broken, such as NOT_DONE; "" where it is kept."""
    test, _ = PROMISES[name]
    try:
        test(CheckedLayer(function))
    except Failure as failure:
        return NOT_DONE if failure.mistake == NOT_DONE else failure.evidence
    return ""
