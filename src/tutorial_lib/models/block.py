"""The block around the layer: norms before, sums behind, and an MLP beside attention."""

import numpy as np

from tutorial_lib.multihead import multi_head_attention


def rms_norm(X):
    """Divide each row by the root of the mean of its squares.

    Built in chapter 19. X : (..., T, d_model).
    """
    return X / np.sqrt((X**2).mean(axis=-1, keepdims=True) + 1e-12)


def mlp(X, W_1, W_2):
    """Send each token through two matrices by itself, with zeros for what is negative between.

    Built in chapter 19. W_1 : (d_model, d_feed), W_2 : (d_feed, d_model).
    """
    return np.maximum(X @ W_1, 0) @ W_2


def block(X, params, W_1, W_2, *, mask=None):
    """Add to the residual stream what attention brings, then what the MLP makes of it.

    Built in chapter 19.
    """
    X = X + multi_head_attention(rms_norm(X), params, mask=mask)
    return X + mlp(rms_norm(X), W_1, W_2)
