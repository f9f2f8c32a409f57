"""Right answers of chapter 09 in other ways."""

import numpy as np


def split_by_rows(weight, n_heads):
    thirds = np.split(weight, 3)
    return tuple(np.stack([rows.T for rows in np.split(third, n_heads)]) for third in thirds)


def every_third_block(weight, n_heads):
    blocks = np.split(weight, 3 * n_heads)
    return np.concatenate([block for kind in range(3) for block in blocks[kind::3]])


def outputs_in_running_order(module, X, names):
    seen, parts = {}, dict(module.named_modules())
    hooks = [
        parts[name].register_forward_hook(lambda *given, name=name: seen.setdefault(name, given[2]))
        for name in sorted(names)
    ]
    module(X)
    for hook in hooks:
        hook.remove()
    return tuple(map(seen.get, names))


VARIANTS = [
    ("split_packed", "split into rows", split_by_rows),
    ("from_interleaved", "every third block", every_third_block),
    ("outputs_of", "hooks in another order", outputs_in_running_order),
]
