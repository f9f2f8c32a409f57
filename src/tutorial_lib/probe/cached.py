"""What a layer with a cache is asked: fed in chunks it gives what it gives for the whole text."""

from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.probe.dependence import dependence, off_diagonal, simplest_pattern
from tutorial_lib.probe.report import (
    PLACES,
    RIGHT,
    all_answered,
    answered,
    broken,
    described,
    passed,
    without_names,
)
from tutorial_lib.probe.subject import largest, memory_of, singly, tokens

LEAST, LONGER = 12, 40  # tokens
FIRST_POSITIONS = (0, 1, 2)  # RoBERTa begins at 2
HINTS = {  # what would show a place, too
    "weights_differ_in_chunks": ("positions_offset_in_chunks",),
    "cached_rows_altered": ("unwritten_rows_seen",),
}


def ask_cache(subject, table):
    """Ask every way of feeding the cache, a second text, and a rewound cache."""
    if subject.cache is None:
        return []
    if np.triu(table, 1).any():
        return described("cache", "cannot be asked: later tokens are seen")
    chunks = Chunks(subject, table)
    ways = {f"cache, {way}": partial(chunks.ask, way) for way in chunks.ways}
    findings = all_answered(ways, refused="cache_refused")
    if any(found.name and found.name not in PLACES for found in findings):
        findings = [replace(f, name=None) if f.name in PLACES else f for f in findings]
    sound = all(found.sign == RIGHT for found in findings)
    asked = {"second text": chunks.second_text} if findings[0].sign == RIGHT else {}
    if sound:
        findings += answered("cache, longer", lambda: _ask_longer(subject, table))
    if subject.cache.rewind is not None:
        asked["cache, rewound"] = chunks.rewound
    if subject.cache.padded is not None:
        asked["cache, padded"] = chunks.padded
    elif "keep" in subject.takes and subject.memory is None:
        findings += described("cache, padded", "not asked: step takes no argument of that name")
    more = all_answered(asked, refused="cache_refused")
    return [*findings, *(more if sound else without_names(more))]


def _ask_longer(subject, table):
    return Chunks(subject, table, least=LONGER).ask("a long chunk first")


