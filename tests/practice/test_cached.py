"""`check_cached` names what is wrong with a layer that caches keys and values, and accepts others.

Its mistakes are planted here, since they are layers and no single functions.
"""

import math
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import tutorial_lib as tl
from tests.practice.cached_layer import cached_layer, windowed
from tests.practice.rooms import ROOMS, ending
from tutorial_lib import checks
from tutorial_lib.practice import cache_tests
from tutorial_lib.practice.mistake import Edit, apply_edits, mistake_by_name
from tutorial_lib.variants.cache import KVCache, decode_step
from tutorial_lib.variants.patterns import window_mask

NAME = "cached"
PLANTED = ROOMS["14_kv_cache"].MISTAKES[NAME]


def account_lines(step, empty, capsys, **options):
    """The sentences of the account, each on one line."""
    checks.check_cached(step, empty, **options)
    return capsys.readouterr().out.replace("\n    ", " ").splitlines()


@pytest.mark.parametrize("mistake", PLANTED, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_named_and_said_how_to_mend(mistake, capsys):
    first, seen, *end = account_lines(*mistake.of(cached_layer)(), capsys)
    assert first == f"✗ cached: {mistake.says}."
    assert end == ending(mistake)
    assert seen.startswith("  ")
    assert seen.endswith(".")


def by_lists(params):
    """A layer of Python's own lists, a query at a time, that grows in place."""

    def empty(capacity, *, batch=(), pad=None):
        pads = np.zeros(batch, int) if pad is None else pad
        index = list(np.ndindex(*batch))
        return {at: SimpleNamespace(K=[], V=[], pad=int(pads[at])) for at in index}

    def row(x, stored):
        q, k, v = (np.einsum("m,hmd->hd", x, W) for W in (params.W_Q, params.W_K, params.W_V))
        stored.K.append(k)
        stored.V.append(v)
        K, V = (np.stack(rows[stored.pad :] or [0 * rows[0]]) for rows in (stored.K, stored.V))
        exps = np.exp(np.einsum("hd,shd->hs", q, K) / math.sqrt(q.shape[-1]))
        return np.einsum("hs,shv->hv", exps / exps.sum(-1, keepdims=True), V).ravel()

    def step(X, cache):
        rows = [[row(x, cache[at]) for x in X[at]] for at in cache]
        return np.reshape(rows, (*X.shape[:-1], -1)) @ params.W_O, cache

    return step, empty


def windows(first, behind):
    """The library's layer with a window of keys in the first chunk, and one behind a cache."""
    return cached_layer(mask=lambda cache, T: windowed(cache, T, behind if cache.length else first))


def with_window(width, _params):
    """The same with one window."""
    return windows(width, width)


def rolling(width, params, *, stored=None, early=False):
    """A layer that caches only the last rows: `width` - 1, which a chunk attends to first.

    Parameters
    ----------
    stored : number of cached rows, if it is another
    early : whether rows are dropped before the chunk attends, behind cached ones
    """

    def empty(capacity, *, batch=(), pad=None):
        pad = np.zeros(batch, int) if pad is None else pad
        return np.zeros((*batch, 3, 0, 4)), np.zeros((*batch, 3, 0, 7)), 0, pad

    def last(A, rows):
        return A[..., max(0, A.shape[-2] - rows) :, :]

    def step(X, cache):
        *old, length, pad = cache
        Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        K, V = (np.concatenate(pair, axis=-2) for pair in zip(old, (K, V), strict=True))
        K, V = (last(A, width) for A in (K, V)) if early and length else (K, V)
        length, rows = length + X.shape[-2], K.shape[-2]
        real = np.arange(length - rows, length) >= pad[..., None, None, None]
        seen = window_mask(X.shape[-2], length, width)[:, length - rows :]
        exps = np.exp(tl.attention_scores(Q, K)) * (seen & real)
        total = exps.sum(axis=-1, keepdims=True)
        heads = exps / np.where(total > 0, total, 1) @ V
        stay = width - 1 if stored is None else stored
        return tl.concat_heads(heads) @ params.W_O, (last(K, stay), last(V, stay), length, pad)

    return step, empty


def plain(params):
    """The layer of chapter 06, without positions."""
    empty = partial(KVCache.empty, params)
    return (lambda X, cache: decode_step(X, params, cache)), empty


def single(params):
    """The same in single precision."""
    step, empty = plain(type(params)(*(W.astype(np.float32) for W in vars(params).values())))
    return (lambda X, cache: step(X.astype(np.float32), cache)), empty


def with_positions(params):
    """The layer that the planted mistakes are edits of."""
    return cached_layer()


def test_another_width_is_run_with_inputs_of_that_width(capsys):
    layer = plain(tl.running_example().params)
    assert account_lines(*layer, capsys, d_model=8)[0] == "✓ cached: right on"
    assert "expected (..., T, d_model) with d_model=8" in account_lines(*layer, capsys)[0]


NO_WINDOW = 99


def counting_padding(cache, T):
    """A window of 8 that counts the columns of padding."""
    if cache.pad is None:
        return windowed(cache, T, 8)
    return cache.mask(T) & (cache.positions(T)[:, None, :, None] - np.arange(cache.length + T) < 8)


def test_every_window_that_the_account_speaks_of_meets_a_long_chunk_that_ends_within_a_round():
    for width in range(3, cache_tests.WIDEST + 1):
        ends = [sum(n[:-1]) for n in cache_tests.CHUNKS if not isinstance(n, int)]
        assert any(end >= width and end % width >= 2 for end in ends if end <= cache_tests.T - 2)


def first_tokens(first):
    """A window of 3 keys, and the first tokens of each sequence for ever."""

    def mask(cache, T):
        keys = np.arange(cache.length + T)
        start = 0 if cache.pad is None else cache.pad[..., None, None, None]
        return cache.mask(T) & (window_mask(T, len(keys), 3) | (keys - start < first))

    return cached_layer(mask=mask)


RIGHT = plain, by_lists, single, with_positions
RIGHT += tuple(partial(make, n) for make in (with_window, rolling) for n in (1, 8))
RIGHT += (lambda params: first_tokens(2),)


@pytest.mark.parametrize("make", RIGHT)
def test_a_right_layer_is_right(make, params, capsys):
    assert account_lines(*make(params), capsys) == [
        "✓ cached: right on",
        "  24 tokens in even and uneven chunks; windows of up to 20 keys;",
        "  capacity to spare; a batch; padding at the left.",
    ]


def layer_for(layer):
    """A layer that needs no parameters, as a function of them."""
    return lambda params: layer


COUNTED = "  one chunk, padded: token 8 attends to 0, 1, 2, 3, 4, 5, 6, 7, 8,"
LOST = "  chunks of 1: token 8 attends to 1, 2, 3, 4, 5, 6, 7, 8, in one chunk"
CHANGED = [  # layers whose mask or rows change behind a cache, the mistake, and what is seen
    (layer_for(windows(6, NO_WINDOW)), "window_changes", ""),  # 7 look like one fewer than all
    (layer_for(windows(8, 9)), "window_changes", ""),  # both wider than the short text
    (layer_for(windows(3, 2)), "window_changes", ""),
    (layer_for(windows(cache_tests.WIDEST, NO_WINDOW)), "window_changes", ""),
    (layer_for(windows(cache_tests.T - 1, NO_WINDOW)), "window_changes", ""),
    (layer_for(windows(NO_WINDOW, 8)), "window_only_behind_a_cache", ""),
    (layer_for(windows(8, 5)), "window_changes", ""),
    (layer_for(cached_layer(mask=counting_padding)), "window_counts_padding", COUNTED),
    (partial(rolling, 3, early=True), "rows_dropped", ""),
    (partial(rolling, NO_WINDOW, stored=7), "window_only_behind_a_cache", LOST),
]


@pytest.mark.parametrize(("make", "name", "begins"), CHANGED)
def test_what_changes_behind_a_cache_is_named(make, name, begins, params, capsys):
    first, seen, *_ = account_lines(*make(params), capsys)
    assert first == f"✗ cached: {mistake_by_name(PLANTED, name).says}."
    assert seen.startswith(begins)


def returning(result):
    """A layer whose step gives back a function of its input and its cache."""
    return lambda params: (result, lambda capacity, **options: None)


def spoilt(spoil):
    """The plain layer, its rows changed on the way out by a function of them and the cache."""

    def make(params):
        step, empty = plain(params)

        def other(X, cache):
            Y, longer = step(X, cache)
            return spoil(Y, cache), longer

        return other, empty

    return make


def leaves(*given):
    raise SystemExit("not done")


def with_other_cached(change):
    """A layer whose cached keys and values are changed when new ones come."""

    def append(cache, K, V):
        return replace(cache, buffers=change(*cache.buffers)).append(K, V)

    return lambda params: cached_layer(append=append)


def instead(old, new):
    """The right layer with another piece of source."""
    return lambda params: apply_edits(cached_layer, [Edit("", old, new)])()


STEPS, SEEN, KEYS = "T = X.shape[-2]", "mask(cache, T)", "np.arange(cache.length + T)"
DIFFERS = "chunks of 1: the row of token 1 begins "  # below, … is any text
KEYS_RIGHT = "it attends to the right tokens, but its output differs."
NO_MISTAKE = [  # layers that no planted mistake explains, and how the account of each begins
    (returning(lambda X, cache: None), "not done yet (it returns None)."),
    (returning(lambda X, cache: X), "one chunk: step returned a ndarray; expec"),
    (returning(lambda X, cache: (X[:1], cache)), "one chunk: Y has shape (1, 12) for X of"),
    (returning(lambda X, cache: (X.sort() or X, cache)), "one chunk: step changed its input X"),
    (lambda params: (plain(params)[0], lambda: None), "one chunk: empty raised TypeError: "),
    (spoilt(lambda Y, _: Y * np.nan), "one chunk: row 0 of Y holds NaN or infinity; X h"),
    (spoilt(lambda Y, _: 0 * Y), "one chunk: no row changes, whatever token is changed."),
    (spoilt(lambda Y, _: np.rint(9 * Y).astype(int)), "one chunk: Y is of type int64; expected fl"),
    (spoilt(leaves), "one chunk: step raised SystemExit: not done."),
    (
        instead(STEPS, f"X = X if X.ndim == 2 else X[::-1]\n{STEPS}"),
        "one chunk, a batch of 2: the row of token 0 of sequence 0 differs.",
    ),
    (with_other_cached(lambda K, V: (K, 0.9 * V)), f"{DIFFERS}…{KEYS_RIGHT}"),
    (
        with_other_cached(lambda *both: tuple(A.astype(np.float32).astype(float) for A in both)),
        "chunks of 1: the row of token …differs as little as by…in the type of Y, float64.",
    ),
    (instead(SEEN, f"{SEEN} | ({KEYS} < 3)"), "one chunk: token 0 attends to token 2, whi"),
    (
        instead(SEEN, f"{SEEN} & (({KEYS} < cache.length) | (cache.length == 0))"),
        "chunks of 1: token 1 attends to 0, in one chunk to 0, 1.",
    ),
    (
        instead(SEEN, f"{SEEN} & (({KEYS} < 1) | ({KEYS} >= cache.length))"),
        "cached tokens are lost, or hidden.",
    ),
    (
        instead("cache.positions(T)", "cache.positions(T) * (cache.length == 0)"),
        "the positions stop: the order of cached tokens makes no difference any more.",
    ),
]


@pytest.mark.parametrize(("make", "begins"), NO_MISTAKE)
def test_what_no_planted_mistake_explains_is_told_as_it_shows(make, begins, params, capsys):
    pattern = re.escape(begins).replace("…", ".*")
    assert re.match(f"[✗○] cached: {pattern}", account_lines(*make(params), capsys)[0])
