"""What a layer with a cache is asked: fed in pieces it gives what it gives for the whole text."""

from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.probe.dependence import dependence, off_diagonal, simplest_pattern
from tutorial_lib.probe.report import DESCRIBED, RIGHT, WRONG, Finding, answered
from tutorial_lib.probe.subject import largest, tokens

T = 12
FIRST_POSITIONS = (0, 1, 2)  # RoBERTa begins at 2
WAYS = {
    "one piece": (T,),
    "token by token": (1,) * T,
    "uneven pieces": (3, 1, 5, 2, 1),
}


def ask_cache(subject, table):
    """Ask every way of feeding the cache, a second text, and a rewound cache."""
    if subject.cache is None:
        return []
    if np.triu(table, 1).any():
        return [Finding(DESCRIBED, "cache", "cannot be asked: later tokens are seen")]
    X, others = tokens(2, (2, T, subject.d_model))
    Y = subject.outputs(X)
    asked = {
        f"cache, {way}": partial(_way, subject, X, Y, f"cache, {way}", lengths)
        for way, lengths in WAYS.items()
    }
    asked["second text"] = partial(_second_text, subject, X, others, Y)
    if subject.cache.rewind is not None:
        asked["cache, rewound"] = partial(_rewound, subject, X, others, Y)
    if subject.cache.padded is not None:
        asked["cache, padded"] = partial(_padded, subject, X)
    findings = []
    for question, ask in asked.items():
        findings += answered(question, lambda ask=ask: [ask()], handed_over=True)
    if findings[0].sign != RIGHT:  # then a second text cannot be right either
        findings = [found for found in findings if found.question != "second text"]
    return findings


def _second_text(subject, X, others, Y):
    """Feed another text, and then the text again from an empty cache."""
    subject.cache.run(others, (T,))
    if largest(subject.cache.run(X, (T,)), Y) <= subject.tolerance:
        return Finding(RIGHT, "second text", "an empty cache knows nothing of the one before")
    sentence = "after another text an empty cache gives other outputs"
    return Finding(WRONG, "second text", sentence, "state_between_calls")


def _padded(subject, X):
    """Feed a batch in pieces whose second text has padding on the left."""
    keep = np.ones(X.shape[:2], bool)
    keep[1, :4] = False

    def outputs(X):
        state, start, found = subject.cache.empty(), 0, []
        for length in (6, 1, 3, 2):
            end = start + length
            out, state = subject.cache.padded(X[:, start:end].copy(), state, keep[:, :end])
            found.append(np.asarray(out, dtype=float))
            start = end
        return np.concatenate(found, axis=1)[keep]

    found = outputs(X)
    if largest(found, subject.outputs(X, keep=keep)[keep]) <= subject.tolerance:
        return Finding(RIGHT, "cache, padded", "the outputs of the whole padded text")
    sentence = "behind padding, outputs in pieces differ from those of the whole text"
    others = np.where(keep[..., None], X, tokens(1, X.shape, seed=16)[0])
    seen = largest(outputs(others), found) > max(subject.noise, subject.tolerance)
    return Finding(WRONG, "cache, padded", sentence, "padding_seen_in_pieces" if seen else None)


def _way(subject, X, Y, question, lengths):
    """Ask one way of feeding the cache."""
    outputs = subject.cache.run(X, lengths)
    if largest(outputs, Y) <= subject.tolerance:
        return Finding(RIGHT, question, "the outputs of the whole text")
    first = next(i for i in range(T) if largest(outputs[:, i], Y[:, i]) > subject.tolerance)
    sentence = f"output {first} is the first that differs from that of the whole text"
    name = _named(subject, X, outputs, lengths)
    hints = () if name else _hints(subject, first, lengths)
    return Finding(WRONG, question, sentence, name, hints)


