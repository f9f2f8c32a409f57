"""Right answers of chapter 18 in other ways, and edits that make it too narrow."""

import numpy as np


def step_by_a_matrix(state, k, v, *, beta=1.0, decay=1.0):
    """What a write leaves of the old state, as a matrix: I - beta k k^T."""
    outer = k[..., :, None] * k[..., None, :]
    return (np.eye(k.shape[-1]) - beta * outer) @ (decay * state) + beta * (
        k[..., :, None] * v[..., None, :]
    )


def gated_by_matrices(Q, K, V, betas, decays):
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    state, rows = 0 * np.swapaxes(K[..., :1, :], -1, -2) @ V[..., :1, :], []
    for t in range(Q.shape[-2]):
        beta, decay = betas[..., t, None, None], decays[..., t, None, None]
        state = step_by_a_matrix(state, K[..., t, :], V[..., t, :], beta=beta, decay=decay)
        rows.append((Q[..., t, :, None] * state).sum(axis=-2))
    return np.stack(rows, axis=-2)


def fading_all_at_once(Q, K, V, decay, *, size):
    steps = np.arange(Q.shape[-2])[:, None] - np.arange(Q.shape[-2])
    return (Q @ np.swapaxes(K, -1, -2) * np.tril(float(decay) ** np.abs(steps))) @ V


VARIANTS = [
    ("gated_delta", "matrices", gated_by_matrices),
    ("chunked_decay", "all at once", fading_all_at_once),
]


NARROW = [
    (
        "delta_step",
        "gates that are numbers",
        "error =",
        "assert np.ndim(beta) == np.ndim(decay) == 0\nerror =",
    ),
    (
        "delta_step",
        "gates of heads",
        "decay * state",
        "(np.asarray(decay)[..., :1, :] if np.ndim(decay) else decay) * state",
    ),
    ("chunked", "chunks that fit", "Q.shape[-2], size", "Q.shape[-2] // size * size, size"),
    ("chunked_decay", "one chunk", "Q.shape[-2], size", "size, size"),
]
