"""Feed a cached layer in chunks, and find out from its rows where it goes wrong.

A layer is tested from outside: when a token is changed, the rows that change are those of queries
that attend to it. The rows of one chunk are compared with those of several, the rows of a batch
with those of each sequence by itself, padded rows with unpadded ones.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tutorial_lib.practice.calls import Unreadable, as_arrays
from tutorial_lib.practice.inputs import normal

T = 7  # 1 + 1 + …, 2 + 2 + 2 + 1, 3 + 3 + 1, 7: each cut has another end
CHUNKS = 1, 2, 3, (T - 2, 1)
LONG = 24  # goes round a buffer of 8 three times
WIDEST = 20  # of these windows w some long chunk ends at 2, 3, … (mod w), with two tokens to come
LONG_CHUNKS = 1, 5, 9, (17, 1), (22, 1), (1, 16, 1), (5, 17, 1)
NOT_DONE = "not done yet"


class Found(Exception):
    """What is wrong: the name of a mistake, or "", and what was observed."""

    def __init__(self, name, seen):
        super().__init__(name, seen)
        self.name, self.seen = name, seen


@dataclass(frozen=True)
class Layer:
    """A reader's layer: `step(X, cache)` → (Y, cache), and `empty(capacity, batch=…, pad=…)`."""

    step: object
    empty: object
    d_model: int

    def sampled(self, seed, *lead, tokens=T):
        """New input, (..., tokens, d_model)."""
        return normal(seed, *lead, tokens, self.d_model)

    def fed(self, X, n, *, pad=None, more=0):
        """The rows of X, fed in `chunks` of n; `more` is capacity beyond its end."""
        label = "one chunk" if n == LONG or n == X.shape[-2] else said(n)
        label += ", padded" if pad is not None else ", a batch" if X.ndim > 2 else ""
        cache = self.made(label, X.shape[-2] + more, X.shape[:-2], pad)
        rows = []
        for start, end in chunks(n, X.shape[-2]):
            padding = None if pad is None else np.asarray(pad) - start
            Y, cache = self.stepped(label, X[..., start:end, :], cache, padding)
            rows.append(Y)
        return np.concatenate(rows, axis=-2)

    def made(self, label, capacity, batch, pad):
        """An empty cache."""
        try:
            options = {} if pad is None and batch == () else {"batch": batch, "pad": pad}
            return self.empty(capacity, **options)
        except BaseException as error:  # of a reader's layer, so SystemExit too
            raise Found("", f"{label}: empty{_said(error)}") from error

    def stepped(self, label, X, cache, padding=None):
        """One step, its rows as an array; `padding` tokens of each sequence are padding."""
        given = X.copy()
        try:
            with np.errstate(all="ignore"):
                out = self.step(given, cache)
        except BaseException as error:
            raise Found("", f"{label}: step{_said(error)}") from error
        if out is None:
            raise Found(NOT_DONE, "")
        if not isinstance(out, tuple) or len(out) != 2:
            raise Found("", f"{label}: step returned a {type(out).__name__}; expected (Y, cache)")
        if not np.array_equal(given, X):
            raise Found("", f"{label}: step changed its input X; compute with a copy of it")
        return _rows(label, out[0], X, padding), out[1]


def chunks(n, length):
    """Where chunks of n tokens begin and end; of (5, 2, 1): one of 5, one of 2, all others of 1."""
    sizes = (n,) if isinstance(n, int) else n
    ends = np.cumsum([*sizes, *length * sizes[-1:]])
    return list(pairwise([0, *map(int, ends[ends < length]), length]))


def said(n):
    """Chunks of n in words."""
    if isinstance(n, int):
        return f"chunks of {n}"
    *first, last = n
    return f"chunks of {', '.join(map(str, first))}, then of {last}"


