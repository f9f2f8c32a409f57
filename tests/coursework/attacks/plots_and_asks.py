"""Plots, asks for input and, below the function, raises; is right.

Earns: 10
Says: right
"""

import matplotlib.pyplot as plt
import numpy as np

plt.plot(np.arange(3))
answer = input("which head? ")


def attend_at_scales(Q, K, V):
    return right(Q, K, V)


nothing = 1 / 0
