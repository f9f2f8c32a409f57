"""Wrong forms of the functions of chapter 14."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from tutorial_lib.attention import attention_scores, causal_mask
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, H, normal
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.practice.wrong import masked
from tutorial_lib.projection import Params, project_heads
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.patterns import window_mask

WINDOW = 3


def _layer_of_the_check():
    shapes = (H, D_MODEL, D_K), (H, D_MODEL, D_K), (H, D_MODEL, D_V), (H * D_V, D_MODEL)
    return Params(*(normal(50 + n, *shape) / 3 for n, shape in enumerate(shapes)))


def _right_mask(cache, T):
    return cache.mask(T)


def _right_places(cache, T):
    return cache.positions(T)


def _filled(cache):
    return cache.K, cache.V


def cached_layer(
    *,
    mask=_right_mask,
    places=_right_places,
    keep=KVCache.append,
    kept=_filled,
    empty=KVCache.empty,
):
    """A cached layer that adds its places itself, as (step, empty); each part can be a wrong one.

    Parameters
    ----------
    mask, places : of (cache, T), before the new keys are kept
    keep : of (cache, K, V), the cache with them
    kept : of the cache, the keys and values that are looked at
    empty : of (params, room), the empty cache
    """
    params, P = _layer_of_the_check(), normal(54, 40, D_MODEL)

    def step(X, cache):
        seen, X = mask(cache, X.shape[-2]), X + P[places(cache, X.shape[-2])]
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        cache = keep(cache, K, V)
        K, V = kept(cache)
        weights = masked(attention_scores(Q, K), seen)
        return concat_heads(weights @ V) @ params.W_O, cache

    return step, lambda room, *, batch=(), pad=None: empty(params, room, batch=batch, pad=pad)


def _wrong(name, says, mend, **parts):
    return Mistake(name, says, mend, lambda: cached_layer(**parts))


def _diagonal(shift):
    """A causal mask whose diagonal is moved, padding hidden as it should be."""

    def mask(cache, T):
        S = cache.length + T
        moved = np.tri(T, S, k=cache.length + shift, dtype=bool)
        return cache.mask(T) | moved if shift > 0 else cache.mask(T) & moved

    return mask


def _all(cache, T):
    return np.ones((T, cache.length + T), bool)


def _without_offset(cache, T):
    return np.tri(T, cache.length + T, dtype=bool)


def _window(cache, T, width=WINDOW):
    """A window over all that is kept, padding hidden."""
    return cache.mask(T) & window_mask(T, cache.length + T, width)


def _in_window(*, first=WINDOW, behind=WINDOW):
    """A window of one width in the first piece, and of another behind a cache; None: no window."""

    def mask(cache, T):
        width = behind if cache.length else first
        return cache.mask(T) if width is None else _window(cache, T, width)

    return mask


def _dropped_first(cache, T):
    """The window of the piece's last token, behind which nothing is kept when its first looks."""
    S = cache.length + T
    last = np.arange(S) >= S - WINDOW
    return _window(cache, T) & last if cache.length else _window(cache, T)


def _counted_from_the_buffer(cache, T):
    """The keys of a buffer counted from its start, and the queries from that of the text."""
    S = cache.length + T
    start = max(0, cache.length - WINDOW + 1)
    places, keys = cache.length + np.arange(T)[:, None], np.arange(S) - start
    return _window(cache, T) & (places - keys < WINDOW)


def _window_of_places(cache, T):
    """The queries counted by their places, without padding, and the keys with it."""
    places, keys = cache.positions(T)[..., None], np.arange(cache.length + T)
    near = places - keys < WINDOW
    return cache.mask(T) & (near if cache.pad is None else near[..., None, :, :])


def _first_columns(cache, T):
    """A window, and the first two columns, which padding may stand in."""
    return cache.mask(T) & (_window(cache, T) | (np.arange(cache.length + T) < 2))


def _ring():
    """Rows that a ring would have lost are hidden; a piece as long as it is written from row 0."""

    def empty(params, room, *, batch, pad):
        cache = KVCache.empty(params, room, batch=batch, pad=pad)
        return SimpleNamespace(cache=cache, held=WINDOW * [-1])

    def keep(ring, K, V):
        start, held = ring.cache.length, [*ring.held]
        tokens = range(start, start + K.shape[-2])
        for t in tokens:
            held[t % WINDOW] = t
        held = [*tokens][-WINDOW:] if len(tokens) >= WINDOW else held
        return SimpleNamespace(cache=ring.cache.append(K, V), held=held)

    def mask(ring, T):
        keys = np.arange(ring.cache.length + T)
        return _window(ring.cache, T) & (np.isin(keys, ring.held) | (keys >= ring.cache.length))

    return {
        "empty": empty,
        "keep": keep,
        "mask": mask,
        "places": lambda ring, T: ring.cache.positions(T),
        "kept": lambda ring: _filled(ring.cache),
    }


