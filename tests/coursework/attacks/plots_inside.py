"""Draws a figure and runs a check within the graded function; both do nothing, the rest is right.

Earns: 10
Says: right
"""

import matplotlib.pyplot as plt

from tutorial_lib import checks, figures


def attend_at_scales(Q, K, V):
    _, axes = plt.subplots()
    axes.imshow(Q[0])
    figures.heatmap(Q)
    checks.check_split_heads(attend_at_scales)
    return right(Q, K, V)
