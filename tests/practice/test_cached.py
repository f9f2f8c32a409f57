"""`check_cached` names what is wrong with a layer that caches keys and values, and accepts others.

Its mistakes are planted here, since they are layers and no single functions.
"""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.practice.rooms import ROOMS, ending
from tutorial_lib import attention_scores, attention_weights, checks, concat_heads, project_heads
from tutorial_lib.practice import feeding
from tutorial_lib.practice.ch14_kv_cache.mistakes import cached_layer
from tutorial_lib.practice.mistake import Edit, edited, named
from tutorial_lib.variants.cache import KVCache, decode_step
from tutorial_lib.variants.patterns import window_mask

NAME = "cached"
PLANTED = ROOMS["14_kv_cache"].MISTAKES[NAME]


def said(step, empty, capsys, **options):
    """The sentences of the account, each on one line."""
    checks.check_cached(step, empty, **options)
    return capsys.readouterr().out.replace("\n    ", " ").splitlines()


@pytest.mark.parametrize("mistake", PLANTED, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_named_and_said_how_to_mend(mistake, capsys):
    first, seen, *end = said(*mistake.of(cached_layer)(), capsys)
    assert first == f"✗ cached: {mistake.says}."
    assert end == ending(mistake)
    assert seen.startswith("  ")
    assert seen.endswith(".")


def test_every_planted_mistake_is_another():
    assert len({mistake.says for mistake in PLANTED}) == len({m.name for m in PLANTED}) == 27


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

    def mask(cache, T):
        return cache.mask(T) & window_mask(T, cache.length + T, behind if cache.length else first)

    return cached_layer(mask=mask)


def windowed(width, _params):
    """The same with one window."""
    return windows(width, width)


def of_the_window(width, T, rows, length):
    """What the last T of so many tokens see of the rows that are left of them."""
    return window_mask(T, length, width)[:, length - rows :]


def rolling(width, params, *, stored=None, early=lambda length: False, sees=of_the_window, none=1):
    """A layer that caches only the last rows: `width` - 1, which a chunk attends to first.

    Parameters
    ----------
    stored : number of cached rows, if it is another
    early : of the tokens before, whether the rows are dropped before the chunk attends
    sees : of (width, T, rows, length), the mask
    none : what the sum of no weights counts as
    """

    def empty(capacity, *, batch=(), pad=None):
        pad = np.zeros(batch, int) if pad is None else pad
        return np.zeros((*batch, 3, 0, 4)), np.zeros((*batch, 3, 0, 7)), 0, pad

    def last(A, rows):
        return A[..., max(0, A.shape[-2] - rows) :, :]

    def step(X, cache):
        *old, length, pad = cache
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        K, V = (np.concatenate(pair, axis=-2) for pair in zip(old, (K, V), strict=True))
        K, V = (last(A, width) for A in (K, V)) if early(length) else (K, V)
        length, rows = length + X.shape[-2], K.shape[-2]
        real = np.arange(length - rows, length) >= pad[..., None, None, None]
        exps = np.exp(attention_scores(Q, K)) * (sees(width, X.shape[-2], rows, length) & real)
        total = exps.sum(axis=-1, keepdims=True)
        heads = exps / np.where(total > 0, total, none) @ V
        stay = width - 1 if stored is None else stored
        return concat_heads(heads) @ params.W_O, (last(K, stay), last(V, stay), length, pad)

    return step, empty


def plain(params):
    """The layer of chapter 06, without positions."""
    empty = partial(KVCache.empty, params)
    return (lambda X, cache: decode_step(X, params, cache)), empty


def single(params_32):
    """The same in single precision."""
    step, empty = plain(params_32)
    return (lambda X, cache: step(X.astype(np.float32), cache)), empty


RIGHT = plain, by_lists, *(partial(make, n) for make in (windowed, rolling) for n in (1, 8))


@pytest.mark.parametrize("make", RIGHT)
def test_a_right_layer_is_right(make, params, capsys):
    assert said(*make(params), capsys) == [
        "✓ cached: right on",
        "  24 tokens in even and uneven chunks; windows of up to 20 keys;",
        "  capacity to spare; a batch; padding at the left.",
    ]


NO_WINDOW = 99


@pytest.mark.parametrize(
    ("first", "behind", "name"),
    [
        (6, NO_WINDOW, "window_forgotten"),  # 6 of 7 look like one fewer than all
        (6, 7, "window_off_by_one"),
        (8, 9, "window_off_by_one"),  # both wider than the short text
        (3, 2, "window_off_by_one"),
        (NO_WINDOW, 8, "window_only_behind_a_cache"),
        (8, 5, "window_shorter"),
    ],
)
def test_a_window_that_changes_behind_a_cache_is_named_whatever_its_width(
    first, behind, name, capsys
):
    told = said(*windows(first, behind), capsys)[0]
    assert told == f"✗ cached: {named(PLANTED, name).says}."


def test_a_wide_window_that_counts_padding_is_named(capsys):
    def mask(cache, T):
        seen = window_mask(T, cache.length + T, 8)
        if cache.pad is not None:
            keys = np.arange(cache.length + T)
            seen = cache.positions(T)[:, None, :, None] - keys < 8
        return cache.mask(T) & seen

    first, seen, *_ = said(*cached_layer(mask=mask), capsys)
    assert first == f"✗ cached: {named(PLANTED, 'window_counts_padding').says}."
    assert seen.startswith("  chunks of 5, padded: token 8 attends to 0, 1, 2, 3, 4, 5, 6, 7, 8,")


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
        Q, *new = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        rows = np.arange(width) if rolled and width <= T else tokens[-width:] % width
        stored = [written(*pair, rows) for pair in zip(old, new, strict=True)]
        now = written(held[:, None], tokens[:, None], rows)[:, 0]
        K, V = (np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))
        keys = np.concatenate([held, tokens])
        if first and T == 1:
            (K, V), keys = stored, now
        seen = (keys <= tokens[:, None]) & (keys > tokens[:, None] - width)
        real = keys >= pad[..., None, None, None]
        weights = attention_weights(attention_scores(Q, K), mask=seen & real)
        return concat_heads(weights @ V) @ params.W_O, (*stored, now, length + T, pad)

    return step, empty


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("width", [3, 4, 5, 7, 9, 11, 12, 16, 18, 20])
def test_a_ring_to_which_long_chunks_are_written_from_row_0_is_named(width, first, params, capsys):
    told = said(*in_a_ring(width, params, first=first, rolled=True), capsys)[0]
    assert told == f"✗ cached: {named(PLANTED, 'ring_rows').says}."


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 9, 20])
def test_a_right_ring_is_right(width, first, params, capsys):
    assert said(*in_a_ring(width, params, first=first), capsys)[0] == "✓ cached: right on"


