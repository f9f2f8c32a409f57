"""score and mix become one product with a state of fixed size, in place of a cache."""

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.errors import ShapeError

_TOLERANCE = 1e-5  # in single precision, rounding makes a gate of 1 or a key of length 1 larger


@checked
def linear_attention(Q: "... T d_k", K: "... T d_k", V: "... T d_v") -> "... T d_v":
    """Attend without a softmax, a token at a time: add k ⊗ v to a state, then read it with q.

    Built in chapter 18. Causal, from an empty state. Scores are not divided: for those of
    `attention_scores` pass Q / sqrt(d_k).

    Source: Katharopoulos et al. (2020), without feature map and denominator.

    >>> linear_attention(np.ones((3, 5, 4)), np.ones((3, 5, 4)), np.ones((3, 5, 7))).shape
    (3, 5, 7)
    """
    state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]), K.dtype)
    rows = []
    for t in range(Q.shape[-2]):
        state = state + K[..., t, :, None] * V[..., t, None, :]
        rows.append(Q[..., t, None, :] @ state)  # (..., 1, d_v)
    return np.concatenate(rows, axis=-2)


@checked
def linear_attention_parallel(Q: "... T d_k", K: "... T d_k", V: "... T d_v") -> "... T d_v":
    """Attend without a softmax, all tokens at once: the scores of later tokens become 0.

    Built in chapter 18. The result is that of `linear_attention`, from T times T scores.

    Source: Yang et al. (2024).

    >>> linear_attention_parallel(np.ones((5, 4)), np.ones((5, 4)), np.ones((5, 7))).shape
    (5, 7)
    """
    scores = Q @ np.swapaxes(K, -1, -2)  # (..., T, T)
    return np.tril(scores) @ V


@checked
def delta_step(
    state: "... d_k d_v", k: "... d_k", v: "... d_v", *, beta: object = 1.0, decay: object = 1.0
) -> "... d_k d_v":
    """Write one key and its value: let the state fade, then correct what k reads towards v.

    Built in chapter 18. The state forgets first: the error is that of the faded state.
    The state given stays as it is; with beta 1 and k of length 1, k reads v from the new one.

    Parameters
    ----------
    k : of length 1 where beta may reach 1
    beta : the fraction of the error that is corrected: a number, or one per head, (..., H, 1, 1)
    decay : the fraction of the state that stays, from 0 to 1: a number, one per head,
        (..., H, 1, 1), or one per channel of the key, (..., H, d_k, 1)

    Raises
    ------
    ShapeError : gates that do not fit k
    ValueError : decay outside 0 to 1, or beta times the squared length of k outside 0 to 2, where
        each write makes old readings larger

    Source: Yang et al. (2025), arXiv:2412.06464; arXiv:2510.26692 for a decay of each channel.

    >>> delta_step(np.zeros((3, 4, 7)), np.ones((3, 4)) / 2, np.ones((3, 7))).shape
    (3, 4, 7)
    """
    require_broadcastable_gate("decay", decay, (*k.shape, 1))
    require_broadcastable_gate("beta", beta, (*k.shape[:-1], 1, 1))
    require(
        np.min(decay) >= 0 and np.max(decay) <= 1 + _TOLERANCE,
        ValueError,
        f"decay goes from {np.min(decay)} to {np.max(decay)}; expected 0 to 1, the fraction of the "
        f"state that stays, since above 1 it grows. For a logarithm pass np.exp(decay).",
    )
    require(
        np.min(beta) >= 0 and _erased_fraction(beta, k).max() <= 2 + _TOLERANCE,
        ValueError,
        f"beta · |k|² goes from {_erased_fraction(beta, k).min()} to "
        f"{_erased_fraction(beta, k).max()}; expected 0 to 2, since a write leaves "
        f"1 - beta · |k|² of what k read, and beyond -1 that grows. "
        f"Pass beta from 0 to 2, keys k / np.linalg.norm(k, axis=-1, keepdims=True).",
    )
    state = decay * state
    error = v - (k[..., None, :] @ state)[..., 0, :]
    return state + beta * k[..., :, None] * error[..., None, :]


@checked
def chunked(Q: "... T d_k", K: "... T d_k", V: "... T d_v", *, size: "length") -> "... T d_v":
    """Attend without a softmax, a chunk at a time: in parallel within it, by a state before it.

    Built in chapter 18. The result is that of `linear_attention`, for any size: with 1 it computes
    token by token, with T it is `linear_attention_parallel`. The last chunk may be shorter.

    Source: Yang et al. (2024).

    >>> chunked(np.ones((5, 4)), np.ones((5, 4)), np.ones((5, 7)), size=2).shape
    (5, 7)
    """
    state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]), K.dtype)
    parts = []
    for start in range(0, Q.shape[-2], size):
        q, k, v = (A[..., start : start + size, :] for A in (Q, K, V))
        parts.append(q @ state + linear_attention_parallel(q, k, v))
        state = state + np.swapaxes(k, -1, -2) @ v
    return np.concatenate(parts, axis=-2)


def _erased_fraction(beta, k):
    """Return beta · |k|², the fraction of what k read before that a write takes away."""
    return beta * (k * k).sum(axis=-1)[..., None, None]


def require_broadcastable_gate(name, gate, shape):
    """Require a number, or an array that broadcasts to `shape`, with a head's axis where k has."""
    gate_array = np.asarray(gate)
    require(
        gate_array.dtype.kind in "iuf",
        TypeError,
        f"{name} is a {type(gate).__name__} of {gate_array.dtype}; expected a number or an array "
        f"of numbers. Pass one for all heads, such as 0.9, or an array of shape {shape}.",
    )
    pairs = zip(gate_array.shape[::-1], shape[::-1], strict=False)
    axes_fit = min(3, len(shape)) <= gate_array.ndim <= len(shape)
    require(
        gate_array.ndim == 0 or (axes_fit and all(size in (1, length) for size, length in pairs)),
        ShapeError,
        f"{name} has shape {gate_array.shape}; expected a number, or an array that broadcasts to "
        f"{shape}. One per head, (..., H), needs two more axes: {name}[..., None, None].",
    )
