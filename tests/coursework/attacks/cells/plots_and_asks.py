"""Plots, asks for input and raises in cells that the function does not need; is right.

Earns: 10
Says: right
"""

import matplotlib.pyplot as plt
import numpy as np

plt.plot(np.arange(3))
answer = input("which head? ")
nothing = 1 / 0


def attend_in_groups(Q, K, V):
    size = Q.shape[-3] // K.shape[-3]
    K, V = np.repeat(K, size, axis=-3), np.repeat(V, size, axis=-3)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ V
