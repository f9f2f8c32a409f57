"""Heads that each token chooses, and the bias of the values merged into that of the output."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import concat_heads


def routed_cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    A gate that is far ahead has all the weight, whichever others are chosen, and gates that hardly
    differ have equal weights. All together sizes differ.
    """

    def arguments(gates, n, *, d_v=3, d_model=5, alone=False):
        """Return heads for these gates, (..., T, H), and the rest.

        alone : whether of the heads only those of the largest gates are not 0
        """
        H, by_head = gates.shape[-1], np.swapaxes(gates, -1, -2)[..., None]  # (..., H, T, 1)
        heads = rng.standard_normal((*by_head.shape[:-1], d_v))
        heads = heads * (by_head == by_head.max(axis=-3, keepdims=True)) if alone else heads
        return heads, rng.standard_normal((H * d_v, d_model)), gates, n

    def far(*shape):
        """Gates of which one is far ahead for each token."""
        return 1_000 * rng.permuted(np.arange(shape[-1]) + np.zeros(shape), axis=-1)

    order = rng.permutation(4)
    alike = np.where(order < 2, -1.0 - order, 1 + 1e-9 * order)[None]  # (T, H)
    levels = 1e4 * (rng.permutation(7)[:, None] - 3)  # above 0, below 0, and each row elsewhere
    return [
        Case("one head for each token, the others are zeros", arguments(far(4, 3), 2, alone=True)),
        Case("two of four heads, with equal weights", arguments(alike, 2), 2, idea=True),
        Case(
            "all heads, each with its weight",
            arguments(rng.normal(size=(4, 3)), 3, d_v=1),
            idea=True,
        ),
        Case("two batch axes, gates far apart", arguments(far(3, 2, 4, 3), 2)),
        Case(
            "all together",
            arguments(levels + rng.normal(size=(3, 7, 5)), 2, d_v=4, d_model=11),
        ),
    ]


def bias_cases(rng):
    """One head has no order of its rows; without an old bias there is none to be kept."""

    def arrays(H, d_v, d_model, *, old=1):
        shapes = (H, d_v), (H * d_v, d_model), (d_model,)
        b_V, W_O, b_O = (rng.standard_normal(shape) for shape in shapes)
        return b_V, W_O, old * b_O

    return [
        Case("one head", arrays(1, 6, 4)),
        Case("three heads, and no output bias before", arrays(3, 4, 10, old=0), 2, idea=True),
        Case("two heads, and an output bias before", arrays(2, 9, 5)),
    ]


def chapter(heads, W_O, gates, n):
    """Return Y of chapter 06, a sum over all heads."""
    return concat_heads(heads) @ W_O


ROUTED = Task("project_out_routed", routed_cases, chapter=chapter, axes=("sequence", "token", ""))
BIAS = Task("folded_bias", bias_cases, chapter=lambda b_V, W_O, b_O: b_O)
ASSIGNMENT = Assignment((ROUTED, BIAS))
