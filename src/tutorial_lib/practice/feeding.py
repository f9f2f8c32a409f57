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
        name, twice = "", np.stack([X, X])
        with suppress(Found):
            one, other = layer.fed(twice, LONG)
            layer.fed(layer.sampled(92, 2), T)
            mine, its = layer.fed(twice, LONG)  # what is left of two sequences differs, a count not
            name = "stale" if differ(mine, its).any() else ""
            name = "dropout" if differ(one, other).any() else name
        raise Found(name, "the same sequence, fed twice, gives two results")


def _ask_one_chunk(layer, X, seen):
    """In one chunk no token may attend to a later one, and each attends to itself."""
    label = f"one chunk of {len(X)}"
    ahead = np.triu(seen, 1)
    if ahead.any():
        t, s = max(np.argwhere(ahead), key=lambda pair: pair[1] - pair[0])
        next_one = np.array_equal(ahead, np.eye(len(X), k=1)) and width_of(np.tril(seen))
        name = "no_mask" if seen.all() else "one_ahead" if next_one else ""
        raise Found(name, f"{label}: token {t} attends to token {s}, which comes later")
    if not seen.any():
        raise Found("", f"{label}: no row changes, whatever token is changed")
    if not seen.diagonal().all():
        t = int(np.argmin(seen.diagonal()))
        name = "itself_hidden" if width_of(seen | np.eye(len(X), dtype=bool)) else ""
        name = "rows_dropped" if _of_the_last(layer, X, seen) else name
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
            name, capacities = "", f"{len(tokens)} and {len(tokens) + 5}"
            with suppress(Found):  # weight on many more rows leaves little for those of tokens
                many = layer.fed(tokens, n, more=500)
                name = "buffer_seen" if np.ptp(many, 0).max() < np.ptp(tight, 0).max() / 2 else ""
            raise Found(name, f"capacities of {capacities} tokens give two results")


def _ask_chunks(layer, X, n, whole, seen):
    """Several chunks must give what one gives."""
    try:
        rows = layer.fed(X, n)
    except Found as found:
        of_shapes = any(word in str(found.__cause__) for word in ("shape", "size", "broadcast"))
        if n in (2, 3) and of_shapes and _is_finite(layer, X[:n]):
            raise Found("square_mask", found.seen) from found
        raise
    wrong = differ(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"{said(n)}: the row of token {t}"
        if not differ(whole.astype(np.float32), rows.astype(np.float32)).any():
            mend = f"cache K and V in the type of Y, {rows.dtype}"
            raise Found("", f"{label} differs as little as by rounding in a coarser type; {mend}")
        _name_of_keys(layer, X, n, rows, seen)
        given, right = (", ".join(f"{x:.3f}" for x in row[:3]) for row in (rows[t], whole[t]))
        _name_of_positions(layer, n, t, f"{label} begins {given} and should begin {right}")


def _name_of_keys(layer, X, n, rows, seen):
    """Say which keys are wrong in chunks of n, if any are; `seen` is the pattern of one chunk."""
    now = attended(layer, X, n, rows)
    if np.array_equal(now, seen):
        return
    windows = width_of(now), width_of(seen)
    if None not in windows and T in windows and len(X) == T:  # one may be wider than the sequence
        X = layer.sampled(97, tokens=LONG)
        seen = attended(layer, X, LONG, layer.fed(X, LONG))
        return _name_of_keys(layer, X, n, layer.fed(X, n), seen)
    t = int(np.argmax((now != seen).any(axis=-1)))
    found, right = _listed(now[t]), _listed(seen[t])
    name, pattern = "", Pattern(now, seen, n)
    with suppress(Found):  # chunks of three show what those of one or two do not
        patterns = pattern, Pattern(attended(layer, X, 3, layer.fed(X, 3)), seen, 3)
        name = next((name for name, fits in PATTERNS.items() if all(map(fits, patterns))), "")
    name = name or _name_of_window(pattern, t)
    raise Found(name, f"{said(n)}: token {t} attends to {found}, in one chunk to {right}")


class Pattern:
    """What tokens attend to in chunks of n, beside what they attend to in one.

    Whether a token attends to itself often does not show: the row changes with its query.
    """

    def __init__(self, now, seen, n):
        self.now, self.seen = now, seen
        edges = chunks(n, len(now))
        start, end = np.repeat(edges, np.diff(edges)[:, 0], axis=0).T  # of the chunk of each token
        self.start, self.end = start[:, None], end[:, None]
        self.behind, self.keys = start > 0, np.arange(len(now))
        self.own = np.eye(len(now), dtype=bool)
        later = np.triu(self.own | True, 1)  # all that come later, and those of the same chunk
        self.ahead, self.later = now & later, later & (self.keys < self.end) & (self.start > 0)

    def is_like(self, keys):
        """Whether tokens attend to these keys, whatever is seen of themselves."""
        return np.array_equal(self.now | self.own, keys | self.own)

    def sees_ahead(self, keys):
        """Whether tokens attend to these later keys, and to all before."""
        lost = self.seen & ~self.now & ~self.own
        return np.array_equal(self.ahead, keys) and not lost.any()


PATTERNS = {  # mistakes that show these patterns, as no others do, in chunks of any length
    "no_mask_behind_a_cache": lambda p: p.sees_ahead(p.later),
    "one_ahead": lambda p: p.sees_ahead(p.later & np.eye(len(p.now), k=1, dtype=bool)),
    "no_offset": lambda p: p.is_like(p.keys <= p.keys[:, None] - p.start),
    "cache_unused": lambda p: np.array_equal(p.now, p.seen & (p.keys >= p.start)),
    "itself_hidden": lambda p: p.is_like(p.seen),
}


def band(T, width):
    """What a window of so many keys shows."""
    return np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool)


