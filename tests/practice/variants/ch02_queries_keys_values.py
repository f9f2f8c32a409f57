"""Right answers of chapter 02 in other ways."""

import numpy as np

import tutorial_lib as tl


def project_by_stack(X, W):
    return np.stack([X @ matrix for matrix in W], axis=-3)


def project_wide(X, W):
    wide = X @ np.concatenate(list(W), axis=-1)
    return tl.split_heads(wide, len(W))


def count_by_matrices(d_model, n_heads, d_k, d_v, *, bias):
    inputs = [(d_model + bias) * d for d in (d_k, d_k, d_v)]
    return n_heads * sum(inputs) + (n_heads * d_v + bias) * d_model


VARIANTS = [
    ("project_with_bias", "stack", lambda X, W, b: project_by_stack(X, W) + b[..., None, :]),
    (
        "project_sliced_input",
        "list of heads",
        lambda X, W: np.stack([x @ w for x, w in zip(np.split(X, len(W), -1), W, strict=True)], -3),
    ),
    ("count_parameters", "matrix by matrix", count_by_matrices),
]