def test_every_window_that_the_account_speaks_of_meets_a_long_chunk_that_ends_within_a_round():
    for width in range(3, feeding.WIDEST + 1):
        ends = [sum(n[:-1]) for n in feeding.LONG_CHUNKS if not isinstance(n, int)]
        assert any(end >= width and end % width >= 2 for end in ends if end <= feeding.LONG - 2)


@pytest.mark.parametrize("width", [feeding.WIDEST, feeding.LONG - 1])
def test_a_wide_window_that_is_forgotten_behind_a_cache_is_named(width, capsys):
    told = said(*windows(width, NO_WINDOW), capsys)[0]
    names = "window_forgotten", "window_off_by_one"  # one more is all that so few tokens show
    assert told in {f"✗ cached: {named(PLANTED, name).says}." for name in names}


def columns(first, from_the_tokens):
    """A window of 3 keys, and the first columns, or the first tokens, for ever."""

    def mask(cache, T):
        keys = np.arange(cache.length + T)
        start = 0 if cache.pad is None or not from_the_tokens else cache.pad[..., None, None, None]
        return cache.mask(T) & (window_mask(T, len(keys), 3) | (keys - start < first))

    return cached_layer(mask=mask)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_first_tokens_that_are_cached_for_ever_are_right_and_columns_of_padding_are_named(
    first, capsys
):
    assert said(*columns(first, from_the_tokens=True), capsys)[0] == "✓ cached: right on"
    told = said(*columns(first, from_the_tokens=False), capsys)[0]
    assert told == f"✗ cached: {named(PLANTED, 'sinks_count_padding').says}."


