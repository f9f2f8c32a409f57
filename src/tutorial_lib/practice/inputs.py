"""Inputs that checks share: sizes, numbers and masks."""

import numpy as np


def normal(seed, *shape):
    """Sample standard normal numbers; the same seed gives the same."""
    return np.random.default_rng(seed).standard_normal(shape)


B, T, S, H, D_MODEL, D_K, D_V = 2, 5, 7, 3, 13, 8, 11  # none is product or ratio of others
WIDE = 17  # another d_k, so that a scale that is right only at one width is seen


def masks(*, empty=True):
    """Return masks for scores (B, H, T, S), as people have them: {label: booleans}.

    With `empty`, one has a row without True. A check does not ask with it where the right function
    promises nothing there, because public code of that variant gives NaN.
    """
    causal = np.tri(T, S, k=S - T, dtype=bool)
    real = np.arange(S) < np.array([S - 3, S])[:, None, None, None]  # (B, 1, 1, S)
    own = np.random.default_rng(44).random((B, H, T, S)) < 0.6
    own[..., 1] = True  # each query sees a key
    found = {
        "a causal mask": causal,
        "padding of each sentence": real,
        "a causal mask and padding": causal & real,
        "a mask for each head": own[0],
        "a mask for each sentence and head": own,
    }
    nothing = {"a fully masked row": causal & (np.arange(T) != 2)[:, None]}
    return found | nothing if empty else found
