"""Right answers of chapter 16 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.positions import rotate


def halves_by_slices(W, n):
    return np.concatenate([W[..., : 2 * n : 2], W[..., 1 : 2 * n : 2], W[..., 2 * n :]], axis=-1)


def longer_frequencies_pair_by_pair(d_k, factor, *, base=10_000.0):
    pairs = np.arange(d_k // 2)
    return base ** (-2 * pairs / d_k) / factor ** (pairs / (d_k // 2 - 1))


def rotated_back_by_hand(Q, C, positions, frequencies, *, mask=None):
    """Each value rotated by its distance from the query, one pair of words after the other."""
    rotated = rotate(C, positions, frequencies)
    scores = tl.attention_scores(rotate(Q, positions, frequencies), rotated)
    weights = tl.attention_weights(scores, mask=mask)
    heads = np.zeros(Q.shape)
    for t, here in enumerate(positions):
        for s, there in enumerate(positions):
            relative = rotate(C[..., s : s + 1, :], np.array([there - here]), frequencies)
            heads[..., t, :] += weights[..., t, s, None] * relative[..., 0, :]
    return heads


VARIANTS = [
    ("halves_from_interleaved", "slices", halves_by_slices),
    ("longer_frequencies", "pair by pair", longer_frequencies_pair_by_pair),
    ("rotated_back", "each value by its distance", rotated_back_by_hand),
]


NARROW = [
    ("rotate", "positions from 0", "positions[..., None]", "(positions - positions[0])[..., None]"),
    ("rotate", "positions of one sequence", "positions[..., None]", "np.ravel(positions)[:, None]"),
    ("rotate", "positions up to 15", "positions[..., None]", "positions[..., None] % 16"),
    (
        "rotate",
        "positions up to 1,000",
        "positions[..., None]",
        "np.minimum(positions, 1000)[..., None]",
    ),
    (
        "alibi_slopes",
        "more than two heads",
        "return",
        "series = series if n_heads > 2 else 2 * series\nreturn",
    ),
    ("alibi_slopes", "powers of two", "2 ** int(np.log2(n_heads))", "n_heads"),
    ("halves_from_interleaved", "all pairs rotated", "order =", "n = W.shape[-1] // 2\norder ="),
    ("longer_frequencies", "one base", "base=base *", "base=1e4 *"),
]
