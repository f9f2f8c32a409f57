"""Feed a cached layer in pieces, and find out from what it does where it goes wrong.

A layer is asked and never looked into: a token is changed, and the rows that move are those of
queries that look at it. What one piece gives is compared with what several give, what a batch gives
with its rows alone, padded rows with unpadded ones.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tutorial_lib.practice.calls import Unreadable, as_arrays
from tutorial_lib.practice.inputs import normal

T = 7  # 1 + 1 + …, 2 + 2 + 2 + 1, 3 + 3 + 1, 7: each cut has another end
PIECES = 1, 2, 3, (T - 2, 1)
LONG = 24  # goes round a buffer of 8 three times
WIDEST = 20  # of these windows w some long piece ends at 2, 3, … (mod w), with two tokens to come
LONG_PIECES = 1, 5, 9, (17, 1), (22, 1), (1, 16, 1), (5, 17, 1)
NOT_DONE = "not done yet"


class Found(Exception):
    """What is wrong: the name of a mistake, or "", and what was seen of it."""

    def __init__(self, name, seen):
        super().__init__(name, seen)
        self.name, self.seen = name, seen


@dataclass(frozen=True)
class Layer:
    """A reader's layer: `step(X, cache)` → (Y, cache), and `empty(capacity, batch=…, pad=…)`."""

    step: object
    empty: object
    d_model: int

    def drawn(self, seed, *lead, tokens=T):
        """New input, (..., tokens, d_model)."""
        return normal(seed, *lead, tokens, self.d_model)

    def fed(self, X, n, *, pad=None, more=0):
        """The rows of X, read in `pieces` of n; `more` is room beyond its end."""
        label = "one piece" if n == LONG or n == X.shape[-2] else said(n)
        label += ", padded" if pad is not None else ", a batch" if X.ndim > 2 else ""
        cache = self.made(label, X.shape[-2] + more, X.shape[:-2], pad)
        rows = []
        for start, end in pieces(n, X.shape[-2]):
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
        """One step, its rows as an array; `padding` tokens of each text are none of its own."""
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


def pieces(n, length):
    """Where pieces of n tokens begin and end; of (5, 2, 1): one of 5, one of 2, all others of 1."""
    sizes = (n,) if isinstance(n, int) else n
    ends = np.cumsum([*sizes, *length * sizes[-1:]])
    return list(pairwise([0, *map(int, ends[ends < length]), length]))


def said(n):
    """Pieces of n in words."""
    if isinstance(n, int):
        return f"pieces of {n}"
    *first, last = n
    return f"pieces of {', '.join(map(str, first))}, then of {last}"


def _rows(label, Y, X, padding):
    """The rows of a step as an array of finite floats, one for each token."""
    expected = "float32 or float64, so that rounding is told from mistakes"
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
        *text, t = np.argwhere(~finite)[0]
        said = f"{label}: row {t} of Y holds NaN or infinity; X holds neither"
        if padding is not None and t < padding[tuple(text)]:
            said += ". It is a row of padding, which sees no token: give it any finite numbers"
        raise Found("", said)
    return Y


def _said(error):
    return f" raised {type(error).__name__}: {error}".rstrip(".: ")


def moved(one, other):
    """Which rows of two results differ, by more than rounding."""
    scale = max(1.0, float(np.abs(one).max()))
    small = np.sqrt(np.finfo(one.dtype).eps) * scale
    return ~(np.abs(one - other).max(axis=-1) <= small)


def looked_at(layer, X, n, rows, *, pad=None):
    """[..., t, s]: the row of token t, known as it is, moves with token s, read n at a time."""
    texts = [X.copy() for _ in range(X.shape[-2] + 1)]
    for s, changed in enumerate(texts[:-1]):
        changed[..., s, :] = layer.drawn(100 + s)[0]
    others = _together(layer, texts, n, rows, pad)
    if others is None:
        others = [layer.fed(text, n, pad=pad) for text in texts[:-1]]
    return np.stack([moved(rows, other) for other in others], axis=-1)