def _rows(label, Y, X, padding):
    """The rows of a step as an array of finite floats, one for each token."""
    expected = "float32 or float64, so that mistakes are distinguishable from rounding"
    try:
        Y = as_arrays(Y)
        kind = str(getattr(Y, "dtype", type(Y).__name__)).removeprefix("torch.")
    except Unreadable as error:
        raise Found("", f"{label}: Y is {error}") from error
    except Exception as error:
        kind = f"{type(Y).__name__}, which raised {type(error).__name__} when read"
    if kind not in ("float16", "float32", "float64"):
        raise Found("", f"{label}: Y is of type {kind}; expected {expected}")
    if Y.shape[:-1] != X.shape[:-1]:
        raise Found("", f"{label}: Y has shape {Y.shape} for X of shape {X.shape}")
    finite = np.isfinite(Y).all(axis=-1)
    if not finite.all():
        *sequence, t = np.argwhere(~finite)[0]
        said = f"{label}: row {t} of Y holds NaN or infinity; X holds neither"
        if padding is not None and t < padding[tuple(sequence)]:
            said += ". It is a row of padding, fully masked: give it any finite numbers"
        raise Found("", said)
    return Y


def _said(error):
    return f" raised {type(error).__name__}: {error}".rstrip(".: ")


def differ(one, other):
    """Which rows of two results differ, by more than rounding."""
    scale = max(1.0, float(np.abs(one).max()))
    small = np.sqrt(np.finfo(one.dtype).eps) * scale
    return ~(np.abs(one - other).max(axis=-1) <= small)


def attended(layer, X, n, rows, *, pad=None):
    """[..., t, s]: whether the row of token t changes with token s, fed n at a time."""
    variants = [X.copy() for _ in range(X.shape[-2] + 1)]
    for s, changed in enumerate(variants[:-1]):
        changed[..., s, :] = layer.sampled(100 + s)[0]
    others = _together(layer, variants, n, rows, pad)
    if others is None:
        others = [layer.fed(one, n, pad=pad) for one in variants[:-1]]
    return np.stack([differ(rows, other) for other in others], axis=-1)


def _together(layer, variants, n, rows, pad):
    """The rows of changed inputs, fed as one batch to save time; None if the last come out wrong.

    The last input is the one whose rows are known.
    """
    batch = np.stack(variants)
    pads = None if pad is None else np.tile(pad, len(variants))
    with suppress(Found):
        found = layer.fed(batch.reshape(-1, *batch.shape[-2:]), n, pad=pads)
        *others, same = found.reshape(*batch.shape[:-1], -1)
        if not differ(rows, same).any():
            return others
    return None


def ask(layer):
    """Run every test, and stop at the first thing that is wrong."""
    X = layer.sampled(91)
    whole = _ask_rows(layer, X)
    _ask_state(layer, X, whole)
    seen = attended(layer, X, T, whole)
    _ask_one_chunk(layer, X, seen)
    _ask_buffer(layer, X, whole)
    for n in CHUNKS:
        _ask_chunks(layer, X, n, whole, seen)
    _ask_two(layer, X, whole)
    _ask_full(layer, X, whole)
    _ask_branches(layer, X, whole)
    _ask_batch(layer)
    _ask_padded(layer, layer.sampled(95, 3), (T, *CHUNKS))
    _ask_long(layer)


def _ask_long(layer):
    """A window, or a ring buffer, shows only in a sequence that is longer than it."""
    X = layer.sampled(97, tokens=LONG)
    whole = _ask_rows(layer, X)
    seen = attended(layer, X, LONG, whole)
    _ask_one_chunk(layer, X, seen)
    for n in LONG_CHUNKS:
        _ask_chunks(layer, X, n, whole, seen)
    _ask_padded(layer, layer.sampled(98, 3, tokens=LONG), LONG_CHUNKS[1:2])


def _ask_rows(layer, X):
    """The rows of one chunk; for NaN the cause is named, if it can be found."""
    try:
        return layer.fed(X, LONG)
    except Found as found:
        if "row 0 of Y holds NaN" in found.seen:
            for n in range(len(X) - 1, 0, -1):
                if _is_finite(layer, X[:n]):
                    seen = f"one chunk of {len(X)}: row 0 holds NaN or infinity; of {n} none does"
                    raise Found("rows_dropped", seen) from found
        raise


def _is_finite(layer, X):
    """Whether the layer takes a sequence in one chunk."""
    with suppress(Found):
        layer.fed(X, LONG)
        return True
    return False