def _table(subject, X, lengths):
    """Return who depends on whom when fed in pieces, (T, T)."""
    _, others = tokens(2, (T, subject.d_model), seed=3)
    Y = subject.cache.run(X[:1], lengths)
    table = np.zeros((T, T), bool)
    for j in range(T):
        changed = X[:1].copy()
        changed[0, j] = others[j]
        difference = abs(subject.cache.run(changed, lengths) - Y)[0].max(axis=-1)
        table[:, j] = ~(difference <= subject.noise)
    return table


def _sees_all_before(subject, X, lengths):
    """Say whether every earlier token is seen, fed in pieces."""
    return np.array_equal(off_diagonal(_table(subject, X, lengths)), np.tri(T, k=-1, dtype=bool))


def _whole_table(subject, X):
    """Return who depends on whom in the whole text, (T, T)."""
    _, others = tokens(2, (T, subject.d_model), seed=3)
    return dependence(subject.outputs, X[0], others, tolerance=subject.noise)


def _named(subject, X, outputs, lengths):
    """Return the mistake on which two witnesses agree, or None."""
    starts = np.cumsum((0, *lengths))[:-1]
    piece = np.repeat(np.arange(len(lengths)), lengths)  # of each token
    if _of_other_sequence(subject, X, outputs, lengths):
        return "cache_of_other_sequence"
    seen, whole = off_diagonal(_table(subject, X, lengths)), off_diagonal(_whole_table(subject, X))
    if np.array_equal(seen, whole):
        return _of_values(subject, X, outputs, lengths)
    if all(_sees_all_before(subject, X, way) for way in WAYS.values()):
        return "window_dropped_in_pieces"
    same = piece[:, None] == piece
    if len(lengths) > 1 and np.array_equal(seen, whole & same):
        alone = [subject.outputs(each) for each in np.split(X, starts[1:], axis=1)]
        apart = largest(outputs, np.concatenate(alone, axis=1))
        return "cache_not_read" if apart <= subject.tolerance else None
    both_ways = off_diagonal(whole | (same & (whole.T | whole)))
    if max(lengths) > 1 and np.array_equal(seen, both_ways) and not np.triu(whole).any():
        singly = subject.cache.run(X, (1,) * T)
        right = largest(singly, subject.outputs(X)) <= subject.tolerance
        return "mask_dropped_in_pieces" if right else None
    local = np.arange(T) - starts[piece]  # the row of a token in its piece
    corner = whole & (np.arange(T) <= local[:, None])
    if len(lengths) > 1 and np.array_equal(seen, off_diagonal(corner)):
        return "mask_first_corner"
    return _fewer_seen(subject, X, seen, whole)


def _fewer_seen(subject, X, seen, whole):
    """Name what hides earlier tokens, by the tables in pieces and of the whole text."""
    found, window = simplest_pattern(seen), simplest_pattern(whole)
    if found and window and window.window and found == replace(window, window=found.window):
        return "window_another_in_pieces"
    lost = [_table(subject, X, way) for way in (WAYS["token by token"], WAYS["uneven pieces"])]
    fewer = [not (off_diagonal(table) & ~whole).any() for table in lost]
    less = [(off_diagonal(table) != whole).any() for table in lost]
    return "cached_keys_lost" if all(fewer) and all(less) else None


def _of_other_sequence(subject, X, outputs, lengths):
    """Say whether, in pieces, the first token of sequence 1 moves sequence 0."""
    there = X.copy()
    there[1, 0] = tokens(1, X[1, 0].shape, seed=15)[0]
    moved = largest(subject.cache.run(there, lengths)[0], outputs[0])
    return moved > max(subject.noise, subject.tolerance)


def _of_values(subject, X, outputs, lengths):
    """Name what leaves the table as it is: positions, or rows that nobody wrote."""
    if len(lengths) > 1:
        by_hand = "positions" in subject.takes
        name = _by_positions(subject, X, outputs, lengths) if by_hand else None
        if name or (not by_hand and _restarted_by_order(subject, X, outputs, lengths)):
            return name or "positions_restart"
    first = largest(outputs[:, 0], subject.outputs(X)[:, 0]) > subject.tolerance
    return "unwritten_rows_seen" if first and _fewer_unwritten(subject, lengths) else None


