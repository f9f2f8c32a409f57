"""Which output depends on which token: the table, its pattern in words, and its drawing."""

from dataclasses import dataclass

import numpy as np

from tutorial_lib.probe.subject import changed, tokens

MOST_SINKS = 4
HEADS = (2, 3, 4, 6, 8, 12, 16)


def dependence(outputs, X, others, *, tolerance):
    """Return which outputs change when one token at a time is replaced, (T, T).

    Row i, column j: output i depends on token j. `outputs` is a function of X (B, T, d), and X and
    others (T, d) are the tokens, and those that take their places.
    """
    T = len(X)
    batch = np.repeat(X[None], T + 1, axis=0)
    batch[np.arange(T), np.arange(T)] = others  # sequence j has another token j
    Y = outputs(batch)
    return changed(Y[:T], Y[T:], tolerance).T


def table_of(subject, T, *, outputs=None, seed=0):
    """Return the table of a subject for T tokens: what changes in any of three draws."""
    outputs = subject.outputs if outputs is None else outputs
    tables = []
    for draw, size in enumerate((1.0, 1.0, 0.1)):
        X, others = tokens(2, (T, subject.d_model), size=size, seed=(seed, draw))
        tables.append(dependence(outputs, X, others, tolerance=subject.noise))
    return np.any(tables, axis=0)


@dataclass(frozen=True)
class Pattern:
    """A mask in words: `window` counts the token itself, and None is no window, or no blocks.

    The first `sinks` tokens are seen by all later ones, whatever the window.
    """

    causal: bool = False
    window: int | None = None
    sinks: int = 0
    block: int | None = None

    def mask(self, T):
        """Return the mask (T, T), True where row i may see column j."""
        i, j = np.arange(T)[:, None], np.arange(T)
        near = np.full((T, T), True) if self.window is None else abs(i - j) < self.window
        near = near | (j < self.sinks)
        if self.block is not None:
            near = near & (i // self.block == j // self.block)
        return near & (j <= i) if self.causal else near

    def __str__(self):
        words = ["causal"] if self.causal else []
        if self.block is not None:
            words.append(f"blocks of {self.block}")
        if self.window is not None:
            words.append(f"a window of {self.window}, the token itself counted")
        if self.sinks:
            words.append(f"the first {self.sinks} always seen" if self.sinks > 1 else "a sink")
        return ", ".join(words) or "every token sees every token"


def patterns(T):
    """Yield the patterns that T tokens can tell apart, the simplest first."""
    for causal in (False, True):
        yield Pattern(causal)
    for causal in (False, True):
        for window in range(1, T):
            yield Pattern(causal, window)
        for block in range(2, T // 2 + 1):
            yield Pattern(causal, block=block)
    for causal in (False, True):
        for sinks in range(1, MOST_SINKS + 1):
            for window in range(1, T - sinks - 1):
                yield Pattern(causal, window, sinks)


def off_diagonal(table):
    """Return a table without its diagonal: a query moves its own row, whatever it sees."""
    return table & ~np.eye(len(table), dtype=bool)


def simplest_pattern(table):
    """Return the simplest pattern that a table (T, T) shows, or None."""
    seen = off_diagonal(table)
    for pattern in patterns(len(table)):
        if np.array_equal(off_diagonal(pattern.mask(len(table))), seen):
            return pattern
    return None


def draw(table, expected=None):
    """Draw a table: ■ seen, · not seen; with an expected one ▲ seen against it, ○ missing.

    The diagonal is drawn as seen. At most 16 rows are drawn, the last ones.
    """
    expected = table if expected is None else expected
    signs = np.array(["·", "■", "○", "▲"])  # by 2 * (other than expected) + seen
    kinds = 2 * (off_diagonal(table) != off_diagonal(expected)) + table
    np.fill_diagonal(kinds, 1)
    return "\n".join(" ".join(row) for row in signs[kinds[-16:, -16:]])
