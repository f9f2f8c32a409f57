"""Test a layer that caches keys and values, and find out from its rows where it goes wrong.

A layer is tested from outside: when a token is changed, the rows that change are those of queries
that attend to it. The rows of one chunk are compared with those of several, the rows of a batch
with those of each sequence by itself, padded rows with unpadded ones.
"""

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tutorial_lib.practice.calls import tensors_to_arrays, type_text
from tutorial_lib.practice.inputs import normal

T = 24  # tokens of a sequence: a buffer of 8 is filled three times
WIDEST = 20  # of these windows w some chunk ends at 2, 3, … (mod w), with two tokens to come
CHUNKS = 1, 2, 3, 5, 9, (17, 1), (22, 1), (1, 16, 1), (5, 17, 1)
PADDED_CHUNKS = T, 1, 2, 3, 5
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

    def sample_input(self, seed, *batch, tokens=T):
        """New input, (..., tokens, d_model)."""
        return normal(seed, *batch, tokens, self.d_model)

    def run_in_chunks(self, X, sizes, *, pad=None, extra_capacity=0):
        """The rows of X in `chunk_bounds` of n; `extra_capacity` is capacity beyond its end."""
        rows, label = [], chunk_sizes_text(sizes)
        label += ", padded" if pad is not None else ", a batch" if X.ndim > 2 else ""
        with prefixed_evidence(label):
            cache = self.new_cache(X.shape[-2] + extra_capacity, X.shape[:-2], pad)
            for start, end in chunk_bounds(sizes, X.shape[-2]):
                Y, cache = self.run_step(X[..., start:end, :], cache)
                rows.append(Y)
        return np.concatenate(rows, axis=-2)

    def new_cache(self, capacity, batch=(), pad=None):
        """An empty cache."""
        try:
            options = {} if pad is None and batch == () else {"batch": batch, "pad": pad}
            return self.empty(capacity, **options)
        except BaseException as error:  # of a reader's layer, so SystemExit too
            raise Failure(f"empty{_raised_error_text(error)}") from error

    def run_step(self, X, cache):
        """One step, its rows as an array."""
        return checked_call(lambda given: self.step(given, cache), X)


@contextmanager
def prefixed_evidence(label):
    """Let the evidence of what fails begin with a label."""
    try:
        yield
    except Failure as failure:
        evidence = f"{label}: {failure.evidence}"
        raise Failure(evidence, failure.mistake) from failure.__cause__


def checked_call(call, X, *, subject="step"):
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
        raise Failure(f"{subject}{_raised_error_text(error)}") from error
    if out is None:
        raise Failure(f"{subject} returned None", NOT_DONE)
    if not isinstance(out, tuple) or len(out) != 2:
        size = f" of {len(out)}" if isinstance(out, tuple) else ""
        raise Failure(f"{subject} returned {type_text(out)}{size}; expected (Y, cache)")
    if not np.array_equal(given, X):
        raise Failure(f"{subject} changed its input X; compute with a copy of it")
    return _validated_output(out[0], X), out[1]


def chunk_bounds(sizes, length):
    """Where chunks of n tokens begin and end; of (5, 2, 1): one of 5, one of 2, all others of 1."""
    sizes = (sizes,) if isinstance(sizes, int) else sizes
    ends = np.cumsum([*sizes, *length * sizes[-1:]])
    return list(pairwise([0, *map(int, ends[ends < length]), length]))


def chunk_sizes_text(sizes):
    """Chunks of n in words."""
    if isinstance(sizes, int):
        return "one chunk" if sizes == T else f"chunks of {sizes}"
    *first, last = sizes
    return f"chunks of {', '.join(map(str, first))}, then of {last}"


def _validated_output(Y, X):
    """The rows of a step as an array of finite floats, one for each token."""
    try:
        Y = tensors_to_arrays(Y)
        kind = str(getattr(Y, "dtype", type(Y).__name__))
    except Exception as error:
        kind = f"{type(Y).__name__}, which cannot be read: {error}"
    if kind not in ("float16", "float32", "float64"):
        expected = "float32 or float64, so that mistakes are distinguishable from rounding"
        raise Failure(f"Y is of type {kind}; expected {expected}")
    if Y.shape[:-1] != X.shape[:-1]:
        raise Failure(f"Y has shape {Y.shape} for X of shape {X.shape}")
    finite = np.isfinite(Y).all(axis=-1)
    if not finite.all():
        t = np.argwhere(~finite)[0][-1]
        raise Failure(f"row {t} of Y holds NaN or infinity; X holds neither")
    return Y


