"""Takes back that torch cannot be imported; it is not there at all.

Earns: 0
Says: it raised ModuleNotFoundError
"""

import sys


def attend_at_scales(Q, K, V):
    sys.modules.pop("torch", None)
    import torch

    return torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (Q, K, V)))
