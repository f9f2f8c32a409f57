"""Right answers of chapter 08 in other ways, and edits that make it too narrow."""

import dataclasses

import numpy as np

import tutorial_lib as tl


def softmax_backward_by_table(weights, dweights):
    table = (
        np.eye(weights.shape[-1]) * weights[..., None] - weights[..., None] * weights[..., None, :]
    )
    return (table @ dweights[..., None])[..., 0]


def sum_copies_by_einsum(gradient, shape):
    summed = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    axes = tuple(n for n, length in enumerate(shape) if length == 1)
    return summed.sum(axis=axes, keepdims=True)


def attention_backward_by_head(Q, K, V, weights, dheads):
    batch, d = dheads.shape[:-2], [np.zeros(x.shape) for x in (Q, K, V)]
    for index in np.ndindex(batch):
        here = [index[len(batch) - (x.ndim - 2) :] for x in (Q, K, V, weights)]
        q, k, v, w = (x[i] for x, i in zip((Q, K, V, weights), here, strict=True))
        scores = softmax_backward_by_table(w, dheads[index] @ v.T) * q.shape[1] ** -0.5
        parts = scores @ k, scores.T @ q, w.T @ dheads[index]
        for total, i, part in zip(d, here[:3], parts, strict=True):
            total[i] += part
    return tuple(d)


def linear_backward_by_einsum(X, W, dY):
    return [np.einsum("...o,io->...i", dY, W), np.einsum("ti,to->io", *map(flatten, (X, dY)))]


def flatten(array):
    return array.reshape(-1, array.shape[-1])


def heads_backward_by_einsum(X, W, dprojected):
    dX = np.einsum("...htd,hid->...ti", dprojected, W)
    share = np.swapaxes(X, -1, -2)[..., None, :, :] @ dprojected  # (..., H, d_model, d)
    return dX, share.reshape(-1, *W.shape).sum(axis=0)


def layer_backward_by_sequence(trace, dY):
    source = trace.X if trace.context is None else trace.context
    totals = {name: np.zeros(W.shape) for name, W in vars(trace.params).items()}
    dX, dsource = np.zeros(trace.X.shape), np.zeros(source.shape)
    for at in np.ndindex(dY.shape[:-2]):
        there = at[len(at) - (source.ndim - 2) :]
        picked = {"X": trace.X[at], "context": source[there], "K": trace.K[there]}
        picked |= {"V": trace.V[there], **{n: getattr(trace, n)[at] for n in ALONE}}
        one = tl.multi_head_attention_backward(dataclasses.replace(trace, **picked), dY[at])
        dX[at] += one.dX
        dsource[there] += one.dcontext
        for name in totals:
            totals[name] += getattr(one, f"d{name}")
    inputs = (dX + dsource, None) if trace.context is None else (dX, dsource)
    return tl.Gradients(*inputs, *totals.values())


ALONE = ("Q", "scores", "weights", "heads", "concat", "Y")


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
    ("softmax_backward", "table of derivatives", softmax_backward_by_table),
    ("sum_copies", "in two steps", sum_copies_by_einsum),
    ("attention_backward", "head by head", attention_backward_by_head),
    ("linear_backward", "einsum, in a list", linear_backward_by_einsum),
    ("project_heads_backward", "einsum", heads_backward_by_einsum),
    ("multi_head_attention_backward", "sequence by sequence", layer_backward_by_sequence),
    ("input_gradients", "head by head", input_gradients_by_head),
    ("scale_gradients", "einsum", scale_gradients_by_einsum),
    ("wrong_entries", "in place on its own copy", wrong_entries_in_place(1e-5)),
    ("wrong_entries", "a larger step", wrong_entries_in_place(1e-4)),
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
