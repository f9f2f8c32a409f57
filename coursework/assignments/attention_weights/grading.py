"""Sparsemax in place of softmax: weights above a threshold, the others exactly 0."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import causal_mask


def cases(rng):
    """Sizes all differ; every row has no visible key, or two of them at least."""

    def scores(*shape, spread=1.0):
        return spread * rng.standard_normal(shape)

    def visible(*shape):
        mask = rng.random(shape) < 0.6
        mask[..., [1, 4]] = True
        return mask

    everything = np.ones((5, 1), dtype=bool)  # broadcasts over the keys, too
    words = np.arange(7) < np.array([4, 7, 2])[:, None, None, None]  # (B, 1, 1, S)
    left = np.array([1, 4])[:, None, None, None]  # (B, 1, 1, 1): tokens of padding
    padded = causal_mask(8, 7) & (np.arange(7) >= left)
    single = (padded.sum(axis=-1) == 1)[..., None]
    far = 1000.0 * np.array([3, -5, 2])[:, None, None]
    return [
        Case("all keys visible", (scores(3, 5, 6), everything)),
        Case("a batch, a causal mask", (scores(2, 3, 5, 7), causal_mask(5, 7))),
        Case("padding of each sentence", (scores(3, 2, 5, 7), words)),
        Case("two batch axes, a mask for each head", (scores(3, 2, 5, 8, 7), visible(5, 8, 7))),
        Case("a mask for each sentence and head", (scores(2, 3, 7, 5), visible(2, 3, 7, 5))),
        Case("queries that are fully masked", (scores(2, 3, 8, 7), padded & ~single), 2),
        Case("scores close together", (scores(2, 3, 5, 7, spread=0.03), causal_mask(5, 7))),
        Case(
            "scores of 1,000 and more, of either sign",
            (scores(2, 3, 7, 8) + far, causal_mask(7, 8)),
            2,
        ),
    ]


ASSIGNMENT = Assignment((Task("sparse_weights", cases),))