def _raised_error_text(error):
    return f" raised {type(error).__name__}: {error}".rstrip(".: ")


def rows_differ(rows, expected):
    """Which rows of two results differ, by more than rounding."""
    scale = max(1.0, float(np.abs(rows).max()))
    small = np.sqrt(np.finfo(rows.dtype).eps) * scale
    return ~(np.abs(rows - expected).max(axis=-1) <= small)


def attended_keys(layer, X, sizes, rows, *, pad=None):
    """[..., t, s]: whether the row of token t changes with token s, in chunks of n."""
    columns = []
    for s in range(X.shape[-2]):
        changed = X.copy()
        changed[..., s, :] = layer.sample_input(100 + s)[0]
        columns.append(rows_differ(rows, layer.run_in_chunks(changed, sizes, pad=pad)))
    return np.stack(columns, axis=-1)


def test_layer(layer):
    """Run every test, and stop at the first thing that is wrong."""
    X = layer.sample_input(91)
    whole = layer.run_in_chunks(X, T)
    _test_state(layer, X, whole)
    seen = attended_keys(layer, X, T, whole)
    _test_causality(seen)
    _test_capacity(layer, X, whole)
    for n in CHUNKS:
        _test_chunks(layer, X, n, whole, seen)
    _test_two_continuations(layer, X, whole)
    _test_batch(layer)
    _test_padding(layer)


def _test_state(layer, X, whole):
    """A new cache must not depend on another sequence, and nothing may be random."""
    layer.run_in_chunks(layer.sample_input(92), T)
    if rows_differ(whole, layer.run_in_chunks(X, T)).any():
        name = "stale"
        with suppress(Failure):
            one, other = layer.run_in_chunks(np.stack([X, X]), T)
            name = "dropout" if rows_differ(one, other).any() else name
        raise Failure("the same sequence, processed twice, gives two results", name)


def _test_causality(attended):
    """In one chunk no token may attend to a later one, and each attends to itself."""
    ahead, own = np.triu(attended, 1), np.eye(T, dtype=bool)
    if ahead.any():
        t, s = max(np.argwhere(ahead), key=lambda pair: pair[1] - pair[0])
        next_one = np.array_equal(ahead, np.eye(T, k=1)) and window_width(np.tril(attended))
        name = "no_mask" if attended.all() else "one_ahead" if next_one else ""
        raise Failure(f"one chunk: token {t} attends to token {s}, which comes later", name)
    if not attended.any():
        raise Failure("one chunk: no row changes, whatever token is changed")
    if not attended.diagonal().all():
        t = int(np.argmin(attended.diagonal()))
        name = "itself_hidden" if window_width(attended | own) else ""
        raise Failure(f"one chunk: token {t} does not attend to itself", name)


def _test_capacity(layer, X, whole):
    """Rows of the buffer that were not written must get no weight."""
    if rows_differ(whole, layer.run_in_chunks(X, T, extra_capacity=5)).any():
        capacities = f"capacities of {T} and {T + 5} tokens"
        raise Failure(f"{capacities} give two results", "buffer_seen")


