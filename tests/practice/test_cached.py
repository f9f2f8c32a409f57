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
from tests.practice.rooms import ROOMS, ending
from tutorial_lib import checks
from tutorial_lib.practice import feeding
from tutorial_lib.practice.ch14_kv_cache.mistakes import cached_layer, windowed
from tutorial_lib.practice.mistake import Edit, edited, named
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


def test_every_planted_mistake_is_another():
    assert (
        len({mistake.says for mistake in PLANTED})
        == len({m.name for m in PLANTED})
        == len(PLANTED)
        == 22
    )


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


RIGHT = plain, by_lists, single, with_positions
RIGHT += tuple(partial(make, n) for make in (with_window, rolling) for n in (1, 8))


@pytest.mark.parametrize("make", RIGHT)
def test_a_right_layer_is_right(make, params, capsys):
    assert account_lines(*make(params), capsys) == [
        "✓ cached: right on",
        "  24 tokens in even and uneven chunks; windows of up to 20 keys;",
        "  capacity to spare; a batch; padding at the left.",
    ]


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


def in_a_ring(width, params, *, first=False, rolled=False):
    """A ring of rows, copied at each step; one token attends after its writing if it is `first`.

    Where it is `rolled`, a chunk as long as the ring is written from row 0 on.
    """

    def empty(capacity, *, batch=(), pad=None):
        buffers = np.zeros((*batch, 3, width, 4)), np.zeros((*batch, 3, width, 7))
        return *buffers, np.full(width, -NO_WINDOW), 0, np.zeros(batch, int) if pad is None else pad

    def written(old, new, rows):
        longer = old.copy()
        longer[..., rows, :] = new[..., -len(rows) :, :]
        return longer

    def step(X, cache):
        *old, held, length, pad = cache
        T, tokens = X.shape[-2], length + np.arange(X.shape[-2])
        Q, *new = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        rows = np.arange(width) if rolled and width <= T else tokens[-width:] % width
        stored = [written(*pair, rows) for pair in zip(old, new, strict=True)]
        now = written(held[:, None], tokens[:, None], rows)[:, 0]
        K, V = (np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))
        keys = np.concatenate([held, tokens])
        if first and T == 1:
            (K, V), keys = stored, now
        seen = (keys <= tokens[:, None]) & (keys > tokens[:, None] - width)
        real = keys >= pad[..., None, None, None]
        weights = tl.attention_weights(tl.attention_scores(Q, K), mask=seen & real)
        return tl.concat_heads(weights @ V) @ params.W_O, (*stored, now, length + T, pad)

    return step, empty


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 9, 20])
def test_a_right_ring_is_right(width, first, params, capsys):
    assert account_lines(*in_a_ring(width, params, first=first), capsys)[0] == "✓ cached: right on"


def test_every_window_that_the_account_speaks_of_meets_a_long_chunk_that_ends_within_a_round():
    for width in range(3, feeding.WIDEST + 1):
        ends = [sum(n[:-1]) for n in feeding.LONG_CHUNKS if not isinstance(n, int)]
        assert any(end >= width and end % width >= 2 for end in ends if end <= feeding.LONG - 2)


def first_tokens(first):
    """A window of 3 keys, and the first tokens of each sequence for ever."""

    def mask(cache, T):
        keys = np.arange(cache.length + T)
        start = 0 if cache.pad is None else cache.pad[..., None, None, None]
        return cache.mask(T) & (window_mask(T, len(keys), 3) | (keys - start < first))

    return cached_layer(mask=mask)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_first_tokens_that_are_cached_for_ever_are_right(first, capsys):
    assert account_lines(*first_tokens(first), capsys)[0] == "✓ cached: right on"


def layer_for(layer):
    """A layer that needs no parameters, as a function of them."""
    return lambda params: layer


COUNTED = "  chunks of 5, padded: token 8 attends to 0, 1, 2, 3, 4, 5, 6, 7, 8,"
LOST = "  chunks of 1: token 8 attends to 1, 2, 3, 4, 5, 6, 7, 8, in one chunk"
CHANGED = [  # layers whose mask or rows change behind a cache, the mistake, and what is seen
    (layer_for(windows(6, NO_WINDOW)), "window_changes", ""),  # 7 look like one fewer than all
    (layer_for(windows(8, 9)), "window_changes", ""),  # both wider than the short text
    (layer_for(windows(3, 2)), "window_changes", ""),
    (layer_for(windows(feeding.WIDEST, NO_WINDOW)), "window_changes", ""),
    (layer_for(windows(feeding.LONG - 1, NO_WINDOW)), "window_changes", ""),
    (layer_for(windows(NO_WINDOW, 8)), "window_only_behind_a_cache", ""),
    (layer_for(windows(8, 5)), "window_changes", ""),
    (layer_for(cached_layer(mask=counting_padding)), "window_counts_padding", COUNTED),
    (partial(rolling, 3, early=True), "rows_dropped", ""),
    (partial(rolling, NO_WINDOW, stored=7), "window_only_behind_a_cache", LOST),
    *((partial(in_a_ring, n, rolled=True), "rows_dropped", "") for n in (3, 9, feeding.WIDEST)),
]


