"""Query-key normalisation, backwards: from the gradient of the weights to that of the queries."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import attention_weights, causal_mask, softmax_backward


def unit(rows):
    """Bring rows to length 1."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def products(Q, K):
    """Return the cosines of queries and keys, (..., T, S)."""
    return unit(Q) @ np.swapaxes(unit(K), -1, -2)


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Queries are so wide that a pass forward for each entry takes minutes. All together sizes differ.
    """

    def arrays(*batch, H=1, T=3, S=5, d_k=35_000, mask=None, scale=None, sizes=(1.0, 1.0)):
        """Arguments with rows of the given lengths, 1 unless told, and scales of 1."""
        wide = np.full(d_k, 4 / np.sqrt(d_k))
        wide[:4] = 2  # alone they make angles far from right ones
        Q, K = (unit(wide * rng.standard_normal((*batch, H, n, d_k))) for n in (T, S))
        Q, K = sizes[0] * Q, sizes[1] * K
        scale = np.ones(H) if scale is None else scale
        weights = attention_weights(scale[:, None, None] * products(Q, K), mask=mask)
        return Q, K, scale, weights, 3 * rng.standard_normal(weights.shape)

    def limit(Q, K, scale, weights, dweights, *, turns=False, shares=0.0):
        """Give the scores a gradient that the softmax leaves as it is: rows and columns sum to 0.

        turns : whether a query gains by turning; if not, dQ has no part along it to take away
        shares : what is added to each row of dweights, for the softmax to take back
        """
        T, S = weights.shape[-2:]
        rows, columns = np.repeat(np.eye(T), S, axis=1), np.tile(np.eye(S), T)
        dscores = np.empty_like(weights)
        for h, along in enumerate(products(Q, K)):
            zero = np.concatenate([rows, columns, rows * along.ravel() * (not turns)])
            x = rng.standard_normal(T * S)
            dscores[h] = (x - np.linalg.pinv(zero) @ (zero @ x)).reshape(T, S)
        return Q, K, scale, weights, dscores / weights + shares

    lengths = np.array([1e-2, 30.0, 1e2])[:, None]  # (T, 1)
    some = np.array([0.1, 3.0, 20.0, 0.5, 7.0])[:, None]  # (S, 1)
    scale = rng.uniform(2, 5, 3)  # (H,)
    hidden = causal_mask(4, 5) & (np.arange(4) != 2)[:, None]  # query 2 sees nothing
    words = np.arange(7) < np.array([4, 6])[:, None, None, None]  # (B, 1, 1, S)
    both = {"sizes": (rng.uniform(0.3, 3, (5, 1)), rng.uniform(0.3, 3, (7, 1))), "scale": scale}
    return [
        Case("the softmax", limit(*arrays(), shares=rng.standard_normal((3, 1)))),
        Case("queries that turn", limit(*arrays(), turns=True), 2, idea=True),
        Case(
            "queries of very different lengths", limit(*arrays(sizes=(lengths, 1.0))), 2, idea=True
        ),
        Case("keys of very different lengths", limit(*arrays(sizes=(1.0, some)))),
        Case("3 heads, each with its scale", limit(*arrays(H=3, scale=scale, d_k=22_000))),
        Case("two batch axes, one query", arrays(3, 2, T=1, S=4, d_k=19_000)),
        Case("a mask, and a fully masked query", arrays(T=4, mask=hidden)),
        Case("all together", arrays(2, H=3, T=5, S=7, d_k=12_000, mask=words, **both)),
    ]


def chapter(Q, K, scale, weights, dweights):
    """Return dQ of chapter 08: of scores that are divided by √d_k, of queries as they come."""
    return softmax_backward(weights, dweights) @ K / np.sqrt(Q.shape[-1])


AXES = "sequence", "head", "query", ""
ASSIGNMENT = Assignment((Task("query_gradients", cases, chapter=chapter, axes=AXES),))