def _ask_state(layer, X, whole):
    """A new cache must not depend on another sequence, and nothing may be random."""
    layer.fed(layer.sampled(92), T)
    if differ(whole, layer.fed(X, T)).any():
        name = "stale"
        with suppress(Found):
            one, other = layer.fed(np.stack([X, X]), LONG)
            name = "dropout" if differ(one, other).any() else "stale"
        raise Found(name, "the same sequence, fed twice, gives two results")


def _ask_one_chunk(layer, X, seen):
    """In one chunk no token may attend to a later one, and each attends to itself."""
    label = f"one chunk of {len(X)}"
    ahead = [(t, s) for t, s in np.argwhere(seen) if s > t]
    if ahead:
        t, s = max(ahead, key=lambda pair: pair[1] - pair[0])
        name = "one_ahead" if s - t == 1 else "no_mask"
        raise Found(name, f"{label}: token {t} attends to token {s}, which comes later")
    if not seen.any():
        raise Found("", f"{label}: no row changes, whatever token is changed")
    if not seen.diagonal().all():
        t = int(np.argmin(seen.diagonal()))
        name = "rows_dropped" if _of_the_last(layer, X, seen) else "itself_hidden"
        raise Found(name, f"{label}: token {t} does not attend to itself")


def _of_the_last(layer, X, seen):
    """Whether all tokens attend only to the last few, which as a chunk attend to themselves."""
    first = int(np.argmax(seen.diagonal()))
    last = np.tri(len(X), dtype=bool) & (np.arange(len(X)) >= first)
    if not np.array_equal(seen, last):
        return False
    rows = layer.fed(X[first:], LONG)
    return attended(layer, X[first:], LONG, rows).diagonal().all()


def _ask_buffer(layer, X, whole):
    """Rows of the buffer that were not written must get no weight."""
    few = X[:3]
    for tokens, n, tight in ((X, T, whole), (few, 1, layer.fed(few, 1))):
        if differ(tight, layer.fed(tokens, n, more=5)).any():
            capacities = f"{len(tokens)} and {len(tokens) + 5}"
            raise Found("buffer_seen", f"capacities of {capacities} tokens give two results")


def _ask_chunks(layer, X, n, whole, seen):
    """Several chunks must give what one gives."""
    try:
        rows = layer.fed(X, n)
    except Found as found:
        if n not in (2, 3) or found.name or isinstance(found.__cause__, NotImplementedError):
            raise
        raise Found("square_mask", found.seen) from found
    wrong = differ(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"{said(n)}: the row of token {t}"
        if not differ(whole.astype(np.float32), rows.astype(np.float32)).any():
            mend = f"cache K and V in the type of Y, {rows.dtype}"
            raise Found("", f"{label} differs by rounding in a coarser type; {mend}")
        _name_of_keys(layer, X, n, rows, seen)
        given, right = (", ".join(f"{x:.3f}" for x in row[:3]) for row in (rows[t], whole[t]))
        _name_of_positions(layer, n, t, f"{label} begins {given} and should begin {right}")


def _name_of_keys(layer, X, n, rows, seen):
    """Say which keys are wrong in chunks of n, if any are; `seen` is the pattern of one chunk."""
    now, keys, own_row = attended(layer, X, n, rows), np.arange(len(X)), np.arange(len(X))[:, None]
    if np.array_equal(now, seen):
        return
    edges = chunks(n, len(X))
    start, end = np.repeat(edges, np.diff(edges)[:, 0], axis=0).T  # of the chunk of each token
    t = int(np.argmax((now != seen).any(axis=-1)))
    found, right = _listed(now[t]), _listed(seen[t])
    attends = f"{said(n)}: token {t} attends to {found}, in one chunk to {right}"
    if (now & (keys > own_row)).any():
        raise Found("no_mask_behind_a_cache" if _far(layer, X) else "one_ahead", attends)
    own = keys == own_row  # a row may change only with its query, where there is a gate
    if np.array_equal(now | own, (keys <= own_row - start[:, None]) | own):
        raise Found("no_offset", attends)
    if np.array_equal(now, seen & (keys >= start[:, None])):
        raise Found("cache_unused", attends)
    windows = width_of(now), width_of(seen)
    if None not in windows and T in windows and len(X) == T:  # one may be wider than the sequence
        X = layer.sampled(97, tokens=LONG)
        seen = attended(layer, X, LONG, layer.fed(X, LONG))
        return _name_of_keys(layer, X, n, layer.fed(X, n), seen)
    name = _name_of_window(now, seen, start, end)
    if name:
        raise Found(name, attends)
    raise Found("overwritten" if now.diagonal().all() else "itself_hidden", attends)


def _far(layer, X):
    """Whether a token of a chunk of three attends further ahead than to the next one."""
    return np.triu(attended(layer, X, 3, layer.fed(X, 3)), 2).any()


def band(T, width):
    """What a window of so many keys shows."""
    return np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool)