def of_its_round(width, T, rows, length):
    """Behind a cache, slots of a ring seen up to the query's own, and none of its last round."""
    own, keys = np.arange(length - T, length)[:, None], np.arange(length - rows, length)
    old = (length > T) & (keys < own // width * width)
    return of_the_window(width, T, rows, length) & ~old


def from_the_buffer(width, T, rows, length):
    """Keys counted from the start of the buffer, queries from that of the sequence."""
    own = np.arange(length - T, length)[:, None]
    return of_the_window(width, T, rows, length) & (own - np.arange(rows) < width)


def all_that_is_cached(width, T, rows, length):
    """Whatever is in the buffer, causally: there is no window but what was dropped."""
    return of_the_window(NO_WINDOW, T, rows, length)


@pytest.mark.parametrize(
    ("name", "width", "parts"),
    [
        ("rows_dropped", 8, {"early": lambda length: True}),
        ("rows_dropped", 3, {"early": lambda length: length > 0}),
        ("ring_mask", 8, {"sees": of_its_round}),
        ("ring_mask", 3, {"sees": from_the_buffer}),
        ("window_only_behind_a_cache", 3, {"sees": all_that_is_cached}),
    ],
)
def test_what_goes_wrong_where_old_rows_are_dropped_is_named(name, width, parts, params, capsys):
    told = said(*rolling(width, params, **parts), capsys)[0]
    assert told == f"✗ cached: {named(PLANTED, name).says}."


def test_rows_of_nan_in_a_chunk_longer_than_the_window_are_named(params, capsys):
    first, seen, *_ = said(*rolling(3, params, early=lambda length: True, none=0), capsys)
    assert first == f"✗ cached: {named(PLANTED, 'rows_dropped').says}."
    assert seen == "  one chunk of 7: row 0 holds NaN or infinity; of 3 none does."


def test_a_buffer_whose_ninth_row_replaces_the_first_is_found(params, capsys):
    first, seen, *_ = said(*rolling(NO_WINDOW, params, stored=7), capsys)
    assert first == f"✗ cached: {named(PLANTED, 'window_only_behind_a_cache').says}."
    assert seen.startswith("  chunks of 1: token 8 attends to 1, 2, 3, 4, 5, 6, 7, 8, in one chunk")


def test_a_layer_with_positions_is_right(capsys):
    assert said(*cached_layer(), capsys)[0] == "✓ cached: right on"


def test_a_layer_in_single_precision_is_right(params_32, capsys):
    assert said(*single(params_32), capsys)[0] == "✓ cached: right on"


def test_another_width_is_asked_with_inputs_of_that_width(capsys):
    example = checks_example()
    step, empty = plain(example.params)
    assert said(step, empty, capsys, d_model=8)[0] == "✓ cached: right on"
    assert "expected (..., T, d_model) with d_model=8" in said(step, empty, capsys)[0]


def checks_example():
    """The layer of Part I, whose d_model is 8."""
    from tutorial_lib import running_example

    return running_example()


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda X, cache: None, "○ cached: not done yet (it returns None)."),
        (lambda X, cache: X, "✗ cached: one chunk: step returned a ndarray; expected (Y, cache)."),
        (lambda X, cache: (X[:1], cache), "✗ cached: one chunk: Y has shape (1, 12) for X of"),
        (lambda X, cache: (X.sort() or X, cache), "✗ cached: one chunk: step changed its input X"),
        (lambda X: X, "✗ cached: one chunk: step raised TypeError: "),
    ],
)
def test_what_is_no_step_is_told(step, says, capsys):
    assert said(step, lambda capacity, **options: None, capsys)[0].startswith(says)


def test_a_cache_that_cannot_be_made_is_told(params, capsys):
    step, _ = plain(params)
    assert "one chunk: empty raised TypeError: " in said(step, lambda: None, capsys)[0]


def test_keys_cached_for_values_are_told_with_the_row(capsys):
    def append(cache, K, V):
        longer = cache.append(K, V)
        longer.buffers[1][..., : cache.length, : K.shape[-1]] = cache.K
        return longer

    step, empty = cached_layer(append=append, positions=lambda cache, T: np.zeros(T, int))
    [first] = said(step, empty, capsys)
    assert first.startswith("✗ cached: chunks of 1: the row of token 1 begins ")
    assert first.endswith("it attends to the right tokens, but its output differs.")


def test_a_batch_whose_sequences_are_read_as_one_is_told(params, capsys):
    step, empty = plain(params)

    def mixed(X, cache):
        return step(X, cache) if X.ndim == 2 else step(X[::-1], cache)

    assert said(mixed, empty, capsys) == [
        "✗ cached: one chunk, a batch of 2: the row of token 0 of sequence 0 changes with another "
        "sequence."
    ]


def spoilt(spoil, params):
    """The plain layer, its rows changed on the way out."""
    step, empty = plain(params)

    def other(X, cache):
        Y, cache = step(X, cache)
        return spoil(Y), cache

    return other, empty


