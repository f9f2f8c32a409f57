"""Checks for chapter 08."""

import numpy as np

from tutorial_lib import attention, gradients, multihead, projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of(gradients.softmax_backward)
def check_softmax_backward():
    weights = attention.softmax(2 * normal(0, H, T, S))
    masked = attention.attention_weights(2 * normal(3, B, H, T, S), mask=_empty_row_mask())
    yield "3 heads", {"weights": weights, "dweights": normal(1, H, T, S)}
    yield "one row", {"weights": weights[0, 0], "dweights": normal(2, S)}
    yield "a row of zeros", {"weights": masked, "dweights": normal(4, B, H, T, S)}


def _empty_row_mask():
    return masks()["a fully masked row"]


@cases_of(gradients.sum_copies)
def check_sum_copies():
    gradient = normal(4, B, H, T, S)
    shapes = {
        "leading axes": (T, S),
        "an axis of length 1": (B, 1, T, S),
        "both": (1, T, 1),
        "nothing copied": (B, H, T, S),
    }
    yield from ((n, {"gradient": gradient, "shape": shape}) for n, shape in shapes.items())


def _backward_case(seed, *, batch=(), shared=(), mask=None, d_k=D_K):
    """Return what `attention_backward` takes; what `shared` names is one for the whole batch."""
    shapes = {"Q": (H, T, d_k), "K": (H, S, d_k), "V": (H, S, D_V)}
    arrays = {
        name: normal(seed + index, *(() if name in shared else batch), *shape)
        for index, (name, shape) in enumerate(shapes.items())
    }
    scores = attention.attention_scores(arrays["Q"], arrays["K"])
    weights = attention.attention_weights(scores, mask=mask)
    dheads = normal(seed + 3, *(weights @ arrays["V"]).shape)
    return {**arrays, "weights": weights, "dheads": dheads}


@cases_of(gradients.attention_backward)
def check_attention_backward():
    own = masks()["a mask for each sentence and head"]
    yield "5 queries, 7 keys", _backward_case(5)
    yield "a fully masked row", _backward_case(9, mask=_empty_row_mask())
    yield "a batch, a mask for each sentence and head", _backward_case(13, batch=(B,), mask=own)
    yield "one context for a batch", _backward_case(17, batch=(B,), shared=("K", "V"))
    yield "one Q and K for a batch of values", _backward_case(21, batch=(B,), shared=("Q", "K"))
    yield "wider heads", _backward_case(25, d_k=WIDE)


@cases_of(gradients.linear_backward)
def check_linear_backward():
    W = normal(20, D_MODEL, D_V)
    yield "5 tokens", {"X": normal(21, T, D_MODEL), "W": W, "dY": normal(22, T, D_V)}
    yield "a batch", {"X": normal(23, B, T, D_MODEL), "W": W, "dY": normal(24, B, T, D_V)}
    yield (
        "two batch axes",
        {"X": normal(30, S, B, T, D_MODEL), "W": W, "dY": normal(31, S, B, T, D_V)},
    )


@cases_of(gradients.project_heads_backward)
def check_project_heads_backward():
    W = normal(25, H, D_MODEL, D_K)
    yield "5 tokens", (normal(26, T, D_MODEL), W, normal(27, H, T, D_K))
    yield "a batch", (normal(28, B, T, D_MODEL), W, normal(29, B, H, T, D_K))


def _layer_case(label, X, *, context=None, mask=None, d_k=D_K):
    rng = np.random.default_rng(1)
    params = projection.init_params(rng, d_model=D_MODEL, n_heads=H, d_k=d_k, d_v=D_V)
    record = multihead.trace(2 * X, params, context=context, mask=mask)
    return (label, {"trace": record, "dY": normal(40, *record.Y.shape)})


@cases_of(gradients.multi_head_attention_backward)
def check_multi_head_attention_backward():
    X, context = normal(41, B, T, D_MODEL), normal(42, B, S, D_MODEL)
    shown = masks()
    labels = (
        "padding of each sentence",
        "a mask for each sentence and head",
        "a fully masked row",
    )
    yield _layer_case("no mask", X)
    yield _layer_case("a causal mask", X[0], mask=attention.causal_mask(T))
    yield from (_layer_case(f"a context, {n}", X, context=context, mask=shown[n]) for n in labels)
    yield _layer_case("one context for a batch", X, context=context[0])
    yield _layer_case("wider heads", X, d_k=WIDE)


