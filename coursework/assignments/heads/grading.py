"""Heads at scales: each head sees keys and values averaged over blocks of a size of its own."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ, so that no axis can stand for another, and d_k differs between cases.

    Nor is one the product or the ratio of two others; the blocks and the keys of each head count.
    """

    def arrays(*batch, H, S, T=5, d_k=7, d_v=11):
        shapes = (H, T, d_k), (H, S, d_k), (H, S, d_v)
        return tuple(2 * rng.standard_normal((*batch, *shape)) for shape in shapes)

    return [
        Case("3 heads, 24 keys", arrays(H=3, S=24), 3),
        Case("5 heads, 112 keys, a batch", arrays(3, H=5, S=112, T=9, d_k=13), 2),
        Case("two batch axes, one query", arrays(5, 9, H=3, S=28, T=1, d_k=8), 2),
        Case("one block for the last head", arrays(H=3, S=4, d_k=9), 1),
        Case("5 heads, 96 keys", arrays(H=5, S=96, T=7, d_k=9), 1),
        Case("scores of 1,000 and more", tuple(40 * a for a in arrays(H=3, S=36)), 1),
    ]


ASSIGNMENT = Assignment((Task("attend_at_scales", cases),))
