"""Layers put together from functions of the variants, each with a cache.

What `step` does is what chapters 14 to 17 build: `Grouped` caches keys that groups share and
that may be rotated or biased, `Patterned` masks some of them, `Latent` caches a latent per token
and a RoPE part. A method is a step where people go wrong, so that a test can put a mistake there.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from tutorial_lib import attention_scores, attention_weights, concat_heads, project_heads
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.grouped import GroupedParams, grouped_attention
from tutorial_lib.variants.latent import LatentParams, absorbed_attention
from tutorial_lib.variants.patterns import (
    attention_with_sink,
    gate_heads,
    top_k_mask,
    window_mask,
)
from tutorial_lib.variants.positions import alibi_scores, alibi_slopes, rope_frequencies, rotate

B, T, H, D_MODEL, D_K, D_V, RANK, CAPACITY = 3, 8, 4, 12, 6, 7, 5, 10
PADS = {"no padding": None, "padded": np.array([0, 2, 4])}
CHUNKS = 1, 2, 3, T
FREQUENCIES = rope_frequencies(D_K)
ENCODINGS = {
    "no positions": {},
    "interleaved pairs rotated": {"frequencies": FREQUENCIES},
    "halves rotated": {"frequencies": FREQUENCIES, "half": True},
    "interleaved pairs rotated in part": {"frequencies": FREQUENCIES[:2]},
    "halves rotated in part": {"frequencies": FREQUENCIES[:2], "half": True},
    "slopes": {"slopes": alibi_slopes(H)},
}
GROUPS = 1, 2, H


class Layer:
    """What all layers share: the mask of new tokens, their positions, and the steps in order."""

    def mask(self, cache, T):
        return cache.mask(T)

    def positions(self, cache, T):
        return cache.positions(T)[..., None, :]  # (..., 1, T)

    def step(self, X, cache):
        """Run the layer for the next tokens: (Y, cache)."""
        T = X.shape[-2]
        mask, positions = self.mask(cache, T), self.positions(cache, T)
        Q, rows = self.project(X, positions)
        cache = cache.append(*rows)
        heads = self.finish(self.attend(Q, cache, mask), X)
        return concat_heads(heads) @ self.params.W_O, cache

    def finish(self, heads, X):
        return heads


@dataclass(frozen=True)
class Grouped(Layer):
    """Heads in groups, their keys and values cached; RoPE on keys, ALiBi on scores, or neither."""

    params: GroupedParams
    frequencies: np.ndarray | None = None
    half: bool = False
    slopes: np.ndarray | None = None

    def empty(self, capacity, *, batch=(), pad=None):
        return KVCache.empty(self.params, capacity, batch=batch, pad=pad)

    def with_rope(self, A, positions):
        if self.frequencies is None:
            return A
        return rotate(A, positions, self.frequencies, half=self.half)

    def project(self, X, positions):
        params = self.params
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        return self.with_rope(Q, positions), (self.with_rope(K, positions), V)

    def per_head(self, A):
        return np.repeat(A, self.params.n_heads // self.params.n_kv_heads, axis=-3)

    def attend(self, Q, cache, mask):
        if self.slopes is None:
            return grouped_attention(Q, cache.K, cache.V, mask=mask)
        scores = alibi_scores(Q, self.per_head(cache.K), self.slopes)
        return attention_weights(scores, mask=mask) @ self.per_head(cache.V)


@dataclass(frozen=True)
class Patterned(Grouped):
    """Heads in groups that attend to a window, or to chosen keys of it, with sinks and gates."""

    window: int = CAPACITY
    k: int | None = None
    sink: np.ndarray | None = None
    W_G: np.ndarray | None = None

    def mask(self, cache, T):
        return cache.mask(T) & window_mask(T, cache.length + T, self.window)

    def top_k(self, scores, mask):
        return top_k_mask(scores, min(self.k, scores.shape[-1]), mask=mask)

    def weigh(self, scores, mask):
        sink = np.full(H, -np.inf) if self.sink is None else self.sink
        return attention_with_sink(scores, sink, mask=mask)

    def attend(self, Q, cache, mask):
        scores = attention_scores(Q, self.per_head(cache.K))
        mask = mask if self.k is None else self.top_k(scores, mask)
        return self.weigh(scores, mask) @ self.per_head(cache.V)

    def finish(self, heads, X):
        return heads if self.W_G is None else gate_heads(heads, X, self.W_G)


@dataclass(frozen=True)
class Latent(Layer):
    """One latent per token, cached in place of keys and values, and absorbed products.

    RoPE is decoupled: the last `2 * len(frequencies)` entries of a query and of what is cached are
    rotated, and belong to the latent as entries that W_UK passes through and W_UV drops.
    """

    params: LatentParams
    frequencies: np.ndarray

    def empty(self, capacity, *, batch=(), pad=None):
        W_D = self.params.W_D[None]
        latents = SimpleNamespace(W_K=W_D, W_V=W_D[..., :0])  # in place of the keys; no values
        return KVCache.empty(latents, capacity, batch=batch, pad=pad)

    def with_rope(self, A, positions):
        n_fixed = A.shape[-1] - 2 * len(self.frequencies)
        rope_part = A[..., n_fixed:]
        rope_part = rotate(rope_part, positions, self.frequencies) if rope_part.size else rope_part
        return np.concatenate([A[..., :n_fixed], rope_part], axis=-1)

    def project(self, X, positions):
        Q = project_heads(X, self.params.W_Q)
        C = (X @ self.params.W_D)[..., None, :, :]
        return self.with_rope(Q, positions), (self.with_rope(C, positions), C[..., :0])

    def attend(self, Q, cache, mask):
        return absorbed_attention(Q, cache.K[..., 0, :, :], self.params, mask=mask)


@dataclass(frozen=True)
class WindowedLatent(Latent):
    """A latent per token, absorbed, and a window over the cache."""

    window: int = 3

    def mask(self, cache, T):
        return cache.mask(T) & window_mask(T, cache.length + T, self.window)


@dataclass(frozen=True)
class RotatedLatent(Latent):
    """A latent per token; its keys are computed at every step and rotated, so never absorbed."""

    def with_rope(self, A, positions):
        return rotate(A, positions, self.frequencies) if A.shape[-1] == self.params.d_k else A

    def attend(self, Q, cache, mask):
        empty_cache = self.empty(cache.capacity, batch=cache.batch, pad=cache.pad)
        C, positions = cache.K, self.positions(empty_cache, cache.length)
        K = rotate(C @ self.params.W_UK, positions, self.frequencies)
        return grouped_attention(Q, K, C @ self.params.W_UV, mask=mask)


def gaussian(seed, *shape):
    """Normal entries, of variance 1 / rows."""
    return np.random.default_rng(seed).standard_normal(shape) / np.sqrt(shape[-2])


def grouped_layer(G, encoding):
    """A layer of G KV heads."""
    keys, values = gaussian(2, G, D_MODEL, D_K), gaussian(3, G, D_MODEL, D_V)
    queries, output = 3 * gaussian(1, H, D_MODEL, D_K), gaussian(4, H * D_V, D_MODEL)
    return Grouped(GroupedParams(queries, keys, values, output), **ENCODINGS[encoding])


def patterned_layer(encoding, **options):
    """A layer of two KV heads with sparse attention."""
    return Patterned(grouped_layer(2, encoding).params, **ENCODINGS[encoding], **options)


def latent_layer(kind, rope_width):
    """A layer that caches a latent, with a RoPE part of n entries."""
    d_k, latent_width = D_K + rope_width, RANK + rope_width
    W_UK, W_UV = np.zeros((H, latent_width, d_k)), np.zeros((H, latent_width, D_V))
    W_UK[:, :RANK, :D_K], W_UV[:, :RANK] = gaussian(2, H, RANK, D_K), gaussian(3, H, RANK, D_V)
    W_UK[:, RANK:, D_K:] = np.eye(rope_width)  # the RoPE part is a key as it is
    queries, down_projection = 3 * gaussian(1, H, D_MODEL, d_k), gaussian(5, D_MODEL, latent_width)
    params = LatentParams(queries, down_projection, W_UK, W_UV, gaussian(4, H * D_V, D_MODEL))
    return kind(params, FREQUENCIES if kind is RotatedLatent else FREQUENCIES[: rope_width // 2])


SINK, W_G = gaussian(7, H, 1)[:, 0], 3 * gaussian(8, H, D_MODEL, D_V)
LAYERS = {f"{G} KV heads, {name}": grouped_layer(G, name) for G in GROUPS for name in ENCODINGS} | {
    "latent, absorbed": latent_layer(Latent, 0),
    "latent, absorbed, decoupled": latent_layer(Latent, 4),
    "latent, keys computed and rotated": latent_layer(RotatedLatent, 0),
    "2 KV heads, a window": patterned_layer("no positions", window=3),
    "2 KV heads, a window, halves rotated": patterned_layer("halves rotated", window=3),
    "2 KV heads, a sink": patterned_layer("no positions", sink=SINK),
    "2 KV heads, gates": patterned_layer("no positions", W_G=W_G),
    "2 KV heads, top-k keys": patterned_layer("no positions", k=2),
    "2 KV heads, all of it": patterned_layer("halves rotated", window=5, k=3, sink=SINK, W_G=W_G),
    "latent, absorbed, a window": latent_layer(WindowedLatent, 4),
}
X = gaussian(6, B, T, D_MODEL) * np.sqrt(T)


@functools.cache
def whole_rows(layer_name, pad):
    """The rows of each sequence by itself, in one chunk; zeros for its padding."""
    layer, rows = LAYERS[layer_name], np.zeros(X.shape)
    for sequence in range(B):
        start = 0 if PADS[pad] is None else PADS[pad][sequence]
        rows[sequence, start:], _ = layer.step(X[sequence, start:], layer.empty(CAPACITY))
    return rows


def rows_in_chunks(layer, pad, chunk_length):
    """The rows of a layer that processes n tokens at a time."""
    cache, rows = layer.empty(CAPACITY, batch=(B,), pad=PADS[pad]), []
    for start in range(0, T, chunk_length):
        Y, cache = layer.step(X[:, start : start + chunk_length], cache)
        rows.append(Y)
    return np.concatenate(rows, axis=1)