class Chunks:
    """A layer that is fed in chunks, and what its outputs are compared with."""

    def __init__(self, subject, table, *, least=LEAST):
        self.subject, pattern = subject, simplest_pattern(table)
        reach = pattern.window + pattern.sinks if pattern and pattern.window else 0
        self.T = T = max(least, reach + 4)
        self.X, self.others = tokens(2, (2, T, subject.d_model))
        shape = subject.memory
        self.memory = () if shape is None else (memory_of(shape, 2),)
        self.Y = subject.outputs(self.X)
        uneven = (3, 1, 5, 2, 1)
        self.ways = {
            "one chunk": (T,),
            "token by token": (1,) * T,
            "uneven chunks": uneven if T == LEAST else (*uneven, T - LEAST),
            "a long chunk first": (T - 5, 1, 3, 1),
        }

    def run(self, lengths, X=None):
        """Feed the text, or another one, in chunks."""
        X = self.X if X is None else X
        return self.subject.cache.run(X, lengths, *(array[: len(X)] for array in self.memory))

    def differ(self, Y, others):
        """Say whether outputs differ."""
        return not self.subject.same(Y, others)

    def ask(self, way):
        """Ask one way of feeding the cache."""
        lengths, longer = self.ways[way], self.T >= LONGER
        question, outputs = f"cache, {f'{self.T} tokens' if longer else way}", self.run(lengths)
        if not self.differ(outputs, self.Y):
            return passed(question, "the outputs of the whole text")
        first = next(i for i in range(self.T) if self.differ(outputs[:, i], self.Y[:, i]))
        sentence = f"output {first} is the first that differs from that of the whole text"
        name = self.name(outputs, lengths)
        return broken(question, sentence, name, HINTS.get(name, ()))

    def name(self, outputs, lengths):
        """Return the mistake on which two witnesses agree, or its place."""
        if not np.isfinite(outputs).all():
            return "not_finite_in_chunks"
        if self._of_other_sequence(outputs, lengths):
            return "cache_of_other_sequence"
        seen, whole = map(self._table, (lambda X: self.run(lengths, X), self.subject.outputs))
        if np.array_equal(seen, whole):
            return self._of_values(outputs, lengths)
        if np.triu(seen & ~whole, 1).any():
            return self._later_seen(seen, whole, lengths)
        found = self._of_window(seen, whole)
        if found:
            return found
        more, fewer = (seen & ~whole).any(), (whole & ~seen).any()
        if fewer and not more:
            return self._fewer_seen(seen, whole, lengths)
        return "others_seen_in_chunks" if fewer else "more_seen_in_chunks"

    def _table(self, outputs):
        """Return who depends on whom, (T, T), without a diagonal."""
        _, others = tokens(2, (self.T, self.subject.d_model), seed=3)
        noise = self.subject.noise
        return off_diagonal(dependence(singly(outputs), self.X[0], others, tolerance=noise))

    def _chunk(self, lengths):
        """Return the number of the chunk of each token, and the first token of that chunk."""
        chunk = np.repeat(np.arange(len(lengths)), lengths)
        return chunk, np.cumsum((0, *lengths))[chunk]

    def _later_seen(self, seen, whole, lengths):
        """Name what lets tokens see later ones of their chunk."""
        chunk, _ = self._chunk(lengths)
        both_ways = whole | off_diagonal((chunk[:, None] == chunk) & (whole.T | whole))
        each = ((seen == whole).all(axis=1) | (seen == both_ways).all(axis=1)).all()
        if each and not self.differ(self.run((1,) * self.T), self.Y):
            return "mask_dropped_in_chunks"
        return "later_tokens_seen_in_chunks"

    def _of_window(self, seen, whole):
        """Name another window than that of the whole text, or return None."""
        found, window = simplest_pattern(seen), simplest_pattern(whole)
        if not (found and window and window.window) or found.block or not found.causal:
            return None
        if found.window is None:
            return "window_dropped_in_chunks"
        return "window_another_in_chunks" if found.sinks == window.sinks else None

    def _fewer_seen(self, seen, whole, lengths):
        """Name what hides earlier tokens."""
        chunk, start = self._chunk(lengths)
        if len(lengths) > 1 and np.array_equal(seen, whole & (chunk[:, None] == chunk)):
            texts = np.split(self.X, start[1:][np.diff(chunk) > 0], axis=1)
            alone = np.concatenate([self.subject.outputs(x) for x in texts], axis=1)
            each = self.differ(self.run((1,) * self.T), self.Y)
            unread = each and not self.differ(self.run(lengths), alone)
            return "cache_not_read" if unread else "fewer_seen_in_chunks"
        local = np.arange(self.T) - start  # the row of a token in its chunk
        corner = whole & (np.arange(self.T) <= local[:, None])
        if len(lengths) > 1 and np.array_equal(seen, off_diagonal(corner)):
            return "mask_first_corner"
        return "fewer_seen_in_chunks"

    def _of_other_sequence(self, outputs, lengths):
        """Say whether, in chunks, the first token of a sequence moves the other one by much."""
        moved = []
        for b in (0, 1):
            there = self.X.copy()
            there[b, 0] = tokens(1, self.X[b, 0].shape, seed=15)[0]
            moved.append(largest(self.run(lengths, there)[1 - b], outputs[1 - b]))
        return max(moved) > max(0.1 * self.subject.effect, self.subject.tolerance)

    def _of_values(self, outputs, lengths):
        """Name what leaves the table as it is: positions, rounding, or rows that are no keys."""
        if self._rounded(outputs, lengths):
            return "rounded_in_chunks"
        if "positions" in self.subject.takes:
            name = self._by_positions(outputs, lengths)
        else:
            name = "positions_restart" if self._restarted_by_order() else None
        if name and len(lengths) > 1:
            return name
        if not self.differ(self._equal_tokens(lengths), 0.0):
            return "weights_differ_in_chunks"
        return "unwritten_rows_seen" if self._unwritten() else "cached_rows_altered"

    def _rounded(self, outputs, lengths):
        """Say whether what differs is another thing in a text that is nearly the same."""
        difference = outputs - self.Y
        for step, part in ((1e-4, 0.1), (1e-2, 0.5)):
            near = self.X * (1 + step)
            other = self.run(lengths, near) - self.subject.outputs(near)
            if largest(other, difference) > part * np.abs(difference).max():
                return True
        return False

    def _by_positions(self, outputs, lengths):
        """Return the mistake whose positions give the first wrong chunk, as a whole; or None."""
        X, Y, starts = self.X, self.Y, np.cumsum((0, *lengths))
        n, m = next(
            (start, length)
            for start, length in zip(starts, lengths, strict=False)
            if self.differ(*(y[:, start : start + length] for y in (outputs, Y)))
        )
        if not n:
            return None
        old, new = np.arange(n), np.arange(n, n + m)
        offsets = [new + jump for jump in (-2, -1, 1, 2)] + [2 * new, np.full(m, n), 0 * new + 1]
        guesses = {
            "positions_restart": [(old, new - n)],
            "cached_keys_rotated_twice": [(2 * old, new)],
            "cached_keys_unrotated": [(0 * old, new)],
            "positions_offset_in_chunks": [(old, offset) for offset in offsets],
        }
        for name, pairs in guesses.items():
            for pair in pairs:
                for origin in FIRST_POSITIONS:
                    places = (origin + np.concatenate(pair))[None].repeat(len(X), axis=0)
                    whole = self.subject.outputs(X[:, : n + m], positions=places)
                    if not self.differ(whole[:, n:], outputs[:, n : n + m]):
                        return name
        return None

    def _restarted_by_order(self):
        """Say whether tokens that stand alike in two chunks can be exchanged, and others cannot."""
        lengths = self.ways["uneven chunks"]  # the third begins at token 4
        alike, other = self._exchanged(lengths, 0, 4), self._exchanged(lengths, 0, 5)
        return all(whole for whole, _ in (alike, other)) and other[1] and not alike[1]

    def _exchanged(self, lengths, i, j):
        """Say whether the last output changes if two tokens are exchanged, as a whole and fed."""
        there = self.X.copy()
        there[:, [i, j]] = self.X[:, [j, i]]
        fed, X = (self.run(lengths, x)[:, -1] for x in (there, self.X)), self.subject.outputs(there)
        return self.differ(X[:, -1], self.Y[:, -1]), self.differ(*fed)

    def _equal_tokens(self, lengths, size=1.0):
        """Return what a text of one token, repeated, gives in chunks less what it gives whole."""
        X = np.repeat(tokens(1, (1, 1, self.subject.d_model), size=size)[0], self.T, axis=1)
        return self.run(lengths, X) - self.subject.outputs(X)

    def _unwritten(self):
        """Say whether equal small tokens differ by a line that falls with each row written.

        Their scores are about 0, as those of rows that nobody has written: these get equal parts.
        """
        apart = self._equal_tokens((1,) * self.T, size=1e-3)[0]
        sizes = np.abs(apart).max(axis=-1)
        bent = np.abs(np.diff(apart, n=2, axis=0)).max()
        return bool(bent <= 1e-3 * sizes[0] and sizes[-1] < 0.99 * sizes[0])

    def second_text(self):
        """Feed another text, then the text again from an empty cache, and one of another memory."""
        self.run((self.T,), self.others)
        left = self.differ(self.run((self.T,)), self.Y)
        if self.memory:
            other = tokens(1, self.memory[0].shape, seed=43)[0]
            fed = self.subject.cache.run(self.X, (3, 1, self.T - 4), other)
            left = left or self.differ(fed, self.subject.outputs(self.X, memory=other))
        if not left:
            return passed("second text", "an empty cache knows nothing of the one before")
        return broken("second text", None, "state_between_calls")

    def rewound(self):
        """Feed tokens, take some back, and feed the right ones."""
        cache, X, memory = self.subject.cache, self.X, self.memory

        def outputs(wrong):
            _, state = cache.step(X[:, :5].copy(), cache.empty(), *memory)
            _, state = cache.step(wrong[:, 5:9].copy(), state, *memory)
            state = cache.rewind(state, 5)
            return np.asarray(cache.step(X[:, 5:].copy(), state, *memory)[0], dtype=float)

        first, second = outputs(self.others), outputs(self.others[::-1])
        if not self.differ(first, self.Y[:, 5:]):
            return passed("cache, rewound", "the tokens that were taken back leave nothing")
        trace = largest(first, second) > self.subject.noise
        name = "rewind_ignored" if trace else "rewound_outputs_differ"
        return broken("cache, rewound", None, name)

    def padded(self):
        """Feed a batch in chunks whose second text has padding on the left."""
        subject, X = self.subject, self.X[:, :LEAST]
        keep = np.ones(X.shape[:2], bool)
        keep[1, :4] = False

        def outputs(X):
            return subject.cache.run(X, (6, 1, 3, 2), keep=keep)[keep]

        found = outputs(X)
        if not self.differ(found, subject.outputs(X, keep=keep)[keep]):
            return passed("cache, padded", "the outputs of the whole padded text")
        others = np.where(keep[..., None], X, tokens(1, X.shape, seed=16)[0])
        whole, moved = (subject.outputs(x, keep=keep)[keep] for x in (X, others))
        if not subject.same(whole, moved):
            return described("cache, padded", "not asked: as a whole padding is seen, too")
        seen = largest(outputs(others), found) > max(subject.noise, subject.tolerance)
        name = "padding_seen_in_chunks" if seen else "padding_another_in_chunks"
        return broken("cache, padded", None, name)