def width_of(pattern):
    """How many keys a window has, as far as so few tokens show; None if it is no window."""
    width = int(pattern.sum(axis=-1).max())
    return width if np.array_equal(pattern, band(len(pattern), width)) else None


def _name_of_window(now, seen, start, end):
    """Name what is wrong with a window, or with a buffer of its size, if there is one."""
    T, behind = len(now), start > 0
    width, other = width_of(seen), width_of(now)
    if width is None:
        return None
    if width == T:  # one chunk shows no window
        other = int(now[-1].sum())
        same = np.array_equal(now[behind], band(T, other)[behind])
        return "window_only_behind_a_cache" if same and other < T else None
    if other and abs(width - other) == 1 and max(width, other) < T:
        return "window_off_by_one"
    if (now & ~seen).any():
        return "window_forgotten"
    dropped = seen & (np.arange(T) >= end[:, None] - width)
    if np.array_equal(now[behind], dropped[behind]):
        return "rows_dropped"
    if other:
        return "window_shorter"
    wrong = int(np.argmax((now != seen).any(axis=-1)))
    if (end - start)[: start[wrong]].max(initial=1) > max(1, width - 1):
        return "ring_rows"
    return "ring_mask" if np.array_equal(now[:width], seen[:width]) else None


def _name_of_positions(layer, n, t, seen):
    """All tokens attend to the right ones: are their positions wrong, or the cached rows?"""
    X = layer.sampled(97, tokens=LONG)
    swapped = X[[*range(LONG - 3), -2, -3, -1]]  # near the end, where a window shows them

    def order_matters(n):
        return differ(layer.fed(X, n)[-1:], layer.fed(swapped, n)[-1:]).any()

    if not order_matters(LONG):  # without position encodings no position can be wrong
        raise Found("", f"{seen}: the cached rows are not those that one chunk computes")
    if n == 1 and not order_matters(1):
        raise Found("positions_restart" if t == 1 else "positions_stop", seen)
    # The same change behind any cache: a shift looks like another scale, cap or sink.
    if not differ(layer.fed(X, 1), layer.fed(X, (1, LONG - 1))).any():
        raise Found("other_behind_a_cache", seen)
    raise Found("", f"{seen}: it attends to the right tokens, but its output differs")


def _listed(row):
    return ", ".join(map(str, np.flatnonzero(row))) or "nothing"


def _ask_two(layer, X, whole):
    """Two caches that are filled in turns must not depend on one another."""
    label, rows = "two caches in turns", []
    mine, its = (layer.made(label, 2 * T, (), None) for _ in range(2))
    for t, x in enumerate(layer.sampled(96)):
        Y, mine = layer.stepped(label, X[t : t + 1], mine)
        if t < T // 2:  # the other one is left behind
            _, its = layer.stepped(label, x[None], its)
        rows.append(Y)
    wrong = differ(whole, np.concatenate(rows))
    if wrong.any():
        mend = "store everything in the cache, nothing in the layer or the module"
        raise Found("", f"{label}: the row of token {int(np.argmax(wrong))} differs; {mend}")


