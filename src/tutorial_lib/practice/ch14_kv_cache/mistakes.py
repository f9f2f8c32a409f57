"""The right layer that the mistakes of `cached` are edits of."""

from tutorial_lib.attention import attention_scores, attention_weights
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.inputs import D_K, D_V, H, normal
from tutorial_lib.projection import Params, project_heads
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.patterns import window_mask

D_MODEL = 12  # as the check feeds, unless it is told another


def _params():
    shapes = (H, D_MODEL, D_K), (H, D_MODEL, D_K), (H, D_MODEL, D_V), (H * D_V, D_MODEL)
    return Params(*(normal(50 + n, *shape) / 4 for n, shape in enumerate(shapes)))


def _filled(cache):
    return cache.K, cache.V


def windowed(cache, T, width):
    """The mask of a layer with a window, which mistakes change behind a cache."""
    return cache.mask(T) & window_mask(T, cache.length + T, width)


def cached_layer(
    *,
    mask=KVCache.mask,
    positions=KVCache.positions,
    append=KVCache.append,
    cached=_filled,
    empty=KVCache.empty,
):
    """A cached layer with position embeddings, as (step, empty); each part can be a wrong one.

    Parameters
    ----------
    mask, positions : of (cache, T), before the new keys are cached
    append : of (cache, K, V), the cache with them
    cached : of the cache, the keys and values that the queries attend to
    empty : of (params, capacity), the empty cache
    """
    params, P = _params(), normal(54, 99, D_MODEL)

    def step(X, cache):
        T = X.shape[-2]
        seen = mask(cache, T)
        X = X + P[positions(cache, T)]
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        cache = append(cache, K, V)
        K, V = cached(cache)
        weights = attention_weights(attention_scores(Q, K), mask=seen)
        return concat_heads(weights @ V) @ params.W_O, cache

    def new(capacity, *, batch=(), pad=None):
        return empty(params, capacity, batch=batch, pad=pad)

    return step, new
