"""Wrong forms of the functions of chapter 08."""

import dataclasses
import math

import numpy as np

from tutorial_lib import gradients
from tutorial_lib.attention import softmax
from tutorial_lib.gradients import Gradients, softmax_backward, sum_copies
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.practice.mistake import Mistake


def _swap(array):
    return np.swapaxes(array, -1, -2)


def _rows(array):
    return array.reshape(-1, array.shape[-1])


def _mean(weights, dweights, axis=-1):
    return (weights * dweights).sum(axis=axis, keepdims=True)


_SOFTMAX_BACKWARD = (
    Mistake(
        "mean_forgotten",
        "the mean of the row is not taken away: each weight is treated as if it stood alone",
        "The weights of a row share 1: subtract the sum of weights * dweights first.",
        lambda weights, dweights: weights * dweights,
    ),
    Mistake(
        "own_score_only",
        "it is weights * (1 - weights) * dweights: what a score does to the other weights is lost",
        "A score lowers all other weights of its row: subtract the sum of weights * dweights.",
        lambda weights, dweights: weights * (1 - weights) * dweights,
    ),
    Mistake(
        "plain_mean",
        "the plain mean of dweights is taken away; the mean must be weighted by the weights",
        "Subtract (weights * dweights).sum(axis=-1, keepdims=True).",
        lambda weights, dweights: weights * (dweights - dweights.mean(axis=-1, keepdims=True)),
    ),
    Mistake(
        "all_rows_together",
        "one sum is taken over all rows together; each row has a softmax of its own",
        "Sum along the last axis, with keepdims=True.",
        lambda weights, dweights: weights * (dweights - (weights * dweights).sum()),
    ),
    Mistake(
        "factor_forgotten",
        "dweights minus the mean is not multiplied by the weights",
        "A score moves its weight in proportion to the weight: weights * (dweights - mean).",
        lambda weights, dweights: dweights - _mean(weights, dweights),
    ),
    Mistake(
        "sign_turned",
        "the sign is turned: a higher score raises its own weight",
        "It is dweights - mean, not mean - dweights.",
        lambda weights, dweights: weights * (_mean(weights, dweights) - dweights),
    ),
    Mistake(
        "softmax_again",
        "the weights are put through a softmax once more",
        "The argument holds the weights already: use them as they are.",
        lambda weights, dweights: softmax_backward(softmax(weights), dweights),
    ),
)


_SUM_COPIES = (
    Mistake(
        "averaged",
        "the copies are averaged instead of added up",
        "Each copy moves the loss on its own: add the gradients up.",
        lambda gradient, shape: (
            sum_copies(gradient, shape) * math.prod(shape) / math.prod(gradient.shape)
        ),
    ),
    Mistake(
        "leading_axes_only",
        "it sums the leading axes only; an axis of length 1 was copied too",
        "Sum every axis that is longer in gradient than in shape.",
        lambda gradient, shape: gradient.sum(axis=tuple(range(gradient.ndim - len(shape)))),
    ),
    Mistake(
        "not_summed",
        "nothing is added up: the copies come back as they were",
        "Sum every axis that is longer in gradient than in shape.",
        lambda gradient, shape: gradient.copy(),
    ),
)


def _attention(*arrays, back=softmax_backward, scales=None):
    """The right way, but for what goes back through the softmax and for the two scales."""
    Q, K, V, weights, dheads = arrays
    scale_Q, scale_K = scales or (math.sqrt(Q.shape[-1]),) * 2
    dscores = back(weights, dheads @ _swap(V))
    dQ, dK, dV = dscores @ K / scale_Q, _swap(dscores) @ Q / scale_K, _swap(weights) @ dheads
    return sum_copies(dQ, Q.shape), sum_copies(dK, K.shape), sum_copies(dV, V.shape)


def _no_softmax(weights, dweights):
    return dweights


def _no_mean(weights, dweights):
    return weights * dweights


def _copies_kept(Q, K, V, weights, dheads):
    dproducts = softmax_backward(weights, dheads @ _swap(V)) / math.sqrt(Q.shape[-1])
    return dproducts @ K, _swap(dproducts) @ Q, _swap(weights) @ dheads


def _values_through_softmax(Q, K, V, weights, dheads):
    dQ, dK, _ = _attention(Q, K, V, weights, dheads)
    dscores = softmax_backward(weights, dheads @ _swap(V))
    return dQ, dK, sum_copies(_swap(dscores) @ dheads, V.shape)


