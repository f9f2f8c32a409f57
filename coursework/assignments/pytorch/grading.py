"""A packed matrix that is stored shard by shard: its heads' queries, then values, then keys."""

import numpy as np
import torch.nn.functional as F

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    One token has one weight, whatever the queries and keys are; keys that equal the values may be
    read in their place; queries of 0 make all scores 0; an identity for `out_weight` leaves the
    heads as they are, and a symmetric one may be transposed. A model that is wider than its head
    tells their roots apart. All together sizes differ, and none is 3 or the product of two others.
    """

    def layer(*, B=1, T=1, H=1, n=1, d=4, d_model=None, alike=False, queries=1.0, out=None):
        """Arguments; `out_weight` is an identity unless told, of d_model and H·d features."""
        d_model = d_model or H * d
        blocks = rng.standard_normal((n, 3, H // n * d, d_model)) * np.sqrt(2 / d_model)
        blocks[:, 0] *= queries
        if alike:
            blocks[:, 2] = blocks[:, 1]
        X = rng.standard_normal((B, T, d_model))
        out = np.eye(d_model, H * d) if out is None else out(d_model, H * d)
        return X, blocks.reshape(3 * H * d, d_model), out, H, n

    def any_matrix(rows, columns):
        return rng.standard_normal((rows, columns))

    def symmetric(rows, columns):
        half = rng.standard_normal((rows, columns))
        return half + half.T

    shards = layer(H=10, n=5, d=1, alike=True)
    causal = layer(T=6, queries=0, out=symmetric)
    scores = layer(T=5, d=9, d_model=13, alike=True)
    output = layer(H=2, n=2, d=5, d_model=7, alike=True, out=any_matrix)
    heads = layer(B=3, T=4, H=5, n=5, d=6, d_model=11, out=any_matrix)
    large = layer(T=7, H=8, n=8, d=4, alike=True, queries=5_000)
    everything = layer(B=4, T=9, H=14, n=7, d=5, d_model=11, out=any_matrix)
    return [
        Case("five shards, one token", shards, 2, idea=True),
        Case("values before keys", layer(H=2, n=2, d=6), 2, idea=True),
        Case("later tokens are hidden", causal),
        Case("scores over the root of d", scores),
        Case("the output matrix", output),
        Case("heads of several tokens, in a batch", heads),
        Case("scores of 1,000 and more, a shard for each head", large),
        Case("all together", everything),
    ]


def chapter(X, weight, out_weight, n_heads, n_shards):
    """Return the layer of chapter 09, whose packed matrix has all queries, all keys, all values."""
    packed = F.linear(X, weight).unflatten(-1, (3, n_heads, -1))  # (B, T, 3, H, d)
    heads = F.scaled_dot_product_attention(*packed.permute(2, 0, 3, 1, 4), is_causal=True)
    return F.linear(heads.transpose(1, 2).flatten(2), out_weight)


AXES = "sequence", "token", ""
ASSIGNMENT = Assignment((Task("sharded_layer", cases, chapter=chapter, axes=AXES),), torch=True)
