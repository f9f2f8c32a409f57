"""A draft taken back: each sequence of a batch keeps a different number, and all end together."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def drafts(rng, accepted, N, *, late):
    """Sample drafts, and what the model chooses: right up to `accepted`, and wrong there.

    Every second draft says one word again and again, so that a shifted comparison agrees too.

    late : whether every second token agrees by chance after the first that does not
    """
    B, most = len(accepted), 50
    drafted = rng.integers(most, size=(B, N))
    drafted[::2] = drafted[::2, :1]
    chosen = np.concatenate([drafted, rng.integers(most, size=(B, 1))], axis=1)
    other = (chosen + rng.integers(1, most, size=chosen.shape)) % most
    position = np.arange(N + 1)
    again = late & (position % 2 == (accepted[:, None] + 1) % 2)
    return drafted, np.where((position < accepted[:, None]) | again, chosen, other)


def cases(rng):
    """One property at a time: one head, no padding, and keys that are whole numbers of width 1.

    All together sizes differ, and so do the numbers of padding and of accepted tokens.
    """

    def arrays(accepted, pad=(0, 0, 0, 0), *, late=False, H=1, S=13, N=6, d=1):
        accepted, pad = np.array(accepted), np.array(pad)[: len(accepted)]
        rows = rng.integers(1, 99, size=(len(accepted), H, S, d)) + 0.0
        return rows, pad, *drafts(rng, accepted, N, late=late)

    some, pads = rng.permutation([1, 2, 4]), rng.permutation([0, 2, 3])
    mixed = rng.permutation([0, 1, 3, 5])
    rows, *others = arrays(mixed, [2, 0, 1, 3], late=True, H=7, S=17, N=5, d=9)
    return [
        Case("up to the first wrong guess", arrays([2], late=True), 2, idea=True),
        Case("sequences that keep different numbers", arrays(some), 2, idea=True),
        Case("padding", arrays([1, 1, 1], pads), 2),
        Case("whole drafts", arrays([6, 6]), 1),
        Case("no draft token is right", arrays([0, 0]), 1),
        Case("all together", (rows + rng.standard_normal(rows.shape), *others), 2),
    ]


def chapter(rows, pad, drafted, chosen):
    """Return chapter 14's cache after a cut: of all sequences the same number of columns."""
    return rows[:, :, : rows.shape[2] - drafted.shape[1]]


AXES = "sequence", "head", "token", ""
ASSIGNMENT = Assignment((Task("keep_accepted", cases, chapter=chapter, axes=AXES),))
