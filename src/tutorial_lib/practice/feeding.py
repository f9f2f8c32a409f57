"""Run a cached layer in chunks, and find out from its rows where it goes wrong.

A layer is tested from outside: when a token is changed, the rows that change are those of queries
that attend to it. The rows of one chunk are compared with those of several, the rows of a batch
with those of each sequence by itself, padded rows with unpadded ones.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tutorial_lib.practice.calls import Unreadable, a, as_arrays
from tutorial_lib.practice.inputs import normal

T = 7  # 1 + 1 + …, 2 + 2 + 2 + 1, 3 + 3 + 1, 7: each cut has another end
CHUNKS = 1, 2, 3, (T - 2, 1)
LONG = 24  # goes round a buffer of 8 three times
WIDEST = 20  # of these windows w some long chunk ends at 2, 3, … (mod w), with two tokens to come
LONG_CHUNKS = 1, 5, 9, (17, 1), (22, 1), (1, 16, 1), (5, 17, 1)
NOT_DONE = "not done yet"


class Failure(Exception):
    """What was observed, and the name of the mistake that explains it, or ""."""

    def __init__(self, evidence, mistake=""):
        super().__init__(evidence, mistake)
        self.evidence, self.mistake = evidence, mistake


@dataclass(frozen=True)
class Layer:
    """A reader's layer: `step(X, cache)` → (Y, cache), and `empty(capacity, batch=…, pad=…)`."""

    step: object
    empty: object
    d_model: int

    def sample(self, seed, *lead, tokens=T):
        """New input, (..., tokens, d_model)."""
        return normal(seed, *lead, tokens, self.d_model)

    def run_in_chunks(self, X, n, *, pad=None, more=0):
        """The rows of X, fed in `chunks` of n; `more` is capacity beyond its end."""
        label = "one chunk" if n == LONG or n == X.shape[-2] else chunks_in_words(n)
        label += ", padded" if pad is not None else ", a batch" if X.ndim > 2 else ""
        cache = self.new_cache(label, X.shape[-2] + more, X.shape[:-2], pad)
        rows = []
        for start, end in chunks(n, X.shape[-2]):
            padding = None if pad is None else np.asarray(pad) - start
            Y, cache = self.run_step(label, X[..., start:end, :], cache, padding)
            rows.append(Y)
        return np.concatenate(rows, axis=-2)

    def new_cache(self, label, capacity, batch, pad):
        """An empty cache."""
        try:
            options = {} if pad is None and batch == () else {"batch": batch, "pad": pad}
            return self.empty(capacity, **options)
        except BaseException as error:  # of a reader's layer, so SystemExit too
            raise Failure(f"{label}: empty{_raised(error)}") from error

    def run_step(self, label, X, cache, padding=None):
        """One step, its rows as an array; `padding` tokens of each sequence are padding."""
        try:
            return checked_call(lambda given: self.step(given, cache), X, padding=padding)
        except Failure as failure:
            evidence = f"{label}: {failure.evidence}"
            raise Failure(evidence, failure.mistake) from failure.__cause__


def checked_call(call, X, *, subject="step", padding=None):
    """What a layer returns for X: (Y, cache), Y as an array of finite floats.

    Raises
    ------
    Failure : what it did instead, a sentence that begins with its subject
    """
    given = X.copy()
    try:
        with np.errstate(all="ignore"):
            out = call(given)
    except Failure:
        raise
    except BaseException as error:  # of a reader's layer, so SystemExit too
        raise Failure(f"{subject}{_raised(error)}") from error
    if out is None:
        raise Failure(f"{subject} returned None", NOT_DONE)
    if not isinstance(out, tuple) or len(out) != 2:
        size = f" of {len(out)}" if isinstance(out, tuple) else ""
        raise Failure(f"{subject} returned {a(out)}{size}; expected (Y, cache)")
    if not np.array_equal(given, X):
        raise Failure(f"{subject} changed its input X; compute with a copy of it")
    return _rows(out[0], X, padding), out[1]


