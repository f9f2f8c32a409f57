"""Wrong forms of the functions of chapter 02."""

import numpy as np

from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.mistake import Mistake


def _project(X, W):
    return X[..., None, :, :] @ W


_PROJECT_HEADS = (
    Mistake(
        "heads_last",
        "the head axis stands behind the token axis",
        "Give X a head axis before its last two: X[..., None, :, :].",
        lambda X, W: np.swapaxes(_project(X, W), -3, -2),
    ),
    Mistake(
        "heads_summed",
        "the heads are added up",
        "Each head keeps its own result: the head axis stays.",
        lambda X, W: _project(X, W).sum(axis=-3),
    ),
    Mistake(
        "tokens_first",
        "each result is transposed: features are rows, tokens are columns",
        "Rows are tokens: X @ W, not (X @ W).T.",
        lambda X, W: np.swapaxes(_project(X, W), -2, -1),
    ),
    Mistake(
        "wide_reshape",
        "the wide product is cut with reshape alone, so heads hold other tokens' numbers",
        "Cut the width first and then swap: reshape(..., T, H, d), then swapaxes(-3, -2).",
        lambda X, W: (X @ concat_heads(W)).reshape(*X.shape[:-2], len(W), X.shape[-2], W.shape[-1]),
    ),
)


_PROJECT_WITH_BIAS = (
    Mistake(
        "no_bias",
        "the bias is not added",
        "Add b, with an axis of 1 for the tokens: b[:, None, :].",
        lambda X, W, b: _project(X, W),
    ),
    Mistake(
        "first_bias",
        "every head gets the bias of head 0",
        "Head h gets b[h]: b[:, None, :] lines up with (..., H, T, d).",
        lambda X, W, b: _project(X, W) + b[0],
    ),
    Mistake(
        "biases_summed",
        "every head gets the sum of all biases",
        "Head h gets b[h] alone.",
        lambda X, W, b: _project(X, W) + b.sum(axis=0),
    ),
)


_PROJECT_SLICED_INPUT = (
    Mistake(
        "interleaved",
        "the slices are interleaved: head 0 takes every H-th column",
        "Head 0 takes the first w columns.",
        lambda X, W: np.stack([X[..., h :: len(W)] @ W[h] for h in range(len(W))], axis=-3),
    ),
    Mistake(
        "reshape_alone",
        "reshape alone: the shape is right, but head 0 holds the features of other tokens",
        "Cut the last axis, (..., T, H, w), and then swap the head and token axes.",
        lambda X, W: X.reshape(*X.shape[:-2], len(W), X.shape[-2], W.shape[1]) @ W,
    ),
    Mistake(
        "heads_last",
        "the head axis stands behind the token axis",
        "The result is (..., H, T, d): heads first, then tokens.",
        lambda X, W: np.stack([x @ w for x, w in zip(np.split(X, len(W), -1), W, strict=True)], -2),
    ),
)


def _count(d_model, H, d_k, d_v, bias):
    weights = H * d_model * (2 * d_k + d_v) + H * d_v * d_model
    return weights + bias * (H * (2 * d_k + d_v) + d_model)


_COUNT_PARAMETERS = (
    Mistake(
        "w_o_forgotten",
        "W_O is not counted",
        "The layer has a fourth matrix, W_O, of shape (H*d_v, d_model).",
        lambda d_model, H, d_k, d_v, *, bias: (
            _count(d_model, H, d_k, d_v, bias) - H * d_v * d_model
        ),
    ),
    Mistake(
        "one_head",
        "one head is counted instead of H",
        "Each of the H heads has its own three matrices.",
        lambda d_model, H, d_k, d_v, *, bias: _count(d_model, 1, d_k, d_v, bias),
    ),
    Mistake(
        "four_squares",
        "it is always 4·d_model², which holds only when H·d_k = H·d_v = d_model",
        "Count the entries of each matrix from its own shape.",
        lambda d_model, H, d_k, d_v, *, bias: 4 * d_model**2 + bias * 4 * d_model,
    ),
    Mistake(
        "bias_ignored",
        "the biases are not counted",
        "With bias=True add H*d_k twice, H*d_v, and d_model for W_O.",
        lambda d_model, H, d_k, d_v, *, bias: _count(d_model, H, d_k, d_v, False),
    ),
    Mistake(
        "values_as_keys",
        "values are counted with width d_k",
        "W_V has shape (H, d_model, d_v).",
        lambda d_model, H, d_k, d_v, *, bias: (
            _count(d_model, H, d_k, d_v, bias) + H * d_model * (d_k - d_v)
        ),
    ),
    Mistake(
        "out_bias_wide",
        "the bias of W_O is counted with H*d_v entries",
        "A bias has one entry for each output: d_model of them.",
        lambda d_model, H, d_k, d_v, *, bias: (
            _count(d_model, H, d_k, d_v, bias) + bias * (H * d_v - d_model)
        ),
    ),
)


MISTAKES = {
    "project_heads": _PROJECT_HEADS,
    "project_with_bias": _PROJECT_WITH_BIAS,
    "project_sliced_input": _PROJECT_SLICED_INPUT,
    "count_parameters": _COUNT_PARAMETERS,
}