def _together(layer, texts, n, rows, pad):
    """The rows of changed texts, read as one batch to save time; None if it reads the last wrong.

    The last text is the one whose rows are known.
    """
    batch = np.stack(texts)
    pads = None if pad is None else np.tile(pad, len(texts))
    with suppress(Found):
        found = layer.fed(batch.reshape(-1, *batch.shape[-2:]), n, pad=pads)
        *others, same = found.reshape(*batch.shape[:-1], -1)
        if not moved(rows, same).any():
            return others
    return None


def ask(layer):
    """Ask everything, and stop at the first thing that is wrong."""
    X = layer.drawn(91)
    whole = _ask_rows(layer, X)
    _ask_state(layer, X, whole)
    seen = looked_at(layer, X, T, whole)
    _ask_one_piece(layer, X, seen)
    _ask_room(layer, X, whole)
    for n in PIECES:
        _ask_pieces(layer, X, n, whole, seen)
    _ask_two(layer, X, whole)
    _ask_full(layer, X, whole)
    _ask_branches(layer, X, whole)
    _ask_batch(layer)
    _ask_padded(layer, layer.drawn(95, 3), (T, *PIECES))
    _ask_long(layer)


def _ask_long(layer):
    """What a window hides, or a buffer that goes round, shows in a text that is longer than it."""
    X = layer.drawn(97, tokens=LONG)
    whole = _ask_rows(layer, X)
    seen = looked_at(layer, X, LONG, whole)
    _ask_one_piece(layer, X, seen)
    for n in LONG_PIECES:
        _ask_pieces(layer, X, n, whole, seen)
    _ask_padded(layer, layer.drawn(98, 3, tokens=LONG), LONG_PIECES[1:2])


def _ask_rows(layer, X):
    """The rows of one piece; not a number is told as what it comes from, if that can be found."""
    try:
        return layer.fed(X, LONG)
    except Found as found:
        if "row 0 of Y holds NaN" in found.seen:
            for n in range(len(X) - 1, 0, -1):
                if _reads(layer, X[:n]):
                    seen = f"one piece of {len(X)}: row 0 holds NaN or infinity; of {n} none does"
                    raise Found("rows_dropped", seen) from found
        raise


def _reads(layer, X):
    """Whether a text is read in one piece."""
    with suppress(Found):
        layer.fed(X, LONG)
        return True
    return False


def _ask_state(layer, X, whole):
    """A new cache must know nothing of another sequence, and nothing may be drawn at random."""
    layer.fed(layer.drawn(92), T)
    if moved(whole, layer.fed(X, T)).any():
        name = "stale"
        with suppress(Found):
            one, other = layer.fed(np.stack([X, X]), LONG)
            name = "dropout" if moved(one, other).any() else "stale"
        raise Found(name, "the same sequence, read twice, gives two results")


def _ask_one_piece(layer, X, seen):
    """In one piece no token may look ahead, and each looks at itself."""
    label = f"one piece of {len(X)}"
    ahead = [(t, s) for t, s in np.argwhere(seen) if s > t]
    if ahead:
        t, s = max(ahead, key=lambda pair: pair[1] - pair[0])
        name = "one_ahead" if s - t == 1 else "no_mask"
        raise Found(name, f"{label}: token {t} looks at token {s}, which comes later")
    if not seen.any():
        raise Found("", f"{label}: every row stays, whatever token is changed")
    if not seen.diagonal().all():
        t = int(np.argmin(seen.diagonal()))
        name = "rows_dropped" if _of_the_last(layer, X, seen) else "itself_hidden"
        raise Found(name, f"{label}: token {t} does not look at itself")


def _of_the_last(layer, X, seen):
    """Whether all tokens see the last few alone, which as a piece of their own see themselves."""
    first = int(np.argmax(seen.diagonal()))
    last = np.tri(len(X), dtype=bool) & (np.arange(len(X)) >= first)
    if not np.array_equal(seen, last):
        return False
    rows = layer.fed(X[first:], LONG)
    return looked_at(layer, X[first:], LONG, rows).diagonal().all()


def _ask_room(layer, X, whole):
    """Room that nothing was written into must get no weight."""
    few = X[:3]
    for text, n, tight in ((X, T, whole), (few, 1, layer.fed(few, 1))):
        if moved(tight, layer.fed(text, n, more=5)).any():
            capacities = f"{len(text)} and {len(text) + 5}"
            raise Found("room_seen", f"capacities of {capacities} tokens give two results")