def _test_chunks(layer, X, sizes, whole, attended):
    """Several chunks must give what one gives."""
    try:
        rows = layer.run_in_chunks(X, sizes)
    except Failure as failure:
        of_shapes = any(word in str(failure.__cause__) for word in ("shape", "size", "broadcast"))
        if sizes in (2, 3) and of_shapes:
            raise Failure(failure.evidence, "square_mask") from failure
        raise
    wrong = rows_differ(whole, rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        label = f"{chunk_sizes_text(sizes)}: the row of token {t}"
        if not rows_differ(whole.astype(np.float32), rows.astype(np.float32)).any():
            mend = f"cache K and V in the type of Y, {rows.dtype}"
            raise Failure(f"{label} differs as little as by rounding in a coarser type; {mend}")
        _raise_if_keys_differ(layer, X, sizes, rows, attended)
        given, right = (", ".join(f"{x:.3f}" for x in row[:3]) for row in (rows[t], whole[t]))
        evidence = f"{label} begins {given} and should begin {right}"
        _raise_position_failure(layer, X, whole, evidence)


def _raise_if_keys_differ(layer, X, sizes, rows, attended):
    """Say which keys are wrong in chunks, if any are; `attended` is the pattern of one chunk."""
    now = attended_keys(layer, X, sizes, rows)
    if np.array_equal(now, attended):
        return
    name, p = "", ChunkPattern(now, attended, sizes)
    with suppress(Failure):  # chunks of three show what those of one or two do not
        three = ChunkPattern(attended_keys(layer, X, 3, layer.run_in_chunks(X, 3)), attended, 3)
        name = next((name for name, fits in IN_ANY_CHUNKS.items() if fits(p) and fits(three)), "")
    name = name or next((name for name, fits in IN_THESE_CHUNKS.items() if fits(p)), "")
    t = int(np.argmax((now != attended).any(axis=-1)))
    text = f"token {t} attends to {_keys_text(now[t])}, in one chunk to {_keys_text(attended[t])}"
    raise Failure(f"{chunk_sizes_text(sizes)}: {text}", name)


class ChunkPattern:
    """What tokens attend to in chunks of n, beside what they attend to in one.

    Whether a token attends to itself often does not show: the row changes with its query.
    """

    def __init__(self, chunked, unchunked, sizes):
        self.now, self.seen = chunked, unchunked
        edges = chunk_bounds(sizes, T)
        start, end = np.repeat(edges, np.diff(edges)[:, 0], axis=0).T  # of the chunk of each token
        self.start, self.keys, self.own = start[:, None], np.arange(T), np.eye(T, dtype=bool)
        self.later = np.triu(self.own | True, 1) & (self.keys < end[:, None]) & (self.start > 0)
        self.unchunked_width, self.chunked_width = window_width(unchunked), window_width(chunked)
        self.lost = unchunked & ~chunked

    def attends_like(self, keys):
        """Whether tokens attend to these keys, whatever is seen of themselves."""
        return np.array_equal(self.now | self.own, keys | self.own)

    def sees_ahead(self, keys):
        """Whether tokens attend to these later keys, and to all before."""
        return np.array_equal(np.triu(self.now, 1), keys) and not (self.lost & ~self.own).any()

    def is_window_only_when_chunked(self):
        """Whether a window of fewer keys than all shows, but not in one chunk."""
        width, behind = int(self.now[-1].sum()), self.start[:, 0] > 0
        in_window = np.array_equal(self.now[behind], sliding_window(width)[behind])
        return self.unchunked_width == T and width < T and in_window

    def misses_keys(self, keys):
        """Whether tokens attend to fewer keys than in one chunk, and these are among the lost."""
        return (self.lost & keys).any() and not (self.now & ~self.seen).any()


IN_ANY_CHUNKS = {  # mistakes that show these patterns, as no others do, in chunks of any length
    "no_mask_behind_a_cache": lambda p: p.sees_ahead(p.later),
    "one_ahead": lambda p: p.sees_ahead(p.later & np.eye(T, k=1, dtype=bool)),
    "no_offset": lambda p: p.attends_like(p.keys <= p.keys[:, None] - p.start),
    "cache_unused": lambda p: np.array_equal(p.now, p.seen & (p.keys >= p.start)),
    "itself_hidden": lambda p: p.attends_like(p.seen),
}
IN_THESE_CHUNKS = {  # the first that fits: what is wrong with a window, or with cached rows
    "window_only_behind_a_cache": lambda p: p.is_window_only_when_chunked(),
    "window_changes": lambda p: p.chunked_width and (p.unchunked_width or T) < T,
    "rows_dropped": lambda p: p.misses_keys(True) and (p.unchunked_width or T) < T,
    "overwritten": lambda p: p.misses_keys(p.keys < p.start),
}


def sliding_window(width):
    """What a window of so many keys shows."""
    return np.tri(T, dtype=bool) & ~np.tri(T, k=-width, dtype=bool)


def window_width(pattern):
    """How many keys a window has, as far as so few tokens show; None if it is no window."""
    width, length = int(pattern.sum(axis=-1).max()), len(pattern)
    return width if np.array_equal(pattern, sliding_window(width)[:length, :length]) else None


def _order_matters(layer, sizes):
    """Whether the last row changes when two tokens before it are exchanged."""
    X = layer.sample_input(97)
    swapped = X[[*range(T - 3), -2, -3, -1]]  # near the end, where a window shows them
    return rows_differ(*(layer.run_in_chunks(Z, sizes)[-1:] for Z in (X, swapped))).any()


def _raise_position_failure(layer, X, whole, evidence):
    """All tokens attend to the right ones: are their positions wrong, or something else?"""
    singly = layer.run_in_chunks(X, 1)
    if _order_matters(layer, T) and not _order_matters(layer, 1):
        within = rows_differ(whole, singly)[1] and _order_matters(layer, (T - 4, 4))
        raise Failure(evidence, "positions_restart" if within else "positions_stop")
    # The same change behind any cache: a shift looks like another scale, cap or sink.
    if not rows_differ(singly, layer.run_in_chunks(X, (1, T - 1))).any():
        raise Failure(evidence, "other_behind_a_cache")
    raise Failure(f"{evidence}: it attends to the right tokens, but its output differs")


def _keys_text(row):
    return ", ".join(map(str, np.flatnonzero(row))) or "nothing"


def _test_two_continuations(layer, X, whole):
    """A cache that was continued is refused, or both continuations are independent."""
    with prefixed_evidence("two continuations"):
        _, old = layer.run_step(X[:-2], layer.new_cache(T + 2))
        _, new = layer.run_step(X[-2:-1], old)
        if new is old:  # a cache that grows in place has no older form
            return
        with suppress(Failure):
            layer.run_step(layer.sample_input(93)[:1], old)
        Y, _ = layer.run_step(X[-1:], new)
    if rows_differ(whole[-1:], Y).any():
        raise Failure("a second token behind an older cache changes the newer one", "used_twice")


def _test_batch(layer):
    """Each sequence of a batch must give the rows that it gives by itself."""
    X = layer.sample_input(94, 2)
    alone = np.stack([layer.run_in_chunks(row, T) for row in X])
    for n in (T, 2):
        wrong = rows_differ(alone, layer.run_in_chunks(X, n))
        if wrong.any():
            b, t = np.argwhere(wrong)[0]
            label = f"{chunk_sizes_text(n)}, a batch of 2"
            raise Failure(f"{label}: the row of token {t} of sequence {b} differs")


def _test_padding(layer):
    """Padding at the left must change no row of a token."""
    X, pad = layer.sample_input(98, 3), np.array([2, 0, 3])  # unsorted, none equal
    unpadded = [x[left:] for x, left in zip(X, pad, strict=True)]
    alone = [layer.run_in_chunks(tokens, T) for tokens in unpadded]
    for n in PADDED_CHUNKS:
        rows = layer.run_in_chunks(X, n, pad=pad)
        for b, left in enumerate(pad):
            wrong = rows_differ(alone[b], rows[b, left:])
            if wrong.any():
                label = f"{chunk_sizes_text(n)}, padded"
                now = attended_keys(layer, X, n, rows, pad=pad)[b, left:]
                right = attended_keys(layer, unpadded[b], T, alone[b])
                _raise_if_padding_attended(now[:, :left], now[:, left:], right, label)
                token = f"token {int(np.argmax(wrong))}"
                evidence = f"{label}: {token} attends to the right tokens, but its row differs"
                raise Failure(evidence, "positions_count_padding")


def _raise_if_padding_attended(padding, tokens, expected, label):
    """Say which keys are wrong in padded rows, if any are."""
    if padding.any():
        t = int(np.argmax(padding.any(axis=-1)))
        raise Failure(f"{label}: token {t} attends to padding", "padding_seen")
    if not np.array_equal(tokens, expected):
        t = int(np.argmax((tokens != expected).any(axis=-1)))
        attends = (
            f"attends to {_keys_text(tokens[t])}, and without padding to {_keys_text(expected[t])}"
        )
        name = "" if (tokens & ~expected).any() else "tokens_hidden"
        if window_width(expected) not in (None, len(expected)) and window_width(tokens) is not None:
            name = "window_counts_padding"
        raise Failure(f"{label}: token {t} {attends}", name)
