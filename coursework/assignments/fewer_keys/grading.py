"""Keys and values as means of products: a factor for each head times a row that heads share."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import scaled_dot_product_attention


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Factors of 1 leave a row that all heads share, and queries of zeros give equal weights. In the
    largest case keys or values of all heads take more than 2 GiB, and what is kept of them 30 MB;
    each head has a key so far ahead that its scale changes nothing. All together sizes differ.
    """

    def arrays(*batch, H=1, T=4, S=5, R=1, P=1, d_k=4, d_v=3, large=1.0):
        shapes = (H, T, d_k), (S, R, H), (S, R, d_k), (S, P, H), (S, P, d_v)
        Q, *kept = (rng.standard_normal((*batch, *shape)) for shape in shapes)
        return 2 * large * Q, *kept

    def shared(Q, A_K, B_K, A_V, B_V, *, keys=False):
        """Give the values, and perhaps the keys, factors of 1."""
        return Q, np.ones_like(A_K) if keys else A_K, B_K, np.ones_like(A_V), B_V

    Q, A_K, B_K, *_ = new = arrays(H=512, T=1, S=1_200, R=2, d_k=500, d_v=490)
    ahead = rng.integers(len(B_K), size=len(Q))
    A_K[ahead, 0, np.arange(len(Q))] = 2e4 / (Q[:, 0] * B_K[ahead, 0]).sum(axis=-1)
    return [
        Case("one row that heads share", shared(*arrays(H=3), keys=True)),
        Case("keys of three products", shared(*arrays(R=3, d_k=1)), 2, idea=True),
        Case("values of three products", arrays(P=3, large=0), 2, idea=True),
        Case("factors of each head", arrays(H=3)),
        Case("two batch axes", arrays(3, 2, H=4, R=2, P=2)),
        Case("keys of all heads do not fit into memory", new, 2),
        Case("all together", arrays(2, H=5, T=7, S=11, R=3, P=4, d_k=9, d_v=13, large=1e3)),
    ]


def chapter(Q, A_K, B_K, A_V, B_V):
    """Return the heads of chapter 15, which share one key and one value of each token."""
    rows = (B[..., None, :, 0, :] for B in (B_K, B_V))  # (..., 1, S, width)
    shared = (np.broadcast_to(row, (*Q.shape[:-2], *row.shape[-2:])) for row in rows)
    return scaled_dot_product_attention(Q, *shared)


AXES = "sequence", "head", "query", ""
ASSIGNMENT = Assignment((Task("attend_to_products", cases, chapter=chapter, axes=AXES),))
