"""Feed a cached layer in pieces, and find out from what it does where it goes wrong.

A layer is asked and never looked into: a token is changed, and the rows that move are those of
queries that look at it. What one piece gives is compared with what several give, what a batch gives
with its rows alone, padded rows with unpadded ones.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tutorial_lib.practice.account import normal

T = 7  # 1 + 1 + …, 2 + 2 + 2 + 1, 3 + 3 + 1, 7: each cut has another end
PIECES = 1, 2, 3
NOT_DONE = "not done yet"


class Found(Exception):
    """What is wrong: the name of a mistake, or "", and what was seen of it."""

    def __init__(self, name, seen):
        super().__init__(name, seen)
        self.name, self.seen = name, seen


@dataclass(frozen=True)
class Layer:
    """A reader's layer: `step(X, cache)` → (Y, cache), and `empty(room, batch=…, pad=…)`."""

    step: object
    empty: object
    d_model: int

    def drawn(self, seed, *lead):
        """New input, (..., T, d_model)."""
        return normal(seed, *lead, T, self.d_model)

    def fed(self, X, n, *, pad=None, more=0):
        """The rows of X, read n at a time; `more` is room beyond its end."""
        label = "one piece" if n >= X.shape[-2] else f"pieces of {n}"
        label += ", padded" if pad is not None else ", a batch" if X.ndim > 2 else ""
        cache = self.made(label, X.shape[-2] + more, X.shape[:-2], pad)
        rows = []
        for start in range(0, X.shape[-2], n):
            Y, cache = self.stepped(label, X[..., start : start + n, :], cache)
            rows.append(Y)
        return np.concatenate(rows, axis=-2)

    def made(self, label, room, batch, pad):
        """An empty cache."""
        try:
            options = {} if pad is None and batch == () else {"batch": batch, "pad": pad}
            return self.empty(room, **options)
        except Exception as error:
            raise Found("", f"{label}: empty{_said(error)}") from error

    def stepped(self, label, X, cache):
        """One step, its rows as an array."""
        given = X.copy()
        try:
            with np.errstate(all="ignore"):
                out = self.step(given, cache)
        except Exception as error:
            raise Found("", f"{label}: step{_said(error)}") from error
        if out is None:
            raise Found(NOT_DONE, "")
        if not isinstance(out, tuple) or len(out) != 2:
            raise Found("", f"{label}: step returned a {type(out).__name__}; expected (Y, cache)")
        if not np.array_equal(given, X):
            raise Found("", f"{label}: step changed its input X; compute with a copy of it")
        return _rows(label, out[0], X), out[1]


def _rows(label, Y, X):
    """The rows of a step as an array of finite floats, one for each token."""
    kind = str(getattr(Y, "dtype", type(Y).__name__)).removeprefix("torch.")
    if kind not in ("float16", "float32", "float64"):
        expected = "float32 or float64, so that rounding is told from mistakes"
        raise Found("", f"{label}: Y is of type {kind}; expected {expected}")
    Y = Y.detach().cpu().numpy() if hasattr(Y, "detach") else np.asarray(Y)
    if Y.shape[:-1] != X.shape[:-1]:
        raise Found("", f"{label}: Y has shape {Y.shape} for X of shape {X.shape}")
    finite = np.isfinite(Y).all(axis=-1)
    if not finite.all():
        t = int(np.argwhere(~finite)[0, -1])
        raise Found("", f"{label}: row {t} of Y holds NaN or infinity; X holds neither")
    return Y


def _said(error):
    return f" raised {type(error).__name__}: {error}".rstrip(".:")


def moved(one, other):
    """Which rows of two results differ, by more than rounding."""
    scale = max(1.0, float(np.abs(one).max()))
    small = np.sqrt(np.finfo(one.dtype).eps) * scale
    return ~(np.abs(one - other).max(axis=-1) <= small)


def reach(layer, X, n, *, pad=None):
    """[..., t, s]: the row of token t moves with token s, read n at a time."""
    before = layer.fed(X, n, pad=pad)
    rows = []
    for s in range(X.shape[-2]):
        changed = X.copy()
        changed[..., s, :] = layer.drawn(100 + s)[0]
        rows.append(moved(before, layer.fed(changed, n, pad=pad)))
    return np.moveaxis(np.array(rows), 0, -1)