def _dropout():
    """Values that are left out at random, as while a model learns."""
    rng = np.random.default_rng(0)
    return lambda cache: (cache.K, cache.V * (rng.random(cache.V.shape) < 0.9) / 0.9)


def _most_padding(cache, T):
    """Hide as many keys in each sequence as the most padded one has padding."""
    if cache.pad is None:
        return cache.mask(T)
    return cache.mask(T) & (np.arange(cache.length + T) >= cache.pad.max())


def _room_too(cache, T):
    places, seen = np.arange(cache.room), cache.mask(T)
    wider = np.zeros((*seen.shape[:-1], cache.room), bool)
    wider[..., : seen.shape[-1]] = seen
    return wider | (places >= cache.length + T)


def _unchecked(cache, K, V):
    """Append without asking whether the cache was continued already."""
    return replace(cache, written=np.array(cache.length)).append(K, V)


def _one_place_early(cache, K, V):
    """Write over the newest token that is kept."""
    start, T = max(0, cache.length - 1), K.shape[-2]
    longer = cache.append(K, V)
    for room, rows in zip(longer.rooms, (K, V), strict=True):
        room[..., start : start + T, :] = rows
    return longer


def _forgetful(cache, K, V):
    """Keep the new rows alone, behind nothing."""
    return KVCache.empty(cache.params, cache.room, batch=cache.batch).append(K, V)


def _in_one_room():
    """Every sequence is kept in one room, and none is ever emptied."""
    rooms = {}

    def empty(params, room, *, batch, pad):
        made = KVCache.empty(params, 200, batch=batch, pad=pad)
        return rooms.setdefault((batch, pad is None), [made])

    def keep(caches, K, V):
        caches.append(caches[-1].append(K, V))
        return caches

    return {
        "empty": empty,
        "keep": keep,
        "mask": lambda caches, T: caches[-1].mask(T),
        "places": lambda caches, T: caches[-1].positions(T) % 40,
        "kept": lambda caches: _filled(caches[-1]),
    }