def _ask_pieces(layer, X, n, whole, seen):
    """Several pieces must give what one gives."""
    try:
        rows = layer.fed(X, n)
    except Found as found:
        if n not in (2, 3) or found.name or isinstance(found.__cause__, NotImplementedError):
            raise
        raise Found("square_mask", found.seen) from found
    wrong = moved(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"{said(n)}: the row of token {t}"
        if not moved(whole.astype(np.float32), rows.astype(np.float32)).any():
            mend = f"keep K and V in the type of Y, {rows.dtype}"
            raise Found("", f"{label} differs by rounding in a coarser type; {mend}")
        _name_of_keys(layer, X, n, rows, seen)
        given, right = (", ".join(f"{x:.3f}" for x in row[:3]) for row in (rows[t], whole[t]))
        _name_of_places(layer, n, t, f"{label} begins {given} and should begin {right}")


def _name_of_keys(layer, X, n, rows, seen):
    """Say which keys are wrong in pieces of n, if any are; `seen` is what one piece looks at."""
    now, keys, place = looked_at(layer, X, n, rows), np.arange(len(X)), np.arange(len(X))[:, None]
    if np.array_equal(now, seen):
        return
    edges = pieces(n, len(X))
    start, end = np.repeat(edges, np.diff(edges)[:, 0], axis=0).T  # of the piece of each token
    t = int(np.argmax((now != seen).any(axis=-1)))
    kept, asked = _listed(now[t]), _listed(seen[t])
    looks = f"{said(n)}: token {t} looks at {kept}, in one piece at {asked}"
    if (now & (keys > place)).any():
        raise Found("no_mask_behind_a_cache" if _far(layer, X) else "one_ahead", looks)
    own = keys == place  # a row may move with its query alone, where there is a gate
    if np.array_equal(now | own, (keys <= place - start[:, None]) | own):
        raise Found("no_offset", looks)
    if np.array_equal(now, seen & (keys >= start[:, None])):
        raise Found("kept_unused", looks)
    windows = width_of(now), width_of(seen)
    if None not in windows and T in windows and len(X) == T:  # one may be wider than the text
        X = layer.drawn(97, tokens=LONG)
        seen = looked_at(layer, X, LONG, layer.fed(X, LONG))
        return _name_of_keys(layer, X, n, layer.fed(X, n), seen)
    name = _name_of_window(now, seen, start, end)
    if name:
        raise Found(name, looks)
    raise Found("overwritten" if now.diagonal().all() else "itself_hidden", looks)


def _far(layer, X):
    """Whether a token of a piece of three looks further ahead than at the next one."""
    return np.triu(looked_at(layer, X, 3, layer.fed(X, 3)), 2).any()


def band(T, width):
    """What a window of so many keys shows."""
    return np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool)


def width_of(reached):
    """How many keys a window has, as far as so few tokens tell; None if it is no window."""
    width = int(reached.sum(axis=-1).max())
    return width if np.array_equal(reached, band(len(reached), width)) else None


def _name_of_window(now, seen, start, end):
    """Name what is wrong with a window, or with a buffer of its size, if there is one."""
    T, behind = len(now), start > 0
    width, other = width_of(seen), width_of(now)
    if width is None:
        return None
    if width == T:  # one piece shows no window
        other = int(now[-1].sum())
        same = np.array_equal(now[behind], band(T, other)[behind])
        return "window_behind_a_cache_alone" if same and other < T else None
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


def _name_of_places(layer, n, t, seen):
    """All tokens look where they should: is it their places, or what is kept?"""
    X = layer.drawn(97, tokens=LONG)
    swapped = X[[*range(LONG - 3), -2, -3, -1]]  # near the end, where a window shows them

    def moves(pieces):
        return moved(layer.fed(X, pieces)[-1:], layer.fed(swapped, pieces)[-1:]).any()

    if not moves(LONG):  # the layer knows no order, so places change nothing
        raise Found("", f"{seen}: what is kept is not what one piece computes")
    if n == 1 and not moves(1):
        raise Found("places_restart" if t == 1 else "places_stop", seen)
    # The same change behind any cache: a shift looks like another scale, cap or sink.
    if not moved(layer.fed(X, 1), layer.fed(X, (1, LONG - 1))).any():
        raise Found("other_behind_a_cache", seen)
    raise Found("", f"{seen}: it looks at the right tokens, and what it makes of them differs")