def _by_positions(subject, X, outputs, lengths):
    """Return the mistake whose positions give the first wrong piece, in the whole text; or None."""
    Y, starts = subject.outputs(X), np.cumsum((0, *lengths))
    n, m = next(
        (start, length)
        for start, length in zip(starts, lengths, strict=False)
        if largest(*(y[:, start : start + length] for y in (outputs, Y))) > subject.tolerance
    )
    if not n:
        return None
    old, new = np.arange(n), np.arange(n, n + m)
    offsets = [new + jump for jump in (-2, -1, 1, 2)] + [2 * new, np.full(m, n), 0 * new + 1]
    guesses = {
        "positions_restart": [(old, new - n)],
        "cached_keys_rotated_twice": [(2 * old, new)],
        "cached_keys_unrotated": [(0 * old, new)],
        "positions_offset_in_pieces": [(old, offset) for offset in offsets],
    }
    for name, pairs in guesses.items():
        for pair in pairs:
            for first in FIRST_POSITIONS:
                places = (first + np.concatenate(pair))[None].repeat(len(X), axis=0)
                whole = subject.outputs(X[:, : n + m], positions=places)
                if largest(whole[:, n:], outputs[:, n : n + m]) <= subject.tolerance:
                    return name
    return None


def _restarted_by_order(subject, X, outputs, lengths):
    """Say whether the first tokens of two pieces can be exchanged, which have one position then."""
    there = X.copy()
    start = T - lengths[-1] - lengths[-2]  # of the last piece but one
    there[:, [0, start]] = X[:, [start, 0]]
    whole = largest(subject.outputs(there)[:, -1], subject.outputs(X)[:, -1])
    moved = largest(subject.cache.run(there, lengths)[:, -1], outputs[:, -1])
    alike = not _equal_tokens_differ(subject, lengths)  # which have no order
    return alike and moved <= subject.tolerance < whole


def _hints(subject, first, lengths):
    """Return what would show the same first wrong output."""
    if first < lengths[0] or _equal_tokens_differ(subject, lengths):
        return ()
    return ("positions_offset_in_pieces",)


def _equal_tokens(subject, lengths):
    """Return what a text of one token, repeated, gives in pieces less what it gives whole."""
    X = np.repeat(tokens(1, (1, 1, subject.d_model))[0], T, axis=1)
    return subject.cache.run(X, lengths) - subject.outputs(X)


def _equal_tokens_differ(subject, lengths):
    return np.abs(_equal_tokens(subject, lengths)).max() > subject.tolerance


def _fewer_unwritten(subject, lengths):
    """Say whether equal tokens differ less and less, as more rows are written."""
    sizes = np.abs(_equal_tokens(subject, lengths)).max(axis=(0, 2))
    return sizes[-1] < 0.99 * sizes[0] and (np.diff(sizes) <= subject.tolerance).all()


def _rewound(subject, X, others, Y):
    """Feed tokens, take some back, and feed the right ones."""
    cache = subject.cache

    def outputs(wrong):
        _, state = cache.step(X[:, :5].copy(), cache.empty())
        _, state = cache.step(wrong[:, 5:9].copy(), state)
        state = cache.rewind(state, 5)
        return np.asarray(cache.step(X[:, 5:].copy(), state)[0], dtype=float)

    first, second = outputs(others), outputs(others[::-1])
    if largest(first, Y[:, 5:]) <= subject.tolerance:
        return Finding(RIGHT, "cache, rewound", "the tokens that were taken back leave nothing")
    name = "rewind_ignored" if largest(first, second) > subject.noise else None
    return Finding(WRONG, "cache, rewound", "tokens that were taken back leave a trace", name)