def _input_gradients(params, dQ, dK, dV):
    by_queries = dQ @ np.swapaxes(params.W_Q, -1, -2)  # (..., H, T, d_model)
    by_keys = dK @ np.swapaxes(params.W_K, -1, -2)
    by_values = dV @ np.swapaxes(params.W_V, -1, -2)
    return by_queries.sum(axis=-3), (by_keys + by_values).sum(axis=-3)


@cases_of(_input_gradients)
def check_input_gradients():
    rng = np.random.default_rng(2)
    params = projection.init_params(rng, d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=D_V)

    def inputs(seed, *batch):
        dQ, dK = normal(seed, *batch, H, T, D_K), normal(seed + 1, *batch, H, S, D_K)
        return {"params": params, "dQ": dQ, "dK": dK, "dV": normal(seed + 2, *batch, H, S, D_V)}

    yield "5 tokens, a context of 7", inputs(43)
    yield "a batch", inputs(46, B)


def _scale_gradients(Q, K, weights, dweights):
    """Return the gradient of one factor per head, by which the products Q Kᵀ are multiplied."""
    products = Q @ np.swapaxes(K, -1, -2)
    dscores = gradients.softmax_backward(weights, dweights)
    return (dscores * products).sum(axis=(-2, -1)).reshape(-1, Q.shape[-3]).sum(axis=0)


@cases_of(_scale_gradients)
def check_scale_gradients():
    def inputs(seed, *batch, mask=None):
        Q, K = normal(seed, *batch, H, T, D_K), normal(seed + 1, *batch, H, S, D_K)
        scores = np.array([0.2, 0.5, 0.9])[:, None, None] * (Q @ np.swapaxes(K, -1, -2))
        weights = attention.attention_weights(scores, mask=mask)
        return {"Q": Q, "K": K, "weights": weights, "dweights": normal(seed + 3, *weights.shape)}

    yield "3 heads", inputs(49)
    yield "a batch, a fully masked row", inputs(53, B, mask=_empty_row_mask())
    yield "two batch axes", inputs(57, D_V, B)


def central_differences(function, X, step=1e-5):
    """Return the derivative of the number function(X) by each entry of X, one after the other."""
    found = np.zeros(X.shape)
    for index in np.ndindex(X.shape):
        nudge = np.zeros(X.shape)
        nudge[index] = step
        found[index] = (function(X + nudge) - function(X - nudge)) / (2 * step)
    return found


def _wrong_entries(function, X, gradient):
    differences = central_differences(function, X)
    return np.abs(differences - gradient) > 1e-6 * np.abs(differences).max()


def _steep_function(X):
    return 1e4 * (np.exp(X).sum() + (X[0] * X[1]).sum())


def _flat_function(X):
    return -1e-5 * (X[..., 0] ** 3).sum()  # all other entries do nothing


@cases_of(_wrong_entries)
def check_wrong_entries():
    X, Z = normal(60, 2, T), normal(61, H, T, S)
    steep, flat = 1e4 * (np.exp(X) + X[::-1]), np.zeros(Z.shape)
    flat[..., 0] = -3e-5 * Z[..., 0] ** 2
    bent, spoilt = steep.copy(), flat.copy()
    bent[1] = 1e4 * np.exp(X[1])  # a path is missing
    bent[0] *= np.array([1e8, -1, 1, 2, 1])
    bent[0] += np.abs(steep).max() * np.array([0, 0, 3e-6, 0, 3e-7])  # the last is close enough
    spoilt[1, 2] += 0.01 * np.abs(flat).max()
    faint = np.zeros(X.shape)
    faint[1] = 1e-9
    yield "a row and four entries wrong", (_steep_function, X, bent)
    yield "all right", (_steep_function, X, steep)
    yield "a function that is nearly flat", (_flat_function, Z, spoilt)
    yield "a function that is constant", (lambda X: 1.0, X, faint)