def ask(layer):
    """Ask everything, and stop at the first thing that is wrong."""
    X = layer.drawn(91)
    whole = layer.fed(X, T)
    _ask_state(layer, X, whole)
    seen = reach(layer, X, T)
    _ask_one_piece(seen)
    _ask_room(layer, X)
    for n in PIECES:
        _ask_pieces(layer, X, n, whole, seen)
    _ask_two(layer, X, whole)
    _ask_full(layer, X, whole)
    _ask_branches(layer, X)
    _ask_batch(layer)
    for n in (T, *PIECES):
        _ask_padded(layer, n)


def _ask_state(layer, X, whole):
    """A new cache must know nothing of another sequence."""
    layer.fed(layer.drawn(92), T)
    if moved(whole, layer.fed(X, T)).any():
        raise Found("stale", "the same sequence, read twice, gives two results (is dropout on?)")


def _ask_one_piece(seen):
    """In one piece no token may look ahead, and each looks at itself."""
    ahead = [(t, s) for t, s in np.argwhere(seen) if s > t]
    if ahead:
        t, s = max(ahead, key=lambda pair: pair[1] - pair[0])
        name = "one_ahead" if s - t == 1 else "no_mask"
        raise Found(name, f"one piece of {T}: token {t} looks at token {s}, which comes later")
    if not seen.any():
        raise Found("", f"one piece of {T}: every row stays, whatever token is changed")
    if not seen.diagonal().all():
        t = int(np.argmin(seen.diagonal()))
        raise Found("itself_hidden", f"one piece of {T}: token {t} does not look at itself")


def _ask_room(layer, X):
    """Room that nothing was written into must get no weight."""
    for n in (T, 1):
        tight, wide = layer.fed(X, n), layer.fed(X, n, more=5)
        if moved(tight, wide).any():
            raise Found("room_seen", f"room for {T} and for {T + 5} tokens give two results")


def _ask_pieces(layer, X, n, whole, seen):
    """Several pieces must give what one gives."""
    try:
        rows = layer.fed(X, n)
    except Found as found:
        if n == 1 or found.name or isinstance(found.__cause__, NotImplementedError):
            raise
        raise Found("square_mask", found.seen) from found
    wrong = moved(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"pieces of {n}: the row of token {t}"
        _ask_precision(whole, rows, label)
        _name_of_keys(layer, X, n, seen)
        _name_of_places(layer, X, n, f"{label} begins {_pair(rows[t], whole[t])}")


def _ask_precision(whole, rows, label):
    """Differences of single precision's size are no mistake in which tokens are looked at."""
    if not moved(whole.astype(np.float32), rows.astype(np.float32)).any():
        mend = f"keep K and V in the type of Y, {rows.dtype}"
        raise Found("", f"{label} differs by rounding in a coarser type; {mend}")


def _name_of_keys(layer, X, n, seen):
    """Say which keys are wrong in pieces of n, if any are; `seen` is what one piece looks at."""
    now, keys, place = reach(layer, X, n), np.arange(T), np.arange(T)[:, None]
    if np.array_equal(now, seen):
        return
    start = place // n * n  # of the piece that a token is in
    t = int(np.argmax((now != seen).any(axis=-1)))
    kept, asked = _listed(now[t]), _listed(seen[t])
    looks = f"pieces of {n}: token {t} looks at {kept}, in one piece at {asked}"
    if (now & (keys > place)).any():
        raise Found("no_mask_behind_a_cache" if _far(layer, X) else "one_ahead", looks)
    if np.array_equal(now, keys <= place - start):
        raise Found("no_offset", looks)
    if np.array_equal(now, seen & (keys >= start)):
        raise Found("kept_unused", looks)
    if not now.diagonal().all():
        raise Found("itself_hidden", looks)
    raise Found(_window_or_lost(now, seen), looks)


def _far(layer, X):
    """Whether a token of a piece of three looks further ahead than at the next one."""
    return np.triu(reach(layer, X, 3), 2).any()


def _window_or_lost(now, seen):
    """A window that is wider or narrower by one, or else tokens that are gone."""
    if np.array_equal(seen, np.tri(T, dtype=bool)):
        return "overwritten"
    widths = [int(reached.sum(axis=-1).max()) for reached in (now, seen)]
    bands = all(
        np.array_equal(reached, np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool))
        for reached, width in zip((now, seen), widths, strict=True)
    )
    return "window_off_by_one" if bands and abs(widths[0] - widths[1]) == 1 else "overwritten"


