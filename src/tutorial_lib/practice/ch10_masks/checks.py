"""Checks for chapter 10. Torch is loaded when a check of a torch function is called."""

import math

import numpy as np

from tutorial_lib import attention, multihead, projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal, qkv

MISTAKES, cases_of = read_room(__file__)


def _tensors(arrays):
    import torch

    return {name: torch.from_numpy(array) for name, array in arrays.items()}


@cases_of("tutorial_lib.pytorch.mha.masked_softmax")
def check_masked_softmax():
    """Check `masked_softmax(scores, mask=None)` of torch → weights. Prints an account."""
    scores, known = _tensors({"scores": 2 * normal(60, B, H, T, S)}), _tensors(masks())
    single, mask = _tensors({"scores": 2 * normal(59, H, T, S)}), known["a mask for each head"]
    yield "no mask", scores
    yield from ((label, scores, {"mask": mask}) for label, mask in known.items())
    yield "without a batch axis", single, {"mask": mask}


@cases_of("tutorial_lib.pytorch.mha.fused_attention")
def check_fused_attention():
    """Check `fused_attention(Q, K, V, mask=None, dropout=0.0)` of torch. Prints an account."""
    inputs, known = _tensors(qkv(61, B, H)), _tensors(masks())
    yield "no mask", inputs
    yield from ((label, inputs, {"mask": mask}) for label, mask in known.items())
    yield "wider heads", _tensors(qkv(67, B, H, d_k=WIDE))
    wider = _tensors(qkv(70, B, H, d_k=WIDE))
    yield "wider heads, a causal mask", wider, {"mask": known["a causal mask"]}


@cases_of("tutorial_lib.pytorch.mha.may_look")
def check_may_look():
    """Check `may_look(mask, is_causal, Q, K)` of torch → one mask. Prints an account."""
    inputs = _tensors({"Q": normal(64, B, H, T, D_K), "K": normal(65, B, H, S, D_K)})
    fewer = {"Q": inputs["K"], "K": inputs["Q"]}
    single = {name: tensor[0] for name, tensor in inputs.items()}
    known = _tensors(masks())
    own = known["a mask for each sentence and head"]
    for label, mask in known.items():
        yield f"is_causal, {label}", {"mask": mask, "is_causal": True, **inputs}
    yield "is_causal, no mask", {"mask": None, "is_causal": True, **inputs}
    yield "is_causal, 7 queries, 5 keys", {"mask": None, "is_causal": True, **fewer}
    yield "is_causal, without a batch axis", {"mask": None, "is_causal": True, **single}
    yield "not is_causal, a mask", {"mask": own, "is_causal": False, **inputs}


def _for_torch_layer(mask, n_heads):
    batch, _, queries, keys = mask.shape
    hidden = np.broadcast_to(~mask, (batch, n_heads, queries, keys))
    return hidden.reshape(batch * n_heads, queries, keys)


@cases_of(_for_torch_layer)
def check_for_torch_layer():
    rng = np.random.default_rng(66)
    yield "a mask for each head", {"mask": rng.random((B, H, T, S)) < 0.6, "n_heads": H}
    yield "one mask for all heads", {"mask": rng.random((B, 1, T, S)) < 0.6, "n_heads": 4}


def _packed_mask(ids, end):
    ends = ids == end
    document = np.cumsum(ends, axis=-1) - ends
    same = document[:, None, :, None] == document[:, None, None, :]
    return same & attention.causal_mask(ids.shape[-1])


@cases_of(_packed_mask)
def check_packed_mask():
    yield "three documents and one", {"ids": _letter_ids("abcabcdec", "abdabdabd"), "end": 2}
    yield "documents of one token", {"ids": _letter_ids("ccabc", "bccac", "abcab"), "end": 2}
    yield "a different end", {"ids": _letter_ids("caebae", "dbcade"), "end": 4}


def _letter_ids(*rows):
    return np.array([[ord(letter) - ord("a") for letter in row] for row in rows])


def _leaking_pairs(layer, X, mask):
    rng, before = np.random.default_rng(1), layer(X)
    depends = np.zeros(mask.shape, dtype=bool)
    for s in range(len(X)):
        changed = X.copy()
        changed[s] = rng.standard_normal(X.shape[-1])
        depends[:, s] = ~(np.abs(layer(changed) - before).max(axis=-1) <= 1e-9)
    return depends & ~mask


def _layer(mask, change=lambda X: X):
    rng = np.random.default_rng(5)
    params = projection.init_params(rng, d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=D_V)
    return lambda X: multihead.multi_head_attention(change(X), params, mask=mask)


def _leak_last_row(X):
    """Add what the last token has left, less its own mean, to all tokens."""
    return X + (X[-1] - X[-1].mean())


@cases_of(_leaking_pairs)
def check_leaking_pairs():
    X, causal = normal(67, S, D_MODEL), attention.causal_mask(S)
    ahead, positions = np.tri(S, k=1, dtype=bool), np.arange(S)
    layer = _layer(causal)
    layers = {
        "a layer that keeps to its mask": layer,
        "a mask that ends one too far": _layer(ahead),
        "the same from the third token on": _layer(causal | (ahead & (positions > 1)[:, None])),
        "a mask upside down": _layer(causal.T),
        "a token less its mean, shown to all": _layer(causal, _leak_last_row),
        "a mean over the sentence": _layer(causal, lambda X: X - X.mean(axis=0)),
        "a leak in one entry of each row": lambda X: layer(X) + np.eye(D_MODEL)[4] * X[-1],
        "a leak of less than a millionth": lambda X: layer(X) + 1e-8 * math.pi * X[-1],
        "a layer that gives NaN": lambda X: np.where(X[-1:] > 9, X, np.nan),
    }
    no_longer, masked = causal & ~np.tri(S, k=-3, dtype=bool), causal & (positions != 2)[:, None]
    yield from ((label, {"layer": f, "X": X, "mask": causal}) for label, f in layers.items())
    yield "tokens too far back", {"layer": layer, "X": X, "mask": no_longer}
    yield "a fully masked row", {"layer": layer, "X": X, "mask": masked}