def cached_coarsely(params):
    """The plain layer, whose old keys and values are rounded when new ones come."""

    def append(cache, K, V):
        for buffer in cache.buffers:
            buffer[...] = buffer.astype(np.float32)
        return cache.append(K, V)

    return cached_layer(append=append)


def leaves(Y):
    raise SystemExit("not done")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda Y: np.full_like(Y, np.nan), "one chunk: row 0 of Y holds NaN or infinity; X holds"),
        (lambda Y: 0 * Y, "one chunk of 7: no row changes, whatever token is changed."),
        (
            lambda Y: np.rint(9 * Y).astype(int),
            "one chunk: Y is of type int64; expected float32 or",
        ),
        (
            lambda Y: SimpleNamespace(dtype="torch.bfloat16"),
            "one chunk: Y is of type bfloat16; exp",
        ),
        (
            lambda Y: np.ma.masked_array(Y, Y > 0),
            "one chunk: Y is a masked array; fill it, such as",
        ),
        (leaves, "one chunk: step raised SystemExit: not done."),
    ],
)
def test_rows_that_are_no_rows_of_a_layer_are_told(spoil, says, params, capsys):
    assert said(*spoilt(spoil, params), capsys)[0].startswith(f"✗ cached: {says}")


def test_a_row_of_padding_that_is_no_number_is_told_as_one(params, capsys):
    step, empty = plain(params)

    def other(X, cache):
        first = cache.length
        Y, cache = step(X, cache)
        pad = getattr(cache, "pad", None)
        if pad is not None:
            now = first + np.arange(X.shape[-2])
            Y = np.where((now < np.asarray(pad)[..., None])[..., None], np.nan, Y)
        return Y, cache

    [seen] = said(other, empty, capsys)
    assert ", padded: row 0 of Y holds NaN or infinity; X holds neither. It is a row" in seen
    assert "of padding, fully masked: give it any finite numbers." in seen


def test_a_cache_of_less_precision_than_its_rows_is_told_so(params, capsys):
    [first] = said(*cached_coarsely(params), capsys)
    assert first.startswith("✗ cached: chunks of 1: the row of token 1 differs as little as by")
    assert first.endswith("cache K and V in the type of Y, float64.")


def counting_in_the_layer():
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


def cached_in_the_module():
    """A layer that holds one cache for all, emptied whenever a cache is made."""
    newest = []

    def empty(params, capacity, *, batch, pad):
        newest[:] = [KVCache.empty(params, capacity, batch=batch, pad=pad)]
        return newest

    def append(caches, K, V):
        newest[:] = [newest[0].append(K, V)]
        return newest

    return cached_layer(
        empty=empty,
        append=append,
        mask=lambda caches, T: caches[0].mask(T),
        positions=lambda caches, T: caches[0].positions(T),
        cached=lambda caches: (caches[0].K, caches[0].V),
    )


def padded_in_the_first_only():
    """A layer that knows the padding of the first sequence, and of no other."""

    def empty(params, capacity, *, batch, pad):
        pad = None if pad is None else pad * (np.arange(len(pad)) == 0)
        return KVCache.empty(params, capacity, batch=batch, pad=pad)

    return cached_layer(empty=empty)


def forgetting_when_full():
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


def older_sees_newer():
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


def stored_masks():
    """A layer that stores its masks by their number of queries, whatever came before."""
    masks = {}

    def mask(cache, T):
        S = cache.length + T
        if masks.get(T, np.ones((1, 0))).shape[-1] < S:
            masks[T] = cache.mask(T)
        return masks[T][:, :S]

    return cached_layer(mask=mask)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (stored_masks, "chunks of 2: a sequence, fed again, gives another row of token 0; store"),
        (counting_in_the_layer, "two caches in turns: the row of token 1 differs; let no"),
        (cached_in_the_module, "two caches in turns: the row of token "),
        (padded_in_the_first_only, "tokens attend to padding"),
        (forgetting_when_full, "a full cache: it takes 7 tokens, 2 too many, and the last row"),
        (older_sees_newer, "two continuations of one cache are not independent"),
    ],
)
def test_what_one_cache_does_not_show_is_told(make, says, capsys):
    assert said(*make(), capsys)[0].startswith(f"✗ cached: {says}")