def chunks(n, length):
    """Where chunks of n tokens begin and end; of (5, 2, 1): one of 5, one of 2, all others of 1."""
    sizes = (n,) if isinstance(n, int) else n
    ends = np.cumsum([*sizes, *length * sizes[-1:]])
    return list(pairwise([0, *map(int, ends[ends < length]), length]))


def chunks_in_words(n):
    """Chunks of n in words."""
    if isinstance(n, int):
        return f"chunks of {n}"
    *first, last = n
    return f"chunks of {', '.join(map(str, first))}, then of {last}"


def _rows(Y, X, padding):
    """The rows of a step as an array of finite floats, one for each token."""
    expected = "float32 or float64, so that mistakes are distinguishable from rounding"
    try:
        Y = as_arrays(Y)
        kind = str(getattr(Y, "dtype", type(Y).__name__)).removeprefix("torch.")
    except Unreadable as error:
        raise Failure(f"Y is {error}") from error
    except Exception as error:
        kind = f"{type(Y).__name__}, which raised {type(error).__name__} when read"
    if kind not in ("float16", "float32", "float64"):
        raise Failure(f"Y is of type {kind}; expected {expected}")
    if Y.shape[:-1] != X.shape[:-1]:
        raise Failure(f"Y has shape {Y.shape} for X of shape {X.shape}")
    finite = np.isfinite(Y).all(axis=-1)
    if not finite.all():
        *sequence, t = np.argwhere(~finite)[0]
        evidence = f"row {t} of Y holds NaN or infinity; X holds neither"
        if padding is not None and t < padding[tuple(sequence)]:
            evidence += ". It is a row of padding, fully masked: give it any finite numbers"
        raise Failure(evidence)
    return Y


def _raised(error):
    return f" raised {type(error).__name__}: {error}".rstrip(".: ")


def differing(one, other):
    """Which rows of two results differ, by more than rounding."""
    scale = max(1.0, float(np.abs(one).max()))
    small = np.sqrt(np.finfo(one.dtype).eps) * scale
    return ~(np.abs(one - other).max(axis=-1) <= small)


def attended_keys(layer, X, n, rows, *, pad=None):
    """[..., t, s]: whether the row of token t changes with token s, fed n at a time."""
    variants = [X.copy() for _ in range(X.shape[-2] + 1)]
    for s, changed in enumerate(variants[:-1]):
        changed[..., s, :] = layer.sample(100 + s)[0]
    others = _run_as_batch(layer, variants, n, rows, pad)
    if others is None:
        others = [layer.run_in_chunks(one, n, pad=pad) for one in variants[:-1]]
    return np.stack([differing(rows, other) for other in others], axis=-1)


def _run_as_batch(layer, variants, n, rows, pad):
    """The rows of changed inputs, fed as one batch to save time; None if the last come out wrong.

    The last input is the one whose rows are known.
    """
    batch = np.stack(variants)
    pads = None if pad is None else np.tile(pad, len(variants))
    with suppress(Failure):
        found = layer.run_in_chunks(batch.reshape(-1, *batch.shape[-2:]), n, pad=pads)
        *others, same = found.reshape(*batch.shape[:-1], -1)
        if not differing(rows, same).any():
            return others
    return None


def test_layer(layer):
    """Run every test, and stop at the first thing that is wrong."""
    X = layer.sample(91)
    whole = layer.run_in_chunks(X, LONG)
    _test_state(layer, X, whole)
    seen = attended_keys(layer, X, T, whole)
    _test_mask(X, seen)
    _test_capacity(layer, X, whole)
    for n in CHUNKS:
        _test_chunks(layer, X, n, whole, seen)
    _test_two_caches(layer, X, whole)
    _test_full(layer, X, whole)
    _test_branches(layer, X, whole)
    _test_batch(layer)
    _test_padding(layer, layer.sample(95, 3), (T, *CHUNKS))
    _test_long(layer)