def _ask_full(layer, X, whole):
    """More tokens than the capacity are refused, or processed rightly where the buffer can grow."""
    capacity = T - 2
    for n in (1, T):
        cache, label = layer.made("a full cache", capacity, (), None), "a full cache"
        try:
            for start in range(0, T, n):
                Y, cache = layer.stepped(label, X[start : start + n], cache)
        except Found as found:
            if found.__cause__ is None:
                raise
        else:
            if differ(whole[-1:], Y[-1:]).any():
                seen = f"it takes {T} tokens, {T - capacity} too many, and the last row differs"
                raise Found("", f"{label}: {seen}; refuse them")


def _ask_branches(layer, X, whole):
    """A cache that was continued is refused, or both continuations are independent."""
    right, other = whole[-1:], layer.sampled(93)[:1]
    alone = layer.fed(np.concatenate([X[:-2], other]), LONG)[-1:]
    cache = layer.made("two continuations", T + 2, (), None)
    _, old = layer.stepped("two continuations", X[:-2], cache)
    _, new = layer.stepped("two continuations", X[-2:-1], old)
    if new is old:  # a cache that grows in place has no older form
        return
    again = alone
    with suppress(Found):
        again, _ = layer.stepped("two continuations", other, old)
    Y, _ = layer.stepped("two continuations", X[-1:], new)
    if differ(right, Y).any():
        raise Found("used_twice", "a second token behind an older cache changes the newer one")
    if differ(alone, again).any():
        raise Found("used_twice", "a second token behind an older cache attends to the newer one")


def _ask_batch(layer):
    """Each sequence of a batch must give the rows that it gives by itself."""
    X = layer.sampled(94, 2)
    alone = np.stack([layer.fed(row, T) for row in X])
    for n in (T, 2):
        wrong = differ(alone, layer.fed(X, n))
        if wrong.any():
            b, t = np.argwhere(wrong)[0]
            label = "one chunk" if n == T else said(n)
            raise Found("", f"{label}, a batch of 2: the row of token {t} of sequence {b} differs")


def _ask_padded(layer, X, cuts):
    """Padding at the left must change no row of a token."""
    pad = np.array([2, 0, 3])  # unsorted, none equal
    unpadded = [x[left:] for x, left in zip(X, pad, strict=True)]
    alone = [layer.fed(tokens, LONG) for tokens in unpadded]
    for n in cuts:
        rows = layer.fed(X, n, pad=pad)
        for b, left in enumerate(pad):
            wrong = differ(alone[b], rows[b, left:])
            if wrong.any():
                now = attended(layer, X, n, rows, pad=pad)[b, left:]
                right = attended(layer, unpadded[b], LONG, alone[b])
                if len(right) < T and _let_go(now[:, :left], now[:, left:], right):
                    _ask_padded(layer, layer.sampled(98, 3, tokens=LONG), LONG_CHUNKS[1:2])
                label = "one chunk, padded" if n == X.shape[-2] else f"{said(n)}, padded"
                _name_of_padding(now[:, :left], now[:, left:], right, wrong, label)


def _let_go(padding, tokens, right):
    """Whether later tokens lose tokens that attended to themselves: a longer sequence shows why."""
    missing = right & ~tokens
    return not padding.any() and missing.any() and not missing.diagonal().any()


def _name_of_padding(padding, tokens, right, wrong, label):
    """Say which keys are wrong in padded rows, or else that positions are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Found("padding_seen", f"{label}: token {t} attends to padding")
    if not np.array_equal(tokens, right):
        t = int(np.argmax((tokens != right).any(axis=-1)))
        attends = f"attends to {_listed(tokens[t])}, and without padding to {_listed(right[t])}"
        windowed = width_of(right) not in (None, len(right))
        other = windowed and width_of(tokens) is not None
        name = "window_counts_padding" if other else "tokens_hidden"
        first = int(np.argmin(right[-1]))  # that every token attends to; 0 where there is a window
        if first and np.array_equal(tokens[:, first:], right[:, first:]):
            name = "sinks_count_padding"
        raise Found(name, f"{label}: token {t} {attends}")
    t = int(np.argmax(wrong))
    seen = f"{label}: token {t} attends to the right tokens, but its row differs"
    raise Found("positions_count_padding", seen)