def _name_of_places(layer, X, n, seen):
    """All tokens look where they should: is it their places, or what is kept?"""
    swapped = X[[1, 0, *range(2, T)]]

    def moves(pieces):
        return moved(layer.fed(X, pieces)[-1:], layer.fed(swapped, pieces)[-1:]).any()

    if not moves(T):  # the layer knows no order, so places change nothing
        raise Found("", f"{seen}: what is kept is not what one piece computes")
    if n == 1 and not moves(1):
        raise Found("places_restart", seen)
    if not moved(layer.fed(X, 1), _in_two(layer, X)).any():  # the same shift behind any cache
        raise Found("places_shifted", seen)
    raise Found("", f"{seen}: it looks at the right tokens, and what it makes of them differs")


def _in_two(layer, X):
    """The rows of X, the first token read alone and all others in one piece."""
    label = f"pieces of 1 and {T - 1}"
    first, cache = layer.stepped(label, X[:1], layer.made(label, T, (), None))
    return np.concatenate([first, layer.stepped(label, X[1:], cache)[0]])


def _listed(row):
    return ", ".join(map(str, np.flatnonzero(row))) or "nothing"


def _pair(row, right):
    texts = [", ".join(f"{number:.3f}" for number in one[:3]) for one in (row, right)]
    return f"{texts[0]} and should begin {texts[1]}"


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
    room = T - 2
    for n in (1, T):
        cache, label = layer.made("a full cache", room, (), None), "a full cache"
        try:
            for start in range(0, T, n):
                Y, cache = layer.stepped(label, X[start : start + n], cache)
        except Found as found:
            if found.__cause__ is None:
                raise
        else:
            if moved(whole[-1:], Y[-1:]).any():
                seen = f"{label}: {T} tokens in room for {room} are taken, and the last row differs"
                raise Found("", f"{seen}; refuse them")


def _ask_branches(layer, X):
    """A cache that was continued is refused, or both continuations go on as if alone."""
    right, other = layer.fed(X, 1)[-1:], layer.drawn(93)[:1]
    alone = layer.fed(np.concatenate([X[:-2], other]), 1)[-1:]
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
            label = "one piece" if n == T else f"pieces of {n}"
            raise Found("", f"{label}, a batch of 2: the row of token {t} of sequence {b} differs")


def _ask_padded(layer, n):
    """Padding at the left must change no row of a word."""
    X, pad = layer.drawn(95, 3), np.array([2, 0, 3])  # unsorted, none equal
    rows = layer.fed(X, n, pad=pad)
    for b, left in enumerate(pad):
        words = X[b, left:]
        wrong = moved(layer.fed(words, T), rows[b, left:])
        if wrong.any():
            now, right = reach(layer, X, n, pad=pad)[b, left:], reach(layer, words, T)
            label = "one piece" if n == T else f"pieces of {n}"
            _name_of_padding(now[:, :left], now[:, left:], right, wrong, f"{label}, padded")


def _name_of_padding(padding, words, right, wrong, label):
    """Say which keys are wrong in padded rows, or else that places are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Found("padding_seen", f"{label}: word {t} looks at padding")
    if not np.array_equal(words, right):
        t = int(np.argmax((words != right).any(axis=-1)))
        looks = f"looks at words {_listed(words[t])}, and without padding at {_listed(right[t])}"
        raise Found("words_hidden", f"{label}: word {t} {looks}")
    t = int(np.argmax(wrong))
    raise Found("places_count_padding", f"{label}: word {t} looks at the right words, and differs")