def _test_long(layer):
    """A window, or a ring buffer, shows only in a sequence that is longer than it."""
    X = layer.sample(97, tokens=LONG)
    whole = layer.run_in_chunks(X, LONG)
    seen = attended_keys(layer, X, LONG, whole)
    _test_mask(X, seen)
    for n in LONG_CHUNKS:
        _test_chunks(layer, X, n, whole, seen)
    _test_padding(layer, layer.sample(98, 3, tokens=LONG), LONG_CHUNKS[1:2])


def _is_finite(layer, X):
    """Whether the layer takes a sequence in one chunk."""
    with suppress(Failure):
        layer.run_in_chunks(X, LONG)
        return True
    return False


def _test_state(layer, X, whole):
    """A new cache must not depend on another sequence, and nothing may be random."""
    layer.run_in_chunks(layer.sample(92), T)
    if differing(whole, layer.run_in_chunks(X, T)).any():
        name, twice = "", np.stack([X, X])
        with suppress(Failure):
            one, other = layer.run_in_chunks(twice, LONG)
            layer.run_in_chunks(layer.sample(92, 2), T)
            # What is left of two sequences differs between rows of a batch, a count does not.
            mine, its = layer.run_in_chunks(twice, LONG)
            name = "stale" if differing(mine, its).any() else ""
            name = "dropout" if differing(one, other).any() else name
        raise Failure("the same sequence, fed twice, gives two results", name)


def _test_mask(X, seen):
    """In one chunk no token may attend to a later one, and each attends to itself."""
    label = f"one chunk of {len(X)}"
    ahead = np.triu(seen, 1)
    if ahead.any():
        t, s = max(np.argwhere(ahead), key=lambda pair: pair[1] - pair[0])
        next_one = np.array_equal(ahead, np.eye(len(X), k=1)) and width_of(np.tril(seen))
        name = "no_mask" if seen.all() else "one_ahead" if next_one else ""
        raise Failure(f"{label}: token {t} attends to token {s}, which comes later", name)
    if not seen.any():
        raise Failure(f"{label}: no row changes, whatever token is changed")
    if not seen.diagonal().all():
        t = int(np.argmin(seen.diagonal()))
        name = "itself_hidden" if width_of(seen | np.eye(len(X), dtype=bool)) else ""
        raise Failure(f"{label}: token {t} does not attend to itself", name)


def _test_capacity(layer, X, whole):
    """Rows of the buffer that were not written must get no weight."""
    few = X[:3]
    for tokens, n, tight in ((X, T, whole), (few, 1, layer.run_in_chunks(few, 1))):
        if differing(tight, layer.run_in_chunks(tokens, n, more=5)).any():
            name, capacities = "", f"{len(tokens)} and {len(tokens) + 5}"
            with suppress(Failure):  # weight on many more rows leaves little for those of tokens
                many = layer.run_in_chunks(tokens, n, more=500)
                name = "buffer_seen" if np.ptp(many, 0).max() < np.ptp(tight, 0).max() / 2 else ""
            raise Failure(f"capacities of {capacities} tokens give two results", name)


