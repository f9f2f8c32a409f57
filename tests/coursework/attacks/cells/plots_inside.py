"""Draws a figure and runs a check within the graded function; both do nothing, the rest is right.

Earns: 10
Says: right
"""

import matplotlib.pyplot as plt
import numpy as np

from tutorial_lib import checks, figures


def attend_in_groups(Q, K, V):
    _, axes = plt.subplots()
    axes.imshow(Q[0])
    figures.heatmap(Q)
    checks.check_split_heads(attend_in_groups)
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
