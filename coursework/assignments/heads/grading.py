"""Heads at scales: each head sees keys and values averaged over blocks of a size of its own."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import scaled_dot_product_attention

FAR = 1_000.0  # between scores: one weight is 1 then, whatever they are divided by


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    Widths of 1 make √d_k 1, and a second head has pairs, whatever the rule for sizes; queries that
    are alike in pairs may be merged, too. Some have a batch axis and others none, so that whoever
    reads one form alone keeps half. All together sizes differ, and none is the product or the ratio
    of two others: no axis stands for another.
    """

    def arrays(*batch, H=2, S=12, T=5, d_k=1, d_v=1):
        shapes = (H, T, d_k), (H, S, d_k), (H, S, d_v)
        return tuple(2 * rng.standard_normal((*batch, *shape)) for shape in shapes)

    def far_apart(H, S, T):
        """Queries of either sign, and keys that stay far apart in whatever blocks they are."""
        last, heads = 2 ** (H - 1), range(H)
        order = np.stack([rng.permutation(S // last) for _ in heads])[..., None]
        keys = (last * order + np.arange(last)).reshape(H, S, 1)
        return rng.choice([-1.0, 1.0], (H, T, 1)), FAR * keys

    def alike(array):
        """Bring rows, half as many, to pairs of equal ones."""
        return array.repeat(2, axis=-2)

    (Q, _, V), K = arrays(13, S=6, T=7), arrays(13)[1]
    merged_keys = alike(Q), K, alike(V)
    Q, K = far_apart(H=2, S=12, T=7)
    V = arrays()[2]
    K[1], V[1] = (np.tile(array[1, :2], (6, 1)) for array in (K, V))  # so are the pairs of head 1
    return [
        Case("one head: nothing is merged", arrays(H=1, S=8, d_k=7, d_v=11), 2),
        Case("two heads: merged keys", merged_keys, 2, idea=True),
        Case("two heads: merged values", (alike(Q), K, V), 2, idea=True),
        Case("three heads: 1, 2 and 4 tokens", arrays(13, H=3, S=24), 1),
        Case("two batch axes", arrays(3, 4, S=10), 1),
        Case("scores of 1,000 and more", (*far_apart(5, 48, 17), arrays(H=5, S=48)[2]), 1),
        Case("all together", arrays(7, H=5, S=240, T=17, d_k=13, d_v=11), 1),
    ]


AXES = "sequence", "head", "query", ""
OWN = scaled_dot_product_attention
ASSIGNMENT = Assignment((Task("attend_at_scales", cases, chapter=OWN, axes=AXES),))