_CACHED = (
    _wrong(
        "no_mask",
        "new tokens look at those behind them: there is no mask",
        "Mask every piece, the first one too: query i of a piece sees the keys up to length + i.",
        mask=_all,
    ),
    _wrong(
        "no_mask_behind_a_cache",
        "the mask is left out as soon as something is kept",
        "A piece of several tokens needs it then too: causal_mask(T, length + T).",
        mask=lambda cache, T: _all(cache, T) if cache.length else cache.mask(T),
    ),
    _wrong(
        "square_mask",
        "a piece of several tokens behind a cache fails, as with a mask of T by T",
        "There are T queries and length + T keys: causal_mask(T, length + T).",
        mask=lambda cache, T: causal_mask(T),
    ),
    _wrong(
        "no_offset",
        "the mask has no offset: query i of a piece sees the first i + 1 keys of all",
        "Its own key stands at length + i: let the diagonal end in the last corner.",
        mask=_without_offset,
    ),
    _wrong(
        "one_ahead",
        "the offset is one too large: a token looks at the next one",
        "Query i of a piece sees the keys up to length + i, and no further.",
        mask=_diagonal(1),
    ),
    _wrong(
        "itself_hidden",
        "the offset is one too small: a token does not look at itself",
        "Query i of a piece sees the keys up to length + i, its own among them.",
        mask=_diagonal(-1),
    ),
    _wrong(
        "window_off_by_one",
        "the window has one key more, or fewer, behind a cache than in one piece",
        "Count the same way in both: a window of w keys holds the token itself and w - 1 before.",
        mask=_in_window(behind=WINDOW + 1),
    ),
    _wrong(
        "window_forgotten",
        "the window is forgotten behind a cache: tokens look further back than in one piece",
        "Hide by the window in every step: window_mask(T, length + T, window).",
        mask=_in_window(behind=None),
    ),
    _wrong(
        "window_behind_a_cache_alone",
        "the window holds behind a cache alone: in one piece tokens look further back",
        "Hide in the first piece too what is too old, or, without a window, keep every row.",
        mask=_in_window(first=None),
    ),
    _wrong(
        "window_shorter",
        "behind a cache the window is shorter than in one piece",
        "Keep a window of w keys whole: w - 1 rows before the first new token.",
        mask=_in_window(first=WINDOW + 2),
    ),
    _wrong(
        "rows_dropped",
        "rows are dropped before the whole piece has looked at them",
        "Look first and drop then: its first token needs the w - 1 rows before it.",
        mask=_dropped_first,
    ),
    _wrong(
        "ring_mask",
        "as soon as old rows are dropped, keys of the window are hidden",
        "Count queries and keys from one start, that of the text or that of the buffer.",
        mask=_counted_from_the_buffer,
    ),
    _wrong(
        "ring_rows",
        "a piece as long as the window is kept in other rows than its tokens one at a time",
        "Token t stands in row t % w, however many come at once.",
        **_ring(),
    ),
    _wrong(
        "window_counts_padding",
        "the window counts padding: it has another width in padded sequences",
        "Count queries and keys alike, both with the padding or both without.",
        mask=_window_of_places,
    ),
    _wrong(
        "room_seen",
        "room that nothing was written into gets weight",
        "Look at the first `length` keys alone, or hide the others: a key of zeros scores 0.",
        mask=_room_too,
        kept=lambda cache: cache.rooms,
    ),
    _wrong(
        "kept_unused",
        "new tokens look at those of their own piece alone",
        "Score against all that is kept, and hand on the longer cache.",
        mask=lambda cache, T: causal_mask(T) & cache.mask(T)[..., -T:],
        keep=_forgetful,
        places=lambda cache, T: np.arange(T),
    ),
    _wrong(
        "overwritten",
        "tokens that were kept are gone: later ones are written over them",
        "Write behind the last row: at length, up to length + T.",
        keep=_one_place_early,
    ),
    _wrong(
        "stale",
        "a new cache is not empty: it knows what was read before",
        "Make new room for each sequence; a default argument or a global is made once.",
        **_in_one_room(),
    ),
    _wrong(
        "dropout",
        "the same tokens give other rows each time: something is drawn at random",
        "Switch dropout off before you check, and before you generate: model.eval().",
        kept=_dropout(),
    ),
    _wrong(
        "used_twice",
        "two continuations of one cache write into the same room",
        "Refuse a cache that was continued already, or copy it first, as KVCache.fork does.",
        keep=_unchecked,
    ),
    _wrong(
        "places_restart",
        "the places begin at 0 again with each piece",
        "The first new token stands at the place behind the last kept one.",
        places=lambda cache, T: np.arange(T),
    ),
    _wrong(
        "places_stop",
        "the places stop where rows are dropped: they are counted from what is left",
        "Keep the number of all tokens read beside the rows, and count on from it.",
        places=lambda cache, T: np.minimum(cache.length, WINDOW) + np.arange(T),
        mask=_window,
    ),
    _wrong(
        "other_behind_a_cache",
        "behind a cache new tokens get other places than in one piece, or another scale, cap or "
        "sink",
        "Place the first new token behind the last kept one, counted from 0; leave the rest as it "
        "is in one piece.",
        places=lambda cache, T: cache.positions(T) + (cache.length > 0),
    ),
    _wrong(
        "padding_seen",
        "padding is looked at",
        "Hide the first pad keys of each sequence, in every step.",
        mask=lambda cache, T: causal_mask(T, cache.length + T),
    ),
    _wrong(
        "words_hidden",
        "words are hidden in padded sequences",
        "Hide the first pad keys of each sequence, by its own number, and no others.",
        mask=_most_padding,
    ),
    _wrong(
        "kept_counts_padding",
        "the first rows, which are kept for ever, are those of padding",
        "Count the rows that stay from the first word of each sequence: pad, pad + 1, …",
        mask=_first_columns,
    ),
    _wrong(
        "places_count_padding",
        "the places count padding",
        "The first word stands at place 0: take the padding of its sequence away.",
        places=lambda cache, T: np.arange(cache.length, cache.length + T),
    ),
)


def _tri(length, T, room, shift=0):
    """The diagonal of a causal mask over the whole room, moved."""
    return np.tri(T, room, k=length + shift, dtype=bool)


def _places(length, T, room):
    return np.broadcast_to(np.arange(room), (T, room))


