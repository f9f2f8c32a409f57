"""Sparsemax in place of softmax: weights above a threshold, the others exactly 0."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import attention_weights, causal_mask


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    All keys stay where scores are closer together than 1 over their number. One stays where it is
    ahead by 1; if it is 1 and the others are negative, the threshold is 0.
    """

    def close(*shape, level=0.0):
        """Scores of which all stay."""
        size = rng.uniform(0.5, 1.5, (*shape[:-1], 1))
        levels = level * size * rng.choice([-1, 1], size.shape)  # changes no weight
        return levels + rng.uniform(-0.5, 0.5, shape) / shape[-1]

    def apart(*shape, level=0.0):
        """Scores of which one in each row is ahead, and one drops out, or more."""
        order = rng.permuted(np.arange(shape[-1]) + np.zeros(shape), axis=-1)
        return close(*shape, level=level) + 0.7 * (order == 0) - 2 * (order == 1)

    everything = np.ones((4, 5), dtype=bool)
    some = np.array([rng.permutation([True, True, True, False, False]) for _ in range(4)])
    none = some & (np.arange(4) != rng.integers(4))[:, None]
    words = np.arange(7) < np.array([4, 6])[:, None, None, None]  # (B, 1, 1, S)
    left = np.arange(9) >= np.array([3, 0, 5])[:, None, None, None]  # padding: some see nothing
    left = left & causal_mask(8, 9) & (rng.random((4, 1, 9)) < 0.8)  # each head has its own keys
    first = np.where(some & (some.cumsum(axis=-1) == 1), 1, rng.uniform(-6, -3, (1, 4, 5)))
    equal = close(1, 4, 1, level=1.0).repeat(5, axis=-1)
    return [
        Case("all keys stay", (close(1, 4, 5), everything), 2, idea=True),
        Case("some keys drop out", (apart(1, 4, 5), everything), 2, idea=True),
        Case("a mask", (first + 9 * ~some, some), 2),
        Case("a fully masked query", (equal, none)),
        Case("two batch axes, a mask for each sequence", (close(3, 2, 2, 4, 7), words)),
        Case("scores of 1,000 and more", (close(1, 4, 5, level=5e3), everything)),
        Case("all together", (apart(3, 4, 8, 9, level=3e3), left)),
    ]


def chapter(scores, mask):
    """Return the weights of chapter 03."""
    return attention_weights(scores, mask=np.broadcast_to(mask, scores.shape))


AXES = "sequence", "head", "query", ""
ASSIGNMENT = Assignment((Task("sparse_weights", cases, chapter=chapter, axes=AXES),))
