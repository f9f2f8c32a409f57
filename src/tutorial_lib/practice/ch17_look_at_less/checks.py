"""Checks for chapter 17."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.account import D_K, D_MODEL, B, Case, H, S, T, against, normal
from tutorial_lib.practice.ch17_look_at_less.mistakes import MISTAKES
from tutorial_lib.projection import init_params, project_heads
from tutorial_lib.variants import patterns

check = against(MISTAKES)


def check_window_mask(function):
    """Check `window_mask(T, S, window)` of chapter 17. Prints an account."""
    cases = (
        Case("a square, window of 3", {"T": 5, "S": 5, "window": 3}),
        Case("2 new words after 4", {"T": 2, "S": 6, "window": 3}),
        Case("a window of 1", {"T": 4, "S": 5, "window": 1}),
        Case("a window that holds all", {"T": 3, "S": 5, "window": 9}),
    )
    check("window_mask", function, patterns.window_mask, cases)


def check_reach(function):
    """Check `reach(mask, n_layers)` of chapter 17. Prints an account."""
    window, strided = patterns.window_mask(9, 9, 3), patterns.strided_mask(9, 2)
    others = patterns.window_mask(7, 7, 3) & ~np.eye(7, dtype=bool)
    cases = (
        Case("a window, one layer", {"mask": window, "n_layers": 1}),
        Case("a window, three layers", {"mask": window, "n_layers": 3}),
        Case("a stride, two layers", {"mask": strided, "n_layers": 2}),
        Case("a row and a column", {"mask": patterns.global_mask(6, [2]), "n_layers": 2}),
        Case("a mask that hides each row's own token", {"mask": others, "n_layers": 2}),
    )
    check("reach", function, patterns.reach, cases)


def check_attention_with_sink(function):
    """Check `attention_with_sink(scores, sink, *, mask=None)` of chapter 17. Prints an account."""
    sink, causal = np.array([-1.0, 0.5, 2.0]), causal_mask(T)
    cases = (
        Case("every word sees all", {"scores": normal(170, H, T, S), "sink": sink}),
        Case("a causal mask", {"scores": normal(171, H, T, T), "sink": sink}, {"mask": causal}),
        Case("a batch", {"scores": normal(172, B, H, T, S), "sink": sink[::-1].copy()}),
        Case("scores near 1,000", {"scores": 1000 + normal(173, H, T, S), "sink": 1000 + sink}),
        Case("a sink near 2,000", {"scores": normal(174, H, T, S), "sink": 2000 + sink}),
    )
    check("attention_with_sink", function, patterns.attention_with_sink, cases)


def check_choose_keys(function):
    """Check `choose_keys(scores, k, *, mask=None)` of chapter 17. Prints an account."""
    causal, behind = {"mask": causal_mask(T)}, {"mask": causal_mask(2, S)}
    ties = np.array([[1.0, 2.0, 2.0, 0.0, 2.0, 1.0]])
    cases = (
        Case("2 keys, a causal mask", {"scores": normal(175, H, T, T), "k": 2}, causal),
        Case("more keys than a row sees", {"scores": normal(176, T, T), "k": 4}, causal),
        Case("2 new words after 4", {"scores": normal(177, B, H, 2, S), "k": 3}, behind),
        Case("one query, no mask", {"scores": normal(178, H, 1, S), "k": 2}),
        Case("equal scores", {"scores": ties, "k": 2}),
    )
    check("choose_keys", function, patterns.choose_keys, cases)


def _windowed_step(X, params, K, V, window):
    Q = project_heads(X, params.W_Q)
    K = np.concatenate([K, project_heads(X, params.W_K)], axis=-2)
    V = np.concatenate([V, project_heads(X, params.W_V)], axis=-2)
    T, S = Q.shape[-2], K.shape[-2]
    mask = patterns.window_mask(T, S, window)
    weights = attention_weights(attention_scores(Q, K), mask=mask)
    first = max(0, S - (window - 1))
    Y = concat_heads(weights @ V) @ params.W_O
    return Y, K[..., first:, :], V[..., first:, :]


def check_windowed_step(function):
    """Check `windowed_step(X, params, K, V, window)`, exercise of chapter 17."""
    cases = (
        Case("a word after 3, window of 4", _piece(179, T=1, kept=3, window=4)),
        Case("a piece of 2 after 3, window of 4", _piece(180, T=2, kept=3, window=4)),
        Case("the first piece, longer than the window", _piece(181, T=7, kept=0, window=3)),
        Case("a piece longer than the window, after 2", _piece(182, T=5, kept=2, window=3)),
        Case("a window of 1", _piece(183, T=2, kept=0, window=1)),
        Case("a text shorter than the window", _piece(184, T=2, kept=1, window=9)),
    )
    check("windowed_step", function, _windowed_step, cases)


def _piece(seed, *, T, kept, window):
    params = init_params(np.random.default_rng(seed), d_model=D_MODEL, n_heads=H)
    K, V = normal(seed + 20, 2, H, kept, D_K)
    X = normal(seed + 40, T, D_MODEL)
    return {"X": X, "params": params, "K": K, "V": V, "window": window}


def _bigbird_mask(T, window, tokens, random):
    distances = np.abs(np.arange(T)[:, None] - np.arange(T))
    return (distances <= window // 2) | patterns.global_mask(T, tokens) | random


def check_bigbird_mask(function):
    """Check `bigbird_mask(T, window, tokens, random)`, exercise of chapter 17."""
    drawn = patterns.random_mask(np.random.default_rng(0), 9, 2)
    none = np.zeros((9, 9), dtype=bool)
    cases = (
        Case("BigBird", {"T": 9, "window": 3, "tokens": [0, 4], "random": drawn}),
        Case("Longformer: nothing is drawn", {"T": 9, "window": 5, "tokens": [8], "random": none}),
        Case("no global token", {"T": 9, "window": 3, "tokens": [], "random": drawn}),
        Case("a window of 1", {"T": 9, "window": 1, "tokens": [2], "random": none}),
    )
    check("bigbird_mask", function, _bigbird_mask, cases)


def _indexed_weights(scores, q, keys, w, k):
    met = np.maximum(q @ keys.T, 0)  # (J, T, T)
    index = np.einsum("tj,jts->ts", w, met)
    mask = causal_mask(len(keys))
    return attention_weights(scores, mask=patterns.choose_keys(index, k, mask=mask))


def check_indexed_weights(function):
    """Check `indexed_weights(scores, q, keys, w, k)`, exercise of chapter 17."""
    cases = (
        Case("2 of 8 keys", _indexed(185, k=2)),
        Case("5 of 8 keys: more than the first rows see", _indexed(186, k=5)),
        Case("weights of both signs", _indexed(187, k=3, signed=True)),
        Case("one index head", _indexed(188, k=3, J=1)),
    )
    check("indexed_weights", function, _indexed_weights, cases)


def _indexed(seed, *, k, J=4, signed=False, T=8):
    w = normal(seed + 60, T, J)
    arrays = {"scores": normal(seed, H, T, T), "q": normal(seed + 20, J, T, 3)}
    arrays |= {"keys": normal(seed + 40, T, 3), "w": w if signed else np.abs(w)}
    return {**arrays, "k": k}
