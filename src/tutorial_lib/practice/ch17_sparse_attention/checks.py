"""Checks for chapter 17."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal
from tutorial_lib.projection import init_params, project_heads
from tutorial_lib.variants import patterns

MISTAKES, cases_of = read_room(__file__)


@cases_of(patterns.window_mask)
def check_window_mask():
    yield "a square, window of 3", {"T": 5, "S": 5, "window": 3}
    yield "2 new words after 5", {"T": 2, "S": 7, "window": 3}
    yield "a window of 1", {"T": 4, "S": 7, "window": 1}
    yield "a window that holds all", {"T": 3, "S": 5, "window": 11}


@cases_of(patterns.receptive_field)
def check_receptive_field():
    window, strided = patterns.window_mask(11, 11, 3), patterns.strided_mask(11, 3)
    others = patterns.window_mask(7, 7, 3) & ~np.eye(7, dtype=bool)
    yield "a window, one layer", {"mask": window, "n_layers": 1}
    yield "a window, four layers", {"mask": window, "n_layers": 4}
    yield "a stride, two layers", {"mask": strided, "n_layers": 2}
    yield "a row and a column", {"mask": patterns.global_mask(7, [3]), "n_layers": 2}
    yield "a mask that hides each row's own token", {"mask": others, "n_layers": 2}


@cases_of(patterns.attention_with_sink)
def check_attention_with_sink():
    sink, none = np.array([-1.0, 0.5, 2.0]), np.array([-1.0, -np.inf, 2.0])
    batch = {"scores": normal(172, B, H, T, S), "sink": sink[::-1].copy()}
    square = {"scores": normal(171, H, T, T), "sink": sink}
    yield "every word sees all", {"scores": normal(170, H, T, S), "sink": sink}
    yield "a batch", batch
    yield from ((label, batch, {"mask": mask}) for label, mask in masks().items())
    yield "without a batch axis", square, {"mask": causal_mask(T)}
    yield "scores near 1,000", {"scores": 1000 + normal(173, H, T, S), "sink": 1000 + sink}
    yield "a sink near 2,000", {"scores": normal(174, H, T, S), "sink": 2000 + sink}
    yield "a head without a sink", {"scores": normal(168, H, T, S), "sink": none}


@cases_of(patterns.top_k_mask)
def check_top_k_mask():
    causal, behind = {"mask": causal_mask(T)}, {"mask": causal_mask(4, S)}
    batch = {"scores": normal(169, B, H, T, S), "k": 4}
    ties = np.array([[1.0, 2.0, 2.0, 0.0, 2.0, 1.0]])
    yield "2 keys, a causal mask", {"scores": normal(175, H, T, T), "k": 2}, causal
    yield "more keys than a row sees", {"scores": normal(176, T, T), "k": 4}, causal
    yield "4 new words after 3", {"scores": normal(177, B, H, 4, S), "k": 5}, behind
    yield from ((label, batch, {"mask": mask}) for label, mask in masks().items())
    yield "one query, no mask", {"scores": normal(178, H, 1, S), "k": 2}
    yield "equal scores", {"scores": ties, "k": 2}


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


@cases_of(_windowed_step)
def check_windowed_step():
    long = _chunk_case(182, T=7, cached=4, window=5)
    yield "a word after 4, window of 5", _chunk_case(179, T=1, cached=4, window=5)
    yield "wider heads, 2 words after 7", _chunk_case(180, T=2, cached=7, window=8, d_k=WIDE)
    yield "the first chunk, longer than the window", _chunk_case(181, T=7, cached=0, window=4)
    yield "a chunk longer than the window, after 4", long
    yield "a window of 1", _chunk_case(183, T=2, cached=0, window=1)
    yield "a sequence shorter than the window", _chunk_case(184, T=2, cached=5, window=19)


def _chunk_case(seed, *, T, cached, window, d_k=D_K):
    rng = np.random.default_rng(seed)
    params = init_params(rng, d_model=D_MODEL, n_heads=H, d_k=d_k, d_v=D_V)
    before = {"K": normal(seed + 20, H, cached, d_k), "V": normal(seed + 30, H, cached, D_V)}
    return {"X": normal(seed + 40, T, D_MODEL), "params": params, **before, "window": window}


def _bigbird_mask(T, window, tokens, random):
    near = np.abs(np.arange(T)[:, None] - np.arange(T)) <= window // 2
    return near | patterns.global_mask(T, tokens) | random


@cases_of(_bigbird_mask)
def check_bigbird_mask():
    sampled = patterns.random_mask(np.random.default_rng(0), 11, 2)
    none, longer = np.zeros((11, 11), dtype=bool), np.zeros((13, 13), dtype=bool)
    yield "BigBird", {"T": 11, "window": 3, "tokens": [0, 4], "random": sampled}
    yield "Longformer: no random keys", {"T": 11, "window": 5, "tokens": [8], "random": none}
    yield "no global token", {"T": 11, "window": 3, "tokens": [], "random": sampled}
    yield "a window of 1", {"T": 13, "window": 1, "tokens": [2], "random": longer}


def _indexed_weights(scores, q, keys, w, k):
    """Distribute attention over the k keys that an indexer of several small heads prefers.

    A negative product of one of these heads counts as 0, and w has the weight of each head.
    """
    met = np.maximum(q @ keys.T, 0)  # (J, T, T)
    index = np.einsum("tj,jts->ts", w, met)
    mask = causal_mask(len(keys))
    chosen = patterns.top_k_mask(index, k, mask=mask)
    return attention_weights(scores, mask=chosen)


@cases_of(_indexed_weights)
def check_indexed_weights():
    yield "2 of 7 keys", _index_case(185, k=2)
    yield "4 of 7 keys: more than the first rows see", _index_case(186, k=4)
    yield "weights of both signs", _index_case(187, k=2, signed=True)
    yield "one index head", _index_case(188, k=4, J=1)


def _index_case(seed, *, k, J=5, signed=False):
    T, d = S, D_V
    w = normal(seed + 60, T, J)
    arrays = {"scores": normal(seed, H, T, T), "q": normal(seed + 20, J, T, d)}
    arrays |= {"keys": normal(seed + 40, T, d), "w": w if signed else np.abs(w)}
    return {**arrays, "k": k}
