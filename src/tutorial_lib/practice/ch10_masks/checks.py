"""Checks for chapter 10. Torch is loaded when a check of a torch function is called."""

import math

import numpy as np

from tutorial_lib import attention, multihead, projection
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, B, Case, H, S, T, against, normal
from tutorial_lib.practice.ch10_masks.mistakes import MISTAKES

check = against(MISTAKES)

EMPTY = attention.causal_mask(T, S) & (np.arange(T) != 2)[:, None]  # query 2 may look at nothing


def _tensors(arrays):
    import torch

    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def check_masked_softmax(function):
    """Check `masked_softmax(scores, mask=None)` of torch → weights. Prints an account."""
    from tutorial_lib.pytorch.mha import masked_softmax

    scores = _tensors({"scores": 2 * normal(60, B, H, T, S)})
    masks = _tensors({"causal": attention.causal_mask(T, S), "empty": EMPTY})
    cases = (
        Case("no mask", scores),
        Case("a causal mask", scores, {"mask": masks["causal"]}),
        Case("a row with nothing to look at", scores, {"mask": masks["empty"]}),
    )
    check("masked_softmax", function, masked_softmax, cases)


def check_fused_attention(function):
    """Check `fused_attention(Q, K, V, mask=None, dropout=0.0)` of torch. Prints an account."""
    from tutorial_lib.pytorch.mha import fused_attention

    shapes = {"Q": (B, H, T, D_K), "K": (B, H, S, D_K), "V": (B, H, S, D_V)}
    inputs = _tensors({n: normal(61 + i, *s) for i, (n, s) in enumerate(shapes.items())})
    masks = _tensors({"causal": attention.causal_mask(T, S), "empty": EMPTY})
    cases = (
        Case("no mask", inputs),
        Case("a causal mask", inputs, {"mask": masks["causal"]}),
        Case("a row with nothing to look at", inputs, {"mask": masks["empty"]}),
    )
    check("fused_attention", function, fused_attention, cases)


def check_may_look(function):
    """Check `may_look(mask, is_causal, Q, K)` of torch → one mask. Prints an account."""
    from tutorial_lib.pytorch.mha import may_look

    Q, K = normal(64, B, H, T, D_K), normal(65, B, H, S, D_K)
    mask = np.arange(S) != 1
    arrays = _tensors({"Q": Q, "K": K, "mask": np.broadcast_to(mask, (B, 1, 1, S)).copy()})
    inputs = {name: arrays[name] for name in "QK"}
    fewer = {"Q": arrays["K"], "K": arrays["Q"]}
    cases = (
        Case("a mask, causal", {"mask": arrays["mask"], "is_causal": True, **inputs}),
        Case("no mask, causal", {"mask": None, "is_causal": True, **inputs}),
        Case("more queries than keys", {"mask": None, "is_causal": True, **fewer}),
        Case("a mask alone", {"mask": arrays["mask"], "is_causal": False, **inputs}),
    )
    check("may_look", function, may_look, cases)


def _for_torch_layer(mask, n_heads):
    batch, _, queries, keys = mask.shape
    hidden = np.broadcast_to(~mask, (batch, n_heads, queries, keys))
    return hidden.reshape(batch * n_heads, queries, keys)


def check_for_torch_layer(function):
    """Check `for_torch_layer(mask, n_heads)`, exercise of chapter 10. Prints an account."""
    rng = np.random.default_rng(66)
    cases = (
        Case("a mask for each head", {"mask": rng.random((B, H, T, S)) < 0.6, "n_heads": H}),
        Case("one mask for all heads", {"mask": rng.random((B, 1, T, S)) < 0.6, "n_heads": H}),
    )
    check("for_torch_layer", function, _for_torch_layer, cases)


def _packed_mask(ids, end):
    ends = ids == end
    text = np.cumsum(ends, axis=-1) - ends
    same = text[:, None, :, None] == text[:, None, None, :]
    return same & attention.causal_mask(ids.shape[-1])


def check_packed_mask(function):
    """Check `packed_mask(ids, end)` → (B, 1, T, T), exercise of chapter 10. Prints an account."""
    cases = (
        Case("three texts and one", {"ids": _ids("abcabcdec", "abdabdabd"), "end": 2}),
        Case("texts of one token", {"ids": _ids("ccabc", "bccac", "abcab"), "end": 2}),
        Case("another end", {"ids": _ids("caebae", "dbcade"), "end": 4}),
    )
    check("packed_mask", function, _packed_mask, cases)


def _ids(*rows):
    return np.array([[ord(letter) - ord("a") for letter in row] for row in rows])


def _leaking_pairs(layer, X, mask):
    rng, before = np.random.default_rng(1), layer(X)
    moved = np.zeros(mask.shape, dtype=bool)
    for s in range(len(X)):
        changed = X.copy()
        changed[s] = rng.standard_normal(X.shape[-1])
        moved[:, s] = ~(np.abs(layer(changed) - before).max(axis=-1) <= 1e-9)
    return moved & ~mask


def _layer(change=lambda X: X, mask=None):
    rng = np.random.default_rng(5)
    params = projection.init_params(rng, d_model=D_MODEL, n_heads=H)
    own = attention.causal_mask(S) if mask is None else mask
    return lambda X: multihead.multi_head_attention(change(X), params, mask=own)


def _spread(X):
    """Add what the last token has left, less its own mean, to all tokens."""
    return X + (X[-1] - X[-1].mean())


def check_leaking_pairs(function):
    """Check `leaking_pairs(layer, X, mask)` → (T, T), exercise of chapter 10."""
    X, causal = normal(67, S, D_MODEL), attention.causal_mask(S)
    one_too_far = np.tril(np.ones((S, S), dtype=bool), k=1)
    upside_down = np.triu(np.ones((S, S), dtype=bool))
    layers = {
        "a layer that keeps to its mask": _layer(),
        "a mask that ends one too far": _layer(mask=one_too_far),
        "a mask upside down": _layer(mask=upside_down),
        "a token less its mean, shown to all": _layer(_spread),
        "a mean over the sentence": _layer(lambda X: X - X.mean(axis=0)),
        "a leak of less than a millionth": lambda X: _layer()(X) + 1e-7 * math.pi * X[-1],
        "a layer that gives NaN": lambda X: np.where(X[-1:] > 9, X, np.nan),
    }
    cases = tuple(
        Case(label, {"layer": layer, "X": X, "mask": causal}) for label, layer in layers.items()
    )
    check("leaking_pairs", function, _leaking_pairs, cases)
