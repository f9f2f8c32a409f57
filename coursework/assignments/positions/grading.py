"""Positions that are counts: of gates, which a query opens for the tokens that matter to it."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ but in one case; every table but those of one case is long enough."""

    def arrays(*batch, H, T, S, d_k, N, large=1.5):
        Q, K = (large * rng.standard_normal((*batch, H, length, d_k)) for length in (T, S))
        return Q, K, 2 / large * rng.standard_normal((H, N, d_k))

    short = arrays(5, H=4, T=7, S=13, d_k=8, N=3)
    hundreds = arrays(H=4, T=3, S=11, d_k=5, N=13, large=12)
    return [
        Case("the last 5 of 8 tokens", arrays(H=6, T=5, S=8, d_k=4, N=9), 2),
        Case("a batch", arrays(2, H=3, T=5, S=11, d_k=7, N=12), 2),
        Case("two batch axes, one new token", arrays(2, 5, H=3, T=1, S=7, d_k=8, N=11), 1),
        Case("as many queries as keys", arrays(H=2, T=7, S=7, d_k=3, N=8), 2),
        Case("a table that ends too early", short, 2),
        Case("scores in the hundreds", hundreds, 1),
    ]


ASSIGNMENT = Assignment((Task("weights_by_count", cases),))
