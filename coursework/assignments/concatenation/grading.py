"""Normed heads: each head is brought to one scale and multiplied by a gain before the concat."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, H, T, d_v, eps=0.5):
        return 2 * rng.standard_normal((*batch, H, T, d_v)), rng.standard_normal(H), eps

    loud, gain, eps = arrays(H=4, T=6, d_v=3, eps=1e-5)
    loud = loud * 10.0 ** rng.permutation(4)[:, None, None]
    silent, other_gain, other_eps = arrays(2, H=3, T=5, d_v=4, eps=0.01)
    silent[:, 1, 2:] = 0
    return [
        Case("3 heads", arrays(H=3, T=5, d_v=7), 3),
        Case("2 heads, a batch", arrays(4, H=2, T=5, d_v=3, eps=0.3), 2),
        Case("two batch axes", arrays(3, 2, H=4, T=7, d_v=5), 1),
        Case("one head", arrays(H=1, T=4, d_v=6), 1),
        Case("heads of very different sizes", (loud, gain, eps), 1),
        Case("rows of zeros", (silent, other_gain, other_eps), 1),
        Case("heads one number wide", arrays(H=3, T=4, d_v=1), 1),
    ]


ASSIGNMENT = Assignment((Task("concat_normed", cases),), withheld=("concat_heads",))
