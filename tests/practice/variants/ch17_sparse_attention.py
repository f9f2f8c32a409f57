"""Right answers of chapter 17 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl


def step_word_by_word(X, params, K, V, window):
    """The cached rows as a list that a word is put on and taken from; a chunk of any length."""
    rows = []
    for x in X:
        q, k, v = (tl.project_heads(x[None], W) for W in (params.W_Q, params.W_K, params.W_V))
        K, V = (np.concatenate(pair, axis=-2)[:, -window:] for pair in ((K, k), (V, v)))
        heads = tl.scaled_dot_product_attention(q, K, V)
        rows.append(tl.concat_heads(heads) @ params.W_O)
    short = max(0, K.shape[-2] - (window - 1))
    return np.concatenate(rows), K[:, short:], V[:, short:]


def bigbird_by_loops(T, window, tokens, random):
    mask = np.zeros((T, T), dtype=bool)
    for t in range(T):
        for s in range(T):
            mask[t, s] = 2 * abs(t - s) < window or t in tokens or s in tokens or random[t, s]
    return mask


def indexed_by_loops(scores, q, keys, w, k):
    weights = np.zeros(scores.shape)
    for t in range(len(keys)):
        index = [sum(w[t, j] * max(0, q[j, t] @ key) for j in range(len(q))) for key in keys]
        best = sorted(range(t + 1), key=lambda s: -index[s])[:k]
        exps = np.exp(scores[:, t, best])
        weights[:, t, best] = exps / exps.sum(axis=-1, keepdims=True)
    return weights


VARIANTS = [
    ("windowed_step", "word by word", step_word_by_word),
    ("bigbird_mask", "loops", bigbird_by_loops),
    ("indexed_weights", "loops", indexed_by_loops),
]


NARROW = [
    ("window_mask", "squares only", "too_far =", "assert T == S\ntoo_far ="),
    ("receptive_field", "two layers at most", "range(n_layers - 1)", "range(min(n_layers, 2) - 1)"),
    (
        "attention_with_sink",
        "small scores",
        "column =",
        "assert np.abs(scores).max() < 700\ncolumn =",
    ),
    (
        "attention_with_sink",
        "rows that see a key",
        "[..., :-1]",
        "[..., :-1] + np.where(seen.any(axis=-1, keepdims=True), 0, np.nan)",
    ),
    ("top_k_mask", "rows that see k keys", "ranks < k", "ranks < min(k, 3)"),
    ("indexed_weights", "two keys", "(index, k,", "(index, 2,"),
]