def _test_chunks(layer, X, n, whole, seen):
    """Several chunks must give what one gives."""
    try:
        rows = layer.run_in_chunks(X, n)
    except Failure as failure:
        of_shapes = any(word in str(failure.__cause__) for word in ("shape", "size", "broadcast"))
        if n in (2, 3) and of_shapes and _is_finite(layer, X[:n]):
            raise Failure(failure.evidence, "square_mask") from failure
        raise
    wrong = differing(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"{chunks_in_words(n)}: the row of token {t}"
        if not differing(whole.astype(np.float32), rows.astype(np.float32)).any():
            mend = f"cache K and V in the type of Y, {rows.dtype}"
            raise Failure(f"{label} differs as little as by rounding in a coarser type; {mend}")
        _fail_by_keys(layer, X, n, rows, seen)
        given, right = (", ".join(f"{x:.3f}" for x in row[:3]) for row in (rows[t], whole[t]))
        _fail_by_positions(layer, n, t, f"{label} begins {given} and should begin {right}")


def _fail_by_keys(layer, X, n, rows, seen):
    """Say which keys are wrong in chunks of n, if any are; `seen` is the pattern of one chunk."""
    now = attended_keys(layer, X, n, rows)
    if np.array_equal(now, seen):
        return
    windows = width_of(now), width_of(seen)
    if None not in windows and T in windows and len(X) == T:  # one may be wider than the sequence
        X = layer.sample(97, tokens=LONG)
        seen = attended_keys(layer, X, LONG, layer.run_in_chunks(X, LONG))
        return _fail_by_keys(layer, X, n, layer.run_in_chunks(X, n), seen)
    name, p = "", Pattern(now, seen, n)
    with suppress(Failure):  # chunks of three show what those of one or two do not
        three = Pattern(attended_keys(layer, X, 3, layer.run_in_chunks(X, 3)), seen, 3)
        name = next((name for name, fits in IN_ANY_CHUNKS.items() if fits(p) and fits(three)), "")
    name = name or next((name for name, fits in IN_THESE_CHUNKS.items() if fits(p)), "")
    keys, right = _in_words(now[p.first]), _in_words(seen[p.first])
    label = f"{chunks_in_words(n)}: token {p.first}"
    raise Failure(f"{label} attends to {keys}, in one chunk to {right}", name)


class Pattern:
    """What tokens attend to in chunks of n, beside what they attend to in one.

    Whether a token attends to itself often does not show: the row changes with its query.
    """

    def __init__(self, now, seen, n):
        self.now, self.seen, self.T = now, seen, len(now)
        edges = chunks(n, self.T)
        start, end = np.repeat(edges, np.diff(edges)[:, 0], axis=0).T  # of the chunk of each token
        self.start, self.end = start[:, None], end[:, None]
        self.behind, self.keys = start > 0, np.arange(self.T)
        self.own = np.eye(self.T, dtype=bool)
        later = np.triu(self.own | True, 1)  # all that come later, and those of the same chunk
        self.ahead, self.later = now & later, later & (self.keys < self.end) & (self.start > 0)
        self.one, self.several = width_of(seen), width_of(now)  # in one chunk, and in several
        self.in_both = self.one and self.several and self.one < self.T
        self.loses_only = not (now & ~seen).any()
        self.loses_some = self.loses_only and self.one and self.one < self.T
        self.first = int(np.argmax((now != seen).any(axis=-1)))  # token whose keys differ
        lost = seen[self.first] & ~now[self.first]
        self.loses_cached = self.loses_only and lost[: start[self.first]].any()

    def is_like(self, keys):
        """Whether tokens attend to these keys, whatever is seen of themselves."""
        return np.array_equal(self.now | self.own, keys | self.own)

    def sees_ahead(self, keys):
        """Whether tokens attend to these later keys, and to all before."""
        lost = self.seen & ~self.now & ~self.own
        return np.array_equal(self.ahead, keys) and not lost.any()

    def sees_last(self, width):
        """Whether a window of fewer keys than all shows, but not in one chunk."""
        keys = band(self.T, width)[self.behind]
        return self.one == self.T and width < self.T and np.array_equal(self.now[self.behind], keys)


IN_ANY_CHUNKS = {  # mistakes that show these patterns, as no others do, in chunks of any length
    "no_mask_behind_a_cache": lambda p: p.sees_ahead(p.later),
    "one_ahead": lambda p: p.sees_ahead(p.later & np.eye(p.T, k=1, dtype=bool)),
    "no_offset": lambda p: p.is_like(p.keys <= p.keys[:, None] - p.start),
    "cache_unused": lambda p: np.array_equal(p.now, p.seen & (p.keys >= p.start)),
    "itself_hidden": lambda p: p.is_like(p.seen),
}
IN_THESE_CHUNKS = {  # the first that fits: what is wrong with a window, or with cached rows
    "window_only_behind_a_cache": lambda p: p.sees_last(int(p.now[-1].sum())),
    "window_changes": lambda p: p.in_both,
    "rows_dropped": lambda p: p.loses_some,
    "overwritten": lambda p: p.loses_cached,
}


def band(T, width):
    """What a window of so many keys shows."""
    return np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool)


