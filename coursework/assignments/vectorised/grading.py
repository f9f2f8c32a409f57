"""Attention whose scores are distances, for millions of pairs and far from the origin."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import scaled_dot_product_attention

LARGE = 40.0  # the radius of a circle: its square is beyond what e to the power of it can be


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Widths of 1 make √d_k 1; queries at the origin leave only the lengths of the keys, and keys of
    one length only the products. Near the origin rows come with their opposites: their mean is 0.

    With 20 million pairs a number for each takes 160 MB and a vector 8 GB. The cheapest loop over
    pairs takes one and a half times as long as a call may, and one over queries half as long.
    """

    def rows(*shape):
        return rng.standard_normal(shape)

    def opposites(n, width, *, length=None):
        """Rows and their opposites, (1, n, width), in any order; of one length, or of any."""
        half = rows(n // 2, width)
        if length:
            half *= length / np.linalg.norm(half, axis=-1, keepdims=True)
        return rng.permutation(np.concatenate([half, -half]))[None]

    def circle(n, radius):
        """Rows on a circle, (1, n, 2), as far from each other as they can be."""
        angles = rng.uniform(0, 6) + 2 * np.pi * rng.permutation(n) / n
        return radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)[None]

    keys = circle(6, LARGE)
    beyond = keys[:, rng.permutation(6)] * rng.permutation([2, 2.5, 3, 3.5, 4, 5])[:, None]
    large = beyond, keys, rows(1, 6, 1)
    origin = [2.0**30 * rng.permutation([1, -1, 0.5, -0.25]) for _ in range(3)]
    origin = np.array(origin)[:, None]  # (H, 1, d_k); quarters beside it are exact
    Q, K = (origin + rng.integers(-8, 9, (3, n, 4)) / 4 for n in (5, 6))
    pairs = opposites(10_000, 48, length=6), opposites(2_000, 48, length=6), rows(1, 2_000, 3)
    batch = 4, 5, 3
    lengths = np.zeros((1, 4, 1)), opposites(8, 1), rows(1, 8, 1)
    products = opposites(6, 1), opposites(8, 1, length=1.0), rows(1, 8, 1)
    root = opposites(8, 9), opposites(8, 9, length=2.0), rows(1, 8, 5)
    everything = 2 + rows(*batch, 13, 7), rows(*batch, 6, 7), rows(*batch, 6, 11)
    return [
        Case("queries at the origin", lengths, 2, idea=True),
        Case("keys of one length", products),
        Case("the root of d_k", root),
        Case("scores below −1,000", large),
        Case("far from the origin", (Q, K, rows(3, 6, 7)), 2, idea=True),
        Case("20 million pairs", pairs, 2),
        Case("all together", everything),
    ]


AXES = "sequence", "head", "query", ""
OWN = scaled_dot_product_attention
ASSIGNMENT = Assignment((Task("attend_by_distance", cases, chapter=OWN, axes=AXES),))
