"""Query-key normalisation, backwards: from the gradient of the weights to that of the queries."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import attention_weights, causal_mask


def cases(rng):
    """Sizes all differ; queries are so wide that a pass forward for each entry takes minutes."""

    def vectors(*shape):
        sizes = np.full(shape[-1], 4 / np.sqrt(shape[-1]))
        sizes[:4] = 2  # alone they make angles far from right ones
        return sizes * rng.standard_normal(shape)

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    def arrays(*batch, T=5, S=7, d_k=25_000, lengths=1.0, mask=None):
        Q, K = lengths * vectors(*batch, 3, T, d_k), vectors(*batch, 3, S, d_k)
        scale = rng.uniform(1, 5, 3)
        cosines = unit(Q) @ np.swapaxes(unit(K), -1, -2)
        weights = attention_weights(scale[:, None, None] * cosines, mask=mask)
        return Q, K, scale, weights, 3 * rng.standard_normal(weights.shape)

    lengths = np.array([1e-3, 1e3, 1.0, 0.1, 30.0])[:, None]  # (T, 1)
    words = np.arange(7) < np.array([4, 6])[:, None, None, None]  # (B, 1, 1, S)
    hidden = causal_mask(5, 7) & (np.arange(5) != 2)[:, None]  # query 2 sees nothing
    return [
        Case("3 heads", arrays(), 3),
        Case("a batch, padding in each sequence", arrays(2, d_k=22_000, mask=words), 2),
        Case("two batch axes, one query", arrays(5, 2, T=1, S=4, d_k=18_000), 1),
        Case("queries of very different lengths", arrays(lengths=lengths), 2),
        Case("a mask, and a fully masked query", arrays(mask=hidden), 2),
    ]


ASSIGNMENT = Assignment((Task("query_gradients", cases),))
