"""A draft taken back: each sequence of a batch keeps a different number, and all end together."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def _drafts(rng, accepted, N):
    """Sample drafts, and what the model chooses: right up to `accepted`, wrong there, then either.

    Every second draft says one word again and again, so that a shifted comparison agrees too.
    """
    B, most = len(accepted), 50
    drafted = rng.integers(most, size=(B, N))
    drafted[::2] = drafted[::2, :1]
    chosen = np.concatenate([drafted, rng.integers(most, size=(B, 1))], axis=1)
    other = (chosen + rng.integers(1, most, size=chosen.shape)) % most
    position = np.arange(N + 1)
    agrees = (position < accepted[:, None]) | (position % 2 == (accepted[:, None] + 1) % 2)
    return drafted, np.where(agrees, chosen, other)


def cases(rng):
    """Sizes all differ; in each case a token is refused although a later one agrees.

    After its first wrong guess every second token of a draft agrees by chance.
    """

    def arrays(accepted, pad, *, H, S, N, d):
        accepted, pad = np.array(accepted), np.array(pad)
        rows = rng.standard_normal((len(accepted), H, S, d))
        return rows, pad, *_drafts(rng, accepted, N)

    mixed = rng.permutation([0, 1, 3])
    whole = [5, *rng.permutation([1, 2, 5])]
    pad = [1, *rng.integers(2, 4, size=2)]
    return [
        Case(
            "three sequences, and numbers that differ",
            arrays(mixed, [0, 2, 3], H=4, S=19, N=6, d=8),
            3,
        ),
        Case("whole drafts among others", arrays(whole, [2, 0, 1, 3], H=7, S=13, N=5, d=9), 2),
        Case("no padding", arrays([2, 0, 3, 1, 1], [0] * 5, H=3, S=17, N=6, d=4), 1),
        Case("every sequence is padded", arrays([0, 2, 1], pad, H=8, S=14, N=4, d=7), 2),
        Case("no draft token is right", arrays([0, 0], [3, 1], H=11, S=15, N=6, d=5), 1),
        Case("one sequence", arrays([2], [2], H=3, S=13, N=5, d=4), 1),
    ]


ASSIGNMENT = Assignment((Task("keep_accepted", cases),))