def width_of(pattern):
    """How many keys a window has, as far as so few tokens show; None if it is no window."""
    width = int(pattern.sum(axis=-1).max())
    return width if np.array_equal(pattern, band(len(pattern), width)) else None


def _name_of_window(p, t):
    """Name what is wrong with a window, or with cached rows, where tokens from t on lack some."""
    T, width, other = len(p.now), width_of(p.seen), width_of(p.now)
    if width == T:  # one chunk shows no window
        last = int(p.now[-1].sum())
        if last < T and np.array_equal(p.now[p.behind], band(T, last)[p.behind]):
            return "window_only_behind_a_cache"
    elif width and other:
        one_off = abs(width - other) == 1 and max(width, other) < T
        longer = "window_forgotten" if other > width else "window_shorter"
        return "window_off_by_one" if one_off else longer
    if (p.now & ~p.seen).any():
        return ""
    if width and width < T:
        dropped = p.seen & (p.keys >= p.end - width)
        if np.array_equal(p.now[p.behind], dropped[p.behind]):
            return "rows_dropped"
        if (p.end - p.start)[: p.start[t, 0]].max(initial=1) > max(1, width - 1):
            return "ring_rows"
        if np.array_equal(p.now[:width], p.seen[:width]):
            return "ring_mask"
    lost = p.seen[t] & ~p.now[t]
    return "overwritten" if (lost & (p.keys < p.start[t])).any() else ""


def _order_matters(layer, n):
    """Whether a row near the end of a long sequence changes when two tokens before it do."""
    X = layer.sampled(97, tokens=LONG)
    swapped = X[[*range(LONG - 3), -2, -3, -1]]  # near the end, where a window shows them
    return differ(layer.fed(X, n)[-1:], layer.fed(swapped, n)[-1:]).any()


def _name_of_positions(layer, n, t, seen):
    """All tokens attend to the right ones: are their positions wrong, or something else?"""
    if n == 1 and _order_matters(layer, LONG) and not _order_matters(layer, 1):
        within = t == 1 and _order_matters(layer, (LONG - 4, 4))
        raise Found("positions_restart" if within else "positions_stop", seen)
    X = layer.sampled(97, tokens=LONG)
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
        mend = "let no cache change another, such as through the layer or the module"
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
            if differ(alone[b], layer.fed(X[b], n)).any():
                again = f"fed again, gives another row of token {t}; store nothing in the layer"
                raise Found("", f"{label}: a sequence, {again}")
            _ask_apart(layer, X, b, f"{label}, a batch of 2", n=n)
            raise Found("", f"{label}, a batch of 2: the row of token {t} of sequence {b} differs")


def _ask_apart(layer, X, b, label, **chunks):
    """A sequence must not change with the others of its batch, fed in the same chunks."""
    other, left = X.copy(), chunks["pad"][b] if "pad" in chunks else 0
    other[np.arange(len(X)) != b] = layer.sampled(92, tokens=X.shape[-2])
    changed = differ(*(layer.fed(A, **chunks)[b, left:] for A in (X, other)))
    if changed.any():
        row = f"the row of token {int(np.argmax(changed))} of sequence {b}"
        raise Found("", f"{label}: {row} changes with another sequence")


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
                label = "one chunk, padded" if n == X.shape[-2] else f"{said(n)}, padded"
                _ask_apart(layer, X, b, label, n=n, pad=pad)
                now = attended(layer, X, n, rows, pad=pad)[b, left:]
                right = attended(layer, unpadded[b], LONG, alone[b])
                if len(right) < T and _let_go(now[:, :left], now[:, left:], right):
                    _ask_padded(layer, layer.sampled(98, 3, tokens=LONG), LONG_CHUNKS[1:2])
                _name_of_padding(now[:, :left], now[:, left:], right, label)
                seen = f"token {int(np.argmax(wrong))} attends to the right tokens, but its row"
                name = "positions_count_padding" if _of_positions(layer, wrong) else ""
                raise Found(name, f"{label}: {seen} differs")


def _of_positions(layer, wrong):
    """Whether positions explain which rows differ: that of a first token only if it has its own."""
    rows = layer.fed(layer.sampled(92)[:1].repeat(T, axis=0), LONG)  # of equal tokens
    return not wrong[0] or differ(rows, rows[:1]).any()


def _let_go(padding, tokens, right):
    """Whether later tokens lose tokens that attended to themselves: a longer sequence shows why."""
    missing = right & ~tokens
    return not padding.any() and missing.any() and not missing.diagonal().any()


def _name_of_padding(padding, tokens, right, label):
    """Say which keys are wrong in padded rows, if any are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Found("padding_seen", f"{label}: token {t} attends to padding")
    if not np.array_equal(tokens, right):
        t = int(np.argmax((tokens != right).any(axis=-1)))
        attends = f"attends to {_listed(tokens[t])}, and without padding to {_listed(right[t])}"
        name = "" if (tokens & ~right).any() else "tokens_hidden"
        if width_of(right) not in (None, len(right)) and width_of(tokens) is not None:
            name = "window_counts_padding"
        first = int(np.argmin(right[-1]))  # that every token attends to; 0 where there is a window
        if first and np.array_equal(tokens[:, first:], right[:, first:]):
            name = "sinks_count_padding"
        raise Found(name, f"{label}: token {t} {attends}")
