"""Differential heads: the difference of each pair, brought to one scale before the concat."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import concat_heads


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    A difference of mean 0 and mean square 1 is on its scale already, one token has no axis to swap,
    and one pair none to merge. All together sizes differ.
    """

    def plain(*shape):
        """Differences of any size, (..., H, T, d_v)."""
        return 3 * rng.standard_normal(shape)

    def unit(*shape):
        """Differences that have mean 0 and mean square 1."""
        rows = plain(*shape)
        rows -= rows.mean(axis=-1, keepdims=True)
        return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True))

    def arguments(difference, *, second=2.0, gain=None, eps=1e-12):
        """Return heads with these differences, and the rest; gains are 1 unless given."""
        *batch, H, T, d_v = difference.shape
        factor = rng.uniform(0.3, 0.9, H) * (rng.choice([-1, 1], H) if second else 1)
        others = second * rng.standard_normal(difference.shape)
        heads = np.stack([difference + factor[:, None, None] * others, others], axis=-3)
        gain = np.ones(H) if gain is None else gain
        return heads.reshape(*batch, 2 * H, T, d_v), factor, gain, eps

    silent = plain(1, 6, 1) * (rng.permutation(6) > 1)[:, None]
    loud = plain(3, 4, 7, 5) * 10.0 ** rng.permutation(4)[:, None, None]
    return [
        Case("concatenation", arguments(unit(3, 4, 4), second=0)),
        Case("differences of pairs", arguments(unit(3, 1, 4)), 2, idea=True),
        Case("one pair, with its factor", arguments(unit(1, 5, 4))),
        Case("the root mean square", arguments(plain(1, 5, 6), second=0), 2, idea=True),
        Case("eps, and rows of zeros", arguments(silent, second=0, eps=0.3)),
        Case("gains", arguments(plain(3, 4, 3), second=0, gain=plain(3))),
        Case("two batch axes", arguments(plain(2, 3, 4, 5, 1), eps=2.0)),
        Case("all together", arguments(loud, gain=plain(4), eps=0.5)),
    ]


def chapter(heads, factor, gain, eps):
    """Concatenate the first head of each pair."""
    return concat_heads(heads[..., ::2, :, :])


AXES = "sequence", "token", "column"
ASSIGNMENT = Assignment(
    (Task("concat_differences", cases, chapter=chapter, axes=AXES),), withheld=("concat_heads",)
)
