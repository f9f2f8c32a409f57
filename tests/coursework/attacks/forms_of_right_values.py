"""Right values in five forms of memory, while each warning, one at saving too, is an error.

Earns: 10
Says: right
"""

import itertools
import warnings

import numpy as np

FORMS = itertools.cycle(
    [
        lambda values: values.astype(">f8"),
        lambda values: np.asfortranarray(values),
        lambda values: values[..., ::-1].copy()[..., ::-1],  # strides below 0
        lambda values: values.astype(np.longdouble),
        lambda values: values.astype(np.dtype("f8", metadata={"of": "heads"})),
    ]
)


def attend_at_scales(Q, K, V):
    warnings.simplefilter("error")
    return next(FORMS)(right(Q, K, V))