SEEN, KEYS, SCORES = "mask(cache, T)", "np.arange(cache.length + T)", "attention_scores(Q, K)"
BACK = f"({KEYS}[-T:, None] - {KEYS})"  # how far each key is from the token itself
WEIGHTS = f"attention_weights({SCORES}, mask=seen)"
NO_CAUSE = {  # what a layer does in place of a piece of the right one, and how its account begins
    "a soft cap after the mask": (
        WEIGHTS,
        f"np.exp(3 * np.tanh(np.where(seen, {SCORES}, -1e9) / 3))",
        "every token of a chunk attends to all of it, later ones too.",
    ),
    "a prefix": (SEEN, f"{SEEN} | ({KEYS} < 3)", "one chunk of 7: token 0 attends to token 2, whi"),
    "blocks": (
        SEEN,
        f"{KEYS} // 2 <= {KEYS}[-T:, None] // 2",
        "one chunk of 7: token 0 attends to",
    ),
    "attending before appending": (
        SEEN,
        f"{SEEN} & (({KEYS} < cache.length) | (cache.length == 0))",
        "chunks of 1: token 1 attends to 0, in one chunk to 0, 1.",
    ),
    "only the first chunk cached": (
        SEEN,
        f"{SEEN} & (({KEYS} < 1) | ({KEYS} >= cache.length))",
        "cached tokens are lost, or hidden.",
    ),
    "a ring read as it lies": (
        SEEN,
        f"{SEEN} & ({BACK} < 4) ^ (cache.length > 3) * np.isin({BACK}, [3, 4])",
        "chunks of 1: token 4 attends to 0, 2, 3, 4, in one chunk to 1, 2, 3, 4.",
    ),
    "a temperature of the length": (
        SCORES,
        "attention_scores(Q * np.log(2 + cache.length), K)",
        "chunks of 1: the row of token 1 begins ",
    ),
    "no positions after cached tokens": (
        "positions(cache, T)",
        "positions(cache, T) * (cache.length == 0)",
        "the positions stop: the order of cached tokens makes no difference any more.",
    ),
    "a temperature of the capacity": (
        SCORES,
        "attention_scores(Q * np.log(cache.capacity), K)",
        "capacities of 7 and 12 tokens give two results.",
    ),
    "beams in another order": (
        "cached(cache)",
        "(A[::-1] if A.ndim == 4 else A for A in cached(cache))",
        "one chunk, a batch of 2: the row of token 0 of sequence 0 changes with another sequence.",
    ),
    "beams of three in another order": (
        "cached(cache)",
        "(A[[2, 0, 1]] if len(A) == 3 and A.ndim == 4 else A for A in cached(cache))",
        "one chunk, padded: the row of token 0 of sequence 0 changes with another sequence.",
    ),
}


@pytest.mark.parametrize("name", NO_CAUSE)
def test_no_cause_is_told_that_the_rows_do_not_show(name, capsys):
    old, new, begins = NO_CAUSE[name]
    layer = edited(cached_layer, [Edit("", old, new)])
    assert said(*layer(), capsys)[0].startswith(f"✗ cached: {begins}")


def decayed(cache, K, V):
    """Cached values shrink with each chunk."""
    buffers = cache.buffers[0], 0.9 * cache.buffers[1]
    return replace(cache, buffers=buffers).append(K, V)


def at_another_head(cache, K, V):
    """Cached keys are exchanged with those of other heads."""
    buffers = np.roll(cache.buffers[0], 1, axis=-3), cache.buffers[1]
    return replace(cache, buffers=buffers).append(K, V)


@pytest.mark.parametrize("append", [decayed, at_another_head])
def test_positions_are_named_only_where_they_explain_what_differs(append, capsys):
    [first] = said(*cached_layer(append=append), capsys)
    assert first.startswith("✗ cached: chunks of 1: the row of token 1 begins ")
    assert first.endswith("it attends to the right tokens, but its output differs.")


def test_positions_are_not_blamed_for_padding_where_there_are_none(params, capsys):
    step, empty = plain(params)

    def other(X, cache):
        Y, cache = step(X, cache)
        return Y * (1 + (cache.pad is not None)), cache

    [first] = said(other, empty, capsys)
    assert first.endswith("padded: token 0 attends to the right tokens, but its row differs.")


def test_a_layer_that_does_not_do_chunks_yet_is_told_in_its_words(params, capsys):
    step, empty = plain(params)

    def one_at_a_time(X, cache):
        if cache.length and X.shape[-2] > 1:
            raise NotImplementedError("one token a step")
        return step(X, cache)

    [first] = said(one_at_a_time, empty, capsys)
    assert first == "✗ cached: chunks of 2: step raised NotImplementedError: one token a step."
