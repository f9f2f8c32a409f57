"""Right answers of the review of Part III in other ways."""

import numpy as np


def rotated_by_complex_numbers(A, positions, frequencies):
    """Pairs as complex numbers, (..., T, n), each times e to i times its angle."""
    n = len(frequencies)
    pairs = A[..., 0 : 2 * n : 2] + 1j * A[..., 1 : 2 * n : 2]
    pairs = pairs * np.exp(1j * np.asarray(positions)[..., None] * frequencies)
    both = np.stack([pairs.real, pairs.imag], axis=-1).reshape(*pairs.shape[:-1], 2 * n)
    return np.concatenate([both, A[..., 2 * n :]], axis=-1)


def with_the_exponential_of_the_sink(scores, sink, seen):
    scores = np.where(seen, scores, -np.inf)
    top = np.maximum(scores.max(axis=-1, keepdims=True), sink)
    exponentials = np.exp(scores - top)
    return exponentials / (exponentials.sum(axis=-1, keepdims=True) + np.exp(sink - top))


def step_only_in_numpy(X, params, card, cache, weigh=with_the_exponential_of_the_sink):
    (K, V, position), T, (H, _, d_k) = cache, X.shape[-2], params.W_Q.shape
    Q, k, v = (X[..., None, :, :] @ W for W in (params.W_Q, params.W_K, params.W_V))
    Q, k = (
        rotated_by_complex_numbers(A, position + np.arange(T), card["frequencies"]) for A in (Q, k)
    )
    K, V = np.concatenate([K, k], axis=-2), np.concatenate([V, v], axis=-2)
    of_keys = position + np.arange(T - K.shape[-2], T)
    ago = (position + np.arange(T))[..., :, None] - of_keys[..., None, :]
    seen = (ago >= 0) & (ago < card["window"]) & (of_keys >= 0)[..., None, :]
    group = np.arange(H) // (H // len(params.W_K))
    scores = Q @ np.swapaxes(K[..., group, :, :], -1, -2) / np.sqrt(d_k)
    weights = weigh(scores, card["sink"][:, None, None], seen)
    heads = np.swapaxes(weights @ V[..., group, :, :], -3, -2)  # (..., T, H, d_v)
    first = max(0, K.shape[-2] - card["window"] + 1)
    cache = K[..., first:, :], V[..., first:, :], position + T
    return heads.reshape(*X.shape[:-1], -1) @ params.W_O, cache


VARIANTS = [
    ("step_by_card", "only NumPy, rotations as complex numbers", step_only_in_numpy),
]