def width_of(pattern):
    """How many keys a window has, as far as so few tokens show; None if it is no window."""
    width = int(pattern.sum(axis=-1).max())
    return width if np.array_equal(pattern, band(len(pattern), width)) else None


def _order_matters(layer, n):
    """Whether a row near the end of a long sequence changes when two tokens before it do."""
    X = layer.sample(97, tokens=LONG)
    swapped = X[[*range(LONG - 3), -2, -3, -1]]  # near the end, where a window shows them
    return differing(layer.run_in_chunks(X, n)[-1:], layer.run_in_chunks(swapped, n)[-1:]).any()


def _fail_by_positions(layer, n, t, evidence):
    """All tokens attend to the right ones: are their positions wrong, or something else?"""
    if n == 1 and _order_matters(layer, LONG) and not _order_matters(layer, 1):
        within = t == 1 and _order_matters(layer, (LONG - 4, 4))
        raise Failure(evidence, "positions_restart" if within else "positions_stop")
    X = layer.sample(97, tokens=LONG)
    # The same change behind any cache: a shift looks like another scale, cap or sink.
    if not differing(layer.run_in_chunks(X, 1), layer.run_in_chunks(X, (1, LONG - 1))).any():
        raise Failure(evidence, "other_behind_a_cache")
    raise Failure(f"{evidence}: it attends to the right tokens, but its output differs")


def _in_words(row):
    return ", ".join(map(str, np.flatnonzero(row))) or "nothing"


def _test_two_caches(layer, X, whole):
    """Two caches that are filled in turns must not depend on one another."""
    label, rows = "two caches in turns", []
    mine, its = (layer.new_cache(label, 2 * T, (), None) for _ in range(2))
    for t, x in enumerate(layer.sample(96)):
        Y, mine = layer.run_step(label, X[t : t + 1], mine)
        if t < T // 2:  # the other one is left behind
            _, its = layer.run_step(label, x[None], its)
        rows.append(Y)
    wrong = differing(whole, np.concatenate(rows))
    if wrong.any():
        mend = "let no cache change another, such as through the layer or the module"
        raise Failure(f"{label}: the row of token {int(np.argmax(wrong))} differs; {mend}")


def _test_full(layer, X, whole):
    """More tokens than the capacity are refused, or processed rightly where the buffer can grow."""
    capacity = T - 2
    for n in (1, T):
        cache, label = layer.new_cache("a full cache", capacity, (), None), "a full cache"
        try:
            for start in range(0, T, n):
                Y, cache = layer.run_step(label, X[start : start + n], cache)
        except Failure as failure:
            if failure.__cause__ is None:
                raise
        else:
            if differing(whole[-1:], Y[-1:]).any():
                taken = f"it takes {T} tokens, {T - capacity} too many, and the last row differs"
                raise Failure(f"{label}: {taken}; refuse them")


def _test_branches(layer, X, whole):
    """A cache that was continued is refused, or both continuations are independent."""
    right, other = whole[-1:], layer.sample(93)[:1]
    alone = layer.run_in_chunks(np.concatenate([X[:-2], other]), LONG)[-1:]
    cache = layer.new_cache("two continuations", T + 2, (), None)
    _, old = layer.run_step("two continuations", X[:-2], cache)
    _, new = layer.run_step("two continuations", X[-2:-1], old)
    if new is old:  # a cache that grows in place has no older form
        return
    again = alone
    with suppress(Failure):
        again, _ = layer.run_step("two continuations", other, old)
    Y, _ = layer.run_step("two continuations", X[-1:], new)
    if differing(right, Y).any():
        raise Failure("a second token behind an older cache changes the newer one", "used_twice")
    if differing(alone, again).any():
        raise Failure("a second token behind an older cache attends to the newer one", "used_twice")