_ROOM_MASK = (
    Mistake(
        "own_piece_alone",
        "it hides what is kept: the mask is that of the piece alone",
        "All kept tokens come before the new ones: every query sees them.",
        lambda length, T, room: _tri(length, T, room) & (_places(length, T, room) >= length),
    ),
    Mistake(
        "no_offset",
        "query i sees the first i + 1 keys of all: the mask has no offset",
        "Query i is token length + i: it sees the keys up to that place.",
        lambda length, T, room: _tri(0, T, room),
    ),
    Mistake(
        "no_mask",
        "every query sees all tokens of its piece, those behind it too",
        "Query i sees the keys up to length + i alone.",
        lambda length, T, room: _places(length, T, room) < length + T,
    ),
    Mistake(
        "one_ahead",
        "the offset is one too large: a query sees the token behind it",
        "Query i sees the keys up to length + i, counted from 0.",
        lambda length, T, room: _tri(length, T, room, 1),
    ),
    Mistake(
        "itself_hidden",
        "the offset is one too small: a query does not see its own token",
        "Query i sees its own key too, at length + i.",
        lambda length, T, room: _tri(length, T, room, -1),
    ),
    Mistake(
        "corner_of_the_room",
        "the diagonal ends in the last corner of the room, so empty rows are seen",
        "It ends at length + T - 1, the last token: behind that the room is empty.",
        lambda length, T, room: causal_mask(T, room),
    ),
    Mistake(
        "numbers",
        "it returns numbers, and a mask says True or False",
        "Compare, or give np.tri the type: dtype=bool.",
        lambda length, T, room: np.tri(T, room, k=length),
    ),
)


def _users(numbers):
    """How many caches fit, if a token leaves so many numbers, a function of the model."""
    return lambda free, tokens, model, bits: int(free * 8 // (tokens * numbers(model) * bits))


def _both(model):
    return model["d_k"] + model["d_v"]


_right_users = _users(lambda model: model["layers"] * model["kv_heads"] * _both(model))
_USERS_THAT_FIT = (
    Mistake(
        "keys_alone",
        "it counts the keys and forgets the values",
        "A token leaves both in every layer: d_k + d_v numbers for each head.",
        _users(lambda model: model["layers"] * model["kv_heads"] * model["d_k"]),
    ),
    Mistake(
        "query_heads",
        "it counts a key and a value for each query head",
        "Kept are those of the key heads: kv_heads, which query heads share.",
        _users(lambda model: model["layers"] * model["heads"] * _both(model)),
    ),
    Mistake(
        "width_of_the_model",
        "it counts 2 · d_model numbers a layer, which holds only where no heads are shared",
        "Count heads: kv_heads · (d_k + d_v).",
        _users(lambda model: model["layers"] * 2 * model["d_model"]),
    ),
    Mistake(
        "one_layer",
        "it counts one layer",
        "Each layer keeps keys and values of its own: multiply by layers.",
        _users(lambda model: model["kv_heads"] * _both(model)),
    ),
    Mistake(
        "bits_for_bytes",
        "it takes bits for bytes",
        "A byte has 8 bits: divide by 8.",
        lambda free, tokens, model, bits: _right_users(free, tokens, model, 8 * bits),
    ),
)


def _counted(is_token):
    """How many words each sequence has, up to each place and with it."""
    return np.cumsum(is_token, axis=-1)


_PLACES_OF_NEW = (
    Mistake(
        "padding_counted",
        "padding is counted: all sequences get the same places",
        "Count the words of each sequence, is_token, and not its columns.",
        lambda is_token, T: np.broadcast_to(
            np.arange(is_token.shape[-1] - T, is_token.shape[-1]), (len(is_token), T)
        ),
    ),
    Mistake(
        "begun_anew",
        "the places of each piece begin at 0",
        "The words that are kept come first: count them too, and cut off the last T at the end.",
        lambda is_token, T: np.maximum(_counted(is_token[..., -T:]) - 1, 0),
    ),
    Mistake(
        "from_1",
        "the first word stands at place 1",
        "Take 1 away: the sum up to the first word is 1, and its place is 0.",
        lambda is_token, T: _counted(is_token)[..., -T:],
    ),
    Mistake(
        "padding_below_0",
        "padding stands at place -1, which is the last row of a table of places",
        "Give padding place 0: np.maximum(..., 0).",
        lambda is_token, T: (_counted(is_token) - 1)[..., -T:],
    ),
)

MISTAKES = {
    "cached": _CACHED,
    "room_mask": _ROOM_MASK,
    "users_that_fit": _USERS_THAT_FIT,
    "places_of_new": _PLACES_OF_NEW,
}
