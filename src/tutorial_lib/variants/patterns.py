"""score and mix, with fewer pairs: windows, sinks, gates, chosen keys."""

import numpy as np

from tutorial_lib.attention import causal_mask, scaled_dot_product_attention, softmax
from tutorial_lib.projection import project_heads


def window_mask(T, S, window):
    """Say that each query may look at the last `window` keys, itself included.

    Built in chapter 17. The queries are the last T of S tokens, as in `causal_mask(T, S)`.
    """
    return causal_mask(T, S) & ~np.tri(T, S, k=S - T - window, dtype=bool)


def strided_mask(T, stride):
    """Say that each query may look at every key a multiple of `stride` steps back.

    Built in chapter 17.
    """
    distances = np.arange(T)[:, None] - np.arange(T)
    return (distances >= 0) & (distances % stride == 0)


def global_mask(T, tokens):
    """Say that some tokens look at all, and that all look at them: a row and a column each.

    Built in chapter 17. Both ways; with `& causal_mask(T)` a decoder's form.
    """
    chosen = np.isin(np.arange(T), tokens)
    return chosen[:, None] | chosen


def random_mask(rng, T, n):
    """Say that each query may look at n keys drawn at random among all T, none twice.

    Built in chapter 17.
    """
    order = rng.permuted(np.tile(np.arange(T), (T, 1)), axis=-1)
    return order < n


def reach(mask, n_layers):
    """Say which tokens can move which rows after a number of layers, each with the same mask.

    Built in chapter 17. [t, s]: token s moves row t; a row keeps its own token, as a residual does.
    """
    step = (mask | np.eye(len(mask), dtype=bool)).astype(float)
    reached = step
    for _ in range(n_layers - 1):
        reached = (reached @ step > 0).astype(float)
    return reached > 0


def attention_with_sink(scores, sink, *, mask=None):
    """Turn scores into weights that may sum to less than 1: a sink takes the rest, for nobody.

    Built in chapter 17. sink : (H,), one more score in each row's denominator.
    """
    seen = scores if mask is None else np.where(mask, scores, -np.inf)
    column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
    return softmax(np.concatenate([seen, column], axis=-1))[..., :-1]


def gate_heads(heads, X, W_G):
    """Multiply what each head found by a gate between 0 and 1, computed from its query's token.

    Built in chapter 17. W_G : (H, d_model, d_v).
    """
    return heads / (1 + np.exp(-project_heads(X, W_G)))


def choose_keys(scores, k, *, mask=None):
    """Say which k keys score best in each row, among those that the mask lets it see.

    Built in chapter 17. Equal scores: the earlier key. Returns a mask, (..., T, S).
    """
    seen = scores if mask is None else np.where(mask, scores, -np.inf)
    order = np.argsort(-seen, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1)
    return (ranks < k) & np.isfinite(seen)


def windowed_attention(Q, K, V, window, *, block=64):
    """Attend within a window, a block of queries at a time, and skip the keys that none sees.

    Built in chapter 17. Equals `scaled_dot_product_attention` under `window_mask`.
    """
    parts = []
    for start in range(0, Q.shape[-2], block):
        q = Q[..., start : start + block, :]
        keys = slice(max(0, start + 1 - window), start + q.shape[-2])
        mask = window_mask(q.shape[-2], keys.stop - keys.start, window)
        parts.append(scaled_dot_product_attention(q, K[..., keys, :], V[..., keys, :], mask=mask))
    return np.concatenate(parts, axis=-2)
