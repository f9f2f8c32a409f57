"""Keys with the words before mixed in: a short causal filter behind the projection."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """One property at a time, with the others in a limit in which they change nothing.

    One tap mixes nothing, equal taps have no order, and one head whose matrix is the identity has
    the rows of X as they are. All together sizes differ.
    """

    def arrays(*batch, H=1, T=6, d_model=5, d_k=5, n=3, equal=False):
        shapes = (*batch, T, d_model), (H, d_model, d_k), (H, 1 if equal else n, d_k)
        X, W_K, taps = (rng.standard_normal(shape) for shape in shapes)
        return X, np.eye(d_k)[None] if H == 1 else W_K, taps.repeat(n, axis=1) if equal else taps

    X, W_K, taps = arrays(d_model=1, d_k=1, n=2)
    X[[0, -1]] = taps[:, 0] = 0  # nothing is at the ends, and nothing of the token itself
    return [
        Case("the rows of each head", (*arrays(H=3)[:2], np.ones((3, 1, 5)))),
        Case("one token back", (X, W_K, taps), 2, idea=True),
        Case("a filter of three taps", arrays(), 2, idea=True),
        Case("taps of each head and column", arrays(H=3, n=1)),
        Case("as many sequences as heads", arrays(4, H=4, n=2, equal=True)),
        Case("two batch axes", arrays(3, 2, H=4, equal=True)),
        Case("more taps than tokens", arrays(T=3, d_model=1, d_k=1, n=5)),
        Case("all together", arrays(3, H=4, T=9, d_model=11, d_k=7, n=5)),
    ]


def chapter(X, W_K, taps):
    """Return the keys of chapter 02, which know only their own tokens."""
    return X[..., None, :, :] @ W_K


AXES = "sequence", "head", "token", ""
ASSIGNMENT = Assignment(
    (Task("convolved_keys", cases, chapter=chapter, axes=AXES),), withheld=("project_heads",)
)
