"""The check for the task of Part III's review."""

import numpy as np

from tutorial_lib.attention import attention_scores
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import normal
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rotate

MISTAKES, cases_of = read_room(__file__)

H, G, D_MODEL, D_K, D_V = 12, 2, 32, 22, 19  # d_model / H is no d_k
WINDOW, T, B, WIDE = 9, 13, 3, 26
FREQUENCIES = np.array([1.0, 0.6, 0.3, 0.1, 0.02])


def _params(seed, *, d_k=D_K):
    shapes = (H, D_MODEL, d_k), (G, D_MODEL, d_k), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    return GroupedParams(*(normal(seed + n, *shape) / 6 for n, shape in enumerate(shapes)))


def _cache(seed, *, position, d_k=D_K):
    """Sample a cache: a key and a value for each token but one of a window."""
    S = min(position, WINDOW - 1)
    return normal(seed, G, S, d_k), normal(seed + 1, G, S, D_V), position


def _step_by_card(X, params, card, cache):
    (K, V, position), T, window = cache, X.shape[-2], card["window"]
    positions, frequencies = position + np.arange(T), card["frequencies"]
    Q, k, v = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, k = rotate(Q, positions, frequencies), rotate(k, positions, frequencies)
    K, V = np.concatenate([K, k], axis=-2), np.concatenate([V, v], axis=-2)
    S, times = K.shape[-2], params.n_heads // params.n_kv_heads
    scores = attention_scores(Q, np.repeat(K, times, axis=-3))
    real = position + np.arange(T - S, T) >= 0  # no padding
    seen = window_mask(T, S, window) & real[..., None, :]
    weights = attention_with_sink(scores, card["sink"], mask=seen)
    Y = concat_heads(weights @ np.repeat(V, times, axis=-3)) @ params.W_O
    first = max(0, S - window + 1)
    return Y, (K[..., first:, :], V[..., first:, :], position + T)


@cases_of(_step_by_card)
def check_step_by_card():
    params, wide = _params(60), _params(80, d_k=WIDE)
    card = {"window": WINDOW, "frequencies": FREQUENCIES, "sink": normal(64, H)}
    sharp = GroupedParams(2000 * params.W_Q, params.W_K, params.W_V, params.W_O)
    pad = np.array([2, 0, 1]).reshape(B, 1, 1)
    empty = np.zeros((B, G, 0, D_K)), np.zeros((B, G, 0, D_V)), -pad
    narrow = card | {"window": 1}
    nothing = np.zeros((G, 0, D_K)), np.zeros((G, 0, D_V)), 6

    def case(label, X, cache, *, params=params, card=card):
        return (label, {"X": X, "params": params, "card": card, "cache": cache})

    new = normal(68, 1, D_MODEL)
    yield case("a first chunk", normal(65, T, D_MODEL), _cache(66, position=0))
    yield case("one new token, wider heads", new, _cache(69, position=17, d_k=WIDE), params=wide)
    yield case("a sequence shorter than the window", normal(70, 1, D_MODEL), _cache(71, position=4))
    yield case("a chunk longer than the window", normal(71, T, D_MODEL), _cache(72, position=10))
    yield case("a batch, padded", normal(74, B, T, D_MODEL), empty)
    yield case("large scores", normal(75, 3, D_MODEL), _cache(76, position=7), params=sharp)
    yield case("a window of only the token itself", normal(78, 3, D_MODEL), nothing, card=narrow)