_ATTENTION_BACKWARD = (
    Mistake(
        "scale_forgotten",
        "the scores were divided by sqrt(d_k) on the way forward, and nothing is on the way back",
        "Divide dscores by math.sqrt(Q.shape[-1]).",
        lambda *arrays: _attention(*arrays, scales=(1, 1)),
    ),
    Mistake(
        "scale_of_keys_forgotten",
        "dQ is divided by sqrt(d_k), and dK is not",
        "Divide dscores once, before it goes on to both.",
        lambda *arrays: _attention(*arrays, scales=(math.sqrt(arrays[0].shape[-1]), 1)),
    ),
    Mistake(
        "scale_d_k",
        "it divides by d_k instead of its square root",
        "Divide dscores by math.sqrt(Q.shape[-1]).",
        lambda *arrays: _attention(*arrays, scales=(arrays[0].shape[-1],) * 2),
    ),
    Mistake(
        "softmax_skipped",
        "dweights goes on as if it were dscores: the softmax is skipped",
        "Put softmax_backward(weights, dweights) between the two.",
        lambda *arrays: _attention(*arrays, back=_no_softmax),
    ),
    Mistake(
        "mean_forgotten",
        "behind the softmax the mean of each row is not taken away",
        "Use softmax_backward(weights, dweights).",
        lambda *arrays: _attention(*arrays, back=_no_mean),
    ),
    Mistake(
        "values_through_softmax",
        "dV is made with dscores; the values are mixed by the weights themselves",
        "dV is weights, transposed, times dheads.",
        _values_through_softmax,
    ),
    Mistake(
        "copies_not_summed",
        "keys that a whole batch shared get a gradient for each sequence",
        "Add the copies up: sum_copies(dK, K.shape), and so for dQ and dV.",
        _copies_kept,
    ),
)


_LINEAR_BACKWARD = (
    Mistake(
        "averaged",
        "dW is averaged over the tokens instead of added up",
        "Every token used W: add up their shares.",
        lambda X, W, dY: (dY @ W.T, _rows(X).T @ _rows(dY) / len(_rows(X))),
    ),
    Mistake(
        "batch_kept",
        "dW has a batch axis; W, which all sequences share, has none",
        "Lay all tokens of the batch below each other before the product.",
        lambda X, W, dY: (dY @ W.T, _swap(X) @ dY),
    ),
    Mistake(
        "gradient_transposed",
        "dW is transposed",
        "dW has the shape of W: X, transposed, times dY.",
        lambda X, W, dY: (dY @ W.T, _rows(dY).T @ _rows(X)),
    ),
    Mistake(
        "other_order",
        "dW comes before dX",
        "Return dX, dW.",
        lambda X, W, dY: (_rows(X).T @ _rows(dY), dY @ W.T),
    ),
)


def _head_rows(X, W, dprojected):
    return dprojected @ _swap(W)  # (..., H, T, d_model)


def _reshaped(X, W, dprojected):
    flat = dprojected.reshape(*X.shape[:-1], -1)
    dX, dwide = gradients.linear_backward(X, concat_heads(W), flat)
    return dX, split_heads(dwide, len(W))


def _right_dW(X, W, dprojected):
    return gradients.project_heads_backward(X, W, dprojected)[1]


_PROJECT_HEADS_BACKWARD = (
    Mistake(
        "heads_not_summed",
        "dX has a head axis; all heads read one X",
        "Add up the heads' shares.",
        lambda *arrays: (_head_rows(*arrays), _right_dW(*arrays)),
    ),
    Mistake(
        "heads_averaged",
        "dX is averaged over the heads instead of added up",
        "Each head moves the loss on its own: add up their shares.",
        lambda *arrays: (_head_rows(*arrays).mean(axis=-3), _right_dW(*arrays)),
    ),
    Mistake(
        "reshape_without_transpose",
        "dprojected is reshaped without swapping tokens and heads",
        "Lay the heads side by side with concat_heads.",
        _reshaped,
    ),
    Mistake(
        "batch_kept",
        "dW has a batch axis; W, which all sequences share, has none",
        "Sum over all tokens of all sequences.",
        lambda X, W, d: (_head_rows(X, W, d).sum(axis=-3), _swap(X[..., None, :, :]) @ d),
    ),
)


