"""Wrong functions of chapter 03 that are no edits of the right ones."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights


def attend_swapped(Q, K, V, *, mask=None):
    """Score keys against queries; turn the result where its shape does not fit the values."""
    scores = attention_scores(K, Q)
    if scores.shape[-1] == V.shape[-2]:
        return attention_weights(scores, mask=mask) @ V
    turned = None if mask is None else np.swapaxes(mask, -1, -2)
    return np.swapaxes(attention_weights(scores, mask=turned), -1, -2) @ V