@pytest.mark.parametrize(("make", "name", "begins"), CHANGED)
def test_what_changes_behind_a_cache_is_named(make, name, begins, params, capsys):
    first, seen, *_ = account_lines(*make(params), capsys)
    assert first == f"✗ cached: {named(PLANTED, name).says}."
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


def hidden_rows_of_nan(Y, cache):
    """The rows, those of padding NaN."""
    if cache.pad is None:
        return Y
    now = cache.length + np.arange(Y.shape[-2])
    return np.where((now < np.asarray(cache.pad)[..., None])[..., None], np.nan, Y)


def with_other_cached(change):
    """A layer whose cached keys and values are changed when new ones come."""

    def append(cache, K, V):
        return replace(cache, buffers=change(*cache.buffers)).append(K, V)

    return lambda params: cached_layer(append=append)


def counting_in_the_layer(params):
    """A layer that counts its tokens itself, from 0 whenever a cache is made."""
    read = []

    def empty(params, capacity, *, batch, pad):
        read.clear()
        return KVCache.empty(params, capacity, batch=batch, pad=pad)

    def positions(cache, T):
        index = cache.positions(T) - cache.length + len(read)
        read.extend(range(T))
        return index

    return cached_layer(empty=empty, positions=positions)


def forgetting_when_full(params):
    """A layer that begins anew, without a word, where the buffer ends."""

    def begun(cache, T):
        return cache.length if cache.length + T <= cache.capacity else 0

    def append(cache, K, V):
        if not begun(cache, K.shape[-2]):
            K, V = K[..., -cache.capacity :, :], V[..., -cache.capacity :, :]
            cache = KVCache.empty(cache.params, cache.capacity, batch=cache.batch, pad=cache.pad)
        return cache.append(K, V)

    def mask(cache, T):
        if begun(cache, T) or not cache.length:
            return cache.mask(T)[..., -cache.capacity :]
        return np.tri(T, T, dtype=bool)

    return cached_layer(append=append, mask=mask)


def older_sees_newer(params):
    """A layer whose older caches are continued in a copy, behind the newest token."""

    def longest(cache):
        return replace(cache, length=int(cache.written))

    def append(cache, K, V):
        own = cache if cache.length == cache.written else longest(cache).fork()
        return own.append(K, V)

    return cached_layer(
        append=append,
        mask=lambda cache, T: longest(cache).mask(T),
        positions=lambda cache, T: longest(cache).positions(T),
    )


def stored_masks(params):
    """A layer that stores its masks by their number of queries, whatever came before."""
    masks = {}

    def mask(cache, T):
        S = cache.length + T
        if masks.get(T, np.ones((1, 0))).shape[-1] < S:
            masks[T] = cache.mask(T)
        return masks[T][:, :S]

    return cached_layer(mask=mask)


def instead(old, new):
    """The right layer with another piece of source."""
    return lambda params: edited(cached_layer, [Edit("", old, new)])()


