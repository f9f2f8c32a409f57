"""The decoder layer: one table of options and ways to feed it, each row equal to the library's NumPy."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from tests.sampling import every
from tutorial_lib import attention_scores, concat_heads, project_heads
from tutorial_lib.pytorch import DecoderCache, Sight, decoder_from_params
from tutorial_lib.pytorch import Rotation as OldRotation
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate

B, T, H, D_MODEL, D_K, D_V = 3, 8, 4, 12, 6, 7
PAD = np.array([0, 2, 4])
SINK = np.array([0.5, -1.0, 2.0, 0.0])
RNG = np.random.default_rng(63)
X = RNG.standard_normal((B, T, D_MODEL))
WEIGHTS = {G: GroupedParams(*(
    RNG.standard_normal(shape) for shape in (
        (H, D_MODEL, D_K), (G, D_MODEL, D_K), (G, D_MODEL, D_V), (H * D_V, D_MODEL)
    )
)) for G in (1, 2, H)}  # fmt: skip
GAINS = RNG.uniform(0.5, 3, (2, D_K))


@dataclass(frozen=True)
class Kind:
    """The options of a layer: a row of the table."""

    G: int = 2
    n_pairs: int = 3  # 0: no rotation; 2: in part
    half: bool = False
    window: int | None = None
    sink: bool = False
    norm_eps: float | None = None
    soft_cap: float | None = None

    def rows(self, X):
        """The rows of one sequence, in the library's NumPy."""
        params, frequencies = WEIGHTS[self.G], rope_frequencies(D_K)[: self.n_pairs]
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        if self.norm_eps is not None:
            lengths = [np.sqrt((A**2).mean(-1, keepdims=True) + self.norm_eps) for A in (Q, K)]
            Q, K = Q / lengths[0] * GAINS[0], K / lengths[1] * GAINS[1]
        if self.n_pairs:
            positions = np.arange(len(X))
            Q, K = (rotate(A, positions, frequencies, half=self.half) for A in (Q, K))
        K, V = (np.repeat(A, H // self.G, axis=-3) for A in (K, V))
        scores = attention_scores(Q, K)
        scores = (
            scores if self.soft_cap is None else self.soft_cap * np.tanh(scores / self.soft_cap)
        )
        mask = window_mask(len(X), len(X), self.window or len(X))
        sink = SINK if self.sink else np.full(H, -np.inf)
        return concat_heads(attention_with_sink(scores, sink, mask=mask) @ V) @ params.W_O

    def padded_rows(self, pad):
        """The rows of each sequence by itself; zeros for its padding."""
        rows = np.zeros_like(X)
        for b, n in enumerate(PAD if pad else np.zeros(B, int)):
            rows[b, n:] = self.rows(X[b, n:])
        return rows


def options():
    """Every combination of options, in an order in which neighbours differ in all of them."""
    rotations = (0, False), (3, False), (3, True), (2, False), (2, True)
    others = {"norm_eps": 1e-6}, {"soft_cap": 2.0}, {"norm_eps": 0.3}, {}
    table = itertools.product((1, 2, H), rotations, (None, 1, 3, T + 9), (False, True), others)
    kinds = [
        Kind(G, n_pairs, half, window, sink, **other)
        for G, (n_pairs, half), window, sink, other in table
    ]
    return [kinds[i * 271 % len(kinds)] for i in range(len(kinds))]


def old_layer(kind):
    sight = Sight(
        kind.window,
        SINK if kind.sink else None,
        GAINS if kind.norm_eps is not None else None,
        kind.norm_eps or 0.0,
    )
    rotation = OldRotation(rope_frequencies(D_K)[: kind.n_pairs or 3], half=kind.half)
    layer = decoder_from_params(
        WEIGHTS[kind.G], rotation=rotation if kind.n_pairs else None, sight=sight
    )
    return layer.requires_grad_(False)


@pytest.mark.parametrize("kind", every(12, options()), ids=str)
def test_every_way_of_feeding_gives_the_rows_of_numpy(kind):
    if kind.soft_cap is not None:
        pytest.skip("no cap")
    layer = old_layer(kind)
    for pad in (None, torch.from_numpy(PAD)):
        expected = kind.padded_rows(pad is not None)
        np.testing.assert_allclose(
            layer(torch.from_numpy(X), pad=pad), expected, rtol=1e-11, atol=1e-12
        )
        for n in (1, 2, 3, T):
            cache, rows = DecoderCache.empty(layer, T, batch=(B,), pad=pad), []
            for chunk in torch.from_numpy(X).split(n, dim=1):
                Y, cache = layer.step(chunk, cache)
                rows.append(Y)
            np.testing.assert_allclose(torch.cat(rows, 1), expected, rtol=1e-11, atol=1e-12)
