"""The check for the task of Part I's review."""

import numpy as np

from tutorial_lib import attention, embedding, multihead, projection
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, H, normal

MISTAKES, check = room(__file__)


def _attend_to_sentence(ids, E, P, params):
    mask = attention.causal_mask(ids.shape[-1])
    return multihead.multi_head_attention(embedding.embed(ids, E, P), params, mask=mask)


def _params(seed, d_k):
    sizes = {"d_model": D_MODEL, "n_heads": H, "d_k": d_k, "d_v": D_V}
    return projection.init_params(np.random.default_rng(seed), **sizes)


def check_attend_to_sentence(function):
    """Check `attend_to_sentence(ids, E, P, params)`: ids (..., T) → Y (..., T, d_model).

    Prints an account. The layer is causal. The tables hold multiples of 1/4, so that they are
    the same in single precision, and the large scores leave no two keys close.
    """
    E, P = (np.round(4 * normal(seed, n, D_MODEL)) / 4 for seed, n in ((27, 9), (28, 14)))
    ids = np.array([[3, 1, 4, 1, 5], [8, 2, 6, 0, 7]])  # (B, T)
    wide, params = (_params(seed, d_k) for seed, d_k in ((26, WIDE), (29, D_K)))
    sharp = projection.Params(1000 * params.W_Q, params.W_K, params.W_V, params.W_O)
    tables = {"E": E, "P": P}
    cases = (
        Case("one sentence, wider heads", {"ids": ids[0], **tables, "params": wide}),
        Case("a batch", {"ids": ids, **tables, "params": params}),
        Case("scores in the thousands", {"ids": ids[1], **tables, "params": sharp}),
    )
    check("attend_to_sentence", function, _attend_to_sentence, cases)