def _layer(trace, dY, **parts):
    """The right gradients, with other weights, dheads or way back through the middle."""
    attend, params = parts.get("attend", _attention), trace.params
    dconcat, dW_O = gradients.linear_backward(trace.concat, params.W_O, dY)
    dheads = parts.get("cut", split_heads)(dconcat, params.n_heads)
    weights = parts.get("weights", trace.weights)
    middle = attend(trace.Q, trace.K, trace.V, weights, dheads)
    source = trace.X if trace.context is None else trace.context
    paths = [
        gradients.project_heads_backward(X, W, d)
        for X, W, d in zip(
            (trace.X, source, source), (params.W_Q, params.W_K, params.W_V), middle, strict=True
        )
    ]
    (by_Q, dW_Q), (by_K, dW_K), (by_V, dW_V) = paths
    others = parts.get("others", 1) * (by_K + by_V)
    dX, dcontext = (by_Q + others, None) if trace.context is None else (by_Q, others)
    return Gradients(dX, dcontext, dW_Q, dW_K, dW_V, dW_O)


def _cut_by_reshape(dconcat, n_heads):
    *batch, T, width = dconcat.shape
    return dconcat.reshape(*batch, n_heads, T, width // n_heads)


def _always_context(trace, dY):
    source = trace.X if trace.context is None else trace.context
    return gradients.multi_head_attention_backward(dataclasses.replace(trace, context=source), dY)


def _never_context(trace, dY):
    right = gradients.multi_head_attention_backward(trace, dY)
    return dataclasses.replace(right, dcontext=None)


_LAYER_BACKWARD = (
    Mistake(
        "path_of_queries_alone",
        "only the path through the queries goes back to the input",
        "Keys and values were made from it too: add up the three paths.",
        lambda *inputs: _layer(*inputs, others=0),
    ),
    Mistake(
        "softmax_skipped",
        "the softmax is skipped on the way back",
        "Put softmax_backward between dweights and dscores.",
        lambda *inputs: _layer(
            *inputs, attend=lambda *arrays: _attention(*arrays, back=_no_softmax)
        ),
    ),
    Mistake(
        "scale_forgotten",
        "nothing is divided by sqrt(d_k) on the way back",
        "Divide dscores by it, as the scores were.",
        lambda *inputs: _layer(*inputs, attend=lambda *arrays: _attention(*arrays, scales=(1, 1))),
    ),
    Mistake(
        "reshape_without_transpose",
        "dconcat is cut into heads by a reshape alone",
        "Cut the width first and then swap tokens and heads: split_heads.",
        lambda *inputs: _layer(*inputs, cut=_cut_by_reshape),
    ),
    Mistake(
        "mask_forgotten",
        "the weights are computed again from the scores, which know nothing of the mask",
        "Take trace.weights: a hidden key has weight 0 there.",
        lambda trace, dY: _layer(trace, dY, weights=softmax(trace.scores)),
    ),
    Mistake(
        "paths_left_in_dcontext",
        "in self-attention it leaves the paths through keys and values in dcontext",
        "Without a context all three paths end in X: add them up, and dcontext is None.",
        _always_context,
    ),
    Mistake(
        "no_dcontext",
        "the context gets no gradient",
        "With a context, the paths through keys and values end in dcontext.",
        _never_context,
    ),
)


def _to_inputs(params, dQ, dK, dV):
    """What each path brings back, before the heads are added up: three arrays (..., H, T, d)."""
    return dQ @ _swap(params.W_Q), dK @ _swap(params.W_K), dV @ _swap(params.W_V)


def _with_inputs(change):
    """A wrong function that makes dX and dcontext of the three arrays of `_to_inputs`."""
    return lambda params, dQ, dK, dV: change(*_to_inputs(params, dQ, dK, dV))


_INPUT_GRADIENTS = (
    Mistake(
        "keys_alone",
        "dcontext has the path through the keys alone",
        "The values were made from the context too: add both.",
        _with_inputs(lambda q, k, v: (q.sum(axis=-3), k.sum(axis=-3))),
    ),
    Mistake(
        "values_alone",
        "dcontext has the path through the values alone",
        "The keys were made from the context too: add both.",
        _with_inputs(lambda q, k, v: (q.sum(axis=-3), v.sum(axis=-3))),
    ),
    Mistake(
        "heads_averaged",
        "the heads are averaged instead of added up",
        "All heads read one input: add up their shares.",
        _with_inputs(lambda q, k, v: (q.mean(axis=-3), (k + v).mean(axis=-3))),
    ),
    Mistake(
        "heads_not_summed",
        "both gradients have a head axis; all heads read one input",
        "Sum over axis -3.",
        _with_inputs(lambda q, k, v: (q, k + v)),
    ),
)


def _per_head(terms):
    """Add up the terms (..., H, T, S) of each head."""
    return terms.sum(axis=(-2, -1)).reshape(-1, terms.shape[-3]).sum(axis=0)


def _scale_terms(Q, K, weights, dweights):
    return softmax_backward(weights, dweights) * (Q @ _swap(K))


_SCALE_GRADIENTS = (
    Mistake(
        "softmax_skipped",
        "dweights is multiplied by the products: the softmax is skipped",
        "Go back through the softmax first: softmax_backward(weights, dweights).",
        lambda Q, K, weights, dweights: _per_head(dweights * (Q @ _swap(K))),
    ),
    Mistake(
        "products_forgotten",
        "dscores is added up alone, and the rows of dscores sum to 0",
        "Score = scale * product: multiply each entry by its product, then add up.",
        lambda Q, K, weights, dweights: _per_head(softmax_backward(weights, dweights)),
    ),
    Mistake(
        "averaged",
        "the terms are averaged instead of added up",
        "One scale serves all queries and keys of its head: add up.",
        lambda *arrays: _per_head(_scale_terms(*arrays)) / arrays[2][..., 0, :, :].size,
    ),
    Mistake(
        "scaled_products",
        "the products are divided by sqrt(d_k) too; here the learned scale stands in its place",
        "Use Q Kᵀ as it is.",
        lambda *arrays: _per_head(_scale_terms(*arrays)) / math.sqrt(arrays[0].shape[-1]),
    ),
    Mistake(
        "batch_kept",
        "there is a number for each sequence; the scale of a head serves all sequences",
        "Add up the batch axes as well.",
        lambda *arrays: _scale_terms(*arrays).sum(axis=(-2, -1)),
    ),
    Mistake(
        "heads_summed",
        "the heads are added up too; each head has a scale of its own",
        "Keep the head axis: sum over all others.",
        lambda *arrays: np.array(_scale_terms(*arrays).sum()),
    ),
)


def _difference_quotients(function, X, *, step=1e-5, one_sided=False, steps=2):
    found = np.zeros(X.shape)
    for index in np.ndindex(X.shape):
        nudge = np.zeros(X.shape)
        nudge[index] = step
        low = function(X) if one_sided else function(X - nudge)
        found[index] = (function(X + nudge) - low) / (steps * step)
    return found


def _further(found, gradient, limit):
    return np.abs(found - gradient) > limit


def _millionth(array):
    return 1e-6 * np.abs(array).max()


def _judge(**options):
    """A wrong function that compares with difference quotients of another kind."""

    def wrong_entries(function, X, gradient):
        found = _difference_quotients(function, X, **options)
        return _further(found, gradient, _millionth(found))

    return wrong_entries


_WRONG_ENTRIES = (
    Mistake(
        "one_sided",
        "it steps to one side only, which is off by about a step's length",
        "Go one step up and one step down, and divide by two steps.",
        _judge(one_sided=True, steps=1),
    ),
    Mistake(
        "half_forgotten",
        "the difference of two steps is divided by one step",
        "From X - step to X + step are two steps: divide by 2 * step.",
        _judge(steps=1),
    ),
    Mistake(
        "step_too_small",
        "the step is so small that rounding spoils the difference",
        "Take a step of 1e-5.",
        _judge(step=1e-12),
    ),
    Mistake(
        "turned_round",
        "it marks the entries that are right",
        "True where the difference is larger than the limit.",
        lambda function, X, gradient: ~_judge()(function, X, gradient),
    ),
    Mistake(
        "fixed_limit",
        "the limit is 1e-6 whatever the size of the gradient",
        "Compare with 1e-6 times the largest difference, in absolute value.",
        lambda function, X, gradient: _further(_difference_quotients(function, X), gradient, 1e-6),
    ),
    Mistake(
        "claim_sets_limit",
        "the claim sets its own limit, so one wild entry hides all others",
        "The limit is 1e-6 times the largest of the central differences, not of the claim.",
        lambda function, X, gradient: _further(
            _difference_quotients(function, X), gradient, _millionth(gradient)
        ),
    ),
    Mistake(
        "one_answer",
        "it says once for all whether something is wrong",
        "Return a boolean for each entry: compare without any() or max().",
        lambda function, X, gradient: bool(_judge()(function, X, gradient).any()),
    ),
)


MISTAKES = {
    "softmax_backward": _SOFTMAX_BACKWARD,
    "sum_copies": _SUM_COPIES,
    "attention_backward": _ATTENTION_BACKWARD,
    "linear_backward": _LINEAR_BACKWARD,
    "project_heads_backward": _PROJECT_HEADS_BACKWARD,
    "multi_head_attention_backward": _LAYER_BACKWARD,
    "input_gradients": _INPUT_GRADIENTS,
    "scale_gradients": _SCALE_GRADIENTS,
    "wrong_entries": _WRONG_ENTRIES,
}
