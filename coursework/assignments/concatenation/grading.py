"""Differential heads: the difference of each pair, brought to one scale before the concat."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, pairs, T, d_v, eps=0.5):
        heads = 2 * rng.standard_normal((*batch, 2 * pairs, T, d_v))
        return heads, rng.uniform(0.2, 0.9, pairs), rng.standard_normal(pairs), eps

    loud, *others = arrays(pairs=4, T=7, d_v=3, eps=1e-5)
    loud = loud * 10.0 ** rng.permutation(4).repeat(2)[:, None, None]
    silent, *more = arrays(3, pairs=4, T=5, d_v=7, eps=0.01)
    silent[:, 2:4, 2:] = 0
    return [
        Case("3 pairs", arrays(pairs=3, T=5, d_v=7), 3),
        Case("2 pairs, a batch", arrays(5, pairs=2, T=7, d_v=3, eps=0.3), 2),
        Case("two batch axes", arrays(5, 3, pairs=4, T=7, d_v=11), 1),
        Case("one pair", arrays(pairs=1, T=5, d_v=7), 1),
        Case("pairs of very different sizes", (loud, *others), 1),
        Case("rows of zeros", (silent, *more), 1),
        Case("heads one number wide", arrays(pairs=3, T=4, d_v=1), 1),
    ]


ASSIGNMENT = Assignment((Task("concat_differences", cases),), withheld=("concat_heads",))
