"""Inputs that checks share: sizes, numbers and masks."""

import numpy as np

from tutorial_lib.models.copying import TinyModel
from tutorial_lib.projection import Params


def normal(seed, *shape):
    """Sample standard normal numbers; the same seed gives the same."""
    return np.random.default_rng(seed).standard_normal(shape)


B, T, S, H, D_MODEL, D_K, D_V = 2, 5, 7, 3, 13, 8, 11  # none is product or ratio of others
WIDE = 17  # another d_k, so that a scale that is right only at one width is seen
N_POSITIONS = 19  # that a model has


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


def qkv(seed, *lead, rows=(T, S), d_k=D_K):
    """Sample as many queries and keys as `rows` says, and values: {"Q", "K" and "V": array}."""
    Q, K = normal(seed, *lead, rows[0], d_k), normal(seed + 1, *lead, rows[1], d_k)
    return {"Q": Q, "K": K, "V": normal(seed + 2, *lead, rows[1], D_V)}


def two_layer_model(seed, *, d_k=D_K, vocabulary):
    """Sample a model with scores so large that layer 1 depends on what layer 0 adds."""
    layers = []
    for layer in range(2):
        wide = [normal(seed + 10 * layer + i, H, D_MODEL, d) for i, d in enumerate((d_k, d_k, D_V))]
        W_O = normal(seed + 10 * layer + 3, H * D_V, D_MODEL)
        layers.append(Params(*(W / np.sqrt(D_MODEL) for W in wide), W_O / np.sqrt(H * D_V)))
    E, P = normal(seed + 4, vocabulary, D_MODEL), normal(seed + 5, N_POSITIONS, D_MODEL)
    return TinyModel(E, P, tuple(layers), normal(seed + 6, D_MODEL, vocabulary))
