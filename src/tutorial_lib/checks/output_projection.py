"""Checks for chapter 06."""

import numpy as np

from tutorial_lib import attention, multihead, projection
from tutorial_lib.checks.account import D_K, D_MODEL, D_V, B, Case, H, S, T, check, normal


def _params():
    return projection.init_params(
        np.random.default_rng(1), d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=D_V
    )


def check_multi_head_attention(function):
    """Check `multi_head_attention(X, params, *, context=None, mask=None)`. Prints an account."""
    params, X = _params(), 2 * normal(12, B, T, D_MODEL)
    inputs = {"X": X, "params": params}
    context = normal(13, B, S, D_MODEL)
    cases = (
        Case("no mask", inputs),
        Case("a causal mask", inputs, {"mask": attention.causal_mask(T)}),
        Case("a context of another length", inputs, {"context": context}),
    )
    check("multi_head_attention", function, multihead.multi_head_attention, cases)