def _listed(row):
    return ", ".join(map(str, np.flatnonzero(row))) or "nothing"


def _ask_two(layer, X, whole):
    """Two caches that are filled in turns must know nothing of one another."""
    label, rows = "two caches in turns", []
    mine, its = (layer.made(label, 2 * T, (), None) for _ in range(2))
    for t, x in enumerate(layer.drawn(96)):
        Y, mine = layer.stepped(label, X[t : t + 1], mine)
        if t < T // 2:  # the other one is left behind
            _, its = layer.stepped(label, x[None], its)
        rows.append(Y)
    wrong = moved(whole, np.concatenate(rows))
    if wrong.any():
        mend = "keep everything in the cache, nothing in the layer or the module"
        raise Found("", f"{label}: the row of token {int(np.argmax(wrong))} differs; {mend}")


def _ask_full(layer, X, whole):
    """More tokens than there is room for are refused, or read rightly where room can grow."""
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
            if moved(whole[-1:], Y[-1:]).any():
                seen = f"it takes {T} tokens, {T - capacity} too many, and the last row differs"
                raise Found("", f"{label}: {seen}; refuse them")


def _ask_branches(layer, X, whole):
    """A cache that was continued is refused, or both continuations go on as if alone."""
    right, other = whole[-1:], layer.drawn(93)[:1]
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
    if moved(right, Y).any():
        raise Found("used_twice", "a second token behind an older cache changes the newer one")
    if moved(alone, again).any():
        raise Found("used_twice", "a second token behind an older cache looks at the newer one")


def _ask_batch(layer):
    """Each sequence of a batch must be read as if alone."""
    X = layer.drawn(94, 2)
    alone = np.stack([layer.fed(row, T) for row in X])
    for n in (T, 2):
        wrong = moved(alone, layer.fed(X, n))
        if wrong.any():
            b, t = np.argwhere(wrong)[0]
            label = "one piece" if n == T else said(n)
            raise Found("", f"{label}, a batch of 2: the row of token {t} of sequence {b} differs")


def _ask_padded(layer, X, cuts):
    """Padding at the left must change no row of a word."""
    pad = np.array([2, 0, 3])  # unsorted, none equal
    texts = [x[left:] for x, left in zip(X, pad, strict=True)]
    alone = [layer.fed(words, LONG) for words in texts]
    for n in cuts:
        rows = layer.fed(X, n, pad=pad)
        for b, left in enumerate(pad):
            wrong = moved(alone[b], rows[b, left:])
            if wrong.any():
                now = looked_at(layer, X, n, rows, pad=pad)[b, left:]
                right = looked_at(layer, texts[b], LONG, alone[b])
                if len(right) < T and _let_go(now[:, :left], now[:, left:], right):
                    _ask_padded(layer, layer.drawn(98, 3, tokens=LONG), LONG_PIECES[1:2])
                label = "one piece, padded" if n == X.shape[-2] else f"{said(n)}, padded"
                _name_of_padding(now[:, :left], now[:, left:], right, wrong, label)


def _let_go(padding, words, right):
    """Whether words that saw themselves are out of sight later: a longer text tells why."""
    missing = right & ~words
    return not padding.any() and missing.any() and not missing.diagonal().any()


def _name_of_padding(padding, words, right, wrong, label):
    """Say which keys are wrong in padded rows, or else that places are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Found("padding_seen", f"{label}: word {t} looks at padding")
    if not np.array_equal(words, right):
        t = int(np.argmax((words != right).any(axis=-1)))
        looks = f"looks at words {_listed(words[t])}, and without padding at {_listed(right[t])}"
        windowed = width_of(right) not in (None, len(right))
        other = windowed and width_of(words) is not None
        name = "window_counts_padding" if other else "words_hidden"
        first = int(np.argmin(right[-1]))  # that every word looks at; 0 where there is a window
        if first and np.array_equal(words[:, first:], right[:, first:]):
            name = "kept_counts_padding"
        raise Found(name, f"{label}: word {t} {looks}")
    t = int(np.argmax(wrong))
    raise Found("places_count_padding", f"{label}: word {t} looks at the right words, and differs")