def _test_batch(layer):
    """Each sequence of a batch must give the rows that it gives by itself."""
    X = layer.sample(94, 2)
    alone = np.stack([layer.run_in_chunks(row, T) for row in X])
    for n in (T, 2):
        wrong = differing(alone, layer.run_in_chunks(X, n))
        if wrong.any():
            b, t = np.argwhere(wrong)[0]
            label = "one chunk" if n == T else chunks_in_words(n)
            if differing(alone[b], layer.run_in_chunks(X[b], n)).any():
                again = f"fed again, gives another row of token {t}; store nothing in the layer"
                raise Failure(f"{label}: a sequence, {again}")
            _test_independence(layer, X, b, f"{label}, a batch of 2", n=n)
            raise Failure(f"{label}, a batch of 2: the row of token {t} of sequence {b} differs")


def _test_independence(layer, X, b, label, **chunks):
    """A sequence must not change with the others of its batch, fed in the same chunks."""
    other, left = X.copy(), chunks["pad"][b] if "pad" in chunks else 0
    other[np.arange(len(X)) != b] = layer.sample(92, tokens=X.shape[-2])
    changed = differing(*(layer.run_in_chunks(A, **chunks)[b, left:] for A in (X, other)))
    if changed.any():
        row = f"the row of token {int(np.argmax(changed))} of sequence {b}"
        raise Failure(f"{label}: {row} changes with another sequence")


def _test_padding(layer, X, cuts):
    """Padding at the left must change no row of a token."""
    pad = np.array([2, 0, 3])  # unsorted, none equal
    unpadded = [x[left:] for x, left in zip(X, pad, strict=True)]
    alone = [layer.run_in_chunks(tokens, LONG) for tokens in unpadded]
    for n in cuts:
        rows = layer.run_in_chunks(X, n, pad=pad)
        for b, left in enumerate(pad):
            wrong = differing(alone[b], rows[b, left:])
            if wrong.any():
                label = "one chunk, padded" if n == X.shape[-2] else f"{chunks_in_words(n)}, padded"
                _test_independence(layer, X, b, label, n=n, pad=pad)
                now = attended_keys(layer, X, n, rows, pad=pad)[b, left:]
                right = attended_keys(layer, unpadded[b], LONG, alone[b])
                if len(right) < T and _let_go(now[:, :left], now[:, left:], right):
                    _test_padding(layer, layer.sample(98, 3, tokens=LONG), LONG_CHUNKS[1:2])
                _fail_by_padding(now[:, :left], now[:, left:], right, label)
                name = "positions_count_padding" if _of_positions(layer, wrong) else ""
                token = f"token {int(np.argmax(wrong))}"
                evidence = f"{label}: {token} attends to the right tokens, but its row differs"
                raise Failure(evidence, name)


def _of_positions(layer, wrong):
    """Whether positions explain which rows differ: that of a first token only if it has its own."""
    rows = layer.run_in_chunks(layer.sample(92)[:1].repeat(T, axis=0), LONG)  # of equal tokens
    return not wrong[0] or differing(rows, rows[:1]).any()


def _let_go(padding, tokens, right):
    """Whether later tokens lose tokens that attended to themselves: a longer sequence shows why."""
    missing = right & ~tokens
    return not padding.any() and missing.any() and not missing.diagonal().any()


def _fail_by_padding(padding, tokens, right, label):
    """Say which keys are wrong in padded rows, if any are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Failure(f"{label}: token {t} attends to padding", "padding_seen")
    if not np.array_equal(tokens, right):
        t = int(np.argmax((tokens != right).any(axis=-1)))
        attends = f"attends to {_in_words(tokens[t])}, and without padding to {_in_words(right[t])}"
        name = "" if (tokens & ~right).any() else "tokens_hidden"
        if width_of(right) not in (None, len(right)) and width_of(tokens) is not None:
            name = "window_counts_padding"
        raise Failure(f"{label}: token {t} {attends}", name)
