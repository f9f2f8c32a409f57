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


def windowed(cache, T, width):
    """The mask of a layer with a window, which mistakes change behind a cache."""
    return cache.mask(T) & window_mask(T, cache.length + T, width)


def cached_layer(*, mask=KVCache.mask, append=KVCache.append):
    """A cached layer with position embeddings, as (step, empty).

    Parameters
    ----------
    mask : of (cache, T), before the new keys are cached
    append : of (cache, K, V), the cache with them
    """
    params, P = _params(), normal(54, 99, D_MODEL)

    def step(X, cache):
        T = X.shape[-2]
        seen = mask(cache, T)
        X = X + P[cache.positions(T)]
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        cache = append(cache, K, V)
        K, V = cache.K, cache.V
        weights = attention_weights(attention_scores(Q, K), mask=seen)
        return concat_heads(weights @ V) @ params.W_O, cache

    def empty(capacity, *, batch=(), pad=None):
        return KVCache.empty(params, capacity, batch=batch, pad=pad)

    return step, empty
