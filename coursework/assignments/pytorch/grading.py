"""A packed matrix that is stored shard by shard: its heads' queries, then values, then keys."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """In the first case `out_weight` is square, in the second `weight`: there no error tells.

    No size, nor the number of heads in a shard, is 3 or the product of two others.
    """

    def arguments(*, B, T, H, n, d, d_model):
        X = rng.standard_normal((B, T, d_model))
        weight = rng.standard_normal((3 * H * d, d_model)) * np.sqrt(2 / d_model)
        return X, weight, rng.standard_normal((d_model, H * d)), H, n

    return [
        Case("a square output matrix", arguments(B=4, T=9, H=10, n=2, d=7, d_model=70), 3),
        Case("a square packed matrix", arguments(B=8, T=9, H=14, n=2, d=5, d_model=210), 2),
        Case("d_model below H·d", arguments(B=7, T=8, H=10, n=5, d=9, d_model=11), 2),
        Case("one shard", arguments(B=6, T=7, H=5, n=1, d=4, d_model=11), 1),
        Case("a shard for each head", arguments(B=2, T=9, H=5, n=5, d=7, d_model=8), 1),
        Case("one token", arguments(B=7, T=1, H=10, n=2, d=9, d_model=11), 1),
    ]


ASSIGNMENT = Assignment((Task("sharded_layer", cases),), torch=True)
