"""Positions that are counts: of gates, which a query opens for the tokens that matter to it."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import attention_scores, attention_weights, causal_mask


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Large keys open or shut the gates, and keys of zeros open them by half. A width of 1 has the
    root 1, and a single query no later tokens. Rows that grow in equal steps forgive where the
    count begins. All together sizes differ.
    """

    def arrays(*batch, H=1, T=1, S=6, d_k=1, N=9, keys=None, sign=1):
        """Return Q, K and a table that is long enough; keys are random unless given."""
        Q = sign * rng.uniform(1, 2, (*batch, H, T, d_k))
        shape = *batch, H, S, d_k
        K = rng.standard_normal(shape) if keys is None else keys + np.zeros(shape)
        return Q, K, rng.standard_normal((H, N, d_k))

    def in_steps(Q, K, table):
        return Q, K, np.arange(9)[:, None] * table[:, :1]

    Q, K, table = arrays(H=2, T=3, d_k=4)
    stops = np.append(rng.permutation([50, 50, 50, -50, -50, -50]), -50)[:, None]
    together = arrays(2, H=5, T=7, S=13, d_k=6, N=4, sign=rng.choice([-1, 1], (7, 6)))
    return [
        Case("a table of zeros", (Q, K, 0 * table)),
        Case("gates of 0 and 1", arrays(S=7, keys=stops), 2, idea=True),
        Case("gates of one half", arrays(T=6, keys=0), 2, idea=True),
        Case("gates of any size, four queries", arrays(T=4, d_k=3)),
        Case("a table that ends too early", arrays(T=6, N=3, keys=50)),
        Case("two batch axes", in_steps(*arrays(3, 2, H=4, T=3, d_k=5, keys=50))),
        Case("scores of 1,000 and more", in_steps(*arrays(d_k=4, keys=1_000))),
        Case("all together", together),
    ]


def chapter(Q, K, table):
    """Return the weights of chapter 03, which know of no position."""
    mask = causal_mask(Q.shape[-2], K.shape[-2])
    return attention_weights(attention_scores(Q, K), mask=mask)


AXES = "sequence", "head", "query", ""
ASSIGNMENT = Assignment((Task("weights_by_count", cases, chapter=chapter, axes=AXES),))
