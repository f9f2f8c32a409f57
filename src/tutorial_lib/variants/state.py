"""score and mix become one product with a state of fixed size, which is kept instead of keys."""

import numpy as np


def linear_attention(Q, K, V):
    """Attend without a softmax, a token at a time: add k ⊗ v to a state, read it with q.

    Built in chapter 18. Causal. Q, K : (..., H, T, d_k), V : (..., H, T, d_v).
    """
    state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    rows = []
    for t in range(Q.shape[-2]):
        state = state + K[..., t, :, None] * V[..., t, None, :]
        rows.append(Q[..., t, None, :] @ state)
    return np.concatenate(rows, axis=-2)


def linear_attention_parallel(Q, K, V):
    """Attend without a softmax, all tokens at once: scores of later tokens are 0.

    Built in chapter 18.
    """
    scores = Q @ np.swapaxes(K, -1, -2)
    return np.tril(scores) @ V


def delta_step(state, k, v, *, beta=1.0, decay=1.0):
    """Write one key and its value: forget by `decay`, then mend what k reads towards v by beta.

    Built in chapter 18. state : (..., d_k, d_v), k : (..., d_k), v : (..., d_v).
    """
    state = decay * state
    error = v - (k[..., None, :] @ state)[..., 0, :]
    return state + beta * k[..., :, None] * error[..., None, :]


def chunked(Q, K, V, *, size):
    """Attend without a softmax, a chunk of tokens at a time: within it parallel, before it a state.

    Built in chapter 18. Any size gives what `linear_attention` gives.
    """
    state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    parts = []
    for start in range(0, Q.shape[-2], size):
        q, k, v = (A[..., start : start + size, :] for A in (Q, K, V))
        parts.append(q @ state + linear_attention_parallel(q, k, v))
        state = state + np.swapaxes(k, -1, -2) @ v
    return np.concatenate(parts, axis=-2)
