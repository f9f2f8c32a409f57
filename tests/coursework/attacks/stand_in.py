"""Returns what stands in for a package that draws.

Earns: 0
Says: it returned something that is not an array of numbers
"""


def attend_at_scales(Q, K, V):
    import matplotlib.pyplot as plt

    return plt.gca()
