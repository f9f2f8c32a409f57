"""Attention by distance: one product for all pairs, and numbers small enough to subtract."""

from coursework.grader.assignment import Assignment, Case, Task


def _arrays(rng, *batch, H, T, S, d_k, d_v):
    shapes = ((T, d_k), (S, d_k), (S, d_v))
    return tuple(rng.standard_normal((*batch, H, *shape)) for shape in shapes)


def _apart(rng, **sizes):
    """Keys a hundred away from all queries, in a direction in which they do not differ."""
    Q, K, V = _arrays(rng, **sizes)
    Q[..., -1], K[..., -1] = 0, 100
    return Q, K, V


def _far(rng, *, H, T, S, d_k, d_v):
    """Quarters beside 2**30: there the terms cancel, however they are added up."""
    origin = 2.0**30 * rng.choice([-1, 1], d_k)
    Q, K = (origin + rng.integers(-8, 9, (H, n, d_k)) / 4 for n in (T, S))
    return Q, K, rng.standard_normal((H, S, d_v))


def cases(rng):
    """Sizes all differ but in one case, in which a swap of T and S raises no error.

    In the last, a number for each pair takes 160 MB and a vector 8 GB. The cheapest loop over
    pairs takes one and a half times as long as a call may, and one over queries half as long.
    """

    def case(label, points, *batch, **sizes):
        return Case(label, _arrays(rng, *batch, **sizes), points)

    return [
        case("more keys than queries", 1, H=3, T=5, S=8, d_k=4, d_v=6),
        case("more queries than keys, a batch", 1, 5, H=3, T=7, S=4, d_k=6, d_v=8),
        case("two batch axes", 1, 4, 5, H=3, T=8, S=6, d_k=7, d_v=11),
        case("as many keys as queries", 1, H=2, T=7, S=7, d_k=3, d_v=5),
        case("one head, vectors of width 1", 1, H=1, T=5, S=3, d_k=1, d_v=2),
        Case("keys far from all queries", _apart(rng, H=2, T=5, S=7, d_k=8, d_v=3), 1),
        Case("far from the origin", _far(rng, H=3, T=5, S=6, d_k=4, d_v=7), 2),
        case("20 million pairs", 2, H=1, T=10_000, S=2_000, d_k=48, d_v=3),
    ]


ASSIGNMENT = Assignment((Task("attend_by_distance", cases),))
