"""Right answers of chapter 08 in other ways, and edits that make it too narrow."""

import numpy as np


def softmax_backward_by_table(weights, dweights):
    table = (
        np.eye(weights.shape[-1]) * weights[..., None] - weights[..., None] * weights[..., None, :]
    )
    return (table @ dweights[..., None])[..., 0]


def input_gradients_by_head(params, dQ, dK, dV):
    heads = range(params.n_heads)
    dX = sum(dQ[..., h, :, :] @ params.W_Q[h].T for h in heads)
    keys = sum(dK[..., h, :, :] @ params.W_K[h].T for h in heads)
    return [dX, keys + sum(dV[..., h, :, :] @ params.W_V[h].T for h in heads)]


def scale_gradients_by_einsum(Q, K, weights, dweights):
    total = np.zeros(Q.shape[-3])
    for at in np.ndindex(Q.shape[:-3]):
        dscores = softmax_backward_by_table(weights[at], dweights[at])
        total += np.einsum("hts,htd,hsd->h", dscores, Q[at], K[at])
    return total


def wrong_entries_in_place(step):
    def wrong_entries(function, X, gradient):
        X, found = X.copy(), np.empty(X.shape)
        for index in np.ndindex(X.shape):
            kept = X[index]
            X[index] = kept + step
            above = function(X)
            X[index] = kept - step
            found[index] = (above - function(X)) / step / 2
            X[index] = kept
        return ~np.isclose(found, gradient, rtol=0, atol=1e-6 * np.abs(found).max())

    return wrong_entries


VARIANTS = [
    ("input_gradients", "head by head", input_gradients_by_head),
    ("scale_gradients", "einsum", scale_gradients_by_einsum),
    ("wrong_entries", "in place on its own copy", wrong_entries_in_place(1e-5)),
]


NARROW = [
    (
        "softmax_backward",
        "rows that sum to 1",
        "return",
        "mean = mean / weights.sum(axis=-1, keepdims=True)\nreturn",
    ),
    (
        "attention_backward",
        "queries that see a key",
        "dV =",
        "weights = weights / weights.sum(axis=-1, keepdims=True)\ndV =",
    ),
    (
        "multi_head_attention_backward",
        "masks that agree",
        "trace.V, trace.weights",
        "trace.V, 0 * trace.weights + trace.weights[: 1 if trace.X.ndim > 2 else None]",
    ),
    (
        "sum_copies",
        "leading axes",
        "np.flatnonzero(np.not_equal(padded_shape, gradient.shape))",
        "range(gradient.ndim - len(shape))",
    ),
    ("linear_backward", "one batch axis at most", "tokens =", "assert X.ndim < 4\ntokens ="),
    ("wrong_entries", "a positive slope", "np.abs(differences).max()", "differences.max()"),
]