STEPS, SEEN, KEYS, SCORES = (
    "T = X.shape[-2]",
    "mask(cache, T)",
    "np.arange(cache.length + T)",
    "attention_scores(Q, K)",
)
BACK = f"({KEYS}[-T:, None] - {KEYS})"  # how far each key is from the token itself
DIFFERS = "chunks of 1: the row of token 1 begins "  # below, … is any text
KEYS_RIGHT = "it attends to the right tokens, but its output differs."
NO_MISTAKE = [  # layers that no planted mistake explains, and how the account of each begins
    (returning(lambda X, cache: None), "not done yet (it returns None)."),
    (returning(lambda X, cache: X), "one chunk: step returned a ndarray; expec"),
    (returning(lambda X, cache: (X[:1], cache)), "one chunk: Y has shape (1, 12) for X of"),
    (returning(lambda X, cache: (X.sort() or X, cache)), "one chunk: step changed its input X"),
    (returning(lambda X: X), "one chunk: step raised TypeError: "),
    (lambda params: (plain(params)[0], lambda: None), "one chunk: empty raised TypeError: "),
    (spoilt(lambda Y, _: Y * np.nan), "one chunk: row 0 of Y holds NaN or infinity; X h"),
    (spoilt(lambda Y, _: 0 * Y), "one chunk of 7: no row changes, whatever token is changed."),
    (
        spoilt(lambda Y, _: np.rint(9 * Y).astype(int)),
        "one chunk: Y is of type int64; expected float32 or",
    ),
    (
        spoilt(lambda Y, _: SimpleNamespace(dtype="torch.bfloat16")),
        "one chunk: Y is of type bfloat16; exp",
    ),
    (
        spoilt(lambda Y, _: np.ma.masked_array(Y, Y > 0)),
        "one chunk: Y is a masked array; fill it, such as",
    ),
    (spoilt(leaves), "one chunk: step raised SystemExit: not done."),
    (
        spoilt(hidden_rows_of_nan),
        "one chunk, padded: row 0 of Y holds NaN…a row of padding, fully masked: give it any fi",
    ),
    (
        instead(
            STEPS, f"{STEPS}\nif cache.length and T > 1:\n    raise NotImplementedError('one')"
        ),
        "chunks of 2: step raised NotImplementedError: one.",
    ),
    (
        spoilt(lambda Y, cache: Y * (1 + (cache.pad is not None))),
        "…padded: token 0 attends to the right tokens, but its row differs.",
    ),
    (
        instead(STEPS, f"X = X if X.ndim == 2 else X[::-1]\n{STEPS}"),
        "one chunk, a batch of 2: the row of token 0 of sequence 0 changes with another sequence.",
    ),
    (with_other_cached(lambda K, V: (K, 0.9 * V)), f"{DIFFERS}…{KEYS_RIGHT}"),
    (with_other_cached(lambda K, V: (np.roll(K, 1, axis=-3), V)), f"{DIFFERS}…{KEYS_RIGHT}"),
    (
        with_other_cached(lambda *both: tuple(A.astype(np.float32).astype(float) for A in both)),
        "chunks of 1: the row of token 1 differs as little as by…in the type of Y, float64.",
    ),
    (stored_masks, "chunks of 2: a sequence, fed again, gives another row of token 0; store"),
    (counting_in_the_layer, "two caches in turns: the row of token 1 differs; let no"),
    (forgetting_when_full, "a full cache: it takes 7 tokens, 2 too many, and the last row"),
    (older_sees_newer, "two continuations of one cache are not independent"),
    (
        instead(
            f"attention_weights({SCORES}, mask=seen)",
            f"np.exp(3 * np.tanh(np.where(seen, {SCORES}, -1e9) / 3))",
        ),
        "every token of a chunk attends to all of it, later ones too.",
    ),
    (instead(SEEN, f"{SEEN} | ({KEYS} < 3)"), "one chunk of 7: token 0 attends to token 2, whi"),
    (instead(SEEN, f"{KEYS} // 2 <= {KEYS}[-T:, None] // 2"), "one chunk of 7: token 0 attends to"),
    (
        instead(SEEN, f"{SEEN} & (({KEYS} < cache.length) | (cache.length == 0))"),
        "chunks of 1: token 1 attends to 0, in one chunk to 0, 1.",
    ),
    (
        instead(SEEN, f"{SEEN} & (({KEYS} < 1) | ({KEYS} >= cache.length))"),
        "cached tokens are lost, or hidden.",
    ),
    (
        instead(SEEN, f"{SEEN} & ({BACK} < 4) ^ (cache.length > 3) * np.isin({BACK}, [3, 4])"),
        "chunks of 1: token 4 attends to 0, 2, 3, 4, in one chunk to 1, 2, 3, 4.",
    ),
    (instead(SCORES, "attention_scores(Q * np.log(2 + cache.length), K)"), DIFFERS),
    (
        instead("positions(cache, T)", "positions(cache, T) * (cache.length == 0)"),
        "the positions stop: the order of cached tokens makes no difference any more.",
    ),
    (
        instead(SCORES, "attention_scores(Q * np.log(cache.capacity), K)"),
        "capacities of 7 and 12 tokens give two results.",
    ),
    (
        instead(
            "cached(cache)",
            "(A[[2, 0, 1]] if len(A) == 3 and A.ndim == 4 else A for A in cached(cache))",
        ),
        "one chunk, padded: the row of token 0 of sequence 0 changes with another sequence.",
    ),
]


@pytest.mark.parametrize(("make", "begins"), NO_MISTAKE)
def test_what_no_planted_mistake_explains_is_told_as_it_shows(make, begins, params, capsys):
    pattern = re.escape(begins).replace("…", ".*")
    assert re.match(f"[✗○] cached: {pattern}", account_lines(*make(params), capsys)[0])
